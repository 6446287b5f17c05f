//! What the system offers to keep a program apart.

use std::{
    fmt, io,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
};

use super::SandboxEnd;

/// Namespaces of its own: no network, and processes that end with their first one.
const APART: [&str; 6] = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--"];
/// The same for those who are not root.
const APART_AS_USER: [&str; 7] = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--"];
/// As a user who owns nothing.
const AS_NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/// How far a sandbox keeps a program apart, beside the limits that hold everywhere on Unix (processor time, memory,
/// size of files, time). It takes `unshare` and, as root, `setpriv`, and a system that lets them do their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// The program has no network, and all its processes end with it.
    pub namespaces: bool,
    /// The number of its processes is limited.
    pub processes: bool,
    /// As root: programs run as `nobody`.
    as_nobody: bool,
}

impl Isolation {
    /// What holds on this system; tried once.
    pub fn here() -> Self {
        static HERE: OnceLock<Isolation> = OnceLock::new();
        *HERE.get_or_init(|| {
            let root = is_root();
            let as_nobody = root && works(&[&AS_NOBODY[..], &APART_AS_USER].concat());
            let namespaces = works(if root { &APART } else { &APART_AS_USER });
            Self { namespaces, processes: if root { as_nobody } else { namespaces }, as_nobody }
        })
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |held, what| if held { "" } else { what };
        let lacks = [
            part(self.namespaces, "the network can be reached"),
            part(self.processes, "the number of processes is not limited"),
        ];
        let lacks: Vec<&str> = lacks.into_iter().filter(|lack| !lack.is_empty()).collect();
        f.write_str(&if lacks.is_empty() { "full".to_owned() } else { format!("partial: {}", lacks.join("; ")) })
    }
}

/// The programs that keep another one apart, down to the shell that sets its limits.
pub(super) fn wrapper(limits_processes: bool) -> Vec<&'static str> {
    let here = Isolation::here();
    let apart: &[&str] = match (here.namespaces, is_root()) {
        (true, true) => &APART,
        (true, false) => &APART_AS_USER,
        (false, _) => &[],
    };
    let words =
        if here.as_nobody && limits_processes { [&AS_NOBODY[..], &APART_AS_USER].concat() } else { apart.into() };
    [words, vec!["sh"]].concat()
}

/// Lets the user whom programs run as write into the folder.
#[cfg(unix)]
pub(super) fn hand_over(folder: &Path) -> io::Result<()> {
    const NOBODY: u32 = 65534;
    if Isolation::here().as_nobody {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn hand_over(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn end_of(status: ExitStatus) -> SandboxEnd {
    match status.code() {
        Some(code @ 129..) => SandboxEnd::Signal(code - 128),
        Some(code) => SandboxEnd::Exit(code),
        #[cfg(unix)]
        None => SandboxEnd::Signal(std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()),
        #[cfg(not(unix))]
        None => SandboxEnd::Signal(0),
    }
}

fn is_root() -> bool {
    #[cfg(unix)]
    return rustix::process::getuid().is_root();
    #[cfg(not(unix))]
    false
}

fn works(wrapper: &[&str]) -> bool {
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
