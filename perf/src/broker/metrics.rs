//! A broker's own histograms, from its `/metrics` in Prometheus's text form: where the time of its requests went.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::result::Stage;
use crate::wire::admin::Failure;

const TIMEOUT: Duration = Duration::from_secs(5);
/// Labels that part one stage's histogram: their parts are added up.
const PARTING_LABELS: [&str; 4] = ["le", "quantile", "shard", "core"];
const US_PER_SECOND: f64 = 1e6;

/// Histograms and summaries of times (names that end in `_seconds`), by name and labels, over all shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histograms {
    by_name: BTreeMap<String, Buckets>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Buckets {
    /// Upper bound in seconds and how many lie at or below it; the last bound is infinite.
    cumulative: Vec<(f64, f64)>,
    /// Of a summary: share and seconds, of the broker's whole life and of the shard where it is greatest, since
    /// percentiles can be neither taken from each other nor added.
    quantiles: Vec<(f64, f64)>,
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
            let number = |key: &str| {
                let label = labels.iter().find(|(known, _)| *known == key);
                label.and_then(|(_, value)| value.parse::<f64>().ok())
            };
            let (le, quantile) = (number("le"), number("quantile"));
            let parted = if quantile.is_some() { Some((name, "quantile")) } else { name.rsplit_once('_') };
            let Some((name, part)) = parted else { continue };
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
                // A summary without samples has no number there.
                ("quantile", None) if value.is_finite() => {
                    buckets.add_quantile(quantile.unwrap_or_default(), value);
                }
                _ => {}
            }
        }
        by_name.retain(|_, buckets| !buckets.cumulative.is_empty() || !buckets.quantiles.is_empty());
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

    fn add_quantile(&mut self, share: f64, seconds: f64) {
        match self.quantiles.iter_mut().find(|(known, _)| *known == share) {
            Some((_, greatest)) => *greatest = greatest.max(seconds),
            None => self.quantiles.push((share, seconds)),
        }
    }

    fn since(&self, earlier: &Buckets) -> Buckets {
        let before =
            |le: f64| earlier.cumulative.iter().find(|(known, _)| *known == le).map_or(0.0, |(_, n)| *n);
        Buckets {
            cumulative: self.cumulative.iter().map(|(le, count)| (*le, count - before(*le))).collect(),
            quantiles: self.quantiles.clone(),
            sum_seconds: self.sum_seconds - earlier.sum_seconds,
            count: self.count - earlier.count,
        }
    }

    /// A summary's own; of a histogram the upper bound of the bucket that it falls into; the highest finite one above
    /// that. 0 when empty.
    fn percentile(&self, share: f64) -> f64 {
        if let Some((_, seconds)) = self.quantiles.iter().find(|(known, _)| *known == share) {
            return *seconds;
        }
        let rank = (self.count * share).ceil().max(1.0);
        let reached = self.cumulative.iter().find(|(_, count)| *count >= rank).map(|(le, _)| *le);
        let highest = self.cumulative.iter().map(|(le, _)| *le).rfind(|le| le.is_finite());
        reached.filter(|le| le.is_finite()).or(highest).unwrap_or(0.0)
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
        assert_eq!((stage.p50_us.round(), stage.p99_us.round()), (1_000.0, 10_000.0));
        assert!((stage.total_us - 497_000.0).abs() < 1.0);
    }

    #[test]
    fn a_summary_counts_what_came_meanwhile_and_has_the_worst_shards_percentiles() {
        let text = "onrush_stage_seconds{shard=\"0\",stage=\"append\",quantile=\"0.5\"} 0.001
onrush_stage_seconds{shard=\"0\",stage=\"append\",quantile=\"0.99\"} 0.004
onrush_stage_seconds_sum{shard=\"0\",stage=\"append\"} 1.5
onrush_stage_seconds_count{shard=\"0\",stage=\"append\"} 1000
onrush_stage_seconds{shard=\"1\",stage=\"append\",quantile=\"0.99\"} 0.007
onrush_stage_seconds{shard=\"1\",stage=\"append\",quantile=\"0.999\"} NaN
onrush_stage_seconds_sum{shard=\"1\",stage=\"append\"} 0.5
onrush_stage_seconds_count{shard=\"1\",stage=\"append\"} 10
";
        let earlier = "onrush_stage_seconds{shard=\"0\",stage=\"append\",quantile=\"0.99\"} 0.1
onrush_stage_seconds_sum{shard=\"0\",stage=\"append\"} 1
onrush_stage_seconds_count{shard=\"0\",stage=\"append\"} 400
";
        let stages = Histograms::parse(text).since(&Histograms::parse(earlier));
        assert_eq!(stages.len(), 1);
        let stage = &stages[0];
        assert_eq!((stage.name.as_str(), stage.count), ("onrush_stage_seconds stage=append", 610));
        assert_eq!((stage.p50_us, stage.p99_us, stage.p99_9_us), (1_000.0, 7_000.0, 0.0));
        assert_eq!(stage.total_us, 1_000_000.0);
    }

    #[test]
    fn a_broker_without_histograms_has_no_stages() {
        assert_eq!(Histograms::parse("a 1\nb{c=\"d\"} x\n\n"), Histograms::default());
        assert!(Histograms::parse(BEFORE).since(&Histograms::parse(BEFORE)).is_empty());
    }
}
