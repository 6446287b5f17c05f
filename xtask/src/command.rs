//! Commands that can be run, and shown so that a person can repeat them.

use std::{
    env, fmt,
    path::Path,
    process::{self, Stdio},
};

/// A `cargo` command in the workspace's root.
pub(crate) struct Cargo {
    args: Vec<String>,
    env: Option<(&'static str, &'static str)>,
}

impl Cargo {
    /// `cargo` with these arguments, separated by spaces.
    pub(crate) fn new(args: &str) -> Self {
        Self { args: args.split(' ').map(str::to_owned).collect(), env: None }
    }

    /// With a variable.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env = Some((name, value));
        self
    }

    /// Runs it, with its output shown.
    pub(crate) fn run(&self) -> Result<(), String> {
        let status = self.process().status().map_err(|error| format!("start `{self}`: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{status}; to repeat it:\n\n    {self}\n")) }
    }

    /// Whether it succeeds, with its output hidden.
    pub(crate) fn succeeds(&self) -> bool {
        self.process().stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// What it prints.
    pub(crate) fn output(&self) -> Result<Vec<u8>, String> {
        let output =
            self.process().stderr(Stdio::inherit()).output().map_err(|error| format!("start `{self}`: {error}"))?;
        if output.status.success() { Ok(output.stdout) } else { Err(format!("run `{self}`: {}", output.status)) }
    }

    fn process(&self) -> process::Command {
        let mut process = process::Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        process.args(&self.args).envs(self.env).stdin(Stdio::null());
        // As cargo says now: worktrees that share a target directory share this program.
        let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        process.current_dir(Path::new(&xtask).join(".."));
        // What `cargo run` says about this program would make build scripts run again that watch these variables.
        for (name, _) in env::vars_os() {
            let about_us =
                ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
            if about_us {
                process.env_remove(name);
            }
        }
        process
    }
}

/// As one would type it.
impl fmt::Display for Cargo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, value)) = self.env {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "cargo {}", self.args.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::Cargo;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let doc = Cargo::new("doc --workspace").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --workspace");
    }

    #[test]
    fn a_failure_tells_how_to_repeat_it() {
        let error = Cargo::new("no-such-command").run().expect_err("there is no such command");
        assert_eq!(error, "exit status: 101; to repeat it:\n\n    cargo no-such-command\n");
    }
}
