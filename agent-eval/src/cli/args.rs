//! The command's arguments.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{bless::Bless, codes, gate::Gate, lint::Lint, list::List, run::Run};
use crate::Project;

/// Evaluates agents: runs sets of cases, compares runs, and says what may go in.
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "COMMAND",
    after_help = codes::HELP
)]
pub struct EvalCommand {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    Run(Box<Run>),
    List(List),
    Lint(Lint),
    Bless(Bless),
    Gate(Gate),
}

impl EvalCommand {
    /// Does what was asked for, with the project's subjects. Results are printed to the standard output; progress and
    /// errors to the error output.
    ///
    /// Needs a tokio runtime with time and I/O.
    pub async fn run(self, project: &dyn Project) -> ExitCode {
        let done = match self.action {
            None => self.run.run(project).await,
            Some(Action::Run(run)) => run.run(project).await,
            Some(Action::List(list)) => list.run(),
            Some(Action::Lint(lint)) => lint.run(project),
            Some(Action::Bless(bless)) => bless.run(),
            Some(Action::Gate(gate)) => gate.run(),
        };
        done.unwrap_or_else(|fault| {
            let style = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!("{style}error{style:#}: {fault}");
            fault.code
        })
        .into()
    }
}
