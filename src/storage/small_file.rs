//! Small files that are always read and written whole.

use std::path::Path;

use bytes::Bytes;

use super::names::{BEING_WRITTEN, with_suffix};
use crate::base::{Position, Trouble};
use crate::runtime::{File, Open, Runtime};

/// Most bytes taken from a file that should be small; a longer one is damaged.
const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What is in the file; `None` when there is none.
pub(super) async fn read_small<R: Runtime>(runtime: &R, path: &Path) -> Result<Option<Bytes>, Trouble> {
    let file = match runtime.open(path, Open::Read).await {
        Ok(file) => file,
        Err(trouble) if trouble.is_not_found() => return Ok(None),
        Err(trouble) => return Err(trouble),
    };
    let bytes = file.bytes()?.min(SMALL_FILE_BYTES_MAX);
    let bytes = usize::try_from(bytes).expect("the bound fits a usize");
    Ok(Some(file.read_at(Position(0), bytes).await?))
}

/// What is in the file as text, damaged characters replaced; `None` when there is none.
pub(super) async fn read_text<R: Runtime>(runtime: &R, path: &Path) -> Result<Option<String>, Trouble> {
    Ok(read_small(runtime, path).await?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Puts `content` in the place of the file in one step that outlives a power cut: a reader finds the old content or the
/// new one. Two writers of one path must not overlap. Not safe to drop half-way, but only a `.tmp` file may be left.
pub(super) async fn write_small<R: Runtime>(
    runtime: &R,
    path: &Path,
    content: impl Into<Bytes>,
) -> Result<(), Trouble> {
    write_beside(runtime, path, content).await?.sync().await?;
    put_in_place(runtime, path).await?;
    runtime.sync_folder(folder_of(path)).await
}

/// Writes what is to take the place of the file to a `.tmp` file beside it, which is to be synced before `put_in_place`.
pub(super) async fn write_beside<R: Runtime>(
    runtime: &R,
    path: &Path,
    content: impl Into<Bytes>,
) -> Result<R::File, Trouble> {
    let file = runtime.open(&with_suffix(path, BEING_WRITTEN), Open::Replace).await?;
    file.write_at(Position(0), &[content.into()]).await?;
    Ok(file)
}

/// Gives what `write_beside` has written its name. It outlives a power cut once the folder is synced.
pub(super) async fn put_in_place<R: Runtime>(runtime: &R, path: &Path) -> Result<(), Trouble> {
    runtime.rename(&with_suffix(path, BEING_WRITTEN), path).await
}

/// The folder that a file or folder stands in; the root stands in itself.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        None => path,
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    }
}

/// Removes a file; fine when there is none.
pub(super) async fn remove_if_there<R: Runtime>(runtime: &R, path: &Path) -> Result<(), Trouble> {
    match runtime.remove_file(path).await {
        Err(trouble) if !trouble.is_not_found() => Err(trouble),
        _ => Ok(()),
    }
}
