use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::base::Offset;

/// 16 bytes of hash and the offset plus 1, so that zeroes are an empty slot.
type Slot = [u64; 3];
const EMPTY: Slot = [0; 3];

/// Up to how full the slots may get: beyond it a look-up would go through ever more of them.
const FILL_PERCENT: usize = 75;

/// The last offset of each key in a stretch of a log. Keys are told apart by 128 bits of a hash that only
/// this process knows, so two keys that count as one are beyond chance, and nobody can make them up. Memory:
/// 24 bytes a slot, taken at once and touched as it fills. Source: Kafka's `SkimpyOffsetMap`.
pub struct KeyMap {
    slots: Vec<Slot>,
    keys: usize,
    keys_max: usize,
    secret: (u64, u64),
    latest_offset: Offset,
}

impl KeyMap {
    /// Room for `keys` different keys, or for as many as `bytes_max` allows; one at least. `secret`: random.
    pub fn new(bytes_max: u64, keys: u64, secret: (u64, u64)) -> KeyMap {
        let slots_max = usize::try_from(bytes_max / size_of::<Slot>() as u64).unwrap_or(usize::MAX);
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let slots = (keys.saturating_mul(100) / FILL_PERCENT).saturating_add(1).min(slots_max).max(2);
        let keys_max = (slots * FILL_PERCENT / 100).max(1);
        KeyMap { slots: vec![EMPTY; slots], keys: 0, keys_max, secret, latest_offset: Offset::NONE }
    }

    /// Notes that `key` stands at `offset`, which is above all noted before. False: there is no room for
    /// another key, and nothing is noted.
    pub fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let [low, high] = self.hash(key);
        let at = self.find([low, high]);
        if self.slots[at] == EMPTY {
            if self.keys == self.keys_max {
                return false;
            }
            self.keys += 1;
        }
        self.slots[at] = [low, high, (offset.0 + 1).cast_unsigned()];
        self.pass(offset);
        true
    }

    /// All up to and with `offset` has been looked at.
    pub fn pass(&mut self, offset: Offset) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    /// Where `key` stands last; `None`: nowhere in what was looked at.
    pub fn last_offset_of(&self, key: &[u8]) -> Option<Offset> {
        let slot = self.slots[self.find(self.hash(key))];
        (slot != EMPTY).then(|| Offset(slot[2].cast_signed() - 1))
    }

    /// The last offset looked at; what lies above it may hold any key.
    pub fn latest_offset(&self) -> Offset {
        self.latest_offset
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(key);
        let hash = hasher.finish128();
        [hash.h1, hash.h2]
    }

    /// The slot that holds the hash, or the empty one where it belongs: there always is one.
    fn find(&self, hash: [u64; 2]) -> usize {
        let count = self.slots.len() as u128;
        let mut at = usize::try_from((u128::from(hash[0]) * count) >> 64).expect("below the count of slots");
        while self.slots[at] != EMPTY && self.slots[at][..2] != hash {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::seeded::for_each_seed;

    #[test]
    fn a_map_remembers_what_a_plain_one_does() {
        for_each_seed(20, |mut dice| {
            let mut keys = KeyMap::new(1 << 20, 900, (dice.number(), dice.number()));
            let mut model: BTreeMap<Vec<u8>, Offset> = BTreeMap::new();
            for offset in 0..1000 {
                let key = dice.below(300).to_be_bytes()[8 - dice.below(3) as usize..].to_vec();
                assert!(keys.put(&key, Offset(offset)));
                model.insert(key, Offset(offset));
            }
            for (key, offset) in &model {
                assert_eq!(keys.last_offset_of(key), Some(*offset));
            }
            assert_eq!(keys.last_offset_of(b"another"), None);
            assert_eq!(keys.latest_offset(), Offset(999));
        });
    }

    #[test]
    fn a_full_map_takes_no_new_key_and_goes_on_with_those_it_has() {
        let mut keys = KeyMap::new(24 * 8, u64::MAX, (1, 2));
        let taken = (0..100u8).take_while(|key| keys.put(&[*key], Offset(i64::from(*key)))).count();
        assert_eq!(taken, 6, "three quarters of eight slots");
        assert!(keys.put(&[0], Offset(200)));
        assert_eq!((keys.last_offset_of(&[0]), keys.last_offset_of(&[6])), (Some(Offset(200)), None));
        assert!(KeyMap::new(0, 1, (0, 0)).put(b"key", Offset(0)), "there is room for one in any case");
    }
}
