//! Starts Onrush.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::own::{Making, OwnBroker, data_folder, free_port};
use crate::wire::admin::Failure;

/// Runs `onrush serve` on a free port, with a data folder of its own.
pub fn start(binary: &Path, making: &Making) -> Result<OwnBroker, Failure> {
    let folder = data_folder(making.data_parent.as_deref())?;
    let bootstrap = format!("127.0.0.1:{}", free_port()?);
    let mut command = Command::new(binary);
    command.arg("serve");
    command.arg("--override").arg(format!("listeners=PLAINTEXT://{bootstrap}"));
    command.arg("--override").arg(format!("log.dirs={}", folder.path().join("data").display()));
    for (key, value) in &making.settings {
        command.arg("--override").arg(format!("{key}={value}"));
    }
    OwnBroker::start(command, bootstrap, folder, making.memory_limit_mib)
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
