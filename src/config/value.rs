use std::fmt;

use super::key::Kind;

/// A setting's value after reading. Its text is what DescribeConfigs shows.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Boolean(bool),
    Whole(i64),
    Real(f64),
    Text(String),
    List(Vec<String>),
}

/// Reads `text` as Kafka does: spaces around it do not count, `true` in any case, a sign before a number, a list
/// parted by commas. `None`: not a value of this kind. Source: Kafka `ConfigDef.parseType`.
pub(super) fn parse(kind: Kind, text: &str) -> Option<Value> {
    let trimmed = text.trim();
    match kind {
        Kind::Boolean if trimmed.eq_ignore_ascii_case("true") => Some(Value::Boolean(true)),
        Kind::Boolean if trimmed.eq_ignore_ascii_case("false") => Some(Value::Boolean(false)),
        Kind::Boolean => None,
        Kind::Short | Kind::Int | Kind::Long => {
            trimmed.parse().ok().filter(|number| kind.holds(*number)).map(Value::Whole)
        }
        // Java reads a closing `d` or `f` as part of the number.
        Kind::Double => trimmed.trim_end_matches(['d', 'D', 'f', 'F']).parse().ok().map(Value::Real),
        Kind::String | Kind::Class | Kind::Password => Some(Value::Text(trimmed.to_owned())),
        Kind::List if trimmed.is_empty() => Some(Value::List(Vec::new())),
        Kind::List => Some(Value::List(trimmed.split(',').map(|entry| entry.trim().to_owned()).collect())),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Whole(value) => write!(f, "{value}"),
            Value::Real(value) => f.write_str(&java_double(*value)),
            Value::Text(text) => f.write_str(text),
            Value::List(entries) => f.write_str(&entries.join(",")),
        }
    }
}

/// A double as Java prints it: with a point always, with an exponent below 0.001 and from ten million on.
fn java_double(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}").replace("inf", "Infinity");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: Kind, text: &str) -> Option<String> {
        parse(kind, text).map(|value| value.to_string())
    }

    #[test]
    fn values_are_read_and_shown_as_java_does() {
        for (kind, text, expected) in [
            (Kind::Boolean, " TRUE ", Some("true")),
            (Kind::Boolean, "yes", None),
            (Kind::Boolean, "", None),
            (Kind::Int, " +5 ", Some("5")),
            (Kind::Int, "2147483647", Some("2147483647")),
            (Kind::Int, "2147483648", None),
            (Kind::Int, "1.5", None),
            (Kind::Int, "0x10", None),
            (Kind::Short, "32768", None),
            (Kind::Long, "9223372036854775807", Some("9223372036854775807")),
            (Kind::Long, "5L", None),
            (Kind::Double, "1", Some("1.0")),
            (Kind::Double, "1e3", Some("1000.0")),
            (Kind::Double, "1d", Some("1.0")),
            (Kind::Double, "0.0001", Some("1.0E-4")),
            (Kind::Double, "12345678", Some("1.2345678E7")),
            (Kind::Double, "1.7976931348623157E308", Some("1.7976931348623157E308")),
            (Kind::Double, "half", None),
            (Kind::String, " a b ", Some("a b")),
            (Kind::List, "a, b ,c", Some("a,b,c")),
            (Kind::List, " ", Some("")),
        ] {
            assert_eq!(shown(kind, text).as_deref(), expected, "{kind:?} {text:?}");
        }
    }
}
