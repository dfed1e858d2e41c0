use std::fs;

use super::broker::Broker;
use super::clients::{NotRun, python};
use super::command::{run, start, wait_until};
use super::lines::{assert_keys_in_order, keyed, lines};

/// A producer without idempotence notes what was acknowledged; none of that is missing, whatever was killed meanwhile.
pub fn acknowledged_lines_survive_kill_9() -> Result<(), NotRun> {
    let mut producer = python("confluent-kafka", "confluent_ledger.py")?;
    let mut consumer = python("confluent-kafka", "confluent_read_all.py")?;
    let mut broker = Broker::start(&["num.partitions=6", "log.segment.bytes=1048576"]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("acknowledged");
    let sent = lines(40_000);
    producer.args([broker.address(), "lines".to_owned(), ledger.display().to_string()]);
    let producer = start(&mut producer, &keyed(&sent));
    let acknowledged = || fs::read_to_string(&ledger).unwrap_or_default();
    for quarter in 1..=3 {
        wait_until("lines are acknowledged", || acknowledged().lines().count() > quarter * sent.len() / 4);
        broker.kill();
        broker.start_again();
    }
    producer.finish().successful();
    let acknowledged = acknowledged();
    assert_eq!(acknowledged.lines().count(), sent.len(), "everything is acknowledged in the end");
    let received = run(consumer.args([broker.address(), "lines".to_owned()]), "").successful();
    // What was sent again after a kill may be there twice; what was acknowledged is there.
    let mut seen = std::collections::BTreeSet::new();
    let first_copies: Vec<&str> = received.lines().filter(|line| seen.insert(*line)).collect();
    let missing: Vec<&str> = acknowledged.lines().filter(|line| !seen.contains(line)).collect();
    assert!(
        missing.is_empty(),
        "{} acknowledged lines are missing, the first: {:?}",
        missing.len(),
        missing.first()
    );
    assert_keys_in_order(first_copies.into_iter());
    Ok(())
}
