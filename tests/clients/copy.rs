use std::fs;

use super::broker::Broker;
use super::clients::{NotRun, python};
use super::command::{run, start, wait_until};
use super::lines::{assert_all_in_order, keyed, lines};

const KILLS: usize = 12;
const COMMITS_PER_KILL: usize = 6;

/// Lines are copied in transactions that carry the group's offsets along, some of which abort, while the broker is killed: readers of
/// committed records find each line once, those of a key in their order.
pub fn a_copy_in_transactions_is_exact_over_kill_9() -> Result<(), NotRun> {
    let mut producer = python("confluent-kafka", "confluent_ledger.py")?;
    let mut copier = python("confluent-kafka", "confluent_copy.py")?;
    let mut reader = python("confluent-kafka", "confluent_read_all.py")?;
    let mut broker = Broker::start(&[
        "num.partitions=4",
        "log.segment.bytes=1048576",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let (ledger, progress) = (folder.path().join("acknowledged"), folder.path().join("committed"));
    let sent = lines(8_000);
    let filled = run(
        producer.args([broker.address(), "from".to_owned(), ledger.display().to_string()]),
        &keyed(&sent),
    );
    filled.successful();
    let count = sent.len().to_string();
    copier.args([&broker.address(), "from", "to", &count, &progress.display().to_string()]);
    let copier = start(&mut copier, "");
    let committed = || fs::read_to_string(&progress).unwrap_or_default().lines().count();
    for kill in 1..=KILLS {
        wait_until("transactions commit", || committed() > kill * COMMITS_PER_KILL);
        broker.kill();
        broker.start_again();
    }
    copier.finish().successful();
    let copied = run(reader.args([broker.address(), "to".to_owned()]), "").successful();
    assert_all_in_order(&sent, &copied);
    Ok(())
}
