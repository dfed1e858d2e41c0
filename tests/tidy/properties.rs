//! Writes `config/server.properties` from the table in `src/config`.

use onrush::config::keys::BROKER_TABLES;
use onrush::config::{Key, Kind};

const HEAD: &str = "\
# Every setting of the broker with its default, as
#     onrush serve --config config/server.properties
# reads it. The syntax, the names and, but for what begins with onrush., the meaning are those of Kafka's
# server.properties. A line is a comment until its # is taken away; --override name=value on the command line is
# stronger than this file. What a topic sets for itself is stronger than the log.* settings here.
";

const WITHOUT_EFFECT: &str = "
# --- Accepted without effect ---
# These are known to Kafka. They are checked, shown by DescribeConfigs, named once at start-up when they are set, and
# change nothing here.
";

/// The whole file.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    for table in BROKER_TABLES {
        if table.keys.iter().any(Key::is_served) {
            text += &format!("\n# --- {} ---\n", table.about.trim_end_matches('.'));
        }
        for key in table.keys.iter().filter(|key| key.is_served()) {
            text += &format!("\n# {}\n# {}\n#{}\n", key.documentation, facts(key), example(key));
        }
    }
    text += WITHOUT_EFFECT;
    for key in BROKER_TABLES.iter().flat_map(|table| table.keys).filter(|key| !key.is_served()) {
        text += &format!("#{}\n", example(key));
    }
    text
}

/// Unit, default and range in one line.
fn facts(key: &Key) -> String {
    let unit = key.unit().map(|unit| format!("In {unit}. ")).unwrap_or_default();
    let default = match key.default {
        None => "no default".to_owned(),
        Some("") => "default empty".to_owned(),
        Some(default) => format!("default {default}"),
    };
    let range = if key.kind == Kind::Class { "the name of a class".to_owned() } else { key.range() };
    format!("{unit}Must be {range}; {default}.")
}

fn example(key: &Key) -> String {
    format!("{}={}", key.name, key.default.unwrap_or_default())
}
