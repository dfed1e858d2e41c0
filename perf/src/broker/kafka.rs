//! Starts Apache Kafka from an unpacked release, or from a folder that holds its jars: one node, KRaft, broker and
//! controller in one process, the JVM flags of `kafka-server-start.sh`, and every setting at its default but for what a
//! single node needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::own::{Making, OwnBroker, data_folder, free_ports};
use crate::wire::admin::Failure;

/// Its internal topics want three nodes by default.
const SINGLE_NODE: [&str; 5] = [
    "offsets.topic.replication.factor=1",
    "transaction.state.log.replication.factor=1",
    "transaction.state.log.min.isr=1",
    "share.coordinator.state.topic.replication.factor=1",
    "share.coordinator.state.topic.min.isr=1",
];
/// `KAFKA_HEAP_OPTS` and `KAFKA_JVM_PERFORMANCE_OPTS` of the start scripts of release 4.
const JVM_FLAGS: [&str; 8] = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
];
const NODE_ID: u32 = 1;
/// Any 16 bytes in base64 without padding will do.
const CLUSTER_ID: &str = "b25ydXNoLXBlcmYtLS0tLQ";
/// Warnings go to the standard output, nothing else: a log of every segment would be work that Onrush does not do.
const LOGGING: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="warn">
  <Appenders><Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"#;

/// Formats a storage folder and runs the broker. Errors: no jars there, no `java`, a setting that Kafka refuses.
pub fn start(release: &Path, making: &Making) -> Result<OwnBroker, Failure> {
    let libs = libs(release)?;
    let folder = data_folder(making.data_parent.as_deref())?;
    let [port, controller_port] = free_ports()?;
    let bootstrap = format!("127.0.0.1:{port}");
    let mut properties = vec![
        "process.roles=broker,controller".to_owned(),
        format!("node.id={NODE_ID}"),
        format!("controller.quorum.voters={NODE_ID}@127.0.0.1:{controller_port}"),
        format!("listeners=PLAINTEXT://{bootstrap},CONTROLLER://127.0.0.1:{controller_port}"),
        format!("advertised.listeners=PLAINTEXT://{bootstrap}"),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
        "controller.listener.names=CONTROLLER".to_owned(),
        format!("log.dirs={}", folder.path().join("data").display()),
    ];
    properties.extend(SINGLE_NODE.map(str::to_owned));
    properties.extend(making.settings.iter().map(|(key, value)| format!("{key}={value}")));
    let (file, logging) = (folder.path().join("server.properties"), folder.path().join("log4j2.xml"));
    let cannot = |error: std::io::Error| format!("Kafka's settings cannot be written: {error}");
    fs::write(&file, properties.join("\n")).map_err(cannot)?;
    fs::write(&logging, LOGGING).map_err(cannot)?;
    let java = || {
        let mut command = Command::new("java");
        command.arg(format!("-Dlog4j2.configurationFile={}", logging.display()));
        command
    };
    let class_path = libs.join("*");
    let formatted = java()
        .args(["-XX:TieredStopAtLevel=1", "-cp"])
        .arg(&class_path)
        .args(["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "-c"])
        .arg(&file)
        .output()
        .map_err(|error| format!("java cannot be started: {error}"))?;
    if !formatted.status.success() {
        let said = String::from_utf8_lossy(&formatted.stderr);
        let last = said.lines().next_back().unwrap_or("nothing");
        return Err(format!("Kafka does not format its storage; the last it said: {last}"));
    }
    let mut command = java();
    command.args(JVM_FLAGS).arg("-cp").arg(&class_path).arg("kafka.Kafka").arg(&file);
    OwnBroker::start(command, bootstrap, folder, making.memory_limit_mib)
}

/// From the name of its server jar, as `kafka_2.13-4.3.1.jar`.
pub fn version(release: &Path) -> Option<String> {
    jars(&libs(release).ok()?).iter().find_map(|name| {
        let (scala, version) = name.strip_prefix("kafka_")?.strip_suffix(".jar")?.split_once('-')?;
        scala.chars().all(|letter| letter.is_ascii_digit() || letter == '.').then(|| version.to_owned())
    })
}

/// The folder with the jars: `libs` in a release, or the folder itself.
fn libs(release: &Path) -> Result<PathBuf, Failure> {
    let candidates = [release.join("libs"), release.to_owned()];
    let has_server = |folder: &PathBuf| jars(folder).iter().any(|name| name.starts_with("kafka_"));
    candidates.into_iter().find(has_server).ok_or_else(|| {
        format!("{} holds no Kafka: there is no kafka_*.jar in it or in its libs", release.display())
    })
}

fn jars(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".jar")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_server_jar() {
        let release = tempfile::tempdir().expect("a folder");
        assert!(libs(release.path()).is_err());
        let libs = release.path().join("libs");
        fs::create_dir(&libs).expect("a folder");
        for name in ["kafka-clients-4.3.1.jar", "kafka_2.13-4.3.1.jar", "kafka_2.13-4.3.1.jar.asc"] {
            fs::write(libs.join(name), "").expect("a file");
        }
        assert_eq!(version(release.path()), Some("4.3.1".to_owned()));
        assert_eq!(version(&libs), Some("4.3.1".to_owned()));
    }
}
