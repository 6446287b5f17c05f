//! A server that is a program of its own.

use std::{ffi::OsString, fmt, path::PathBuf, process::Stdio};

use tokio::process::Command;

use crate::transport;

/// A server that is started as a child and spoken to over its standard input and output.
///
/// The program is started directly, without a shell. Of this process's environment it sees what programs need to run
/// (`PATH`, `HOME`, the language and the like) and no keys; give it more with [`env`](Self::env) or
/// [`inherit_env`](Self::inherit_env). Arguments are shown in errors. Values that are given with `env` are not,
/// whatever the server says of them: keys belong there.
///
/// ```
/// use agent_providers::McpCommand;
///
/// let server = McpCommand::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"]);
/// let server = server.env("LOG_LEVEL", "warn").dir("/srv");
/// assert_eq!(server.to_string(), "npx -y @modelcontextprotocol/server-filesystem /srv/notes");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct McpCommand {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    inherits_all: bool,
    dir: Option<PathBuf>,
}

/// What a child inherits: what MCP's own SDKs hand on, and where temporary files and words of which language go.
const INHERITED: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
    ]
} else {
    &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"]
};

impl McpCommand {
    /// Starts this program: a path, or a name that is looked up in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), inherits_all: false, dir: None }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Hands all of this process's environment on, keys included.
    pub fn inherit_env(mut self) -> Self {
        self.inherits_all = true;
        self
    }

    /// Runs it in this directory; otherwise in the process's own.
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.dir = Some(path.into());
        self
    }

    /// A text without the values of variables: what a server says may hold its keys.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.env.iter().for_each(|(_, value)| transport::blot_out_words(&mut text, &value.to_string_lossy()));
        text
    }

    /// The command, with pipes.
    pub(super) fn to_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if !self.inherits_all {
            let kept = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
            command.env_clear().envs(kept);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }
}

/// As one would type it, without its environment.
impl fmt::Display for McpCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program.to_string_lossy())?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", arg.to_string_lossy()))
    }
}

/// Without the values of variables: they may be keys.
impl fmt::Debug for McpCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, args, env, inherits_all, dir } = self;
        let env = env.iter().map(|(name, _)| name).collect::<Vec<_>>();
        f.debug_struct("McpCommand")
            .field("program", program)
            .field("args", args)
            .field("env", &env)
            .field("inherits_all", inherits_all)
            .field("dir", dir)
            .finish()
    }
}
