use super::super::samples;
use super::*;
use crate::result::{Flow, Totals};

fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("well-formed");
    let texts =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

fn find<'a>(pictures: &'a [Picture], name: &str) -> &'a Picture {
    pictures.iter().find(|picture| picture.name == name).unwrap_or_else(|| panic!("{name} is missing"))
}

#[track_caller]
fn assert_shows(picture: &Picture, labels: &[&str]) {
    let texts = texts(&picture.svg);
    for label in labels {
        assert!(texts.iter().any(|text| text == label), "{label} is not in {}: {texts:?}", picture.name);
    }
}

#[test]
fn a_run_has_a_picture_for_all_that_was_measured() {
    let pictures = pictures_of(&samples::run());
    let names: Vec<_> = pictures.iter().map(|picture| picture.name).collect();
    let expected = [
        "throughput",
        "end-to-end-latency",
        "produce-latency",
        "end-to-end-percentiles",
        "produce-percentiles",
        "cpu-per-gib",
        "stages",
    ];
    assert_eq!(names, expected);
    assert_shows(find(&pictures, "throughput"), &["onrush 0.1.0, produced", "onrush 0.1.0, consumed", "0"]);
    assert_shows(find(&pictures, "produce-latency"), &["p50", "p99", "p99.9", "max"]);
    assert_shows(find(&pictures, "produce-percentiles"), &["50 %", "99 %", "99.9 %"]);
    assert_shows(find(&pictures, "cpu-per-gib"), &["user", "system", "CPU-seconds per GiB produced"]);
    assert_shows(find(&pictures, "stages"), &["read", "append", "sync", "p99.9"]);
}

#[test]
fn both_sides_of_a_comparison_are_in_each_picture() {
    let pictures = pictures_of(&samples::comparison());
    assert_eq!(pictures.len(), 7);
    let sides = |suffix: &str| [format!("A: onrush 0.1.0{suffix}"), format!("B: kafka 4.3.1{suffix}")];
    for (name, suffix) in [
        ("throughput", ", produced"),
        ("end-to-end-latency", ", p99"),
        ("produce-percentiles", ""),
        ("cpu-per-gib", ""),
    ] {
        let sides = sides(suffix);
        assert_shows(find(&pictures, name), &[&sides[0], &sides[1]]);
    }
    let runs = roxmltree::Document::parse(&find(&pictures, "throughput").svg).unwrap().descendants().count();
    assert!(runs > 20, "all ten runs have lines");
}

#[test]
fn a_curve_shows_each_load_and_the_maximum() {
    let pictures = pictures_of(&samples::curve());
    assert_shows(find(&pictures, "latency-by-load"), &["p50", "p99.99", "closed-loop maximum, 600k/s"]);
    assert_shows(find(&pictures, "cpu-per-gib"), &["120k records/s", "maximum, 600k records/s"]);
}

#[test]
fn what_was_not_measured_has_no_picture_and_nothing_fails() {
    let mut document = samples::run();
    let Outcome::Run(run) = &mut document.outcome else { panic!("a run") };
    run.totals = Totals::default();
    run.stages.clear();
    run.intervals.clear();
    assert_eq!(pictures_of(&document), []);
    let Outcome::Run(run) = &mut document.outcome else { panic!("a run") };
    run.totals.produced = Flow { requests: 1, records: 1, bytes: 1 };
    run.intervals.push(Default::default());
    assert_eq!(pictures_of(&document), []);
}

#[test]
fn a_name_of_markup_stays_text() {
    let mut document = samples::run();
    let Outcome::Run(run) = &mut document.outcome else { panic!("a run") };
    run.target.name = samples::MARKUP.to_owned();
    for picture in pictures_of(&document) {
        assert!(!picture.svg.contains("<script"), "{}", picture.name);
        texts(&picture.svg);
    }
    let throughput = find(&pictures_of(&document), "throughput").clone();
    assert_shows(&throughput, &[&format!("{} 0.1.0, produced", samples::MARKUP)]);
}
