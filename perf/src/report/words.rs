//! What was done, in words that the table and the page share.

use super::numbers::{compact, grouped};
use crate::result::{Load, Run, Stage, Target, Verification};

/// `onrush 0.1.0`.
pub fn target(target: &Target) -> String {
    match &target.version {
        Some(version) => format!("{} {version}", target.name),
        None => target.name.clone(),
    }
}

/// How the producers decided when to send.
pub fn load(load: Load) -> String {
    match load {
        Load::Closed { connections, in_flight } => format!(
            "closed loop, {} with {in_flight} in flight each",
            counted(connections as u64, "connection", "connections")
        ),
        Load::Open { records_per_second, percent_of_max: Some(percent) } => {
            format!("open loop, {} records/s ({percent} % of the maximum)", compact(records_per_second))
        }
        Load::Open { records_per_second, percent_of_max: None } => {
            format!("open loop, {} records/s", compact(records_per_second))
        }
        Load::ConsumeOnly => "nothing is produced".to_owned(),
    }
}

/// How long `run` took.
pub fn length(run: &Run) -> String {
    format!("{:.1} s after {:.1} s of warm-up", run.totals.seconds, run.warm_up_seconds)
}

/// What came of looking at every record.
pub fn verification(found: Option<Verification>) -> String {
    let Some(found) = found else { return "not asked for".to_owned() };
    if found.is_complete() {
        return format!(
            "complete: {} acknowledged, each read once, in order, undamaged",
            counted(found.produced, "record", "records")
        );
    }
    format!(
        "FAILED: of {} acknowledged {} missing, {} twice, {} out of order, {} damaged",
        counted(found.produced, "record", "records"),
        grouped(found.missing),
        grouped(found.duplicated),
        grouped(found.out_of_order),
        grouped(found.corrupt)
    )
}

/// In how many of `runs` every record came back as it should.
pub fn complete_runs(runs: &[&Run]) -> String {
    let verified: Vec<Verification> = runs.iter().filter_map(|run| run.verification).collect();
    if verified.is_empty() {
        return "not asked for".to_owned();
    }
    let complete = verified.iter().filter(|found| found.is_complete()).count();
    let unverified = match runs.len() - verified.len() {
        0 => String::new(),
        count => format!(" ({} not verified)", counted(count as u64, "run", "runs")),
    };
    format!("complete in {complete} of {}{unverified}", counted(verified.len() as u64, "run", "runs"))
}

/// What Onrush calls a stage; of another broker's series the whole name.
pub fn stage(stage: &Stage) -> String {
    stage.name.strip_prefix("onrush_stage_seconds stage=").unwrap_or(&stage.name).to_owned()
}

/// `1 record`, `2,000 records`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_records_is_not_called_complete() {
        let good = Verification { produced: 1, consumed: 1, ..Verification::default() };
        assert_eq!(
            verification(Some(good)),
            "complete: 1 record acknowledged, each read once, in order, undamaged"
        );
        let bad = Verification { missing: 1_000, ..good };
        assert!(verification(Some(bad)).starts_with("FAILED: of 1 record acknowledged 1,000 missing"));
        assert_eq!(verification(None), "not asked for");
    }
}
