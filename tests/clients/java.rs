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
