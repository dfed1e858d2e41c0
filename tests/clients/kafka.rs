//! Apache Kafka itself.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use super::broker::{ask_to_end, free_port};
use super::clients::{NotRun, java, kcat};
use super::command::{last_of, run, wait_until};

/// Apache Kafka on one node, its data in a folder that goes when this drops.
pub struct Kafka {
    process: Option<Child>,
    port: u16,
    folder: tempfile::TempDir,
}

impl Kafka {
    /// Kafka that is still to be started; `settings`: lines of its property file.
    pub fn prepare(settings: &str) -> Result<Kafka, NotRun> {
        let kafka = Kafka { process: None, port: free_port(), folder: tempfile::tempdir().unwrap() };
        let controller = free_port();
        let (port, data) = (kafka.port, kafka.data().display().to_string());
        let own = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.listener.names=CONTROLLER\nlog.dirs={data}\noffsets.topic.replication.factor=1\n\
             log.segment.bytes=1048576\n{settings}"
        );
        fs::write(kafka.properties(), own).unwrap();
        let mut format = java("kafka.tools.StorageTool")?;
        format.args(["format", "--cluster-id", "a2Fma2EgaXMgdGhlIHBlZQ", "-c"]).arg(kafka.properties());
        run(&mut format, "").successful();
        Ok(kafka)
    }

    pub fn start(&mut self) -> Result<(), NotRun> {
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let mut command = java("kafka.Kafka")?;
        command.arg(self.properties()).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        wait_until("Kafka answers", || {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "Kafka ended: {}", last_of(&self.log()));
            let list = kcat(&self.address()).map(|mut kcat| run(kcat.args(["-L", "-m", "2"]), ""));
            list.is_ok_and(|listed| listed.status.success())
        });
        Ok(())
    }

    pub fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        ask_to_end(&process);
        wait_until("Kafka stops", || process.try_wait().unwrap().is_some());
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
    pub fn partition_folder(&self, topic: &str) -> PathBuf {
        self.data().join(format!("{topic}-0"))
    }
    /// Changes a setting for the next start.
    pub fn change(&self, from: &str, to: &str) {
        let settings = fs::read_to_string(self.properties()).unwrap();
        assert!(settings.contains(from), "{settings}");
        fs::write(self.properties(), settings.replace(from, to)).unwrap();
    }
    fn properties(&self) -> PathBuf {
        self.folder.path().join("server.properties")
    }
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
