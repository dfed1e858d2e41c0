//! Running other people's programs, with an end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest run of one client.
pub const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(10);

/// What a program printed and how it ended.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// What it printed, once it has ended well.
    #[track_caller]
    pub fn successful(self) -> String {
        assert!(self.status.success(), "{}\n{}{}", self.status, last_of(&self.stdout), last_of(&self.stderr));
        self.stdout
    }
}

/// A program under way, its output in files.
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

/// Starts `command` with `input` on its standard input.
pub fn start(command: &mut Command, input: &str) -> Running {
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    stdin.seek(SeekFrom::Start(0)).unwrap();
    let (stdout, stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let child = command
        .stdin(stdin)
        .stdout(stdout.try_clone().unwrap())
        .stderr(stderr.try_clone().unwrap())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Running { child, stdout, stderr }
}

/// Runs `command` to its end; ends it after `PATIENCE`.
pub fn run(command: &mut Command, input: &str) -> Finished {
    start(command, input).finish()
}

impl Running {
    /// Ends it as it stands.
    pub fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn finish(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() >= deadline => {
                    self.child.kill().unwrap();
                    break self.child.wait().unwrap();
                }
                None => sleep(LOOK),
            }
        };
        Finished { status, stdout: text(&mut self.stdout), stderr: text(&mut self.stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last lines of a long output.
pub fn last_of(text: &str) -> &str {
    let from = text.len().saturating_sub(2000);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

/// Asks again, a moment apart, until `done` says so; panics with `what` after `PATIENCE`.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(LOOK);
    }
}
