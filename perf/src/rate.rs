//! How much to send at planned times.

use std::str::FromStr;

const BYTES_PER_MIB: f64 = (1u64 << 20) as f64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    RecordsPerSecond(f64),
    /// Record batches as they are on the wire.
    BytesPerSecond(f64),
    /// Of a maximum that is measured first.
    PercentOfMax(f64),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let wrong = || format!("{text} is no load: it must be as 20000 (records/s), 50MiB/s or 50%");
        let number = |text: &str| match text.trim().replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
            _ => Err(wrong()),
        };
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(Rate::PercentOfMax);
        }
        let amount = text.strip_suffix("/s").unwrap_or(text);
        match amount.strip_suffix("MiB") {
            Some(mib) => number(mib).map(|mib| Rate::BytesPerSecond(mib * BYTES_PER_MIB)),
            None => number(amount).map(Rate::RecordsPerSecond),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read() {
        assert_eq!("20_000".parse(), Ok(Rate::RecordsPerSecond(20_000.0)));
        assert_eq!("20000/s".parse(), Ok(Rate::RecordsPerSecond(20_000.0)));
        assert_eq!("1.5MiB/s".parse(), Ok(Rate::BytesPerSecond(1_572_864.0)));
        assert_eq!("50MiB".parse(), Ok(Rate::BytesPerSecond(52_428_800.0)));
        assert_eq!("70%".parse(), Ok(Rate::PercentOfMax(70.0)));
        for wrong in ["", "fast", "-1", "0%", "5GiB", "inf"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
