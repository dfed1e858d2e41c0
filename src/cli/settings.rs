use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{BrokerConfig, Settings, check_broker_setting, parse_properties};
use crate::runtime::startup;

/// Reads the property file, puts the overrides over it, and checks the whole.
/// Errors: one sentence that names the file and line, or the override, that is wrong.
pub fn load(file: Option<&Path>, overrides: &[(String, String)]) -> Result<BrokerConfig, String> {
    let mut settings = BTreeMap::new();
    if let Some(file) = file {
        let text = startup::read_text(file).map_err(|trouble| trouble.to_string())?;
        settings = read_file(&file.display().to_string(), &text)?;
    }
    for (name, value) in overrides {
        check_broker_setting(name, value).map_err(|error| format!("--override {name}: {error}"))?;
        settings.insert(name.clone(), value.clone());
    }
    Settings::from_static(settings).and_then(BrokerConfig::from_settings).map_err(|error| error.to_string())
}

fn read_file(file: &str, text: &str) -> Result<BTreeMap<String, String>, String> {
    let properties = parse_properties(text)
        .map_err(|error| format!("{file}, line {}: \\u wants four hexadecimal digits", error.line))?;
    let mut settings = BTreeMap::new();
    for property in properties {
        check_broker_setting(&property.name, &property.value)
            .map_err(|error| format!("{file}, line {}: {error}", property.line))?;
        settings.insert(property.name, property.value);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NodeId;

    #[test]
    fn an_override_is_stronger_than_the_file() {
        let settings = read_file("f", "node.id=1\nnum.partitions: 4").expect("valid");
        assert_eq!(settings.len(), 2);
        let config = load(None, &[("node.id".to_owned(), "2".to_owned())]).expect("valid");
        assert_eq!(config.node_id, NodeId(2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = read_file("a.properties", "\n# x\nnum.partition=3").expect_err("unknown");
        assert_eq!(
            error,
            "a.properties, line 3: Unknown config name: num.partition; the nearest known one is num.partitions"
        );
        assert!(read_file("f", "a=\\u12").expect_err("escape").starts_with("f, line 1: "));
        let error = load(None, &[("num.partitions".to_owned(), "0".to_owned())]).expect_err("range");
        assert!(error.starts_with("--override num.partitions: Invalid value 0"), "{error}");
        let error = load(Some(Path::new("/no/such/file")), &[]).expect_err("no file");
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
