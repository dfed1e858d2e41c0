//! Lines like those that services log: made from a seed, or read from a file.

use std::fmt::Write;

use fastrand::Rng;

const LEVELS: [(&str, u32); 5] = [("INFO", 78), ("DEBUG", 12), ("WARN", 7), ("ERROR", 3), ("TRACE", 0)];
const MODULES: [&str; 12] = [
    "http.server",
    "http.client",
    "db.pool",
    "db.query",
    "cache.redis",
    "auth.session",
    "queue.worker",
    "scheduler",
    "billing.invoice",
    "search.index",
    "mail.outbox",
    "storage.blob",
];
const METHODS: [&str; 5] = ["GET", "GET", "GET", "POST", "PUT"];
const PATHS: [&str; 8] = [
    "/api/v1/items",
    "/api/v1/users",
    "/api/v2/orders",
    "/health",
    "/api/v1/search",
    "/static/app.js",
    "/login",
    "/api/v2/invoices",
];
const MESSAGES: [&str; 10] = [
    "request finished",
    "connection taken from the pool",
    "row not found",
    "retrying after a timeout",
    "job finished",
    "token refreshed",
    "cache miss",
    "slow query",
    "upstream answered",
    "flushed batch",
];
const TAGS: [&str; 10] =
    ["region", "zone", "cluster", "tenant", "shard", "version", "user_agent", "peer", "build", "queue"];

/// One after the other, the same for the same seed.
pub struct Lines {
    rng: Rng,
    mean_bytes: usize,
    /// Milliseconds since 1970 of the next line, for what the line says; not Kafka's timestamp.
    unix_ms: u64,
}

impl Lines {
    pub fn new(seed: u64, mean_bytes: usize) -> Lines {
        Lines { rng: Rng::with_seed(seed), mean_bytes, unix_ms: 1_764_547_200_000 }
    }

    /// The next line, without its end. Most are a little shorter than the mean, a few much longer, none longer than six
    /// times the mean.
    pub fn next_line(&mut self) -> String {
        let rng = &mut self.rng;
        self.unix_ms += rng.u64(0..20);
        let (seconds, ms) = (self.unix_ms / 1_000 % 86_400, self.unix_ms % 1_000);
        let level = level(rng);
        let module = MODULES[rng.usize(..MODULES.len())];
        let message = MESSAGES[rng.usize(..MESSAGES.len())];
        let mut line = format!(
            "2025-12-01T{:02}:{:02}:{:02}.{ms:03}Z host-{:03} {level:5} {module} [{:016x}] {message}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            rng.u32(0..200),
            rng.u64(..),
        );
        if module.starts_with("http") {
            let (method, path) = (METHODS[rng.usize(..METHODS.len())], PATHS[rng.usize(..PATHS.len())]);
            let status = [200, 200, 200, 201, 204, 304, 404, 500][rng.usize(..8)];
            put(
                &mut line,
                format_args!(" method={method} path={path}/{} status={status}", rng.u32(..100_000)),
            );
            put(&mut line, format_args!(" bytes={} duration_us={}", rng.u32(..50_000), rng.u32(..900_000)));
        }
        let length = (self.mean_bytes as f64 * share_of_mean(rng)) as usize;
        while line.len() < length {
            let tag = TAGS[rng.usize(..TAGS.len())];
            match rng.u32(..3) {
                0 => put(&mut line, format_args!(" {tag}={}", rng.u32(..10_000))),
                1 => put(&mut line, format_args!(" {tag}={}-{}", MODULES[rng.usize(..12)], rng.u32(..64))),
                _ => put(&mut line, format_args!(" {tag}={:08x}", rng.u32(..))),
            }
        }
        line.truncate(length.max(1));
        line
    }
}

fn put(line: &mut String, what: std::fmt::Arguments) {
    line.write_fmt(what).expect("a text takes all that is written");
}

fn level(rng: &mut Rng) -> &'static str {
    let mut drawn = rng.u32(..100);
    for (level, percent) in LEVELS {
        if drawn < percent {
            return level;
        }
        drawn -= percent;
    }
    "INFO"
}

/// 0.5 to 6, mean 1: an exponential distribution above the shortest line, cut at the end.
fn share_of_mean(rng: &mut Rng) -> f64 {
    (0.5 - 0.5 * (1.0 - rng.f64()).max(1e-9).ln()).min(6.0)
}

/// The lines of a text without their ends; empty ones are left out.
pub fn lines_of(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::compression::Compression;

    #[test]
    fn the_same_seed_gives_the_same_lines() {
        let lines = |seed: u64| {
            let mut lines = Lines::new(seed, 250);
            (0..100).map(|_| lines.next_line()).collect::<Vec<String>>()
        };
        assert_eq!(lines(1), lines(1));
        assert_ne!(lines(1), lines(2));
    }

    #[test]
    fn lines_have_about_the_mean_length_and_compress_like_a_log() {
        for mean in [150usize, 250, 1_000] {
            let mut lines = Lines::new(3, mean);
            let text: String = (0..5_000).map(|_| lines.next_line()).collect();
            let found = text.len() / 5_000;
            assert!(found.abs_diff(mean) < mean / 20, "mean {found} in place of {mean}");
            let mut compressed = Vec::new();
            Compression::Zstd.compress(&text.as_bytes()[..65_536], &mut compressed);
            let ratio = 65_536 / compressed.len();
            assert!((2..=8).contains(&ratio), "compressed {ratio} times");
        }
    }

    #[test]
    fn a_file_is_cut_at_its_line_ends() {
        assert_eq!(lines_of(b"a\r\n\nbc\n"), [b"a".to_vec(), b"bc".to_vec()]);
    }
}
