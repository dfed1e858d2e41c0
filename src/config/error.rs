use std::fmt;

/// Why settings are refused; the text is one sentence, fit for a client as for the person at the terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// No setting has this name.
    UnknownName { name: String, nearest: Option<&'static str> },
    /// The value is of the wrong type or out of range.
    InvalidValue { name: String, value: String, expected: String },
    /// A value that is fine alone but not beside another, or that this version cannot serve.
    Refused(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::UnknownName { name, nearest: Some(nearest) } => {
                write!(f, "Unknown config name: {name}; the nearest known one is {nearest}")
            }
            ConfigError::UnknownName { name, nearest: None } => write!(f, "Unknown config name: {name}"),
            ConfigError::InvalidValue { name, value, expected } => {
                write!(f, "Invalid value {value} for configuration {name}: it must be {expected}")
            }
            ConfigError::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ConfigError {}
