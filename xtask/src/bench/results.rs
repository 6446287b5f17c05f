//! Where results are written.

use std::{fs, io, path::Path};

use super::file::{beside, write_whole};

/// A file for results. Those of an earlier run stay there until the new ones are whole, and a link stays one.
pub(super) struct Results<'a>(&'a Path);

impl<'a> Results<'a> {
    /// Tries whether the file can be written, before anything is measured.
    pub(super) fn at(path: &'a Path) -> Result<Self, String> {
        if path.is_dir() {
            let (shown, inside) = (path.display(), path.join("bench.json"));
            let what = format!("it is a folder; name a file in it, such as `--json {}`", inside.display());
            return Err(format!("write results to `{shown}`: {what}"));
        }
        let results = Self(path);
        results.told(beside(path, "", |new, _| fs::remove_file(new)))?;
        Ok(results)
    }

    pub(super) fn write(&self, text: &str) -> Result<(), String> {
        self.told(write_whole(self.0, text))
    }

    fn told(&self, written: io::Result<()>) -> Result<(), String> {
        written.map_err(|error| {
            format!("write results to `{}`: {error}; name another file with `--json FILE`", self.0.display())
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
