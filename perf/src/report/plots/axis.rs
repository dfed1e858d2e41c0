//! Axes: from where to where, and what stands at which place.

use super::super::numbers::{compact, duration};

/// Above this ratio of the greatest to the smallest time a linear axis hides the small ones.
const LINEAR_RATIO_MAX: f64 = 20.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub caption: String,
    /// Places, not values: `place` turns one into the other.
    pub from: f64,
    pub to: f64,
    /// Place and label, rising.
    pub ticks: Vec<(f64, String)>,
    scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Axis {
    /// From zero to a round number that is not below `greatest`.
    pub fn amounts(caption: &str, greatest: f64) -> Axis {
        Axis::linear(caption, round_up(greatest), step_for(greatest), compact)
    }

    /// Times in µs, from zero to a round one that is not below `greatest`.
    pub fn durations(caption: &str, greatest: f64) -> Axis {
        Axis::linear(caption, round_up(greatest), step_for(greatest), duration)
    }

    /// Seconds, from zero to `end`, which need not be round; almost a whole second is one, so that it has its label.
    pub fn seconds(caption: &str, end: f64) -> Axis {
        let end = if (end.round() - end).abs() < 0.1 { end.round() } else { end };
        Axis::linear(caption, end.max(1e-3), step_for(end), |value| format!("{value:.1}"))
    }

    /// Times in µs. From zero, as long as the small ones can be seen then; else by powers of ten, and the caption says so.
    pub fn times(caption: &str, values: impl Iterator<Item = f64>) -> Axis {
        let (mut least, mut greatest) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| *value > 0.0) {
            (least, greatest) = (least.min(value), greatest.max(value));
        }
        if greatest <= least * LINEAR_RATIO_MAX {
            return Axis::durations(caption, greatest);
        }
        Axis::logarithmic(&format!("{caption}, logarithmic scale"), least, greatest)
    }

    fn linear(caption: &str, to: f64, step: f64, label: impl Fn(f64) -> String) -> Axis {
        let count = (to / step + 1e-9).floor() as u32;
        // Multiplied, and not added up, so that errors don't add up either.
        let ticks =
            (0..=count).map(|index| f64::from(index) * step).map(|at| (at, short(label(at)))).collect();
        Axis { caption: caption.to_owned(), from: 0.0, to, ticks, scale: Scale::Linear }
    }

    fn logarithmic(caption: &str, least: f64, greatest: f64) -> Axis {
        let steps: Vec<f64> =
            (-4..12).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power))).collect();
        let from = steps.iter().rev().find(|step| **step <= least).copied().unwrap_or(least);
        let to = steps.iter().find(|step| **step >= greatest).copied().unwrap_or(greatest);
        let many = to / from > 2e3;
        let is_shown = |step: &&f64| {
            let power = step.log10();
            (from..=to).contains(*step) && (!many || (power - power.round()).abs() < 1e-9)
        };
        let ticks =
            steps.iter().filter(is_shown).map(|step| (step.log10(), short(duration(*step)))).collect();
        Axis {
            caption: caption.to_owned(),
            from: from.log10(),
            to: to.log10(),
            ticks,
            scale: Scale::Logarithmic,
        }
    }

    /// By how many nines of all are below: 90 % at 1, 99 % at 2. `nines`: where it ends.
    pub fn nines(caption: &str, nines: f64) -> Axis {
        let mut ticks = vec![(0.0, "0".to_owned()), (0.5f64.log10().abs(), "50 %".to_owned())];
        for index in 1..=nines.floor() as usize {
            let label = match index {
                1 => "90 %".to_owned(),
                2 => "99 %".to_owned(),
                _ => format!("99.{} %", "9".repeat(index - 2)),
            };
            ticks.push((index as f64, label));
        }
        Axis { caption: caption.to_owned(), from: 0.0, to: nines.max(1.0), ticks, scale: Scale::Linear }
    }

    /// Where `value` stands; what is off the axis stands at its end.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).log10(),
        };
        place.clamp(self.from, self.to)
    }
}

/// Without the zeros after the point that end the number: `1.50 ms` is `1.5 ms`.
fn short(label: String) -> String {
    let unit_at = label.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(label.len());
    let (number, unit) = label.split_at(unit_at);
    if !number.contains('.') || unit.starts_with('e') {
        return label;
    }
    format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// Whole steps, one at least.
fn round_up(greatest: f64) -> f64 {
    let step = step_for(greatest);
    (greatest / step - 1e-9).ceil().max(1.0) * step
}

/// 1, 2 or 5 times a power of ten, so that 4 to 8 of them make `greatest`.
fn step_for(greatest: f64) -> f64 {
    if greatest <= 0.0 || !greatest.is_finite() {
        return 1.0;
    }
    let rough = greatest / 7.0;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn amounts_begin_at_zero_and_end_at_a_round_number() {
        let axis = Axis::amounts("MiB/s", 297.0);
        assert_eq!((axis.from, axis.to), (0.0, 300.0));
        assert_eq!(labels(&axis), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(Axis::amounts("", 0.0).to, 1.0);
        assert_eq!(labels(&Axis::amounts("", 0.3)).last(), Some(&"0.3"));
    }

    #[test]
    fn times_far_apart_are_on_a_logarithmic_axis_and_the_caption_says_so() {
        let near = Axis::times("latency", [400.0, 900.0].into_iter());
        assert_eq!((near.from, near.caption.as_str()), (0.0, "latency"));
        let far = Axis::times("latency", [400.0, 90_000.0].into_iter());
        assert_eq!(far.caption, "latency, logarithmic scale");
        assert_eq!(labels(&far).first(), Some(&"200 µs"));
        assert_eq!(labels(&far).last(), Some(&"100 ms"));
        assert_eq!(far.place(1_000.0), 3.0);
        assert_eq!(far.place(0.0), far.from);
        let none = Axis::times("latency", std::iter::empty());
        assert_eq!((none.from, none.to), (0.0, 1.0));
    }

    #[test]
    fn a_run_that_ends_a_little_early_has_a_label_at_its_end() {
        assert_eq!(labels(&Axis::seconds("", 4.99)), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(labels(&Axis::seconds("", 5.5)).last(), Some(&"5"));
    }

    #[test]
    fn nines_are_named() {
        assert_eq!(labels(&Axis::nines("", 4.3)), ["0", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }
}
