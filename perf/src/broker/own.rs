//! A broker that the harness starts: a free port, and a data folder that goes with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::control_group::MemoryGroup;
use crate::interrupt;
use crate::wire::admin::Failure;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// How a broker is to be started.
#[derive(Clone, Debug, Default)]
pub struct Making {
    /// Server properties; all others are the broker's defaults.
    pub settings: BTreeMap<String, String>,
    /// Where its data folder is made; the system's folder for temporary files if `None`.
    pub data_parent: Option<PathBuf>,
    /// 0: no limit.
    pub memory_limit_mib: u64,
}

impl Making {
    /// What only a broker that is started can be given; `None` when there is nothing.
    pub fn wishes(&self) -> Option<String> {
        let mut wishes: Vec<String> =
            self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if self.memory_limit_mib > 0 {
            wishes.push(format!("a memory limit of {} MiB", self.memory_limit_mib));
        }
        (!wishes.is_empty()).then(|| wishes.join(", "))
    }
}

/// Dropping it stops the broker and removes its data.
pub struct OwnBroker {
    child: Child,
    pub bootstrap: String,
    pub folder: TempDir,
    /// What was not done as asked for, in sentences.
    pub notes: Vec<String>,
    /// Is removed after the process is gone.
    _group: Option<MemoryGroup>,
}

impl OwnBroker {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its partitions are.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs `command` until `bootstrap` takes connections; what it prints goes to `broker.log` in `folder`.
    pub fn start(
        mut command: Command,
        bootstrap: String,
        folder: TempDir,
        memory_limit_mib: u64,
    ) -> Result<OwnBroker, Failure> {
        let program = command.get_program().to_string_lossy().into_owned();
        let log = folder.path().join("broker.log");
        let cannot = |what: std::io::Error| format!("{program} cannot be started: {what}");
        let out = File::create(&log).map_err(cannot)?;
        // Ctrl-C at the terminal is for the harness alone, which then stops the broker.
        command.process_group(0);
        end_with_this_process(&mut command);
        command.stdin(Stdio::null()).stdout(out.try_clone().map_err(cannot)?).stderr(out);
        let child = command.spawn().map_err(cannot)?;
        let mut broker = OwnBroker { child, bootstrap, folder, notes: Vec::new(), _group: None };
        if memory_limit_mib > 0 {
            match MemoryGroup::hold(broker.pid(), memory_limit_mib << 20) {
                Ok(group) => broker._group = Some(group),
                Err(failure) => broker.notes.push(failure),
            }
        }
        let until = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(&broker.bootstrap).is_err() {
            interrupt::check()?;
            let has_ended = broker.child.try_wait().map_err(cannot)?.is_some();
            if has_ended || Instant::now() > until {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().last().unwrap_or("nothing").to_owned();
                return Err(format!("{program} did not come up; the last it said: {last}"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(broker)
    }
}

/// The child is killed when the thread that starts it is gone, however that ended.
fn end_with_this_process(command: &mut Command) {
    // SAFETY: between fork and exec only this system call is made; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

impl Drop for OwnBroker {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: the child is ours and has not been waited for, so its id is still its own.
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        }
        let until = Instant::now() + STOP_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                // It has ended meanwhile when this fails.
                let _ = self.child.kill();
            }
            std::thread::sleep(LOOK);
        }
    }
}

pub fn data_folder(parent: Option<&Path>) -> Result<TempDir, Failure> {
    let builder = &mut tempfile::Builder::new();
    let builder = builder.prefix("perf-");
    let folder = match parent {
        Some(parent) => builder.tempdir_in(parent),
        None => builder.tempdir(),
    };
    folder.map_err(|error| format!("no folder for the broker's data: {error}"))
}

/// Different ports that nobody listened at a moment ago.
pub fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], Failure> {
    let ports = free_port_list(COUNT)?;
    Ok(ports.try_into().expect("there are as many as were asked for"))
}

/// As `free_ports`, for a number that is not known before.
pub fn free_port_list(count: usize) -> Result<Vec<u16>, Failure> {
    // All are held until the last one is found, so that none comes twice.
    let listeners: std::io::Result<Vec<TcpListener>> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let ports = listeners.and_then(|listeners| {
        listeners.iter().map(|listener| listener.local_addr().map(|address| address.port())).collect()
    });
    ports.map_err(|error| format!("no free port: {error}"))
}
