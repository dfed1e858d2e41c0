use super::broker::Broker;
use super::clients::{NotRun, kcat};
use super::command::{run, start, wait_until};
use super::lines::{assert_all_in_order, keyed, lines};

/// All that is in `topic`, partition after partition.
pub fn consume_all(broker: &Broker, topic: &str) -> Result<String, NotRun> {
    let mut command = kcat(&broker.address())?;
    Ok(run(command.args(["-C", "-e", "-o", "beginning", "-t", topic]), "").successful())
}

pub fn lines_come_back_in_every_compression() -> Result<(), NotRun> {
    let broker = Broker::start(&["num.partitions=3"]);
    let sent = lines(2_000);
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let topic = format!("lines-{codec}");
        let mut produce = kcat(&broker.address())?;
        produce.args(["-P", "-t", &topic, "-K|", "-z", codec, "-X", "acks=all", "-H", "shipper=kcat"]);
        run(&mut produce, &keyed(&sent)).successful();
        let mut consume = kcat(&broker.address())?;
        consume.args(["-C", "-e", "-o", "beginning", "-t", &topic, "-f", "%h|%k|%s\n"]);
        let received = run(&mut consume, "").successful();
        let bare: String = received
            .lines()
            .map(|line| {
                let (headers, rest) = line.split_once('|').unwrap();
                let (key, line) = rest.split_once('|').unwrap();
                assert_eq!((headers, key), ("shipper=kcat", super::lines::key(line)));
                format!("{line}\n")
            })
            .collect();
        assert_all_in_order(&sent, &bare);
    }
    Ok(())
}

pub fn a_group_reads_all_partitions() -> Result<(), NotRun> {
    let mut broker = Broker::start(&["num.partitions=6", "group.initial.rebalance.delay.ms=0"]);
    let sent = lines(20_000);
    let (first, second) = sent.split_at(sent.len() / 2);
    let mut received = String::new();
    for part in [first, second] {
        let mut produce = kcat(&broker.address())?;
        run(produce.args(["-P", "-t", "lines", "-K|", "-X", "acks=all"]), &keyed(part)).successful();
        let mut group = kcat(&broker.address())?;
        group.args(["-G", "readers", "-e", "-X", "auto.offset.reset=earliest", "lines"]);
        received += &run(&mut group, "").successful();
        // The group goes on where it was, also on a broker that was started anew.
        broker.stop();
        broker.start_again();
    }
    assert_all_in_order(&sent, &received);
    Ok(())
}

/// A producer that goes on over two kills and an orderly restart: idempotence and retries make it once each, in order.
pub fn nothing_is_lost_or_doubled_over_restarts() -> Result<(), NotRun> {
    let mut broker = Broker::start(&["num.partitions=6", "log.segment.bytes=1048576"]);
    let sent = lines(60_000);
    let mut produce = kcat(&broker.address())?;
    produce.args(["-P", "-E", "-t", "lines", "-K|", "-X", "acks=all", "-X", "enable.idempotence=true"]);
    // Small batches and few in flight, so that the flow lasts.
    produce.args(["-X", "batch.num.messages=20", "-X", "max.in.flight.requests.per.connection=2"]);
    produce.args(["-X", "message.timeout.ms=80000", "-X", "reconnect.backoff.max.ms=200"]);
    let producer = start(&mut produce, &keyed(&sent));
    let all_bytes: u64 = sent.iter().map(|line| line.len() as u64).sum();
    for (part, in_order) in [(5, false), (3, true), (2, false)] {
        wait_until("the flow is under way", || broker.bytes_of("lines") > all_bytes / part);
        if in_order {
            broker.stop()
        } else {
            broker.kill()
        }
        broker.start_again();
    }
    producer.finish().successful();
    assert_all_in_order(&sent, &consume_all(&broker, "lines")?);
    broker.kill();
    broker.start_again();
    assert_all_in_order(&sent, &consume_all(&broker, "lines")?);
    Ok(())
}
