use super::error::ConfigError;
use super::value::{Value, parse};

/// One setting: its name, the values it takes, and whether it has an effect here.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// As it would stand in a property file; `None`: unset until somebody sets it.
    pub default: Option<&'static str>,
    pub valid: Valid,
    pub update: Update,
    pub effect: Effect,
    pub documentation: &'static str,
}

/// Kafka's type of a setting, as DescribeConfigs names it. Source: Kafka `ConfigDef.Type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Boolean,
    Short,
    Int,
    Long,
    Double,
    String,
    List,
    /// Name of a Java class; kept as text.
    Class,
    /// Never shown, neither in answers nor in errors.
    Password,
}

/// Which values of the key's kind are allowed; all bounds are inclusive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Valid {
    /// Whatever the kind allows. A list must still name nothing twice and have no empty entry.
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// A fraction from 0 to this.
    UpTo(f64),
    /// Text that is not empty, or a list with at least one entry.
    NotEmpty,
    OneOf(&'static [&'static str]),
    /// `OneOf` in any mix of capitals.
    OneOfAnyCase(&'static [&'static str]),
    /// A list of these; `empty` says whether it may have no entry.
    SomeOf {
        names: &'static [&'static str],
        empty: bool,
    },
    /// 1 to 9, or -1 for the library's own choice.
    GzipLevel,
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
    /// `earliest`, `latest`, or `by_duration:` with a duration of ISO 8601.
    ShareOffsetReset,
    /// A list of `property=pattern`, of properties that a client has. The pattern is not looked at.
    ClientMatch,
}

/// When a changed value takes effect. Source: Kafka `DynamicBrokerConfig`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// At the next start.
    ReadOnly,
    /// While running, for one broker.
    PerBroker,
    /// While running, for one broker or for all.
    ClusterWide,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    Served,
    /// Checked, kept and described, but without effect; named once at start-up when set.
    Ignored,
}

impl Key {
    /// Reads `text` as this key's value.
    /// Errors: `InvalidValue`.
    pub fn read(&self, text: &str) -> Result<Value, ConfigError> {
        parse(self.kind, text).filter(|value| self.valid.allows(value)).ok_or_else(|| {
            let value = if self.kind == Kind::Password { "[hidden]" } else { text.trim() };
            ConfigError::InvalidValue {
                name: self.name.to_owned(),
                value: value.to_owned(),
                expected: self.range(),
            }
        })
    }

    /// What a value must be, as the end of the sentence "the value must be …".
    pub fn range(&self) -> String {
        match (self.kind, self.valid) {
            (Kind::Boolean, _) => "true or false".to_owned(),
            (_, Valid::GzipLevel) => "a whole number from 1 to 9, or -1".to_owned(),
            (_, Valid::Between(min, max)) => format!("a whole number from {min} to {max}"),
            (Kind::Long, Valid::AtLeast(min)) => format!("a whole number, {min} or more"),
            (Kind::Long, _) => "a whole number".to_owned(),
            (Kind::Short | Kind::Int, valid) => {
                let (type_min, max) = self.kind.bounds();
                let min = if let Valid::AtLeast(min) = valid { min } else { type_min };
                format!("a whole number from {min} to {max}")
            }
            (Kind::Double, Valid::UpTo(max)) => format!("a number from 0 to {max}"),
            (Kind::Double, _) => "a number".to_owned(),
            (_, Valid::OneOf(names)) => format!("one of {}", names.join(", ")),
            (_, Valid::OneOfAnyCase(names)) => format!("one of {} (in any case)", names.join(", ")),
            (_, Valid::SomeOf { names, .. }) => format!("a list of {}, each at most once", names.join(", ")),
            (_, Valid::ShareOffsetReset) => {
                "earliest, latest, or by_duration: and a duration such as PT1H".to_owned()
            }
            (_, Valid::ClientMatch) => {
                format!("a list of property=pattern pairs, of {}", CLIENT_PROPERTIES.join(", "))
            }
            (_, Valid::ThrottledReplicas) => "* or a list of partition:broker pairs".to_owned(),
            (Kind::List, Valid::NotEmpty) => {
                "a list with at least one entry, none empty, none twice".to_owned()
            }
            (Kind::List, _) => "a list without empty or repeated entries".to_owned(),
            (_, Valid::NotEmpty) => "a text that is not empty".to_owned(),
            _ => "a text".to_owned(),
        }
    }

    /// The unit of the value, where the name says one.
    pub fn unit(&self) -> Option<&'static str> {
        const UNITS: [(&str, &str); 8] = [
            ("bytes.per.second", "bytes per second"),
            ("bytes", "bytes"),
            ("ms", "milliseconds"),
            ("us", "microseconds"),
            ("minutes", "minutes"),
            ("hours", "hours"),
            ("seconds", "seconds"),
            ("ratio", "a fraction"),
        ];
        UNITS.iter().find(|(end, _)| self.name.ends_with(end)).map(|(_, unit)| *unit)
    }
}

impl Kind {
    /// Smallest and largest value of a whole-number kind, inclusive.
    fn bounds(self) -> (i64, i64) {
        match self {
            Kind::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
            Kind::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// Whether `number` fits this kind.
    pub(super) fn holds(self, number: i64) -> bool {
        let (min, max) = self.bounds();
        (min..=max).contains(&number)
    }
}

impl Valid {
    fn allows(&self, value: &Value) -> bool {
        match (self, value) {
            (Valid::AtLeast(min), Value::Whole(number)) => number >= min,
            (Valid::Between(min, max), Value::Whole(number)) => (min..=max).contains(&number),
            (Valid::GzipLevel, Value::Whole(level)) => *level == -1 || (1..=9).contains(level),
            (Valid::UpTo(max), Value::Real(number)) => (0.0..=*max).contains(number),
            (Valid::NotEmpty, Value::Text(text)) => !text.is_empty(),
            (Valid::NotEmpty, Value::List(entries)) => !entries.is_empty() && is_tidy(entries),
            (Valid::OneOf(names), Value::Text(text)) => names.contains(&text.as_str()),
            (Valid::OneOfAnyCase(names), Value::Text(text)) => {
                names.iter().any(|name| name.eq_ignore_ascii_case(text))
            }
            (Valid::SomeOf { names, empty }, Value::List(entries)) => {
                (*empty || !entries.is_empty())
                    && is_tidy(entries)
                    && entries.iter().all(|entry| names.contains(&entry.as_str()))
            }
            (Valid::ThrottledReplicas, Value::List(entries)) => {
                entries.len() == 1 && entries[0] == "*" || entries.iter().all(|entry| is_replica(entry))
            }
            (Valid::ShareOffsetReset, Value::Text(text)) => {
                matches!(text.as_str(), "earliest" | "latest")
                    || text.strip_prefix("by_duration:").is_some_and(is_duration)
            }
            (Valid::ClientMatch, Value::List(entries)) => {
                is_tidy(entries) && entries.iter().all(|entry| is_client_match(entry))
            }
            (_, Value::List(entries)) => is_tidy(entries),
            _ => true,
        }
    }
}

/// No empty entry, none twice.
fn is_tidy(entries: &[String]) -> bool {
    entries.iter().enumerate().all(|(i, entry)| !entry.is_empty() && !entries[..i].contains(entry))
}

/// What a subscription to metrics may tell clients by. Source: Kafka `ClientMetricsConfigs`.
const CLIENT_PROPERTIES: [&str; 6] = [
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

fn is_client_match(entry: &str) -> bool {
    entry.split_once('=').is_some_and(|(property, pattern)| {
        CLIENT_PROPERTIES.contains(&property.trim()) && !pattern.trim().is_empty() && !pattern.contains('=')
    })
}

/// Where a share group begins that has not read a partition before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShareOffsetReset {
    Earliest,
    Latest,
    /// With records that are no older.
    ByDuration(i64),
}

/// Reads `share.auto.offset.reset`; `None`: it says nothing.
pub fn share_offset_reset(text: &str) -> Option<ShareOffsetReset> {
    match text {
        "earliest" => Some(ShareOffsetReset::Earliest),
        "latest" => Some(ShareOffsetReset::Latest),
        _ => text.strip_prefix("by_duration:").filter(|text| is_duration(text)).map(|text| {
            let (date, time) = text.trim_start_matches('P').split_once('T').unwrap_or((&text[1..], ""));
            let mut time = time;
            let mut total_ms = amount_ms(date, 'D', 24 * 60 * 60 * 1000);
            for (unit, unit_ms) in [('H', 60 * 60 * 1000), ('M', 60 * 1000), ('S', 1000)] {
                total_ms = total_ms.saturating_add(amount_ms(time, unit, unit_ms));
                time = without_amount(time, unit);
            }
            ShareOffsetReset::ByDuration(total_ms)
        }),
    }
}

/// The number of `unit` at the beginning of `text`, in ms; 0 when there is none.
fn amount_ms(text: &str, unit: char, unit_ms: i64) -> i64 {
    if without_amount(text, unit) == text {
        return 0;
    }
    let amount = text.split_once(unit).map_or("0", |(amount, _)| amount);
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let whole_ms = whole.parse().unwrap_or(i64::MAX).saturating_mul(unit_ms);
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    whole_ms.saturating_add(thousandths.parse().unwrap_or(0))
}

/// `PnDTnHnMn.nS`: each part may be missing, but not all of them, nor all behind a `T`.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    let (date, time) = rest.split_once('T').map_or((rest, None), |(date, time)| (date, Some(time)));
    if date.is_empty() && time.is_none() {
        return false;
    }
    let date_is_sound = without_amount(date, 'D').is_empty();
    let time_is_sound = time.is_none_or(|time| {
        !time.is_empty() && without_amount(without_amount(without_amount(time, 'H'), 'M'), 'S').is_empty()
    });
    date_is_sound && time_is_sound
}

/// `text` without the number of `unit` at its beginning; all of it when there is none.
fn without_amount(text: &str, unit: char) -> &str {
    let is_number = |amount: &str| {
        let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits(whole) && digits(fraction) && (unit == 'S' || !amount.contains('.'))
    };
    text.split_once(unit).filter(|(amount, _)| is_number(amount)).map_or(text, |(_, rest)| rest)
}

fn is_replica(entry: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    entry.split_once(':').is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_the_sum_of_its_parts() {
        for (text, reset) in [
            ("earliest", Some(ShareOffsetReset::Earliest)),
            ("latest", Some(ShareOffsetReset::Latest)),
            ("by_duration:PT1H", Some(ShareOffsetReset::ByDuration(3_600_000))),
            ("by_duration:P1DT2H3.5S", Some(ShareOffsetReset::ByDuration(93_603_500))),
            ("by_duration:P2D", Some(ShareOffsetReset::ByDuration(172_800_000))),
            ("by_duration:PT5M0.25S", Some(ShareOffsetReset::ByDuration(300_250))),
            ("by_duration:P", None),
            ("sometime", None),
        ] {
            assert_eq!(share_offset_reset(text), reset, "{text}");
        }
    }
}
