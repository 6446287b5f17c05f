//! Files that are there whole, or as they were.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Writes a file, and makes its folder: under another name first, so that nobody sees half of it.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(&new, text)?;
    fs::rename(&new, path)
}
