//! Starts Onrush.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::own::{Making, OwnBroker, data_folder, free_port_list, free_ports};
use crate::wire::admin::Failure;

/// Runs `onrush serve` on a free port, with a data folder of its own.
pub fn start(binary: &Path, making: &Making) -> Result<OwnBroker, Failure> {
    let folder = data_folder(making.data_parent.as_deref())?;
    let [port] = free_ports()?;
    let bootstrap = format!("127.0.0.1:{port}");
    let mut command = Command::new(binary);
    command.arg("serve");
    command.arg("--override").arg(format!("listeners=PLAINTEXT://{bootstrap}"));
    command.arg("--override").arg(format!("log.dirs={}", folder.path().join("data").display()));
    for (key, value) in making.settings.iter().chain(&ports_of_cores(&making.settings)?) {
        command.arg("--override").arg(format!("{key}={value}"));
    }
    OwnBroker::start(command, bootstrap, folder, making.memory_limit_mib)
}

/// The ports that `onrush.advertise=cores` wants, where none are named.
fn ports_of_cores(settings: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Failure> {
    const PORTS: &str = "onrush.advertise.ports";
    let wants_ports = settings.get("onrush.advertise").is_some_and(|advertise| advertise == "cores");
    if !wants_ports || settings.contains_key(PORTS) {
        return Ok(BTreeMap::new());
    }
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = settings.get("onrush.cores").map_or(Some(all), |cores| core_count(cores));
    let count = count.ok_or("onrush.cores is no list of cores")?;
    let ports: Vec<String> = free_port_list(count)?.iter().map(u16::to_string).collect();
    Ok(BTreeMap::from([(PORTS.to_owned(), ports.join(","))]))
}

/// How many cores are in a list such as `0-3,6`.
fn core_count(list: &str) -> Option<usize> {
    let parts = list.split(',').map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?).map(|more| more + 1)
    });
    parts.sum()
}

/// What `onrush --version` says; `None` when it says nothing.
pub fn version(binary: &Path) -> Option<String> {
    let output = Command::new(binary).arg("--version").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim().trim_start_matches("onrush ").to_owned()).filter(|version| !version.is_empty())
}

/// The `onrush` beside this program, else the one on the search path.
pub fn find_binary() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join("onrush"));
    let search = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&search).map(|folder| folder.join("onrush"));
    beside.into_iter().chain(on_path).find(|candidate| candidate.is_file()).ok_or_else(|| {
        "there is no onrush beside onrush-perf or on the PATH; name one with --onrush".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_a_list_are_counted() {
        let counts = ["0", "0-3", "0-3,6", "2,5", "3-1", "x"].map(core_count);
        assert_eq!(counts, [Some(1), Some(4), Some(5), Some(2), None, None]);
    }

    #[test]
    fn ports_are_added_only_where_they_are_wanted() {
        let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let cores = ("onrush.advertise", "cores");
        let added = ports_of_cores(&settings(&[cores, ("onrush.cores", "0-2")])).expect("ports are free");
        assert_eq!(added["onrush.advertise.ports"].split(',').count(), 3);
        let named = settings(&[cores, ("onrush.advertise.ports", "1,2")]);
        assert_eq!(ports_of_cores(&named), Ok(BTreeMap::new()));
        assert_eq!(ports_of_cores(&settings(&[])), Ok(BTreeMap::new()));
    }
}
