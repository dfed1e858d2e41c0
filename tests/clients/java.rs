use super::broker::Broker;
use super::clients::{NotRun, java};
use super::command::run;
use super::lines::{assert_all_in_order, keyed, lines};

/// Topics, console producer, console consumer in a group, and the tool that describes the group.
pub fn console_tools_read_what_they_wrote() -> Result<(), NotRun> {
    let broker = Broker::start(&["group.initial.rebalance.delay.ms=0"]);
    let address = broker.address();
    let tool = |class: &str, arguments: &[&str], input: &str| -> Result<String, NotRun> {
        let mut command = java(&format!("org.apache.kafka.tools.{class}"))?;
        Ok(run(command.args(["--bootstrap-server", &address]).args(arguments), input).successful())
    };
    let created = tool("TopicCommand", &["--create", "--topic", "lines", "--partitions", "6"], "")?;
    assert!(created.contains("Created topic lines."), "{created}");
    let sent = lines(10_000);
    let with_keys = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=|"];
    tool("ConsoleProducer", &[&["--topic", "lines"][..], &with_keys].concat(), &keyed(&sent))?;
    let count = sent.len().to_string();
    let from_beginning =
        ["--topic", "lines", "--from-beginning", "--max-messages", &count, "--group", "tools"];
    let received = tool("consumer.ConsoleConsumer", &from_beginning, "")?;
    assert_all_in_order(&sent, &received);
    let group = tool("consumer.group.ConsumerGroupCommand", &["--describe", "--group", "tools"], "")?;
    let rows = group.lines().filter(|line| line.starts_with("tools"));
    let lags: Vec<&str> = rows.map(|row| row.split_whitespace().nth(5).unwrap_or_default()).collect();
    assert_eq!(lags, ["0"; 6], "{group}");
    Ok(())
}

/// Settings of a topic, of one broker and of all are changed, shown and taken back by Kafka's tool; a kill in between loses none.
pub fn kafkas_tool_changes_settings() -> Result<(), NotRun> {
    let mut broker = Broker::start(&[]);
    let address = broker.address();
    let tool = |class: &str, arguments: &[&str]| -> Result<String, NotRun> {
        let mut command = java(class)?;
        Ok(run(command.args(["--bootstrap-server", &address]).args(arguments), "").successful())
    };
    let configs = |arguments: &[&str]| tool("kafka.admin.ConfigCommand", arguments);
    let topic = ["--entity-type", "topics", "--entity-name", "lines"];
    let all_brokers = ["--entity-type", "brokers", "--entity-default"];
    let one_broker = ["--entity-type", "brokers", "--entity-name", "0"];
    tool(
        "org.apache.kafka.tools.TopicCommand",
        &["--create", "--topic", "lines", "--config", "flush.ms=5000"],
    )?;
    configs(&[&["--alter", "--add-config", "cleanup.policy=[compact,delete]"], &topic[..]].concat())?;
    configs(&[&["--alter", "--add-config", "log.retention.ms=700000"], &all_brokers[..]].concat())?;
    configs(&[&["--alter", "--add-config", "log.retention.ms=800000"], &one_broker[..]].concat())?;
    broker.kill();
    broker.start_again();

    let shown = configs(&[&["--describe"], &topic[..]].concat())?;
    assert!(shown.contains("cleanup.policy=compact,delete") && shown.contains("flush.ms=5000"), "{shown}");
    let shown = configs(&[&["--describe", "--all"], &topic[..]].concat())?;
    let sources = "{DYNAMIC_BROKER_CONFIG:log.retention.ms=800000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=700000, \
                   DEFAULT_CONFIG:log.retention.hours=168}";
    assert!(shown.contains(&format!("retention.ms=800000 sensitive=false synonyms={sources}")), "{shown}");
    configs(&[&["--alter", "--delete-config", "cleanup.policy,flush.ms"], &topic[..]].concat())?;
    let shown = configs(&[&["--describe"], &topic[..]].concat())?;
    assert!(!shown.contains("cleanup.policy") && !shown.contains("flush.ms"), "{shown}");

    let refused = run(
        java("kafka.admin.ConfigCommand")?
            .args(["--bootstrap-server", &address, "--alter", "--add-config", "num.partitions=3"])
            .args(one_broker),
        "",
    );
    assert!(
        !refused.status.success() && refused.stderr.contains("InvalidRequestException"),
        "{}",
        refused.stderr
    );
    let folders = tool("org.apache.kafka.tools.LogDirsCommand", &["--describe", "--topic-list", "lines"])?;
    assert!(folders.contains(r#""partition":"lines-0","size":0,"offsetLag":0"#), "{folders}");
    Ok(())
}

/// A share group's console consumers share the lines of a topic: each line is accepted once, a kill -9 in between brings none again,
/// and Kafka's tool tells how far the group has come, moves it and forgets it.
pub fn a_share_group_gets_every_line_once() -> Result<(), NotRun> {
    let mut broker =
        Broker::start(&["offsets.topic.num.partitions=3", "share.coordinator.state.topic.num.partitions=3"]);
    let address = broker.address();
    let tool = |class: &str, arguments: &[&str], input: &str| -> Result<String, NotRun> {
        let mut command = java(class)?;
        Ok(run(command.args(["--bootstrap-server", &address]).args(arguments), input).successful())
    };
    tool("org.apache.kafka.tools.TopicCommand", &["--create", "--topic", "lines", "--partitions", "2"], "")?;
    let earliest = ["--alter", "--add-config", "share.auto.offset.reset=earliest"];
    let of_group = ["--entity-type", "groups", "--entity-name", "sharers"];
    tool("kafka.admin.ConfigCommand", &[&earliest[..], &of_group].concat(), "")?;
    let sent = lines(1_000);
    let with_keys = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=|"];
    let produce = [&["--topic", "lines"][..], &with_keys].concat();
    tool("org.apache.kafka.tools.ConsoleProducer", &produce, &keyed(&sent))?;

    let consume = |count: &str| {
        let arguments = ["--topic", "lines", "--group", "sharers", "--max-messages", count];
        tool("org.apache.kafka.tools.consumer.ConsoleShareConsumer", &arguments, "")
    };
    let first = consume("400")?;
    broker.kill();
    broker.start_again();
    let rest = consume("600")?;
    let mut received: Vec<&str> = first.lines().chain(rest.lines()).collect();
    let mut expected: Vec<&str> = sent.iter().map(String::as_str).collect();
    received.sort_unstable();
    expected.sort_unstable();
    assert!(received == expected, "{} lines came, {} were sent", received.len(), expected.len());

    let group =
        |arguments: &[&str]| tool("org.apache.kafka.tools.consumer.group.ShareGroupCommand", arguments, "");
    let starts = |shown: &str| -> i64 {
        let rows = shown.lines().filter(|line| line.starts_with("sharers"));
        rows.filter_map(|row| row.split_whitespace().nth(3)?.parse::<i64>().ok()).sum()
    };
    let shown = group(&["--describe", "--group", "sharers"])?;
    assert_eq!(starts(&shown), 1_000, "{shown}");
    let shown = group(&["--describe", "--group", "sharers", "--state"])?;
    assert!(shown.contains("Empty"), "{shown}");
    let back = ["--reset-offsets", "--group", "sharers", "--topic", "lines", "--to-earliest", "--execute"];
    group(&back)?;
    assert_eq!(starts(&group(&["--describe", "--group", "sharers"])?), 0);
    assert_eq!(consume("1000")?.lines().count(), 1_000, "all of them come again");
    let deleted = group(&["--delete-offsets", "--group", "sharers", "--topic", "lines"])?;
    assert!(deleted.contains("Successful"), "{deleted}");
    group(&["--delete", "--group", "sharers"])?;
    assert!(!group(&["--list"])?.contains("sharers"));
    Ok(())
}
