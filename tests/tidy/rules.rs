//! What the layers may import, what only one folder may touch, and what no file may hold.

use super::source::{Path, Source};

/// What a folder may import besides `base`. The order is that of `src/lib.rs`.
pub const IMPORTS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("record", &[]),
    ("config", &[]),
    ("metrics", &[]),
    ("partition", &["record", "config"]),
    ("group", &["record", "config"]),
    ("share", &["record"]),
    ("txn", &["record", "config"]),
    ("metadata", &["config"]),
    ("runtime", &["config", "metrics"]),
    ("storage", &["record", "config", "metrics", "runtime"]),
    (
        "shard",
        &[
            "record",
            "config",
            "metrics",
            "partition",
            "group",
            "share",
            "txn",
            "metadata",
            "runtime",
            "storage",
        ],
    ),
    (
        "router",
        &[
            "record",
            "config",
            "metrics",
            "partition",
            "group",
            "share",
            "txn",
            "metadata",
            "runtime",
            "shard",
        ],
    ),
    // An answer holds file ranges to be sent, and every refusal of a shard has its code here.
    ("protocol", &["record", "partition", "group", "share", "txn", "metadata", "runtime", "shard"]),
    // A request hands the owner's shard a closure to run, so it names the shard.
    (
        "api",
        &[
            "record",
            "config",
            "metrics",
            "partition",
            "group",
            "share",
            "txn",
            "metadata",
            "runtime",
            "shard",
            "router",
            "protocol",
        ],
    ),
    ("net", &["metrics", "runtime", "shard", "router", "protocol", "api"]),
    ("ops", &["metrics", "runtime", "shard", "protocol"]),
    (
        "broker",
        &[
            "record",
            "config",
            "metrics",
            "partition",
            "group",
            "share",
            "txn",
            "metadata",
            "runtime",
            "storage",
            "shard",
            "router",
            "protocol",
            "api",
            "net",
            "ops",
        ],
    ),
    // It reads its property file through runtime.
    ("cli", &["config", "runtime", "broker"]),
];

/// Folders that decide and never wait, and those below them.
const WITHOUT_WAITING: [&str; 9] =
    ["base", "record", "config", "metrics", "partition", "group", "share", "txn", "metadata"];

/// Something that only some folders may touch.
struct Door {
    /// Path prefixes, each whole names.
    paths: &'static [&'static str],
    /// Below these paths everybody may go.
    except: &'static [&'static str],
    folders: &'static [&'static str],
    /// Whether code that is compiled for tests only may pass, too.
    tests_may_pass: bool,
}

const DOORS: &[Door] = &[
    Door {
        paths: &[
            "glommio",
            "libc",
            "socket2",
            "core_affinity",
            "tokio",
            "hyper",
            "hyper_util",
            "http_body_util",
        ],
        except: &[],
        folders: &["runtime"],
        tests_may_pass: false,
    },
    Door { paths: &["std::fs", "tempfile"], except: &[], folders: &["runtime"], tests_may_pass: true },
    Door {
        paths: &["std::net"],
        except: &[
            "std::net::IpAddr",
            "std::net::Ipv4Addr",
            "std::net::Ipv6Addr",
            "std::net::SocketAddr",
            "std::net::SocketAddrV4",
            "std::net::SocketAddrV6",
        ],
        folders: &["runtime"],
        tests_may_pass: false,
    },
    Door {
        paths: &["std::time"],
        except: &["std::time::Duration"],
        folders: &["runtime"],
        tests_may_pass: false,
    },
    Door {
        paths: &[
            "rand",
            "fastrand",
            "getrandom",
            "std::hash::RandomState",
            "std::hash::DefaultHasher",
            "std::collections::hash_map::RandomState",
            "std::collections::hash_map::DefaultHasher",
            "std::collections::HashMap",
            "std::collections::HashSet",
            "std::collections::*",
        ],
        except: &[],
        folders: &["runtime"],
        tests_may_pass: false,
    },
    // What two cores may write at the same time: mailboxes and the threads for slow calls, both in runtime. An Arc is for
    // what is handed over or never changes.
    Door {
        paths: &["std::sync", "core::sync", "atomic_waker", "parking_lot", "crossbeam", "std::thread"],
        except: &["std::sync::Arc", "std::sync::mpsc"],
        folders: &["runtime"],
        tests_may_pass: true,
    },
    // The shards' last words to the process.
    Door { paths: &["std::sync::mpsc"], except: &[], folders: &["runtime", "broker"], tests_may_pass: true },
    Door { paths: &["kafka_protocol"], except: &[], folders: &["protocol", "api"], tests_may_pass: false },
    Door { paths: &["clap", "tracing_subscriber"], except: &[], folders: &["cli"], tests_may_pass: false },
];

/// Names the hasher, so that everybody else need not.
const MAP_FILE: &str = "src/base/map.rs";

const LINES_MAX: usize = 600;

/// What is wrong with the order of the folders: `lib.rs` against the table, and the table against itself.
pub fn complaints_about_layers(lib: &Source) -> Vec<String> {
    let folders: Vec<&str> = lib
        .tokens
        .windows(3)
        .filter(|window| window[0].text == "mod" && window[2].text == ";")
        .map(|window| window[1].text.as_str())
        .collect();
    let known: Vec<&str> = IMPORTS.iter().map(|(folder, _)| *folder).collect();
    let mut complaints = Vec::new();
    if folders != known {
        complaints.push(format!("{}: the folders are {folders:?}, tests/tidy has {known:?}", lib.path));
    }
    for (place, (folder, imports)) in IMPORTS.iter().enumerate() {
        for import in imports.iter().filter(|import| !known[..place].contains(import)) {
            complaints
                .push(format!("tests/tidy: {folder} may import {import}, which does not stand below it"));
        }
    }
    complaints
}

/// Everything that is wrong with one file, each with its line.
pub fn complaints_about(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |line: usize, what: String| complaints.push(format!("{}:{line}: {what}", source.path));
    if source.text.lines().count() > LINES_MAX {
        complain(LINES_MAX + 1, format!("more than {LINES_MAX} lines; split the file by meaning"));
    }
    for (line, what) in machine_paths(&source.text) {
        complain(line, what);
    }
    if source.path.ends_with(".rs") && source.path.starts_with("src/") {
        for path in source.paths() {
            if let Some(what) = wrong_import(source, &path) {
                complain(path.line, what);
            }
            for door in DOORS {
                if let Some(what) = wrong_door(source, &path, door) {
                    complain(path.line, what);
                }
            }
        }
        for (line, what) in wrong_words(source) {
            complain(line, what);
        }
    }
    complaints
}

fn wrong_import(source: &Source, path: &Path) -> Option<String> {
    let folder = source.folder()?;
    let [root, other, ..] = path.names.as_slice() else { return None };
    let (_, allowed) = IMPORTS.iter().find(|(known, _)| *known == folder)?;
    let is_folder = IMPORTS.iter().any(|(known, _)| known == other);
    let is_allowed = other == folder || other == "base" || allowed.contains(&other.as_str());
    (root == "crate" && is_folder && !is_allowed).then(|| format!("{folder} may not import {other}"))
}

fn wrong_door(source: &Source, path: &Path, door: &Door) -> Option<String> {
    let passes = source.folder().is_some_and(|folder| door.folders.contains(&folder))
        || source.path == MAP_FILE
        || door.tests_may_pass && path.is_test;
    // One word alone is a variable or a module of our own, unless more follows.
    let opens = path.names.len() > 1
        && door.paths.iter().any(|other| lies_below(path, other) || leads_to(path, other))
        && !door.except.iter().any(|other| lies_below(path, other));
    (opens && !passes).then(|| format!("{} belongs in {}", path.text(), door.folders.join(" and ")))
}

fn lies_below(path: &Path, other: &str) -> bool {
    let text = path.text();
    text.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// `use std::collections;` would let `HashMap` through under another name.
fn leads_to(path: &Path, other: &str) -> bool {
    other.strip_prefix(&path.text()).is_some_and(|rest| rest.starts_with("::"))
}

fn wrong_words(source: &Source) -> Vec<(usize, String)> {
    let folder = source.folder().unwrap_or_default();
    let mut wrong = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| source.tokens[at].text.as_str());
        let behind = source.tokens.get(at + 1).map(|token| token.text.as_str());
        let what = match token.text.as_str() {
            "unwrap" if before == Some(".") && behind == Some("(") && !token.is_test => {
                "unwrap outside tests; use expect and say why it holds".to_owned()
            }
            "todo" | "unimplemented" | "dbg" if behind == Some("!") => {
                format!("{}! is left over", token.text)
            }
            "async" | "await" | "tracing" if WITHOUT_WAITING.contains(&folder) => {
                format!("{folder} neither waits nor logs, but here is {}", token.text)
            }
            "mut" if before == Some("static") => "static mut is shared by all cores".to_owned(),
            "{" if before == Some("::") && at >= 2 && source.tokens[at - 2].text == "crate" => {
                "one folder for each `use crate::` line".to_owned()
            }
            _ => continue,
        };
        wrong.push((token.line, what));
    }
    wrong
}

/// Paths that exist on one machine only.
pub fn machine_paths(text: &str) -> Vec<(usize, String)> {
    // In two parts, so that this file does not hold them.
    let paths = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let path = paths.iter().find(|path| line.contains(**path))?;
            Some((index + 1, format!("{path} is a place on one machine only")))
        })
        .collect()
}
