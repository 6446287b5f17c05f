//! Files that are there whole, or as they were. `cargo xtask bench` includes this file.

use std::{fs, io, path::Path, process};

/// Writes a file, and makes its folder: under another name first, so that nobody sees half of it. A link stays one, and
/// what is no file (a pipe, a terminal) is written into.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    beside(path, text, |new, file| fs::rename(new, file))
}

/// Writes a new file beside the one that this path leads to, and does something with both. What is no file has none
/// beside it, and is written into.
pub(crate) fn beside(path: &Path, text: &str, then: impl FnOnce(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, text);
    }
    let linked = fs::canonicalize(path);
    let path = linked.as_deref().unwrap_or(path);
    // Its own for each process: two that write at once would mix what they write.
    let new = path.with_added_extension(format!("{}.new", process::id()));
    if let Some(dir) = path.parent().filter(|dir| !dir.exists()) {
        fs::create_dir_all(dir)?;
    }
    fs::write(&new, text).and_then(|()| then(&new, path)).inspect_err(|_| drop(fs::remove_file(&new)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::write_whole;

    #[test]
    fn what_cannot_be_written_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("report.json");
        fs::create_dir(&folder).unwrap();
        write_whole(&folder, "new").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, null] = ["file", "link", "null"].map(|name| dir.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        for path in [&link, &null] {
            write_whole(path, "new").unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!([&link, &null].iter().all(|path| path.is_symlink()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
