//! What README and docs say of the code: the table of what is served is written from it, and the files and names they point at
//! are looked up in it.

use std::collections::BTreeMap;

use onrush::metrics::{METRICS, Metric};
use onrush::protocol::{ServedVersions, served_versions};

use super::rules::IMPORTS;

pub const README_LINES_MAX: usize = 150;

const TABLE_BEGIN: &str = "<!-- written by: WRITE=1 cargo test --test tidy -->\n";
const TABLE_END: &str = "<!-- end -->";

/// The README with its table as `src/protocol/versions.rs` has it; `None`: the two lines it stands between are missing.
pub fn with_served_versions(readme: &str) -> Option<String> {
    let rows: String = served_versions().chunks(2).map(line).collect();
    let head = "| API | key | versions | API | key | versions |\n| --- | --- | --- | --- | --- | --- |\n";
    with_table(readme, &format!("{head}{rows}"))
}

/// `document` with every metric there is, as `src/metrics/table.rs` has it; `None`: the two lines are missing.
pub fn with_metrics(document: &str) -> Option<String> {
    let row = |metric: &Metric| {
        let labels: String = metric.label.map_or_else(String::new, |label| format!("`{label}`"));
        let (name, kind, unit) = (metric.name, metric.kind.name(), metric.unit);
        format!("| `{name}` | {kind} | {labels} | {unit} | {} |\n", metric.meaning)
    };
    let rows: String = METRICS.iter().map(row).collect();
    let head = "| name | type | label | unit | meaning |\n| --- | --- | --- | --- | --- |\n";
    with_table(document, &format!("{head}{rows}"))
}

fn with_table(document: &str, table: &str) -> Option<String> {
    let (before, rest) = document.split_once(TABLE_BEGIN)?;
    let (_, behind) = rest.split_once(TABLE_END)?;
    Some(format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{behind}"))
}

/// Two rows beside each other; the last may stand alone.
fn line(pair: &[ServedVersions]) -> String {
    let cells: String = pair.iter().map(cells).collect();
    let empty = if pair.len() < 2 { " | | |" } else { "" };
    format!("|{cells}{empty}\n")
}

fn cells(served: &ServedVersions) -> String {
    let ServedVersions { key, advertised_min, min, max } = served;
    let remark = if advertised_min < min {
        format!(" (named from {advertised_min} on, as in Kafka)")
    } else {
        String::new()
    };
    format!(" {key:?} | {} | {min} to {max}{remark} |", *key as i16)
}

/// Each `folder/file.rs` or `folder/file.rs:name` in back quotes must be there; `sources` are texts by path.
pub fn dead_pointers(path: &str, text: &str, sources: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut dead = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            if let Some(why) = dead_pointer(quoted, sources) {
                dead.push(format!("{path}:{}: {quoted}: {why}", index + 1));
            }
        }
    }
    dead
}

fn dead_pointer(quoted: &str, sources: &BTreeMap<&str, &str>) -> Option<String> {
    let (file, name) = quoted.split_once(':').map_or((quoted, None), |(file, name)| (file, Some(name)));
    let (folder, _) = file.split_once('/')?;
    let own = IMPORTS.iter().any(|(known, _)| *known == folder);
    let top = ["src", "tests", "docs", "config", "benches", "perf"].contains(&folder);
    if !own && !top || file.contains(' ') {
        return None;
    }
    let in_source = format!("src/{file}");
    let known = |path: &str| {
        let below = format!("{}/", path.trim_end_matches('/'));
        sources.contains_key(path) || sources.keys().any(|source| source.starts_with(&below))
    };
    let Some(found) = [file, in_source.as_str()].into_iter().find(|path| known(path)) else {
        return Some("there is no such file".to_owned());
    };
    let missing = name.filter(|name| !sources.get(found).is_some_and(|text| declares(text, name)));
    missing.map(|name| format!("{found} declares no {name}"))
}

fn declares(text: &str, name: &str) -> bool {
    let declared = ["fn", "struct", "enum", "trait", "const", "type", "mod"];
    text.match_indices(name).any(|(at, _)| {
        let whole = !text[at + name.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
        whole && declared.iter().any(|word| text[..at].ends_with(&format!("{word} ")))
    })
}

/// The list of folders in the architecture has a line `name/  what  [imports]` for each, and its brackets say what
/// `IMPORTS` says.
pub fn complaints_about_brackets(path: &str, text: &str) -> Vec<String> {
    let listed: BTreeMap<&str, &str> = text.lines().filter_map(folder_line).collect();
    let mut complaints = Vec::new();
    for (place, (folder, allowed)) in IMPORTS.iter().enumerate() {
        let above: Vec<&str> = IMPORTS[1.min(place)..place].iter().map(|(folder, _)| *folder).collect();
        let found = listed.get(folder).map(|bracket| imports_of(bracket, &above));
        if found.as_ref().is_none_or(|found| !found.iter().eq(allowed.iter())) {
            complaints.push(format!("{path}: {folder} may import {allowed:?}, but the list says {found:?}"));
        }
    }
    complaints
}

fn folder_line(line: &str) -> Option<(&str, &str)> {
    let (folder, rest) = line.strip_prefix("    ")?.split_once("/ ")?;
    let (_, bracket) = rest.strip_suffix(']')?.rsplit_once('[')?;
    Some((folder, bracket))
}

/// `above`: the folders before this one, without `base`.
fn imports_of<'a>(bracket: &'a str, above: &[&'a str]) -> Vec<&'a str> {
    match bracket.strip_prefix("all above") {
        Some(rest) => {
            let except = rest.trim_start_matches(" but ");
            above.iter().copied().filter(|folder| *folder != except).collect()
        }
        None if bracket == "nothing" => Vec::new(),
        None => {
            let rules = ["partition", "group", "share", "txn", "metadata"];
            let words = bracket.split(' ');
            words.flat_map(|word| if word == "rules" { rules.to_vec() } else { vec![word] }).collect()
        }
    }
}
