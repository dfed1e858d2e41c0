//! The line at the bottom of the terminal while a load runs.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::numbers::{compact, duration};
use crate::result::{Interval, Progress};

const BYTES_PER_MIB: f64 = (1u64 << 20) as f64;
const TICK: Duration = Duration::from_millis(200);
/// The part, how much of it is over, and the last second's figures.
const WITH_LENGTH: &str = "{prefix:<24!} [{bar:20}] {pos:>4}/{len} s  {msg}";
const WITHOUT_LENGTH: &str = "{prefix:<24!} {spinner} {elapsed}  {msg}";

/// Shows what the engine says on standard error; nothing at all when that is no terminal.
pub struct ProgressLine {
    bar: ProgressBar,
    /// Of the present part; the bar counts whole seconds.
    over_ms: u64,
}

impl Default for ProgressLine {
    fn default() -> ProgressLine {
        ProgressLine::on(ProgressDrawTarget::stderr())
    }
}

impl ProgressLine {
    fn on(target: ProgressDrawTarget) -> ProgressLine {
        ProgressLine { bar: ProgressBar::with_draw_target(Some(0), target), over_ms: 0 }
    }

    pub fn show(&mut self, progress: &Progress) {
        match progress {
            Progress::Phase { name, seconds } => {
                let template = if seconds.is_some() { WITH_LENGTH } else { WITHOUT_LENGTH };
                let style = ProgressStyle::with_template(template).expect("the template is a constant");
                self.bar.reset();
                self.over_ms = 0;
                self.bar.set_style(style.progress_chars("=> "));
                self.bar.set_length(seconds.map_or(0, |seconds| seconds.ceil() as u64));
                self.bar.set_message("");
                self.bar.set_prefix((*name).to_owned());
                self.bar.enable_steady_tick(TICK);
            }
            Progress::Interval { interval, is_warm_up } => {
                self.over_ms += interval.duration_ms;
                self.bar.set_position(self.over_ms / 1_000);
                self.bar.set_message(figures_of(interval, *is_warm_up));
            }
            Progress::Note(note) => self.bar.println(note),
            Progress::RunEnded(_) => self.bar.set_message(""),
        }
    }

    /// Takes the line away, so that the table stands alone.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn figures_of(interval: &Interval, is_warm_up: bool) -> String {
    let seconds = interval.duration_ms as f64 / 1_000.0;
    let mib = |bytes: u64| compact(bytes as f64 / BYTES_PER_MIB / seconds);
    let mut text = format!("{}/s in", compact(interval.produced.records as f64 / seconds));
    text += &format!(", {} MiB/s in, {} out", mib(interval.produced.bytes), mib(interval.consumed.bytes));
    if let Some(latency) = interval.produce_latency {
        text += &format!(", p99 {}", duration(latency.p99_us));
    }
    if is_warm_up { text + " (warm-up)" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Flow;

    #[test]
    fn the_bar_counts_seconds_and_starts_again_with_each_part() {
        let mut line = ProgressLine::on(ProgressDrawTarget::hidden());
        let interval = Interval { duration_ms: 1_500, ..Interval::default() };
        for _ in 0..2 {
            line.show(&Progress::Phase { name: "measure", seconds: Some(9.5) });
            assert_eq!((line.bar.position(), line.bar.length()), (0, Some(10)));
            for _ in 0..2 {
                line.show(&Progress::Interval { interval: &interval, is_warm_up: false });
            }
            assert_eq!(line.bar.position(), 3);
        }
        line.end();
    }

    #[test]
    fn rates_are_by_the_length_of_the_interval() {
        let produced = Flow { requests: 1, records: 1_000, bytes: 1 << 20 };
        let interval = Interval { duration_ms: 500, produced, ..Interval::default() };
        assert_eq!(figures_of(&interval, true), "2.00k/s in, 2.00 MiB/s in, 0 out (warm-up)");
        let empty = Interval::default();
        assert_eq!(figures_of(&empty, false), "–/s in, – MiB/s in, – out");
    }
}
