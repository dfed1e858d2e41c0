//! Files that go to and come from Apache Kafka 4.3.1.

use std::fs;
use std::path::{Path, PathBuf};

use super::broker::{Broker, files_of};
use super::clients::{NotRun, java, kcat};
use super::command::{last_of, run, wait_until};
use super::kafka::Kafka;
use super::kcat::consume_all;
use super::lines::{assert_all_in_order, keyed, lines};

/// What DumpLogSegments prints when something is wrong with a file.
const COMPLAINTS: [&str; 10] = [
    "Mismatches in",
    "mismatch",
    "out of order",
    "not found in the log",
    "is followed by",
    "invalid bytes",
    "isvalid: false",
    "Unknown record type",
    "Error at offset",
    "Exception",
];
/// Every segment but a log's first is said to begin behind offset -1.
const NO_COMPLAINT: &str = "  -1 is followed by ";

pub fn produce(address: &str, topic: &str, lines: &[String], codec: &str) -> Result<(), NotRun> {
    let mut producer = kcat(address)?;
    producer.args(["-P", "-t", topic, "-K|", "-z", codec, "-X", "enable.idempotence=true"]);
    run(producer.args(["-X", "batch.num.messages=100"]), &keyed(lines)).successful();
    Ok(())
}

/// Kafka's own tool walks every file of a broker that was stopped in order, and of one that was killed and started again.
pub fn dump_log_reads_our_files() -> Result<(), NotRun> {
    let mut broker = Broker::start(&["log.segment.bytes=1048576", "log.index.interval.bytes=2048"]);
    let sent = lines(30_000);
    let parts: Vec<&[String]> = sent.chunks(6_000).collect();
    for (part, codec) in parts.iter().zip(["none", "gzip", "snappy", "lz4", "zstd"]) {
        produce(&broker.address(), "lines", part, codec)?;
    }
    let mut group = kcat(&broker.address())?;
    group.args(["-G", "readers", "-e", "-X", "auto.offset.reset=earliest", "lines"]);
    run(&mut group, "").successful();
    broker.kill();
    broker.start_again();
    assert_all_in_order(&sent, &consume_all(&broker, "lines")?);
    broker.stop();
    let segments = files_of(&broker.data(), ".log");
    let of_lines = segments.iter().filter(|path| path.parent().unwrap().ends_with("lines-0"));
    assert!(of_lines.count() > 1, "there is more than one segment");
    let data = without_decoders(&segments);
    let dumped = dump(&data, &["--deep-iteration", "--print-data-log"])?;
    let records =
        dumped.lines().filter(|line| line.starts_with("| offset:") && line.contains("payload: host-"));
    assert_eq!(records.count(), sent.len());
    for (topic, decoder) in
        [("__consumer_offsets", "--offsets-decoder"), ("__cluster_metadata", "--cluster-metadata-decoder")]
    {
        let own: Vec<PathBuf> = segments
            .iter()
            .filter(|path| path.to_string_lossy().contains(topic) && fs::metadata(path).unwrap().len() > 0)
            .cloned()
            .collect();
        let dumped = dump(&own, &[decoder])?;
        assert!(dumped.lines().any(|line| line.starts_with("| offset:")), "{topic}: {}", last_of(&dumped));
    }
    for (ending, arguments) in [
        (".index", &["--deep-iteration"][..]),
        (".timeindex", &[]),
        (".snapshot", &[]),
        (".index", &["--verify-index-only"]),
    ] {
        let files = files_of(&broker.data(), ending);
        assert!(!files.is_empty(), "there are {ending} files");
        dump(&without_decoders(&files), arguments)?;
    }
    Ok(())
}

/// The same of segments that retention and compaction have been at.
pub fn dump_log_reads_what_was_cleaned() -> Result<(), NotRun> {
    // The tool complains of the time index of a batch without records, in Kafka's folder too.
    let policies =
        [("compact", &[".index", ".snapshot"][..]), ("delete", &[".index", ".timeindex", ".snapshot"])];
    let sent = lines(8_000);
    let sent_bytes: usize = sent.iter().map(String::len).sum();
    for (policy, endings) in policies {
        let mut broker = Broker::start(&[
            &format!("log.cleanup.policy={policy}"),
            "log.segment.bytes=1048576",
            "log.index.interval.bytes=2048",
            "log.retention.bytes=1000000",
            "log.retention.check.interval.ms=100",
            "log.initial.task.delay.ms=100",
            "log.cleaner.backoff.ms=100",
            "log.cleaner.min.cleanable.ratio=0.01",
        ]);
        let rounds = 1 + 6_000_000 / sent_bytes;
        for round in 0..rounds {
            produce(&broker.address(), "lines", &sent, if round == 1 { "lz4" } else { "none" })?;
        }
        let segments = || without_decoders(&files_of(&broker.data(), ".log"));
        let bytes =
            || segments().iter().map(|path| fs::metadata(path).map_or(0, |file| file.len())).sum::<u64>();
        wait_until("most of it is gone", || bytes() < (sent_bytes * rounds) as u64 / 2);
        broker.stop();
        let dumped = dump(
            &without_decoders(&files_of(&broker.data(), ".log")),
            &["--deep-iteration", "--print-data-log"],
        )?;
        let records = dumped.lines().filter(|line| line.starts_with("| offset:")).count();
        assert!(records > 0 && records < sent.len() * rounds, "{policy}: {records} records");
        // By default nothing more is cleaned, so the consumer reads what the tool has read.
        broker.start_again_with(&[]);
        let read = consume_all(&broker, "lines")?;
        broker.stop();
        assert_eq!(records, read.lines().count(), "{policy}: the tool reads what a consumer reads");
        for ending in endings {
            dump(&without_decoders(&files_of(&broker.data(), ending)), &[])?;
        }
    }
    Ok(())
}

fn without_decoders(files: &[PathBuf]) -> Vec<PathBuf> {
    files.iter().filter(|path| path.parent().unwrap().ends_with("lines-0")).cloned().collect()
}

/// What the tool prints, without a complaint.
pub fn dump(files: &[PathBuf], arguments: &[&str]) -> Result<String, NotRun> {
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let mut command = java("org.apache.kafka.tools.DumpLogSegments")?;
    let finished = run(command.args(["--files", &files.join(",")]).args(arguments), "");
    let stderr = finished.stderr.clone();
    let printed = finished.successful();
    // What the records say is no complaint.
    let said = printed.lines().map(|line| line.split(" payload: ").next().unwrap_or_default());
    for line in said.chain(stderr.lines()).filter(|line| !line.starts_with(NO_COMPLAINT)) {
        let complains = COMPLAINTS.iter().any(|complaint| line.contains(complaint));
        assert!(!complains, "{line}\n{}", last_of(&stderr));
    }
    Ok(printed)
}

/// A partition's folder is written by Kafka, goes on here, and goes back: each reads all that the other wrote.
pub fn a_folder_moves_from_kafka_and_back() -> Result<(), NotRun> {
    let mut kafka = Kafka::prepare("")?;
    let mut broker = Broker::start(&[]);
    kcat(&broker.address())?;
    let sent = lines(9_000);
    let (by_kafka, ours) = sent.split_at(6_000);

    kafka.start()?;
    for (part, codec) in by_kafka.chunks(2_000).zip(["none", "zstd", "lz4"]) {
        produce(&kafka.address(), "lines", part, codec)?;
    }
    kafka.stop();

    // The metadata is our own, so the topic is made here first; its id stays.
    let mut list = kcat(&broker.address())?;
    run(list.args(["-L", "-t", "lines"]), "").successful();
    produce(&broker.address(), "lines", &sent[..1], "none")?;
    broker.stop();
    move_files(&kafka.partition_folder("lines"), &broker.partition_folder("lines", 0));
    broker.start_again();
    assert_all_in_order(by_kafka, &consume_all(&broker, "lines")?);
    produce(&broker.address(), "lines", ours, "none")?;
    assert_all_in_order(&sent, &consume_all(&broker, "lines")?);
    broker.stop();

    move_files(&broker.partition_folder("lines", 0), &kafka.partition_folder("lines"));
    kafka.start()?;
    let mut consumer = kcat(&kafka.address())?;
    let received = run(consumer.args(["-C", "-e", "-o", "beginning", "-t", "lines"]), "").successful();
    assert_all_in_order(&sent, &received);
    kafka.stop();
    let log = kafka.log();
    assert!(!log.contains("WARN Found") && !log.contains("Corrupt"), "{}", last_of(&log));
    Ok(())
}

/// Everything but `partition.metadata`, which holds the topic's id, takes the place of what is there.
pub fn move_files(from: &Path, to: &Path) {
    let kept = "partition.metadata";
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != kept).collect()
    };
    names(to).iter().for_each(|name| fs::remove_file(to.join(name)).unwrap());
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}
