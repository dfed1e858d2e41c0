use super::compile;

/// Patterns with what RE2/J 1.8 makes of them: pattern, `ok` or `bad`, which of the names in the first line it matches.
const RE2J: &str = include_str!("../../../../tests/fixtures/re2j-patterns.tsv");

#[test]
fn patterns_are_taken_and_match_as_in_re2j() {
    let mut lines = RE2J.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names: Vec<&str> = lines.next().unwrap()[1].split(' ').collect();
    let mut wrong = Vec::new();
    for fields in lines {
        let [pattern, verdict, matched] = fields[..] else { panic!("{fields:?}") };
        let here = match compile(pattern) {
            Err(_) => ("bad", String::new()),
            Ok(regex) => {
                let matched: Vec<&str> = names.iter().copied().filter(|name| regex.is_match(name)).collect();
                ("ok", matched.join(" "))
            }
        };
        if here != (verdict, matched.to_owned()) {
            wrong.push(format!("{pattern}: {here:?}, in RE2/J {verdict} {matched:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_pattern_that_would_take_too_much_memory_is_refused() {
    assert!(compile("((a{1000}){1000}){1000}").is_err());
    assert!(compile(&"(".repeat(30_000)).is_err());
    assert!(compile(&format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000))).is_err());
}
