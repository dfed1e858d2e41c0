use crate::base::{SHARDS_MAX, ShardId};

/// Bits below the shard's number.
const NUMBER_BITS: u32 = 23;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

const _: () = assert!(SHARDS_MAX <= 1 << (31 - NUMBER_BITS));

/// A fetch session's id: positive, the number of the shard that holds it in bits 23 to 30. 0: no session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FetchSessionId(pub i32);

impl FetchSessionId {
    pub const NONE: FetchSessionId = FetchSessionId(0);

    /// The shard that holds this session if there is one; `None` for an id that no shard of `shard_count` has given.
    pub fn shard(self, shard_count: usize) -> Option<ShardId> {
        let shard = u16::try_from(u32::try_from(self.0).ok()? >> NUMBER_BITS).ok()?;
        (self != FetchSessionId::NONE && usize::from(shard) < shard_count).then_some(ShardId(shard))
    }

    /// One of the shard's ids, chosen by `random`.
    pub(super) fn choose(shard: ShardId, random: u32) -> FetchSessionId {
        let bits = u32::from(shard.0) << NUMBER_BITS | (random & NUMBER_MASK).max(1);
        FetchSessionId(bits.cast_signed())
    }

    /// The next of the same shard's ids.
    pub(super) fn following(self, shard: ShardId) -> FetchSessionId {
        FetchSessionId::choose(shard, self.0.cast_unsigned().wrapping_add(1))
    }
}

/// Which fetch of a session this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchSessionEpoch(pub i32);

impl FetchSessionEpoch {
    /// Asks for a new session.
    pub const INITIAL: FetchSessionEpoch = FetchSessionEpoch(0);
    /// Asks for no session, and ends the one it names.
    pub const FINAL: FetchSessionEpoch = FetchSessionEpoch(-1);

    /// The request names all its partitions.
    pub fn is_full(self) -> bool {
        self == FetchSessionEpoch::INITIAL || self == FetchSessionEpoch::FINAL
    }

    /// 1 follows `i32::MAX`.
    pub fn next(self) -> FetchSessionEpoch {
        FetchSessionEpoch(self.0.checked_add(1).unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_to_its_shard() {
        for shard in [0, 1, 255] {
            for random in [0, 1, 77, u32::MAX] {
                let id = FetchSessionId::choose(ShardId(shard), random);
                assert!(id.0 > 0);
                assert_eq!(id.shard(256), Some(ShardId(shard)));
                assert_eq!(id.following(ShardId(shard)).shard(256), Some(ShardId(shard)));
                assert_ne!(id.following(ShardId(shard)), id);
            }
        }
        let last = FetchSessionId::choose(ShardId(3), u32::MAX);
        assert_eq!(last.following(ShardId(3)), FetchSessionId::choose(ShardId(3), 1));
        assert_eq!(last.shard(3), None);
        assert_eq!([0, -1, i32::MIN].map(|id| FetchSessionId(id).shard(256)), [None; 3]);
    }

    #[test]
    fn an_epoch_wraps_past_the_two_that_mean_something_else() {
        assert_eq!(FetchSessionEpoch(i32::MAX).next(), FetchSessionEpoch(1));
        assert_eq!(FetchSessionEpoch::INITIAL.next(), FetchSessionEpoch(1));
    }
}
