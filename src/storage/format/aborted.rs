use crate::base::{Offset, ProducerId};

/// Entry of `.txnindex`: one aborted transaction whose marker stands in the segment.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 2 | version, 0 |
/// | 2 | 8 | producer id |
/// | 10 | 8 | first offset of the transaction |
/// | 18 | 8 | last offset: the abort marker's |
/// | 26 | 8 | last stable offset after the abort |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub last_stable_offset: Offset,
}

impl AbortedTransaction {
    pub const BYTES: usize = 34;

    /// Reads one entry; `None` when there are fewer bytes or the version is not 0.
    pub fn decode(bytes: &[u8]) -> Option<AbortedTransaction> {
        let bytes: &[u8; AbortedTransaction::BYTES] = bytes.first_chunk()?;
        let long = |start: usize| i64::from_be_bytes(std::array::from_fn(|i| bytes[start + i]));
        (bytes[..2] == [0, 0]).then(|| AbortedTransaction {
            producer_id: ProducerId(long(2)),
            first_offset: Offset(long(10)),
            last_offset: Offset(long(18)),
            last_stable_offset: Offset(long(26)),
        })
    }

    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
        for field in [self.producer_id.0, self.first_offset.0, self.last_offset.0, self.last_stable_offset.0]
        {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back_as_written() {
        let entry = AbortedTransaction {
            producer_id: ProducerId(7),
            first_offset: Offset(100),
            last_offset: Offset(120),
            last_stable_offset: Offset(121),
        };
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        assert_eq!(bytes.len(), AbortedTransaction::BYTES);
        assert_eq!(AbortedTransaction::decode(&bytes), Some(entry));
        bytes[1] = 1;
        assert_eq!(AbortedTransaction::decode(&bytes), None);
    }
}
