//! What people read: the table in the terminal, the progress bar, the pictures and the page that holds them.
//!
//! It takes `crate::result` as it stands and measures nothing.

pub mod html;
pub mod json;
pub mod numbers;
pub mod plots;
pub mod progress;
pub mod table;
mod words;

#[cfg(test)]
mod samples;

use std::fs;
use std::path::{Path, PathBuf};

use crate::result::Document;

/// Writes `report.html`, `results.json` and each picture as a file of its own into `folder`, which is made if need be.
/// Gives the path of the page. Errors: what the file system refused, with the path.
pub fn write(document: &Document, folder: &Path) -> Result<PathBuf, String> {
    let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
    let pictures = plots::pictures_of(document);
    for picture in &pictures {
        let path = folder.join(format!("{}.svg", picture.name));
        fs::write(&path, &picture.svg).map_err(|error| at(&path, error))?;
    }
    json::write(document, &folder.join("results.json"))?;
    let page = folder.join("report.html");
    fs::write(&page, html::page(document, &pictures)).map_err(|error| at(&page, error))?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `REPORT=<folder>` keeps what it writes, to be looked at.
    #[test]
    fn a_folder_holds_the_page_the_figures_and_every_picture() {
        let temporary = tempfile::tempdir().unwrap();
        let kept = std::env::var_os("REPORT").map(PathBuf::from);
        let folder = kept.unwrap_or_else(|| temporary.path().to_path_buf());
        for (name, document) in
            [("run", samples::run()), ("comparison", samples::comparison()), ("curve", samples::curve())]
        {
            let page = write(&document, &folder.join(name)).unwrap();
            let pictures = plots::pictures_of(&document);
            assert!(!pictures.is_empty());
            for picture in pictures {
                let text = fs::read_to_string(page.with_file_name(format!("{}.svg", picture.name))).unwrap();
                assert_eq!(text, picture.svg);
            }
            let read = json::read(&page.with_file_name("results.json")).unwrap();
            assert_eq!(html::page(&read, &plots::pictures_of(&read)), fs::read_to_string(page).unwrap());
        }
    }
}
