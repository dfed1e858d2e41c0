//! What a process asks the kernel for before its shards run. These calls block.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use crate::base::Trouble;

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String, Trouble> {
    std::fs::read_to_string(path).map_err(|cause| Trouble::new("read", path, cause))
}

/// The name that this machine has given itself; what clients are told where no address is set.
pub fn host_name() -> Result<String, Trouble> {
    read_text(Path::new("/proc/sys/kernel/hostname")).map(|name| name.trim().to_owned())
}

/// The addresses behind `host`, which may be an address itself, in the order the resolver prefers.
pub fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, Trouble> {
    let addresses = (host, port).to_socket_addrs().map_err(|cause| Trouble::new("look up", host, cause))?;
    Ok(addresses.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_name_and_an_address_is_its_own_address() {
        assert!(!host_name().expect("a name").is_empty());
        let address = "127.0.0.1:9092".parse().expect("an address");
        assert_eq!(look_up("127.0.0.1", 9092).expect("no resolver is asked"), [address]);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let trouble = read_text(Path::new("/no/such/file")).expect_err("no file");
        assert!(trouble.is_not_found() && trouble.to_string().starts_with("read /no/such/file"));
    }
}
