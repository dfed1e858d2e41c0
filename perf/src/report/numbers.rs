//! Numbers as people read them: three digits that count, and a unit.

/// What stands where nothing was measured.
pub const ABSENT: &str = "–";

const MICROS_PER_MILLI: f64 = 1e3;
const MICROS_PER_SECOND: f64 = 1e6;

/// Three digits that count, thousands as `k`, `M`, `G`: `12.3k`, `0.0456`, `1.00M`.
pub fn compact(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    for (unit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        // 999.5 would be written as 1000.
        if value.abs() >= unit * 0.9995 {
            return format!("{}{suffix}", three_digits(value / unit));
        }
    }
    three_digits(value)
}

/// Three digits that count: `0.812 µs`, `45.0 ms`, `1.20 s`.
pub fn duration(micros: f64) -> String {
    if !micros.is_finite() {
        ABSENT.to_owned()
    } else if micros == 0.0 {
        "0".to_owned()
    } else if micros < 999.5 {
        format!("{} µs", three_digits(micros))
    } else if micros < 999.5 * MICROS_PER_MILLI {
        format!("{} ms", three_digits(micros / MICROS_PER_MILLI))
    } else {
        format!("{} s", three_digits(micros / MICROS_PER_SECOND))
    }
}

/// `value` in its `unit`; times of the unit `us` in the unit that fits them.
pub fn in_unit(value: f64, unit: &str) -> String {
    if unit == "us" { duration(value) } else { compact(value) }
}

/// `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1.50 GiB`.
pub fn byte_count(bytes: u64) -> String {
    let value = bytes as f64;
    for (unit, suffix) in [((1u64 << 30) as f64, "GiB"), ((1u64 << 20) as f64, "MiB"), (1024.0, "KiB")] {
        if value >= unit {
            return format!("{} {suffix}", three_digits(value / unit));
        }
    }
    format!("{bytes} B")
}

/// `2026-03-01 12:34 UTC`.
pub fn date(unix_seconds: u64) -> String {
    let (days, of_day) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Days to the civil calendar, counted from 1 March of the year 0 so that the leap day ends a year (Hinnant,
    // "chrono-compatible low-level date algorithms", civil_from_days).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", of_day / 3_600, of_day / 60 % 60)
}

fn three_digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let decimals = match size {
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.09995 => 3,
        _ => 4,
    };
    if size < 0.001 { format!("{value:.1e}") } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let cases = [
            (0.0, "0"),
            (0.000_012, "1.2e-5"),
            (0.0456, "0.0456"),
            (0.5, "0.500"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (99.97, "100"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (999_600.0, "1.00M"),
            (-2_000.0, "-2.00k"),
            (f64::NAN, ABSENT),
            (f64::INFINITY, ABSENT),
        ];
        for (value, text) in cases {
            assert_eq!(compact(value), text);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (micros, text) in [
            (0.0, "0"),
            (0.81, "0.810 µs"),
            (999.7, "1.00 ms"),
            (45_000.0, "45.0 ms"),
            (999_700.0, "1.00 s"),
            (90e6, "90.0 s"),
        ] {
            assert_eq!(duration(micros), text);
        }
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(count), text);
        }
    }

    #[test]
    fn dates_are_of_the_civil_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_199), "2024-02-29 23:59 UTC");
        assert_eq!(date(1_767_225_600), "2026-01-01 00:00 UTC");
    }
}
