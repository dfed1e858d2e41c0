//! Where the clients are, and what to say when one is not there.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a test was not run: which client is missing.
pub struct NotRun(pub String);

fn missing(what: &str) -> NotRun {
    NotRun(format!("{what} is not installed (tests/clients/setup.sh installs it)"))
}

/// What `setup.sh` keeps beside the build.
fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder").join("clients")
}

fn on_path(name: &str) -> Option<PathBuf> {
    let system = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(system);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// kcat at `address`, without its own remarks.
pub fn kcat(address: &str) -> Result<Command, NotRun> {
    let mut command = Command::new(on_path("kcat").ok_or_else(|| missing("kcat"))?);
    command.args(["-q", "-b", address]);
    Ok(command)
}

/// A class of Kafka's jars.
pub fn java(class: &str) -> Result<Command, NotRun> {
    let java = on_path("java").ok_or_else(|| missing("java"))?;
    let jars = place().join("kafka-4.3.1");
    if !jars.join(".done").is_file() {
        return Err(missing("Apache Kafka 4.3.1 (its jars)"));
    }
    let mut command = Command::new(java);
    command.args(["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
    command.arg("-cp").arg(jars.join("*")).arg(class);
    Ok(command)
}

/// Python with the client that comes as `package`, and a script of this folder.
pub fn python(package: &str, script: &str) -> Result<Command, NotRun> {
    let environment = place().join("python");
    if !environment.join(".done").is_file() {
        return Err(missing(package));
    }
    let mut command = Command::new(environment.join("bin/python"));
    command.arg(script_path(script));
    Ok(command)
}

/// Node with KafkaJS, and a script of this folder.
pub fn kafkajs(script: &str) -> Result<Command, NotRun> {
    let node = on_path("node").ok_or_else(|| missing("node"))?;
    let packages = place().join("node");
    if !packages.join(".done").is_file() {
        return Err(missing("KafkaJS"));
    }
    let mut command = Command::new(node);
    command.env("NODE_PATH", packages.join("node_modules")).env("KAFKAJS_NO_PARTITIONER_WARNING", "1");
    command.arg(script_path(script));
    Ok(command)
}

/// The program over franz-go in this folder, as built by `setup.sh`.
pub fn franz_go() -> Result<Command, NotRun> {
    let program = place().join("franz-go-round-trip");
    if program.is_file() { Ok(Command::new(program)) } else { Err(missing("franz-go")) }
}

fn script_path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script)
}

/// rsyslogd that can load omkafka.
pub fn rsyslogd() -> Result<Command, NotRun> {
    let rsyslogd = on_path("rsyslogd").ok_or_else(|| missing("rsyslog"))?;
    let module = format!("/usr/lib/{}-linux-gnu/rsyslog/omkafka.so", env::consts::ARCH);
    let module = [module.as_str(), "/usr/lib64/rsyslog/omkafka.so", "/usr/lib/rsyslog/omkafka.so"];
    if !module.iter().any(|path| Path::new(path).is_file()) {
        return Err(missing("rsyslog-kafka"));
    }
    Ok(Command::new(rsyslogd))
}
