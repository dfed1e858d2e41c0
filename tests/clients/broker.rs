//! The binary under test: started, stopped in order, killed, and started again on the same folder and port.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::command::{last_of, wait_until};

/// One broker with a data folder of its own, which goes when this drops.
pub struct Broker {
    process: Option<Child>,
    settings: Vec<String>,
    port: u16,
    folder: TempDir,
}

impl Broker {
    /// A fresh broker that listens at a free port of 127.0.0.1; `settings` as `name=value`.
    pub fn start(settings: &[&str]) -> Broker {
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut broker =
            Broker { process: None, settings, port: free_port(), folder: tempfile::tempdir().unwrap() };
        broker.start_again();
        broker
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The folder of its data (`log.dirs`).
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn partition_folder(&self, topic: &str, partition: usize) -> PathBuf {
        self.data().join(format!("{topic}-{partition}"))
    }

    /// Starts it again with these settings in the place of those that it had.
    pub fn start_again_with(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        self.start_again();
    }

    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let log = File::options().create(true).append(true).open(self.log_path()).unwrap();
        let data = self.data();
        let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
        command.arg("serve").args(["--override", &format!("listeners=PLAINTEXT://{}", self.address())]);
        command.args(["--override", &format!("log.dirs={}", data.display())]);
        self.settings.iter().for_each(|setting| {
            command.args(["--override", setting]);
        });
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.process = Some(process);
        wait_until("the broker answers", || {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the broker ended: {}", last_of(&self.log()));
            answers(&self.address()).is_ok()
        });
    }

    /// SIGTERM, and the end it should come to.
    pub fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        ask_to_end(&process);
        let mut status = None;
        wait_until("the broker stops", || {
            status = process.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}: {}", last_of(&self.log()));
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Bytes in all segments of `topic`.
    pub fn bytes_of(&self, topic: &str) -> u64 {
        let segments = files_of(&self.data(), ".log");
        let of_topic = segments.iter().filter(|path| {
            let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy();
            folder.rsplit_once('-').is_some_and(|(name, _)| name == topic)
        });
        of_topic.map(|path| fs::metadata(path).map_or(0, |metadata| metadata.len())).sum()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("broker.log")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("the broker's log ends:\n{}", last_of(&self.log()));
        }
    }
}

/// SIGTERM.
pub fn ask_to_end(process: &Child) {
    let id = i32::try_from(process.id()).unwrap();
    // SAFETY: nothing but a signal, to a child that was not waited for yet.
    assert_eq!(unsafe { libc::kill(id, libc::SIGTERM) }, 0);
}

/// Asks for ApiVersions. That a connection can be opened says nothing: the listener of a process that was killed lives on for a
/// moment, until the kernel has taken its io_uring down.
fn answers(address: &str) -> io::Result<()> {
    const API_VERSIONS_0: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 255, 255];
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&API_VERSIONS_0)?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)
}

/// All files one level down whose names end so, sorted.
pub fn files_of(data: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let folders = entries(data).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| entries(&folder))
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}

/// A port that nothing listens at, below those that outgoing connections get, so that it is still free after a restart.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap();
    loop {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
