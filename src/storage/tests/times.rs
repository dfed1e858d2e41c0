use std::ops::Range;

use super::super::*;
use super::model::*;
use crate::base::{Offset, TimestampMs};
use crate::record::{BatchBuilder, Codec};
use crate::runtime::sim::{Simulation, seeds};

/// Batches whose records have any timestamps, packed in any way; with the list of what they hold.
fn random_batches(dice: &Dice, end: &mut i64, records: &mut Vec<(i64, i64)>) -> Vec<LogBatch> {
    (0..1 + dice.roll(4))
        .map(|_| {
            let codec = match dice.roll(4) {
                0 => Codec::Lz4,
                1 => Codec::Zstd { level: 1 },
                _ => Codec::None,
            };
            let mut builder = BatchBuilder::new().codec(codec);
            let base = *end;
            for _ in 0..1 + dice.roll(4) {
                // Time goes on on the whole, and back now and then.
                let timestamp = *end * 3 + dice.roll(200) as i64;
                builder.push(TimestampMs(timestamp), None, Some(&[7; 20]));
                records.push((*end, timestamp));
                *end += 1;
            }
            stamped(builder.finish(), base)
        })
        .collect()
}

fn first(records: &[(i64, i64)], timestamp: i64, range: &Range<Offset>) -> Option<(i64, i64)> {
    records.iter().find(|(offset, time)| *time >= timestamp && range.contains(&Offset(*offset))).copied()
}

#[test]
fn look_ups_by_time_agree_with_a_plain_list_of_records() {
    for seed in seeds(30) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let settings = small(500 + dice.roll(5000));
            let mut log = create(&runtime, settings).await;
            let (mut end, mut records) = (0, Vec::new());
            for round in 0..20 {
                log.append(&random_batches(&dice, &mut end, &mut records)).await.unwrap();
                if round == 10 && dice.one_in(2) {
                    log.sync().await.unwrap();
                    log = open(&runtime, settings, if dice.one_in(2) { UNCLEAN } else { CLEAN }).await.log;
                }
            }
            for _ in 0..40 {
                let start = dice.roll(records.len() as u64 + 1) as i64;
                let range =
                    Offset(start)..Offset(start + dice.roll(records.len() as u64 + 1 - start as u64) as i64);
                let timestamp = dice.roll(end as u64 * 3 + 250) as i64;
                let found = log.first_at_or_after(TimestampMs(timestamp), range.clone()).await.unwrap();
                let found = found.map(|found| (found.offset.0, found.timestamp.0));
                assert_eq!(found, first(&records, timestamp, &range), "{timestamp} in {range:?}");

                let in_range = records.iter().filter(|(offset, _)| range.contains(&Offset(*offset)));
                let greatest = in_range.map(|(_, time)| *time).max();
                let found = log.record_of_greatest_timestamp(range.clone()).await.unwrap();
                // A range that cuts a batch may name a record of it that is not the greatest inside.
                let cuts_a_batch = found.is_none_or(|found| Some(found.timestamp.0) != greatest);
                if !cuts_a_batch {
                    let expected = greatest.and_then(|time| first(&records, time, &range));
                    assert_eq!(found.map(|found| (found.offset.0, found.timestamp.0)), expected, "{range:?}");
                }
            }
            let all = Offset::ZERO..Offset(end);
            let greatest = records.iter().map(|(_, time)| *time).max().unwrap();
            let found = log.record_of_greatest_timestamp(all.clone()).await.unwrap().unwrap();
            assert_eq!(Some((found.offset.0, found.timestamp.0)), first(&records, greatest, &all));
        });
    }
}

/// K062: one batch with times 5, 9, 7; then a log append time; then nothing.
#[test]
fn the_greatest_timestamp_is_a_record_inside_its_batch() {
    for codec in [Codec::None, Codec::Lz4] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        machine.run(&simulation, move |runtime| async move {
            let log = create(&runtime, LogSettings::default()).await;
            assert_eq!(log.record_of_greatest_timestamp(Offset(0)..Offset(0)).await.unwrap(), None);
            let mut builder = BatchBuilder::new().codec(codec);
            for time in [5, 9, 7] {
                builder.push(TimestampMs(time), None, None);
            }
            log.append(&[stamped(builder.finish(), 0)]).await.unwrap();
            let found = log.record_of_greatest_timestamp(Offset(0)..Offset(3)).await.unwrap().unwrap();
            assert_eq!((found.offset, found.timestamp), (Offset(1), TimestampMs(9)));

            let mut builder = BatchBuilder::new().log_append_time(TimestampMs(77));
            for _ in 0..3 {
                builder.push(TimestampMs(5), None, None);
            }
            log.append(&[stamped(builder.finish(), 3)]).await.unwrap();
            let found = log.record_of_greatest_timestamp(Offset(0)..Offset(6)).await.unwrap().unwrap();
            assert_eq!((found.offset, found.timestamp), (Offset(3), TimestampMs(77)));
            let found = log.record_of_greatest_timestamp(Offset(0)..Offset(3)).await.unwrap().unwrap();
            assert_eq!((found.offset, found.timestamp), (Offset(1), TimestampMs(9)), "only up to the bound");
        });
    }
}
