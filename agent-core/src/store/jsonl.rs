//! Placeholder.
use std::path::PathBuf;
/// Placeholder.
#[derive(Debug)]
pub struct JsonlStore {
    _dir: PathBuf,
}
