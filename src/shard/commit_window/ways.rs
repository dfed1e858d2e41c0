//! Which of the two ways to be durable a partition's share of a commit window takes.

/// A window whose large shares have so many bytes together has them written through.
///
/// Measured on Linux 6.18, ext4 on a virtio disk, per window, p50 / p99 ms and CPU seconds for each GiB. Journal, then written
/// through: 26 kB of 58 partitions 0.48 / 1.1 and 1.5 / 2.9; 512 KiB of 5 0.66 / 1.0, 0.46 and 0.85 / 1.1, 0.44; 1 MiB of 6 1.17 / 3.5,
/// 0.42 and 1.16 / 1.5, 0.32; 8 MiB of 58 8.6 / 49, 0.40 and 10.4 / 12, 0.28. A journaled byte is written twice; a segment
/// that is written through costs some 20 µs, and all of them together a commit of the file system's journal.
const WRITTEN_THROUGH_BYTES_MIN: usize = 1024 * 1024;
/// Shares that large count as large, where each segment needs a sync of its own: that against 1 ms/MiB for writing it twice.
const SHARE_BYTES_MIN: usize = 128 * 1024;
/// And where one sync does for all segments.
const SHARE_BYTES_MIN_OF_ONE_SYNC: usize = 64 * 1024;

/// From which size on a partition's share of the window is written through, its segment synced before the answer; what is
/// smaller goes through the journal. `shares`: bytes of each partition in the window. `syncs_as_one`: see
/// `Runtime::syncs_as_one`.
pub(super) fn written_through_from(shares: impl Iterator<Item = usize>, syncs_as_one: bool) -> usize {
    let share_bytes_min = if syncs_as_one { SHARE_BYTES_MIN_OF_ONE_SYNC } else { SHARE_BYTES_MIN };
    let large: usize = shares.filter(|bytes| *bytes >= share_bytes_min).sum();
    if large >= WRITTEN_THROUGH_BYTES_MIN { share_bytes_min } else { usize::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn journaled(shares: &[usize]) -> usize {
        journaled_where(shares, false)
    }

    fn journaled_where(shares: &[usize], syncs_as_one: bool) -> usize {
        let from = written_through_from(shares.iter().copied(), syncs_as_one);
        shares.iter().filter(|bytes| **bytes < from).count()
    }

    #[test]
    fn windows_that_are_small_or_spread_thin_go_through_the_journal() {
        assert_eq!(journaled(&[200; 1000]), 1000);
        assert_eq!(journaled(&[100 * KIB; 100]), 100, "10 MiB, but little of each partition");
        assert_eq!(journaled(&[200 * KIB; 5]), 5, "less than 1 MiB together");
        assert_eq!(journaled(&[]), 0);
    }

    #[test]
    fn large_shares_are_written_through_and_small_ones_beside_them_are_not() {
        assert_eq!(journaled(&[200 * KIB; 6]), 0);
        assert_eq!(journaled(&[8 * KIB * KIB]), 0);
        assert_eq!(journaled(&[600 * KIB, 100, 600 * KIB, 5000, 127 * KIB]), 3);
    }

    #[test]
    fn where_one_sync_does_for_all_smaller_shares_are_large() {
        assert_eq!(journaled_where(&[100 * KIB; 100], true), 0);
        assert_eq!(journaled_where(&[600 * KIB, 100, 600 * KIB, 5000, 127 * KIB], true), 2);
        assert_eq!(journaled_where(&[63 * KIB; 100], true), 100);
    }
}
