//! Keeps the layers, the doors and the settings as `docs/ARCHITECTURE.md` says they are.

#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/properties.rs"]
mod properties;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use onrush::config::keys::broker_key;
use onrush::config::{BrokerConfig, Settings, parse_properties};

use documents::{
    README_LINES_MAX, complaints_about_brackets, dead_pointers, with_metrics, with_served_versions,
};
use rules::{complaints_about, complaints_about_layers, machine_paths};
use source::Source;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the repository that is text: its path from the root, and its text.
fn files() -> Vec<(String, String)> {
    let ignored = [".git", "target", "onrush-data"];
    let mut files = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the repository can be read") {
            let path = entry.expect("the repository can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            if ignored.contains(&name.as_str()) || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root()).expect("it lies below the root");
                files.push((path.to_string_lossy().into_owned(), text));
            }
        }
    }
    files.sort();
    files
}

fn assert_no(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn folders_stand_in_order_and_import_only_what_they_may() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("the library");
    assert_no(&complaints_about_layers(&Source::new("src/lib.rs", &lib)));
}

#[test]
fn every_file_keeps_the_rules() {
    let sources = sources(&files());
    assert!(sources.iter().any(|source| source.path == "src/lib.rs"), "no source was found");
    let complaints: Vec<String> = sources.iter().flat_map(complaints_about).collect();
    assert_no(&complaints);
}

fn sources(files: &[(String, String)]) -> Vec<Source> {
    let rust = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut sources: Vec<Source> = rust.map(|(path, text)| Source::new(path, text)).collect();
    let of_tests: BTreeSet<String> = sources.iter().flat_map(Source::files_of_test_modules).collect();
    sources.iter_mut().filter(|source| of_tests.contains(&source.path)).for_each(Source::mark_as_tests);
    sources
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    let complaints: Vec<String> = files()
        .iter()
        .flat_map(|(path, text)| {
            machine_paths(text).into_iter().map(move |(line, what)| format!("{path}:{line}: {what}"))
        })
        .collect();
    assert_no(&complaints);
}

#[test]
fn the_property_file_shows_every_setting_as_the_code_has_it() {
    let path = root().join("config/server.properties");
    let expected = properties::reference();
    if std::env::var_os("WRITE").is_some() {
        fs::write(&path, &expected).expect("the file can be written");
    }
    let found = fs::read_to_string(&path).expect("config/server.properties");
    let different = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "config/server.properties differs from src/config at line {}; write it with: WRITE=1 cargo test --test tidy",
        different.map_or(found.lines().count().min(expected.lines().count()), |line| line) + 1
    );
}

#[test]
fn the_readme_is_short_and_names_what_is_served() {
    let path = root().join("README.md");
    let found = fs::read_to_string(&path).expect("README.md");
    let expected = with_served_versions(&found).expect("the README has a place for the table");
    if std::env::var_os("WRITE").is_some() {
        fs::write(&path, &expected).expect("the file can be written");
    } else {
        assert_eq!(
            found, expected,
            "README.md differs from src/protocol/versions.rs: WRITE=1 cargo test --test tidy"
        );
    }
    let lines = expected.lines().count();
    assert!(lines < README_LINES_MAX, "README.md has {lines} lines");
}

#[test]
fn the_operators_document_lists_every_metric() {
    let path = root().join("docs/OPERATING.md");
    let found = fs::read_to_string(&path).expect("docs/OPERATING.md");
    let expected = with_metrics(&found).expect("it has a place for the table");
    if std::env::var_os("WRITE").is_some() {
        fs::write(&path, &expected).expect("the file can be written");
    } else {
        let differs = "docs/OPERATING.md differs from src/metrics/table.rs: WRITE=1 cargo test --test tidy";
        assert_eq!(found, expected, "{differs}");
    }
}

#[test]
fn files_and_names_in_the_documents_are_there() {
    let files = files();
    let sources = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let documents = files.iter().filter(|(path, _)| path.ends_with(".md"));
    assert_no(
        &documents.flat_map(|(path, text)| dead_pointers(path, text, &sources)).collect::<Vec<String>>(),
    );
}

#[test]
fn the_architecture_says_what_each_folder_may_import() {
    let path = "docs/ARCHITECTURE.md";
    let text = fs::read_to_string(root().join(path)).expect("the architecture");
    assert_no(&complaints_about_brackets(path, &text));
}

#[test]
fn the_property_file_with_all_its_defaults_means_the_same_as_no_file() {
    let text = fs::read_to_string(root().join("config/server.properties")).expect("config/server.properties");
    let settings = parse_properties(&text.replace("\n#", "\n"))
        .expect("well-formed")
        .into_iter()
        .filter(|property| broker_key(&property.name).is_some_and(|key| key.default.is_some()))
        .map(|property| (property.name, property.value))
        .collect();
    let config = BrokerConfig::from_settings(Settings::from_static(settings).expect("valid")).expect("valid");
    assert!(config.settings.set_text("listeners").is_some(), "no default was read");
    assert_eq!(BrokerConfig { settings: Settings::default(), ..config }, BrokerConfig::default());
}

/// The rules complain when they should, and only then.
mod proof {
    use super::*;

    fn about(path: &str, text: &str) -> Vec<String> {
        complaints_about(&Source::new(path, text))
    }

    #[track_caller]
    fn complains(path: &str, text: &str, line: usize, what: &str) {
        let complaints = about(path, text);
        let wanted = format!("{path}:{line}: {what}");
        assert!(complaints.iter().any(|complaint| complaint.starts_with(&wanted)), "{text}\n{complaints:?}");
    }

    #[track_caller]
    fn is_content(path: &str, text: &str) {
        assert_eq!(about(path, text), Vec::<String>::new(), "{text}");
    }

    #[test]
    fn an_arrow_that_points_up_is_named_with_file_and_line() {
        let rule = "src/partition/a.rs";
        complains(rule, "\nuse crate::storage::Log;\n", 2, "partition may not import storage");
        complains(rule, "fn f() {\n crate::runtime::now();\n}", 2, "partition may not import runtime");
        complains(rule, "use super::super::group::Group;", 1, "partition may not import group");
        complains("src/partition/mod.rs", "use super::shard::Shard;", 1, "partition may not import shard");
        complains(
            rule,
            "mod x { mod y { use super::super::super::super::shard::Shard; } }",
            1,
            "partition may not",
        );
        complains(
            rule,
            "#[cfg(test)]\nmod tests {\n use crate::net::x;\n}",
            3,
            "partition may not import net",
        );
        complains(
            rule,
            "use crate::{\n base::Offset,\n shard::Shard,\n};",
            3,
            "partition may not import shard",
        );
        complains(rule, "use crate::{base::Offset};", 1, "one folder for each");
        complains("src/net/a.rs", "pub fn f(x: Rc<crate::broker::B>) {}", 1, "net may not import broker");
    }

    #[test]
    fn an_arrow_that_points_down_is_fine() {
        is_content("src/partition/a.rs", "use crate::base::Offset;\nuse crate::record::{Header, x::Y};");
        is_content("src/partition/x/a.rs", "use super::super::b::C; use crate::partition::d;");
        is_content("src/partition/a.rs", "// use crate::storage::Log;\n/* crate::net /* x */ crate::api */");
        is_content(
            "src/partition/a.rs",
            "const A: &str = \"crate::net\"; const B: &str = r#\"\"crate::api\"#;",
        );
        is_content("src/partition/a.rs", "fn f<'a>(x: &'a str) -> char { 'a' } fn g() -> impl T + use<> {}");
    }

    #[test]
    fn a_layer_that_is_missing_or_out_of_order_is_named() {
        let lib = |text: &str| complaints_about_layers(&Source::new("src/lib.rs", text));
        let in_order: String =
            rules::IMPORTS.iter().map(|(folder, _)| format!("pub mod {folder};\n")).collect();
        assert_eq!(lib(&in_order), Vec::<String>::new());
        assert_eq!(lib(&in_order.replace("pub mod record;\n", "")).len(), 1);
        assert_eq!(lib(&format!("pub mod extra;\n{in_order}")).len(), 1);
        assert_eq!(
            lib(&in_order.replace("record", "x").replace("base", "record").replace("x", "base")).len(),
            1
        );
    }

    #[test]
    fn each_door_is_watched() {
        for (text, what) in [
            ("use glommio::Task;", "glommio::Task belongs in runtime"),
            ("fn f() { libc::fsync(1); }", "libc::fsync belongs in runtime"),
            ("use std::fs;", "std::fs belongs in runtime"),
            ("use std::{fmt, fs::File};", "std::fs::File belongs in runtime"),
            ("use std::net::TcpStream;", "std::net::TcpStream belongs in runtime"),
            ("use std::net::{SocketAddr, TcpListener};", "std::net::TcpListener belongs in runtime"),
            ("use std::net;", "std::net belongs in runtime"),
            ("use std::time::{Duration, Instant};", "std::time::Instant belongs in runtime"),
            ("fn f() { std::time::SystemTime::now(); }", "std::time::SystemTime::now belongs in runtime"),
            ("use std::time::*;", "std::time::* belongs in runtime"),
            ("use std::collections::HashMap;", "std::collections::HashMap belongs in runtime"),
            (
                "use std::collections::{BTreeMap, HashSet as S};",
                "std::collections::HashSet belongs in runtime",
            ),
            ("use std::collections;", "std::collections belongs in runtime"),
            ("use std::collections::*;", "std::collections::* belongs in runtime"),
            ("use std::hash::RandomState;", "std::hash::RandomState belongs in runtime"),
            ("use kafka_protocol::messages::X;", "kafka_protocol::messages::X belongs in protocol and api"),
            ("use clap::Parser;", "clap::Parser belongs in cli"),
            ("use std::sync::{Arc, Mutex};", "std::sync::Mutex belongs in runtime"),
            ("use std::sync::atomic::AtomicU64;", "std::sync::atomic::AtomicU64 belongs in runtime"),
            (
                "fn f() { std::sync::mpsc::channel(); }",
                "std::sync::mpsc::channel belongs in runtime and broker",
            ),
            ("static mut COUNT: u64 = 0;", "static mut is shared by all cores"),
        ] {
            complains("src/shard/a.rs", &format!("\n{text}"), 2, what);
        }
        is_content("src/shard/a.rs", "use std::net::{IpAddr, SocketAddr}; use std::time::Duration;");
        is_content(
            "src/shard/a.rs",
            "use crate::runtime::glommio::GlommioRuntime; use std::collections::BTreeMap;",
        );
        is_content("src/shard/a.rs", "use std::collections::hash_map::Entry; let clap = 1; clap + 1;");
        is_content("src/shard/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }");
        is_content("src/shard/a.rs", "use std::sync::Arc; static COUNTS: [u8; 2] = [0; 2];");
        is_content(
            "src/runtime/a.rs",
            "use std::sync::Mutex; use glommio::Task; use std::fs::File; use std::time::Instant;",
        );
        is_content("src/api/a.rs", "use kafka_protocol::messages::X;");
        is_content("src/base/map.rs", "pub type Map<K, V> = std::collections::HashMap<K, V, foldhash::F>;");
    }

    #[test]
    fn a_pointer_in_a_document_that_leads_nowhere_is_named() {
        let sources =
            BTreeMap::from([("src/net/a.rs", "pub async fn serve_it() {}\nstruct Held;"), ("docs/A.md", "")]);
        let dead = |text: &str| dead_pointers("docs/A.md", text, &sources);
        assert_eq!(
            dead("see `net/a.rs`, `net/a.rs:serve_it` and `net/a.rs:Held`,\n`docs/A.md`, `net/`"),
            Vec::<String>::new()
        );
        assert_eq!(dead("`a/b` is none of ours, `x`, `net/a b`, nor `cargo test`"), Vec::<String>::new());
        assert_eq!(dead("\nsee `net/b.rs`"), ["docs/A.md:2: net/b.rs: there is no such file"]);
        assert_eq!(dead("`net/a.rs:serve`"), ["docs/A.md:1: net/a.rs:serve: src/net/a.rs declares no serve"]);
    }

    #[test]
    fn a_bracket_that_says_something_else_is_named() {
        let path = "docs/ARCHITECTURE.md";
        let text = fs::read_to_string(root().join(path)).expect("the architecture");
        for (right, wrong) in [
            ("  [record config]", "  [record]"),
            ("    net/ ", "    nets/ "),
            ("[all above but storage]", "[all above]"),
        ] {
            assert!(text.contains(right), "{right}");
            assert!(!complaints_about_brackets(path, &text.replace(right, wrong)).is_empty(), "{right}");
        }
    }

    #[test]
    fn leftovers_and_unexplained_panics_are_named() {
        let path = "src/storage/a.rs";
        complains(path, "fn f() {\n x\n  .unwrap();\n}", 3, "unwrap outside tests");
        complains(path, "#[cfg(test)]\nuse a::b;\nfn f() { x.unwrap(); }", 3, "unwrap outside tests");
        complains(path, "fn f() { todo!() }", 1, "todo! is left over");
        complains(path, "fn f() { unimplemented!(\"x\") }", 1, "unimplemented! is left over");
        is_content(
            path,
            "fn f() { x.unwrap_or(1); x.unwrap_err(); }\n#[cfg(test)]\nmod tests { fn g() { x.unwrap(); } }",
        );
        is_content(
            path,
            "fn f() { x.expect(\"unwrap()\"); } // .unwrap() todo!()\n#[test]\nfn g() { x.unwrap(); }",
        );
        is_content("src/storage/log/tests.rs", "fn f() { x.unwrap(); }");
        let files = ["src/a/mod.rs", "src/a/b.rs", "src/a/c.rs"].map(|path| {
            let declares =
                if path == "src/a/mod.rs" { "#[cfg(test)]\nmod b; mod c;" } else { "fn f() { x.unwrap(); }" };
            (path.to_owned(), declares.to_owned())
        });
        let complaints: Vec<String> = sources(&files).iter().flat_map(complaints_about).collect();
        assert!(complaints.len() == 1 && complaints[0].starts_with("src/a/c.rs:1: unwrap"), "{complaints:?}");
    }

    #[test]
    fn rules_neither_wait_nor_log() {
        complains(
            "src/group/a.rs",
            "pub async fn f() {}",
            1,
            "group neither waits nor logs, but here is async",
        );
        complains("src/group/a.rs", "fn f() { tracing::info!(\"x\"); }", 1, "group neither waits nor logs");
        is_content("src/group/a.rs", "/// Nothing here is async.\nfn f() { no_async(); }");
        is_content("src/shard/a.rs", "pub async fn f() { g().await; tracing::info!(\"x\"); }");
    }

    #[test]
    fn long_files_and_places_on_one_machine_are_named() {
        complains("src/base/a.rs", &"\n".repeat(601), 601, "more than 600 lines");
        is_content("src/base/a.rs", &"\n".repeat(600));
        let place = concat!("/wo", "rk/main");
        complains("src/base/a.rs", &format!("\n// see {place}"), 2, "");
        assert_eq!(machine_paths(&format!("a\n{place}")).len(), 1);
    }
}
