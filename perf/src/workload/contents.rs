//! Keys and values before they are put into batches.

use fastrand::Rng;

use super::batch::{Content, STAMP_LENGTH};
use super::lines::{Lines, lines_of};
use super::settings::{RecordKind, Records};

/// Gives the contents of records one after the other, without end.
pub struct Contents {
    source: Source,
    payload_bytes: usize,
    keys: Vec<Vec<Vec<u8>>>,
    next_key: usize,
}

enum Source {
    Made(Lines),
    Read { lines: Vec<Vec<u8>>, next: usize },
    Random(Rng),
}

impl Contents {
    /// Errors: the file cannot be read, or holds no line; more partitions than keys reach.
    pub fn new(records: &Records, partitions: i32) -> Result<Contents, String> {
        let payload_bytes = records.value_bytes - STAMP_LENGTH;
        let source = match (&records.file, records.kind) {
            (Some(file), _) => {
                let text = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
                let lines = lines_of(&text);
                if lines.is_empty() {
                    return Err(format!("{file} holds no line"));
                }
                Source::Read { lines, next: 0 }
            }
            (None, RecordKind::LogLines) => Source::Made(Lines::new(records.seed, payload_bytes)),
            (None, RecordKind::Random) => Source::Random(Rng::with_seed(records.seed)),
        };
        let keys = keys_by_partition(records.keys, partitions);
        if let Some(empty) = keys.iter().position(Vec::is_empty) {
            return Err(format!("none of {} keys goes to partition {empty}", records.keys));
        }
        Ok(Contents { source, payload_bytes, keys, next_key: 0 })
    }

    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The next record, with a key that goes to `partition` when there are keys.
    pub fn next_for(&mut self, partition: i32) -> Content {
        let payload = match &mut self.source {
            Source::Made(lines) => lines.next_line().into_bytes(),
            Source::Read { lines, next } => {
                let line = lines[*next % lines.len()].clone();
                *next += 1;
                line
            }
            Source::Random(rng) => {
                let mut payload = vec![0; self.payload_bytes];
                rng.fill(&mut payload);
                payload
            }
        };
        let key = self.has_keys().then(|| {
            let keys = &self.keys[partition as usize];
            self.next_key += 1;
            keys[self.next_key % keys.len()].clone()
        });
        Content { key, payload }
    }
}

/// The keys `key-0`, `key-1` … by the partition that Kafka's default partitioner gives them; empty when `count` is 0.
fn keys_by_partition(count: usize, partitions: i32) -> Vec<Vec<Vec<u8>>> {
    if count == 0 {
        return Vec::new();
    }
    let mut by_partition = vec![Vec::new(); partitions as usize];
    for index in 0..count {
        let key = format!("key-{index}").into_bytes();
        let partition = (murmur2(&key) & 0x7fff_ffff) % partitions as u32;
        by_partition[partition as usize].push(key);
    }
    by_partition
}

/// The hash of Kafka's default partitioner: `org.apache.kafka.common.utils.Utils.murmur2`.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = u32::from_le_bytes(chunk.try_into().expect("4 bytes")).wrapping_mul(M);
        k = (k ^ k >> 24).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        hash = rest.iter().enumerate().fold(hash, |hash, (at, byte)| hash ^ u32::from(*byte) << (8 * at));
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from Kafka's `UtilsTest.testMurmur2`.
    #[test]
    fn the_hash_is_kafkas() {
        let cases: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (key, hash) in cases {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }

    #[test]
    fn keys_go_to_their_partition() {
        let records = Records { keys: 1_000, ..Records::default() };
        let mut contents = Contents::new(&records, 10).expect("valid");
        for partition in 0..10 {
            let key = contents.next_for(partition).key.expect("a key");
            assert_eq!((murmur2(&key) & 0x7fff_ffff) as i32 % 10, partition);
        }
        let too_few = Records { keys: 3, ..Records::default() };
        assert!(Contents::new(&too_few, 100).is_err());
    }
}
