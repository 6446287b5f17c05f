//! `cargo xtask ci`: every check.

use std::{env, fmt, time::Instant};

use clap::{Args, ValueEnum};

use crate::{command::Cargo, features};

/// Run every check, or those that are named; stop at the first that fails.
#[derive(Debug, Args)]
pub(crate) struct Ci {
    /// The steps to run; all of them if none is named. They run in the order of `--list`.
    steps: Vec<Step>,
    /// Show the steps and their commands, and run nothing.
    #[arg(long)]
    list: bool,
}

/// The quick ones first; the tests last, so that their summary is what one sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The formatting.
    Fmt,
    /// The lints of everything, with default features.
    Clippy,
    /// The lints of each crate alone: with no feature, with each one, with all.
    Features,
    /// The documentation builds without a warning.
    Docs,
    /// The examples in the documentation.
    Doctests,
    /// The eval sets, with recorded answers, against their baselines.
    Evals,
    /// The tests; among them, each example program runs offline and prints what its snapshot says.
    Test,
}

impl Ci {
    pub(crate) fn run(&self) -> Result<(), String> {
        let begin = Instant::now();
        let chosen = |step: &&Step| self.steps.is_empty() || self.steps.contains(step);
        let steps: Vec<Step> = Step::value_variants().iter().filter(chosen).copied().collect();
        for step in &steps {
            println!("{}== {step}: {}", if self.list { "" } else { "\n" }, step.help());
            for command in step.commands()? {
                println!("   {command}");
                if !self.list {
                    command.run().map_err(|error| format!("step `{step}` failed, {error}"))?;
                }
            }
        }
        // One step's own last words are its summary.
        if !self.list && steps.len() > 1 {
            println!("\nci: {} steps passed in {} s", steps.len(), begin.elapsed().as_secs());
        }
        Ok(())
    }
}

impl Step {
    fn commands(self) -> Result<Vec<Cargo>, String> {
        let one = |args| Ok(vec![Cargo::new(args)]);
        match self {
            Self::Fmt => one("fmt --all --check"),
            Self::Clippy => one("clippy --workspace --all-targets -- -D warnings"),
            Self::Features => features::lints(),
            Self::Docs => {
                let doc = Cargo::new("doc --workspace --no-deps --all-features");
                Ok(vec![doc.env("RUSTDOCFLAGS", "-D warnings")])
            }
            Self::Doctests => one("test --workspace --all-features --doc"),
            Self::Evals => one("xtask eval --profile ci"),
            Self::Test if Cargo::new("nextest --version").succeeds() => {
                let profile = if env::var_os("CI").is_some() { "ci" } else { "default" };
                one(&format!("nextest run --workspace --all-features --profile {profile}"))
            }
            Self::Test => one("test --workspace --all-features --tests"),
        }
    }

    fn help(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no step is hidden");
        f.write_str(value.get_name())
    }
}
