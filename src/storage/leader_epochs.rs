use super::format::{EpochStart, format_epochs};
use super::log::Log;
use super::names::LEADER_EPOCHS;
use super::small_file::write_small;
use crate::base::Trouble;
use crate::runtime::Runtime;

impl<R: Runtime> Log<R> {
    /// Writes down where the leader epochs begin. One call at a time. The folder's other names outlive a power cut, too, from then on.
    pub async fn write_leader_epochs(&self, epochs: &[EpochStart]) -> Result<(), Trouble> {
        write_small(&self.0.runtime, &self.0.folder.join(LEADER_EPOCHS), format_epochs(epochs)).await
    }
}
