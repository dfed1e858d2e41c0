use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::super::*;
use super::damage::{base_offsets, build};
use super::model::*;
use crate::base::{Offset, Position, TimestampMs};
use crate::metrics::ScrubCounters;
use crate::record::BatchHeader;
use crate::runtime::sim::{DiskFault, DiskOperation, SimDisk, SimMachine, SimRuntime, Simulation, seeds};
use crate::runtime::{Lane, Runtime};

const EIO: i32 = 5;

async fn scrub(runtime: &SimRuntime, log: &Log<SimRuntime>) -> ScrubCounters {
    let counters = ScrubCounters::default();
    let pace = Pace::new(runtime, f64::MAX, &|| false);
    for base_offset in log.ended_segments() {
        log.scrub_segment(base_offset, &pace, &counters).await.unwrap();
    }
    counters
}

async fn read_from(log: &Log<SimRuntime>, from: Offset) -> Result<Vec<u8>, ReadTrouble> {
    Ok(bytes_of_read(&log.read(from, log.log_end_offset(), 1 << 20, true).await?).await)
}

/// Where a batch of an ended segment, not the first of the log, was damaged.
struct Wound {
    file: std::path::PathBuf,
    sound: Bytes,
    position: Position,
    header: BatchHeader,
    /// A reader of headers notices, too.
    breaks_header: bool,
}

fn wound(machine: &SimMachine, dice: &Dice) -> Wound {
    let bases = base_offsets(machine);
    let base = bases[dice.roll(bases.len() as u64 - 1) as usize];
    let file = path(FileKind::Log, base);
    let sound = machine.disk().read(&file).unwrap();
    let batches = positions(&sound);
    let (position, header) = batches[dice.roll(batches.len() as u64) as usize];
    let start = position.0 as usize;
    let mut bytes = sound.to_vec();
    let kind = dice.roll(6);
    match kind {
        0 => bytes[start + 8..start + 12].copy_from_slice(&0i32.to_be_bytes()),
        1 => bytes[start + 8..start + 12].copy_from_slice(&i32::MAX.to_be_bytes()),
        2 => bytes[start..start + 61].fill(0xff),
        // The CRC, the count of records, the last byte.
        3 => bytes[start + 17 + dice.roll(4) as usize] ^= 1 << dice.roll(8),
        4 => bytes[start + 57 + dice.roll(4) as usize] ^= 1 << dice.roll(8),
        _ => bytes[start + header.size_bytes() as usize - 1] ^= 1 << dice.roll(8),
    }
    machine.disk().write(&file, bytes);
    Wound { file, sound, position, header, breaks_header: kind < 3 }
}

#[test]
fn a_damaged_batch_is_found_and_costs_itself_alone() {
    for seed in seeds(60) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let model = build(&simulation, &machine, true);
        let random = simulation.client();
        let Wound { file, sound, position, header: lost, breaks_header } =
            wound(&machine, &Dice::new(&random));
        let disk = machine.disk();
        machine.run(&simulation, move |runtime| async move {
            let Reopened { log, .. } = open(&runtime, small(2500), CLEAN).await;
            let is_lost = |offset: Offset| offset >= lost.base_offset && offset <= lost.last_offset();
            let all_but_it = async || {
                for batch in model.batches.iter().filter(|batch| batch.header.base_offset != lost.base_offset)
                {
                    for from in [batch.header.base_offset, batch.header.last_offset()] {
                        let bytes = read_from(&log, from).await.unwrap_or_else(|trouble| panic!("{trouble}"));
                        assert!(bytes.starts_with(&bytes_of(batch)), "{from} is served");
                    }
                }
            };
            // Before it is found, who meets it finds its own way, and bytes go out as they are.
            all_but_it().await;
            let met = read_from(&log, lost.base_offset).await;
            assert_eq!(met.is_err(), breaks_header, "{lost:?} at {position}: {met:?}");

            let counters = scrub(&runtime, &log).await;
            assert_eq!(counters.damaged.get(), 1);
            all_but_it().await;
            for from in [lost.base_offset, lost.last_offset()] {
                match read_from(&log, from).await {
                    Err(ReadTrouble::Damaged { position: found, next_offset, .. }) => {
                        assert_eq!((found, next_offset), (position, Some(lost.next_offset())));
                    }
                    other => panic!("offset {from} is lost: {other:?}"),
                }
            }
            // A read ends before it, and so does one up to an offset in it.
            let before =
                model.batches.iter().rev().find(|batch| batch.header.next_offset() == lost.base_offset);
            if let Some(before) = before {
                let read =
                    log.read(before.header.base_offset, lost.base_offset, 1 << 20, true).await.unwrap();
                assert!(bytes_of_read(&read).await.ends_with(&bytes_of(before)));
                assert!(
                    read_from(&log, before.header.base_offset).await.unwrap().ends_with(&bytes_of(before))
                );
            }
            // Look-ups by time pass it over.
            let (start, end) = (log.log_start_offset(), log.log_end_offset());
            let mut times: Vec<_> = Vec::new();
            for batch in model.batches.iter().filter(|batch| !is_lost(batch.header.base_offset)) {
                times.push(batch.header.max_timestamp);
            }
            for timestamp in times.iter().copied().chain([TimestampMs(0), TimestampMs(i64::MAX)]) {
                let found = log.first_at_or_after(timestamp, start..end).await.unwrap();
                let is_there = times.iter().any(|time| *time >= timestamp);
                assert!(found.is_some() || !is_there, "{timestamp}");
                assert!(found.is_none_or(|found| found.timestamp >= timestamp && !is_lost(found.offset)));
            }
            let greatest = log.record_of_greatest_timestamp(start..end).await.unwrap().unwrap();
            assert_eq!(Some(greatest.timestamp), times.iter().copied().max());

            assert_eq!(scrub(&runtime, &log).await.damaged.get(), 1, "it is still there");
            disk.write(&file, sound);
            assert_eq!(scrub(&runtime, &log).await.damaged.get(), 0);
            assert!(read_from(&log, lost.base_offset).await.is_ok(), "what is sound again is served again");
        });
    }
}

#[test]
fn a_sound_log_is_read_once_past_the_page_cache_but_for_its_newest_segment() {
    let simulation = Simulation::new(3);
    let machine = simulation.machine("broker");
    let model = build(&simulation, &machine, true);
    let bases = base_offsets(&machine);
    let newest = *bases.last().unwrap();
    let bytes_before: u64 = bases[..bases.len() - 1]
        .iter()
        .map(|base| machine.disk().read(path(FileKind::Log, *base)).unwrap().len() as u64)
        .sum();
    machine.disk().rot(path(FileKind::Log, newest), 70, 1);
    let (disk, names) = (machine.disk(), machine.disk().names(FOLDER));
    let before = model.batches.iter().filter(|batch| batch.header.base_offset.0 < newest).count() as u64;
    machine.run(&simulation, move |runtime| async move {
        let counters = ScrubCounters::default();
        let pace = Pace::new(&runtime, f64::MAX, &|| false);
        let folder = Path::new(FOLDER);
        assert!(Log::scrub_folder(&runtime, folder, &pace, &counters).await.unwrap());
        let counted = (counters.batches.get(), counters.bytes.get(), counters.damaged.get());
        assert_eq!(counted, (before, bytes_before, 0));
        assert_eq!(disk.names(FOLDER), names, "nothing is opened or made");
        let Reopened { log, .. } = open(&runtime, small(2500), CLEAN).await;
        let counters = scrub(&runtime, &log).await;
        assert_eq!((counters.batches.get(), counters.damaged.get()), (before, 0));
    });
    machine.disk().rot(path(FileKind::Log, bases[1]), 70, 1);
    machine.run(&simulation, move |runtime| async move {
        let pace = Pace::new(&runtime, f64::MAX, &|| false);
        let counters = ScrubCounters::default();
        assert!(!Log::scrub_folder(&runtime, Path::new(FOLDER), &pace, &counters).await.unwrap());
    });
}

fn fail_reads(disk: &SimDisk, count: u64) {
    // The operations that fail are those that no earlier rule has let fail.
    for _ in 0..count {
        disk.fail_nth(DiskOperation::ReadCold, ".log", 1, DiskFault::Error(EIO));
    }
}

#[test]
fn what_cannot_be_read_is_damage_only_if_it_cannot_be_read_twice() {
    let simulation = Simulation::new(5);
    let machine = simulation.machine("broker");
    build(&simulation, &machine, true);
    let disk = machine.disk();
    machine.run(&simulation, move |runtime| async move {
        let Reopened { log, .. } = open(&runtime, small(2500), CLEAN).await;
        // The chunk, and then its first piece.
        fail_reads(&disk, 2);
        assert_eq!(scrub(&runtime, &log).await.damaged.get(), 0);
        disk.fail_from(DiskOperation::ReadCold, ".log", 1, DiskFault::Error(EIO));
        let counters = scrub(&runtime, &log).await;
        disk.heal();
        assert_eq!(counters.damaged.get(), log.ended_segments().len() as u64);
        assert_eq!(counters.batches.get(), 0);
        let refused = read_from(&log, Offset::ZERO).await;
        assert!(
            matches!(refused, Err(ReadTrouble::Damaged { fault: BatchFault::Unreadable, .. })),
            "{refused:?}"
        );
        let newest = log.segments().last().unwrap().base_offset;
        assert!(read_from(&log, newest).await.is_ok());
    });
}

#[test]
fn a_segment_that_goes_while_it_is_read_is_no_fault() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        build(&simulation, &machine, true);
        let bases = base_offsets(&machine);
        machine.disk().rot(path(FileKind::Log, bases[0]), 70, 1);
        machine.run(&simulation, move |runtime| async move {
            let Reopened { log, .. } = open(&runtime, small(2500), CLEAN).await;
            let going = log.clone();
            let start = Offset(bases[1]);
            let random = runtime.random();
            let runtime_of_going = runtime.clone();
            runtime.spawn(Lane::Background, async move {
                let moment = runtime_of_going.now() + Duration::from_micros(random % 3000);
                runtime_of_going.sleep_until(moment).await;
                going.advance_log_start(start).await.unwrap();
            });
            let counters = ScrubCounters::default();
            let asked = Cell::new(0);
            let is_unwanted = || {
                asked.set(asked.get() + 1);
                false
            };
            // Slow enough to be overtaken in the middle.
            let pace = Pace::new(&runtime, 100_000.0, &is_unwanted);
            for base_offset in log.ended_segments() {
                log.scrub_segment(base_offset, &pace, &counters).await.unwrap();
            }
            assert!(asked.get() > 0);
            assert_eq!(log.segments()[0].base_offset, start);
            assert!(log.segments().iter().all(|segment| !segment.is_damaged));
        });
    }
}

#[test]
fn damage_does_not_keep_a_segment_from_going() {
    let simulation = Simulation::new(11);
    let machine = simulation.machine("broker");
    build(&simulation, &machine, true);
    let bases = base_offsets(&machine);
    machine.disk().rot(path(FileKind::Log, bases[0]), 8, 4);
    machine.run(&simulation, move |runtime| async move {
        let Reopened { log, .. } = open(&runtime, small(2500), CLEAN).await;
        assert_eq!(scrub(&runtime, &log).await.damaged.get(), 1);
        assert!(log.segments()[0].is_damaged);
        assert!(log.greatest_timestamp(Offset(bases[0])).await.unwrap().is_some());
        assert_eq!(log.advance_log_start(Offset(bases[1])).await.unwrap(), [Offset(bases[0])]);
        assert_eq!(scrub(&runtime, &log).await.damaged.get(), 0);
    });
}
