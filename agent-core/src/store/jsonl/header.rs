//! The first line of a session's file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

const FORMAT: &str = "agent-session";
/// The newest version of the format that is known here.
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Header<'a> {
    format: &'a str,
    version: u64,
    id: &'a str,
}

/// What can be told of any header, also of a version that is not known yet.
#[derive(Deserialize)]
struct Found {
    format: String,
    version: u64,
    id: Option<String>,
}

/// The header of the session's file, with its line break.
pub(super) fn header(id: &str) -> Vec<u8> {
    let header = Header { format: FORMAT, version: VERSION, id };
    let mut line = serde_json::to_vec(&header).expect("strings and a number are JSON");
    line.push(b'\n');
    line
}

/// The id in a file's first line.
pub(super) fn id_in(line: &[u8], path: &Path) -> Result<String> {
    let foreign = || {
        let path = path.display();
        let context = format!(
            "read session file `{path}`: its first line is not the header of a session; \
             move the file out of the store's directory, or restore it from a backup"
        );
        Error::new(ErrorKind::Store, context)
    };
    let found: Found = serde_json::from_slice(line).map_err(|error| foreign().with_source(error))?;
    if found.format != FORMAT {
        return Err(foreign());
    }
    if found.version > VERSION {
        let (path, version) = (path.display(), found.version);
        let context = format!(
            "read session file `{path}`: it has version {version} of the format, and this program knows {VERSION}; \
             nothing was changed: use a newer program, or move the file out of the store's directory"
        );
        return Err(Error::new(ErrorKind::Unsupported, context));
    }
    found.id.ok_or_else(foreign)
}

/// Checks that a file's first line is the header of this session. False if the line is torn, so that nothing was ever
/// stored in the file.
pub(super) fn check(line: &[u8], id: &str, path: &Path) -> Result<bool> {
    if !line.ends_with(b"\n") && header(id).starts_with(line) {
        return Ok(false);
    }
    let found = id_in(line, path)?;
    if found == id { Ok(true) } else { Err(misplaced(&found, path)) }
}

/// What is said of a file that holds a session whose file it should not be.
pub(super) fn misplaced(found: &str, path: &Path) -> Error {
    let path = path.display();
    let context = format!(
        "read session file `{path}`: it holds another session, {found:?}; \
         undo the file's renaming or, if it never was renamed, use another id"
    );
    Error::new(ErrorKind::Store, context)
}
