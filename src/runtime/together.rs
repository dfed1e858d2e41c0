//! Several things that are waited for at once.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;

use super::{File, Runtime};
use crate::base::Trouble;

/// Something to be done that may fail.
pub type Doing<'a> = Pin<Box<dyn Future<Output = Result<(), Trouble>> + 'a>>;

/// Files that are synced by themselves at the same time.
const SYNCS_AT_ONCE_MAX: usize = 32;

/// Begins all of them at once, and is done when all are; gives the first error.
pub async fn all(mut doings: Vec<Doing<'_>>) -> Result<(), Trouble> {
    let mut outcome = Ok(());
    poll_fn(|context| {
        doings.retain_mut(|doing| match doing.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(done) => {
                if outcome.is_ok() {
                    outcome = done;
                }
                false
            }
        });
        if doings.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outcome
}

/// `Runtime::sync_together` where each file has to be synced for itself.
pub(super) async fn sync_each<R: Runtime>(
    runtime: &R,
    files: &[R::File],
    folders: &[&Path],
) -> Result<(), Trouble> {
    for files in files.chunks(SYNCS_AT_ONCE_MAX) {
        all(files.iter().map(|file| Box::pin(file.sync()) as Doing<'_>).collect()).await?;
    }
    for folder in folders {
        runtime.sync_folder(folder).await?;
    }
    Ok(())
}
