//! What the system offers to keep a program apart.

use std::{
    fmt, io,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
};

use super::SandboxEnd;

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
    /// The environment of the evaluating process, where keys may be, cannot be read.
    pub environment: bool,
    user: User,
    apart: Apart,
    /// As root: what `nobody` can have without root's help. The number of processes is counted by user and namespace,
    /// so this is what keeps sandboxes from sharing their limit.
    nested: Apart,
}

/// As whom programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    /// The caller, who is not root.
    Caller,
    /// Root, who cannot become `nobody` here.
    Root,
    /// The caller is root, and they are not.
    Nobody,
}

/// What a program has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    Nothing,
    /// No network, and processes that end with their first one.
    Namespaces,
    /// And `/proc` shows no others.
    NamespacesAndProc,
}

impl Apart {
    /// The most that works behind `prefix`.
    fn best(prefix: &[&str], root: bool, works: &impl Fn(&[&str]) -> bool) -> Self {
        let all = [Self::NamespacesAndProc, Self::Namespaces];
        all.into_iter().find(|apart| works(&[prefix, &apart.words(root)].concat())).unwrap_or(Self::Nothing)
    }

    /// The program that does it. Who is not root gets a namespace of users, too, in which the program is whom it was:
    /// as its root it could take `/proc` off again, and see the one below.
    fn words(self, root: bool) -> Vec<&'static str> {
        let words: &[(&str, bool)] = &[
            ("unshare", true),
            ("--map-current-user", !root),
            ("--net", true),
            ("--pid", true),
            ("--mount-proc", self == Self::NamespacesAndProc),
            ("--fork", true),
            ("--kill-child", true),
            ("--", true),
        ];
        words.iter().filter(|(_, used)| *used && self != Self::Nothing).map(|(word, _)| *word).collect()
    }
}

impl Isolation {
    /// What holds on this system; tried once.
    pub fn here() -> Self {
        static HERE: OnceLock<Isolation> = OnceLock::new();
        *HERE.get_or_init(|| Self::find(is_root(), works))
    }

    fn find(root: bool, works: impl Fn(&[&str]) -> bool) -> Self {
        let user = match root {
            false => User::Caller,
            true if works(&AS_NOBODY) => User::Nobody,
            true => User::Root,
        };
        let as_nobody = user == User::Nobody;
        let nested = if as_nobody { Apart::best(&AS_NOBODY, false, &works) } else { Apart::Nothing };
        let apart = Apart::best(&[], root, &works);
        let namespaces = apart != Apart::Nothing;
        let processes = if root { as_nobody } else { namespaces };
        let environment = as_nobody || apart == Apart::NamespacesAndProc;
        Self { namespaces, processes, environment, user, apart, nested }
    }

    /// The programs that keep another one apart, down to the shell that sets its limits.
    fn wrapper(self, limits_processes: bool) -> Vec<&'static str> {
        let apart = self.apart.words(self.user != User::Caller);
        let words = match (self.user == User::Nobody && limits_processes, self.nested) {
            (true, Apart::Nothing) => [&apart, &AS_NOBODY[..]].concat(),
            (true, nested) => [&AS_NOBODY[..], &nested.words(false)].concat(),
            (false, _) => apart,
        };
        [words, vec!["sh"]].concat()
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lacks: Vec<&str> = [
            (self.user == User::Root, "programs run as root"),
            (!self.namespaces, "the network can be reached"),
            (!self.processes, "the number of processes is not limited"),
            (!self.environment, "the environment of the evaluating process can be read"),
        ]
        .into_iter()
        .filter_map(|(lacks, what)| lacks.then_some(what))
        .collect();
        f.write_str(&if lacks.is_empty() { "full".to_owned() } else { format!("partial: {}", lacks.join("; ")) })
    }
}

pub(super) fn wrapper(limits_processes: bool) -> Vec<&'static str> {
    Isolation::here().wrapper(limits_processes)
}

/// Lets the user whom programs run as write into the folder.
#[cfg(unix)]
pub(super) fn hand_over(folder: &Path) -> io::Result<()> {
    const NOBODY: u32 = 65534;
    if Isolation::here().user == User::Nobody {
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

#[cfg(test)]
mod tests {
    use super::Isolation;

    /// What holds, and how a program is run, with a limit of its processes and without, where only these words work.
    fn found(root: bool, working: &[&str]) -> String {
        let all_work = |words: &[&str]| {
            let tools = ["setpriv", "--map-current-user", "--net", "--mount-proc"];
            // As root, `unshare` works without a namespace of users.
            words.iter().filter(|word| tools.contains(word)).all(|word| working.contains(word))
        };
        let found = Isolation::find(root, all_work);
        format!("{found}\n{}\n{}", found.wrapper(true).join(" "), found.wrapper(false).join(" "))
    }

    #[test]
    fn root_becomes_nobody_with_namespaces_of_its_own() {
        insta::assert_snapshot!(found(true, &["setpriv", "--map-current-user", "--net", "--mount-proc"]), @r"
        full
        setpriv --reuid=65534 --regid=65534 --clear-groups -- unshare --map-current-user --net --pid --mount-proc --fork --kill-child -- sh
        unshare --net --pid --mount-proc --fork --kill-child -- sh
        ");
        insta::assert_snapshot!(found(true, &["setpriv", "--map-current-user", "--net"]), @r"
        full
        setpriv --reuid=65534 --regid=65534 --clear-groups -- unshare --map-current-user --net --pid --fork --kill-child -- sh
        unshare --net --pid --fork --kill-child -- sh
        ");
    }

    #[test]
    fn root_makes_the_namespaces_where_nobody_cannot() {
        insta::assert_snapshot!(found(true, &["setpriv", "--net", "--mount-proc"]), @r"
        full
        unshare --net --pid --mount-proc --fork --kill-child -- setpriv --reuid=65534 --regid=65534 --clear-groups -- sh
        unshare --net --pid --mount-proc --fork --kill-child -- sh
        ");
        insta::assert_snapshot!(found(true, &["setpriv", "--net"]), @r"
        full
        unshare --net --pid --fork --kill-child -- setpriv --reuid=65534 --regid=65534 --clear-groups -- sh
        unshare --net --pid --fork --kill-child -- sh
        ");
    }

    #[test]
    fn root_becomes_nobody_without_namespaces_too() {
        insta::assert_snapshot!(found(true, &["setpriv"]), @r"
        partial: the network can be reached
        setpriv --reuid=65534 --regid=65534 --clear-groups -- sh
        sh
        ");
    }

    #[test]
    fn programs_that_run_as_root_are_told() {
        insta::assert_snapshot!(found(true, &["--net", "--mount-proc"]), @r"
        partial: programs run as root; the number of processes is not limited
        unshare --net --pid --mount-proc --fork --kill-child -- sh
        unshare --net --pid --mount-proc --fork --kill-child -- sh
        ");
        insta::assert_snapshot!(found(true, &["--net"]), @r"
        partial: programs run as root; the number of processes is not limited; the environment of the evaluating process can be read
        unshare --net --pid --fork --kill-child -- sh
        unshare --net --pid --fork --kill-child -- sh
        ");
        insta::assert_snapshot!(found(true, &[]), @r"
        partial: programs run as root; the network can be reached; the number of processes is not limited; the environment of the evaluating process can be read
        sh
        sh
        ");
    }

    #[test]
    fn a_user_has_what_the_system_allows() {
        insta::assert_snapshot!(found(false, &["--map-current-user", "--net", "--mount-proc"]), @r"
        full
        unshare --map-current-user --net --pid --mount-proc --fork --kill-child -- sh
        unshare --map-current-user --net --pid --mount-proc --fork --kill-child -- sh
        ");
        insta::assert_snapshot!(found(false, &["--map-current-user", "--net"]), @r"
        partial: the environment of the evaluating process can be read
        unshare --map-current-user --net --pid --fork --kill-child -- sh
        unshare --map-current-user --net --pid --fork --kill-child -- sh
        ");
        insta::assert_snapshot!(found(false, &["setpriv", "--net", "--mount-proc"]), @r"
        partial: the network can be reached; the number of processes is not limited; the environment of the evaluating process can be read
        sh
        sh
        ");
    }
}
