//! Where results are written.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

/// A file for results. Those of an earlier run stay there until the new ones are whole, and a link stays one.
pub(super) struct Results<'a> {
    path: &'a Path,
    /// To what a link leads.
    file: PathBuf,
}

impl<'a> Results<'a> {
    /// Tries whether the file can be written, before anything is measured.
    pub(super) fn at(path: &'a Path) -> Result<Self, String> {
        if path.is_dir() {
            let (shown, inside) = (path.display(), path.join("bench.json"));
            let what = format!("it is a folder; name a file in it, such as `--json {}`", inside.display());
            return Err(format!("write results to `{shown}`: {what}"));
        }
        let results = Self { path, file: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) };
        results.with_new("", |new| fs::remove_file(new))?;
        Ok(results)
    }

    pub(super) fn write(&self, text: &str) -> Result<(), String> {
        self.with_new(text, |new| fs::rename(new, &self.file))
    }

    /// Writes a file beside it, and does something with that. A device has none beside it.
    fn with_new(&self, text: &str, then: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), String> {
        let file = &self.file;
        let new = file.with_added_extension(format!("{}.new", process::id()));
        let written = if file.exists() && !file.is_file() {
            fs::write(file, text)
        } else {
            let absent = file.parent().filter(|dir| !dir.exists());
            absent.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&new, text)).and_then(|()| then(&new))
        };
        written.map_err(|error| {
            let _ = fs::remove_file(&new); // it may not be there
            format!("write results to `{}`: {error}; name another file with `--json FILE`", self.path.display())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Results;

    #[test]
    fn earlier_results_are_there_until_new_ones_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folder/bench.json");
        Results::at(&path).unwrap().write("old").unwrap();
        let results = Results::at(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        results.write("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Results::at(&link).unwrap().write("new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_into() {
        let null = std::path::Path::new("/dev/null");
        Results::at(null).unwrap().write("new").unwrap();
        assert!(!null.is_file());
    }
}
