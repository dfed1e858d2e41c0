use std::fs;

use super::broker::Broker;
use super::clients::{NotRun, kcat, rsyslogd};
use super::command::{start, wait_until};
use super::kcat::consume_all;
use super::lines::{assert_all_in_order, lines};

/// rsyslog reads a growing log file and ships it, keyed by host, over a kill of the broker in the middle.
pub fn a_log_file_is_shipped() -> Result<(), NotRun> {
    let mut rsyslogd = rsyslogd()?;
    kcat("")?;
    let mut broker = Broker::start(&["num.partitions=6"]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let sent = lines(20_000);
    let (first, second) = sent.split_at(sent.len() / 2);
    fs::write(at("app.log"), first.join("\n") + "\n").unwrap();
    fs::write(at("rsyslog.conf"), configuration(&broker.address(), &at("app.log"), &at(""))).unwrap();
    let mut shipper = start(rsyslogd.args(["-n", "-f", &at("rsyslog.conf"), "-i", &at("rsyslog.pid")]), "");
    wait_until("the first half is under way", || broker.bytes_of("logs") > 0);
    broker.kill();
    broker.start_again();
    let mut grown = fs::read_to_string(at("app.log")).unwrap();
    grown += &(second.join("\n") + "\n");
    fs::write(at("app.log"), grown).unwrap();
    let mut received = String::new();
    wait_until("every line has arrived", || {
        received = consume_all(&broker, "logs").unwrap_or_default();
        received.lines().count() >= sent.len()
    });
    shipper.stop();
    assert_all_in_order(&sent, &received);
    Ok(())
}

fn configuration(broker: &str, log: &str, folder: &str) -> String {
    format!(
        r#"
global(workDirectory="{folder}")
module(load="imfile" mode="inotify")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
template(name="host" type="string" string="%msg:F,32:1%")
input(type="imfile" file="{log}" tag="app" ruleset="ship")
ruleset(name="ship" queue.type="LinkedList" queue.size="50000") {{
  action(type="omkafka" broker=["{broker}"] topic="logs" template="line" partitions.auto="on"
         dynaKey="on" key="host" closeTimeout="20000" resubmitOnFailure="on" action.resumeRetryCount="-1"
         confParam=["enable.idempotence=true", "compression.codec=lz4", "reconnect.backoff.max.ms=200"])
}}
"#
    )
}
