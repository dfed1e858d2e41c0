//! Whose socket listens at an address of this machine.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

const LISTEN: &str = "0A";

/// The process that listens at `address`; `None` when that is on another machine, or cannot be seen.
pub fn listening_process(address: &str) -> Option<u32> {
    let mut addresses = address.to_socket_addrs().ok()?;
    let inode = addresses.find_map(|address| {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        tables.iter().find_map(|table| listening_inode(&fs::read_to_string(table).ok()?, address))
    })?;
    owner_of(&format!("socket:[{inode}]"))
}

/// The inode of the socket in a table of `/proc/net` that takes connections to `address`.
fn listening_inode(table: &str, address: SocketAddr) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (ip, port) = fields.get(1)?.split_once(':')?;
        let matches = *fields.get(3)? == LISTEN
            && u16::from_str_radix(port, 16) == Ok(address.port())
            && ip_of(ip).is_some_and(|ip| takes(ip, address.ip()));
        matches.then(|| fields.get(9)?.parse().ok())?
    })
}

fn takes(listening: IpAddr, wanted: IpAddr) -> bool {
    let listening = match listening {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        v4 => v4,
    };
    listening.is_unspecified() && wanted.is_loopback() || listening == wanted
}

/// Addresses stand there as 32-bit words in the byte order of the machine.
fn ip_of(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    for at in (0..text.len()).step_by(8) {
        let word = u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    match bytes.len() {
        4 => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?))),
        16 => Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))),
        _ => None,
    }
}

fn owner_of(link: &str) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target.as_os_str() == link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_of_this_process_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        assert_eq!(listening_process(&address), Some(std::process::id()));
        drop(listener);
        assert_eq!(listening_process(&address), None);
    }

    #[test]
    fn a_listener_for_all_addresses_takes_those_to_the_loopback() {
        let line = |local: &str| format!("head\n 0: {local} 00000000:0000 0A 0:0 0:0 0 0 0 77 1 0\n");
        let loopback = "127.0.0.1:9092".parse().expect("an address");
        assert_eq!(listening_inode(&line("00000000:2384"), loopback), Some(77));
        assert_eq!(listening_inode(&line("00000000000000000000000000000000:2384"), loopback), Some(77));
        assert_eq!(listening_inode(&line("0100007F:2384"), loopback), Some(77));
        assert_eq!(listening_inode(&line("0100007F:2385"), loopback), None);
    }
}
