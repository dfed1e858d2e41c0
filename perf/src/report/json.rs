//! The results as a file for programs.

use std::fs;
use std::path::Path;

use crate::result::Document;

/// Errors: what the file system refused, with the path.
pub fn write(document: &Document, path: &Path) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(document).expect("a document has nothing JSON cannot hold");
    text.push('\n');
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads what `write` wrote. Errors: what the file system refused or what is not as it should be, with the path.
pub fn read(path: &Path) -> Result<Document, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
