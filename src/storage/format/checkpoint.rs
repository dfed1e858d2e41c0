use std::fmt::Write;

use crate::base::{LeaderEpoch, Offset, PartitionIndex, TopicName};

/// One line of an `*-offset-checkpoint` file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OffsetCheckpoint {
    pub topic: TopicName,
    pub partition: PartitionIndex,
    pub offset: Offset,
}

/// One line of `leader-epoch-checkpoint`: the first offset written in a leader epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochStart {
    pub leader_epoch: LeaderEpoch,
    pub start_offset: Offset,
}

/// Text of an `*-offset-checkpoint` file: version `0`, number of lines that follow, `topic partition offset` a line.
pub fn format_offsets(offsets: &[OffsetCheckpoint]) -> String {
    let mut text = format!("0\n{}\n", offsets.len());
    for line in offsets {
        let _ = writeln!(text, "{} {} {}", line.topic, line.partition, line.offset);
    }
    text
}

/// Reads an `*-offset-checkpoint` file. A line that cannot be read is left out; `whole` in the answer says that
/// nothing was, so that a damaged file costs a longer recovery and never a start.
pub fn parse_offsets(text: &str) -> (Vec<OffsetCheckpoint>, bool) {
    parse(text, |fields| match fields {
        [topic, partition, offset] => Some(OffsetCheckpoint {
            topic: TopicName::new(topic),
            partition: PartitionIndex(number(partition)?),
            offset: Offset(number(offset)?),
        }),
        _ => None,
    })
}

/// Text of a `leader-epoch-checkpoint` file: version `0`, number of lines that follow, `epoch start-offset` a line.
pub fn format_epochs(epochs: &[EpochStart]) -> String {
    let mut text = format!("0\n{}\n", epochs.len());
    for line in epochs {
        let _ = writeln!(text, "{} {}", line.leader_epoch, line.start_offset);
    }
    text
}

/// Reads a `leader-epoch-checkpoint` file as `parse_offsets` does; lines whose epoch or offset does not rise are left out too.
pub fn parse_epochs(text: &str) -> (Vec<EpochStart>, bool) {
    let (lines, mut whole) = parse(text, |fields| match fields {
        [epoch, offset] => Some(EpochStart {
            leader_epoch: LeaderEpoch(number(epoch)?),
            start_offset: Offset(number(offset)?),
        }),
        _ => None,
    });
    let mut rising: Vec<EpochStart> = Vec::with_capacity(lines.len());
    for line in lines {
        match rising.last() {
            Some(last)
                if last.leader_epoch >= line.leader_epoch || last.start_offset >= line.start_offset =>
            {
                whole = false
            }
            _ => rising.push(line),
        }
    }
    (rising, whole)
}

fn parse<T>(text: &str, line: impl Fn(&[&str]) -> Option<T>) -> (Vec<T>, bool) {
    // A last line without its end was cut: its number may lack digits.
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let version_is_known = lines.next().is_some_and(|version| version.trim() == "0");
    let count: Option<usize> = lines.next().and_then(|count| count.trim().parse().ok());
    if !version_is_known {
        return (Vec::new(), false);
    }
    let mut whole = true;
    let mut values = Vec::new();
    for text in lines.filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        match line(&fields) {
            Some(value) => values.push(value),
            None => whole = false,
        }
    }
    whole &= count == Some(values.len());
    (values, whole)
}

/// A number that is not negative.
fn number<T: std::str::FromStr + PartialOrd + Default>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number| *number >= T::default())
}

/// `.kafka_cleanshutdown`: there when the folder was left in order. Since KIP-966 it carries the broker's epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CleanMarker {
    pub broker_epoch: i64,
}

impl CleanMarker {
    pub fn to_text(self) -> String {
        format!("{{\"version\":0,\"brokerEpoch\":{}}}", self.broker_epoch)
    }

    /// Reads the marker; `None` when it says nothing of an epoch (it was empty before Kafka 3.8). The file's being
    /// there is what counts.
    pub fn parse(text: &str) -> Option<CleanMarker> {
        let (_, after) = text.split_once("\"brokerEpoch\"")?;
        let digits = after.trim_start().strip_prefix(':')?.trim_start();
        let end = digits.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(digits.len());
        Some(CleanMarker { broker_epoch: digits[..end].parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_read_back_and_a_damaged_line_costs_only_itself() {
        let offsets =
            [("__consumer_offsets", 3, 70), ("a.b_c-d", 0, i64::MAX)].map(|(topic, partition, offset)| {
                OffsetCheckpoint {
                    topic: TopicName::new(topic),
                    partition: PartitionIndex(partition),
                    offset: Offset(offset),
                }
            });
        let text = format_offsets(&offsets);
        assert_eq!(text, "0\n2\n__consumer_offsets 3 70\na.b_c-d 0 9223372036854775807\n");
        assert_eq!(parse_offsets(&text), (offsets.to_vec(), true));

        let torn = text.replace("3 70", "3 7x");
        assert_eq!(parse_offsets(&torn), (offsets[1..].to_vec(), false));
        assert_eq!(parse_offsets(&text[..40]), (offsets[..1].to_vec(), false));
        for text in ["", "1\n0\n", "0\n", "\0\0\0", "0\n-1\n", "0\n1\nt 0 -5\n"] {
            assert_eq!(parse_offsets(text), (Vec::new(), false), "{text:?}");
        }
        assert_eq!(parse_offsets("0\n0\n"), (Vec::new(), true));
    }

    #[test]
    fn epochs_that_do_not_rise_are_left_out() {
        let epochs = [(0, 0), (4, 12)].map(|(epoch, offset)| EpochStart {
            leader_epoch: LeaderEpoch(epoch),
            start_offset: Offset(offset),
        });
        assert_eq!(format_epochs(&epochs), "0\n2\n0 0\n4 12\n");
        assert_eq!(parse_epochs("0\n2\n0 0\n4 12\n"), (epochs.to_vec(), true));
        assert_eq!(parse_epochs("0\n4\n0 0\n0 3\n4 12\n5 12\n"), (epochs.to_vec(), false));
    }

    #[test]
    fn the_clean_marker_is_what_kafka_writes() {
        let text = "{\"version\":0,\"brokerEpoch\":12}";
        assert_eq!(CleanMarker::parse(text), Some(CleanMarker { broker_epoch: 12 }));
        assert_eq!(CleanMarker { broker_epoch: 12 }.to_text(), text);
        assert_eq!(CleanMarker::parse(""), None);
        assert_eq!(
            CleanMarker::parse("{\"brokerEpoch\" : -1 , \"version\":0}"),
            Some(CleanMarker { broker_epoch: -1 })
        );
    }
}
