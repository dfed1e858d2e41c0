use super::read::FileSlice;
use super::walk::{HeaderWalk, Walked};
use crate::base::{Offset, Position, Trouble};
use crate::record::BatchHeader;
use crate::runtime::File;

impl<F: File> FileSlice<F> {
    /// The headers of the whole batches in here, each with the position behind its batch, up to the first that reaches `until`
    /// (exclusive) or makes `count_max` of them. No byte of a record is looked at.
    pub async fn batch_headers(
        &self,
        until: Offset,
        count_max: usize,
    ) -> Result<Vec<(BatchHeader, Position)>, Trouble> {
        let end = self.position.0 + self.bytes;
        let mut walk = HeaderWalk::new(self.file.clone(), self.position, end, Offset::ZERO);
        let mut headers = Vec::new();
        while headers.len() < count_max
            && let Walked::Batch { header, position } = walk.next().await?
        {
            headers.push((header, Position(position.0 + header.size_bytes())));
            if header.next_offset() >= until {
                break;
            }
        }
        Ok(headers)
    }
}
