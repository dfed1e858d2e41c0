//! A broker's own histograms, from its `/metrics` in Prometheus's text form: where the time of its requests went.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::result::Stage;
use crate::wire::admin::Failure;

const TIMEOUT: Duration = Duration::from_secs(5);
/// Labels that part one stage's histogram: their parts are added up.
const PARTING_LABELS: [&str; 3] = ["le", "shard", "core"];
const US_PER_SECOND: f64 = 1e6;

/// Histograms of times (names that end in `_seconds`), by name and labels, over all shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histograms {
    by_name: BTreeMap<String, Buckets>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Buckets {
    /// Upper bound in seconds and how many lie at or below it; the last bound is infinite.
    cumulative: Vec<(f64, f64)>,
    sum_seconds: f64,
    count: f64,
}

/// Asks `address` (`HOST:PORT`) for `/metrics`.
pub fn read(address: &str) -> Result<Histograms, Failure> {
    let failed = |error: std::io::Error| format!("no metrics from {address}: {error}");
    let resolved = address.to_socket_addrs().map_err(failed)?.next();
    let resolved = resolved.ok_or_else(|| format!("{address} names no address"))?;
    let mut socket = TcpStream::connect_timeout(&resolved, TIMEOUT).map_err(failed)?;
    socket.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    // Version 1.0, so that the answer comes in one piece and ends with the connection.
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(format!("no metrics from {address}: it answers {status}"));
    }
    Ok(Histograms::parse(body))
}

impl Histograms {
    /// Lines that are no histograms of times are passed over.
    pub fn parse(text: &str) -> Histograms {
        let mut by_name: BTreeMap<String, Buckets> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels_of(labels.trim_end_matches('}'));
            let le = labels.iter().find(|(key, _)| *key == "le").and_then(|(_, le)| le.parse::<f64>().ok());
            let Some((name, part)) = name.rsplit_once('_') else { continue };
            if !name.ends_with("_seconds") {
                continue;
            }
            let kept = labels.iter().filter(|(key, _)| !PARTING_LABELS.contains(key));
            let kept: Vec<String> = kept.map(|(key, value)| format!("{key}={value}")).collect();
            let name = if kept.is_empty() { name.to_owned() } else { format!("{name} {}", kept.join(" ")) };
            let buckets = by_name.entry(name).or_default();
            match (part, le) {
                ("bucket", Some(le)) => buckets.add(le, value),
                ("sum", None) => buckets.sum_seconds += value,
                ("count", None) => buckets.count += value,
                _ => {}
            }
        }
        by_name.retain(|_, buckets| !buckets.cumulative.is_empty());
        Histograms { by_name }
    }

    /// What came between `earlier` and this; those with nothing new are left out.
    pub fn since(&self, earlier: &Histograms) -> Vec<Stage> {
        let nothing = Buckets::default();
        let stages = self.by_name.iter().map(|(name, buckets)| {
            let new = buckets.since(earlier.by_name.get(name).unwrap_or(&nothing));
            Stage {
                name: name.clone(),
                count: new.count as u64,
                total_us: new.sum_seconds * US_PER_SECOND,
                p50_us: new.percentile(0.5) * US_PER_SECOND,
                p99_us: new.percentile(0.99) * US_PER_SECOND,
                p99_9_us: new.percentile(0.999) * US_PER_SECOND,
            }
        });
        stages.filter(|stage| stage.count > 0).collect()
    }
}

impl Buckets {
    fn add(&mut self, le: f64, value: f64) {
        match self.cumulative.iter_mut().find(|(known, _)| *known == le) {
            Some((_, count)) => *count += value,
            None => {
                let at = self.cumulative.partition_point(|(known, _)| *known < le);
                self.cumulative.insert(at, (le, value));
            }
        }
    }

    fn since(&self, earlier: &Buckets) -> Buckets {
        let before =
            |le: f64| earlier.cumulative.iter().find(|(known, _)| *known == le).map_or(0.0, |(_, n)| *n);
        Buckets {
            cumulative: self.cumulative.iter().map(|(le, count)| (*le, count - before(*le))).collect(),
            sum_seconds: self.sum_seconds - earlier.sum_seconds,
            count: self.count - earlier.count,
        }
    }

    /// Within the bucket that the share falls into, as if its times lay there at equal distances (what Prometheus's
    /// `histogram_quantile` does too); of the bucket without an upper bound, its lower one. 0 when empty.
    fn percentile(&self, share: f64) -> f64 {
        let rank = self.count * share;
        let (mut lower, mut below) = (0.0, 0.0);
        for (le, count) in &self.cumulative {
            if *count >= rank && *count > below {
                return if le.is_finite() {
                    lower + (le - lower) * (rank - below) / (count - below)
                } else {
                    lower
                };
            }
            (lower, below) = (*le, *count);
        }
        0.0
    }
}

/// `key="value"` pairs; a value with a comma or a quotation mark is none that a stage has.
fn labels_of(text: &str) -> Vec<(&str, &str)> {
    text.split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key, value.trim_matches('"')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# TYPE onrush_stage_seconds histogram
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"0\",le=\"0.001\"} 5
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"0\",le=\"+Inf\"} 5
onrush_stage_seconds_sum{stage=\"sync\",shard=\"0\"} 0.004
onrush_stage_seconds_count{stage=\"sync\",shard=\"0\"} 5
onrush_bytes_total 77
";
    const AFTER: &str = "onrush_stage_seconds_bucket{stage=\"sync\",shard=\"0\",le=\"0.001\"} 55
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"0\",le=\"0.01\"} 104
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"0\",le=\"+Inf\"} 105
onrush_stage_seconds_sum{stage=\"sync\",shard=\"0\"} 0.5
onrush_stage_seconds_count{stage=\"sync\",shard=\"0\"} 105
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"1\",le=\"0.001\"} 10
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"1\",le=\"0.01\"} 10
onrush_stage_seconds_bucket{stage=\"sync\",shard=\"1\",le=\"+Inf\"} 10
onrush_stage_seconds_sum{stage=\"sync\",shard=\"1\"} 0.001
onrush_stage_seconds_count{stage=\"sync\",shard=\"1\"} 10
";

    #[test]
    fn a_stage_is_what_came_meanwhile_on_all_shards() {
        let stages = Histograms::parse(AFTER).since(&Histograms::parse(BEFORE));
        assert_eq!(stages.len(), 1);
        let stage = &stages[0];
        assert_eq!((stage.name.as_str(), stage.count), ("onrush_stage_seconds stage=sync", 110));
        assert_eq!(stage.p50_us.round(), (55.0_f64 / 60.0 * 1_000.0).round());
        assert!((stage.total_us - 497_000.0).abs() < 1.0);
    }

    #[test]
    fn a_percentile_lies_in_its_bucket_and_of_the_run_alone() {
        let buckets = |counts: [u64; 4]| {
            let bounds = ["0.001", "0.002", "0.005", "+Inf"];
            let line = |(le, count): (&str, u64)| format!("turn_seconds_bucket{{le=\"{le}\"}} {count}\n");
            let lines: String = bounds.into_iter().zip(counts).map(line).collect();
            Histograms::parse(&format!("{lines}turn_seconds_count{{}} {}\n", counts[3]))
        };
        let percentiles = |before: [u64; 4], after: [u64; 4]| {
            let stage = buckets(after).since(&buckets(before)).remove(0);
            (stage.p50_us.round(), stage.p99_us.round())
        };
        assert_eq!(percentiles([0, 0, 0, 0], [0, 100, 100, 100]), (1_500.0, 1_990.0));
        assert_eq!(percentiles([500, 500, 500, 500], [500, 600, 600, 600]), (1_500.0, 1_990.0));
        assert_eq!(percentiles([0, 0, 0, 0], [60, 60, 60, 100]), (833.0, 5_000.0));
    }

    #[test]
    fn a_broker_without_histograms_has_no_stages() {
        assert_eq!(Histograms::parse("a 1\nb{c=\"d\"} x\n\n"), Histograms::default());
        assert!(Histograms::parse(BEFORE).since(&Histograms::parse(BEFORE)).is_empty());
    }
}
