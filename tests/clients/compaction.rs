//! One log, compacted by Apache Kafka 4.3.1 and by us.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::broker::{Broker, files_of};
use super::clients::{NotRun, kcat};
use super::command::{run, wait_until};
use super::kafka::Kafka;
use super::kafka_files::{dump, move_files};

const TOPIC: &str = "keyed";
/// Small segments, a cleaner that works at once, and topics that are compacted.
const SETTINGS: [&str; 4] = [
    "log.cleanup.policy=compact",
    "log.segment.bytes=1048576",
    "log.cleaner.backoff.ms=100",
    "log.cleaner.min.cleanable.ratio=0.01",
];
const NOT_YET: &str = "log.cleaner.enable=false";
const NOW: &str = "log.cleaner.enable=true";

/// Lines of 500 keys, each many times; every seventh is a tombstone.
fn keyed_lines() -> String {
    let line = |i: usize| {
        let value = if i % 7 == 3 { String::new() } else { format!("value {i} {}", "x".repeat(i % 900)) };
        format!("key {}|{value}\n", i * 31 % 500)
    };
    (0..20_000).map(line).collect()
}

fn produce(address: &str, lines: &str) -> Result<(), NotRun> {
    for (part, codec) in [(0, "none"), (1, "lz4"), (2, "zstd"), (3, "none")] {
        let mut producer = kcat(address)?;
        producer.args(["-P", "-t", TOPIC, "-K|", "-Z", "-z", codec, "-X", "enable.idempotence=true"]);
        let lines: Vec<&str> = lines.split_inclusive('\n').skip(part * 5_000).take(5_000).collect();
        run(producer.args(["-X", "batch.num.messages=50"]), &lines.concat()).successful();
    }
    Ok(())
}

fn consume(address: &str) -> Result<String, NotRun> {
    let mut consumer = kcat(address)?;
    consumer.args(["-C", "-e", "-o", "beginning", "-t", TOPIC, "-Z", "-f", "%o %k %s\n"]);
    Ok(run(&mut consumer, "").successful())
}

/// Up to where the broker has written down that the log is compacted.
fn is_compacted(data: &Path) -> bool {
    let text = fs::read_to_string(data.join("cleaner-offset-checkpoint")).unwrap_or_default();
    let active =
        segments(data).pop().and_then(|path| Some(path.file_stem()?.to_str()?.parse::<u64>().unwrap()));
    text.lines().any(|line| Some(line) == active.map(|offset| format!("{TOPIC} 0 {offset}")).as_deref())
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let is_own = |path: &PathBuf| path.parent().unwrap().ends_with(format!("{TOPIC}-0"));
    files_of(data, ".log").into_iter().filter(is_own).collect()
}

/// Names and bytes of index files. The tool complains of the time index of a batch without records, in Kafka's folder too.
fn index_files(data: &Path, ending: &str) -> Vec<(OsString, Vec<u8>)> {
    let is_own = |path: &PathBuf| path.parent().unwrap().ends_with(format!("{TOPIC}-0"));
    let named = |path: PathBuf| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap());
    files_of(data, ending).into_iter().filter(is_own).map(named).collect()
}

/// Base offset, last offset, record count and producer of each batch, and each record; no positions, lengths and times of the cleaner.
fn content(data: &Path) -> Result<Vec<String>, NotRun> {
    let dumped = dump(&segments(data), &["--deep-iteration", "--print-data-log"])?;
    let of_batch = [
        "baseOffset:",
        "lastOffset:",
        "count:",
        "producerId:",
        "lastSequence:",
        "CreateTime:",
        "compresscodec:",
    ];
    let batch = |line: &str| -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).filter(|pair| of_batch.contains(&pair[0])).map(|pair| pair.concat()).collect()
    };
    let lines = dumped.lines().filter_map(|line| match line.trim_start() {
        record if record.starts_with("| offset:") => Some(record.to_owned()),
        line if line.starts_with("baseOffset:") => Some(batch(line)),
        _ => None,
    });
    Ok(lines.collect())
}

/// Both start from the files that Kafka wrote and did not compact yet, and keep the same records in the same batches. Then we serve what Kafka has
/// compacted.
pub fn we_keep_what_kafka_keeps() -> Result<(), NotRun> {
    let mut kafka = Kafka::prepare(&[&SETTINGS[..], &[NOT_YET]].concat().join("\n"))?;
    kafka.start()?;
    produce(&kafka.address(), &keyed_lines())?;
    kafka.stop();

    let mut broker = Broker::start(&SETTINGS);
    let mut producer = kcat(&broker.address())?;
    run(producer.args(["-P", "-t", TOPIC, "-K|"]), "key|value\n").successful();
    broker.stop();
    move_files(&kafka.partition_folder(TOPIC), &broker.partition_folder(TOPIC, 0));
    assert!(segments(&broker.data()).len() > 3, "{:?}", segments(&broker.data()));
    broker.start_again();
    wait_until("we have compacted it", || is_compacted(&broker.data()));
    let ours = consume(&broker.address())?;
    broker.stop();

    kafka.change(NOT_YET, NOW);
    kafka.start()?;
    wait_until("Kafka has compacted it", || is_compacted(&kafka.data()));
    let theirs = consume(&kafka.address())?;
    kafka.stop();
    assert!(ours.lines().count() > 500 && ours == theirs, "we serve other records than Kafka does");
    let (by_us, by_kafka) = (content(&broker.data())?, content(&kafka.data())?);
    let different = by_us.iter().zip(&by_kafka).find(|(ours, theirs)| ours != theirs);
    assert_eq!((different, by_us.len()), (None, by_kafka.len()), "ours, Kafka's");
    for ending in [".index", ".timeindex"] {
        let own = index_files(&broker.data(), ending);
        assert!(own.len() > 3 && own == index_files(&kafka.data(), ending), "{ending} files differ");
    }

    move_files(&kafka.partition_folder(TOPIC), &broker.partition_folder(TOPIC, 0));
    broker.start_again();
    assert_eq!(consume(&broker.address())?, theirs, "what Kafka has compacted is served");
    Ok(())
}
