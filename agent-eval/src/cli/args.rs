//! The command's arguments.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{
    bless::Bless,
    cap::Cap,
    codes,
    compare::Compare,
    export::Export,
    gate::Gate,
    import::Import,
    lint::Lint,
    list::List,
    report::ReportOn,
    run::Run,
    score::Score,
    show::{Diff, Show},
};
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
    Score(Box<Score>),
    Compare(Compare),
    Gate(Gate),
    Cap(Cap),
    Bless(Bless),
    Show(Show),
    Diff(Diff),
    List(List),
    Lint(Lint),
    Import(Import),
    Export(Export),
    Report(ReportOn),
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
            Some(Action::Score(score)) => score.run(project).await,
            Some(Action::Compare(compare)) => compare.run(),
            Some(Action::Gate(gate)) => gate.run(),
            Some(Action::Cap(cap)) => cap.run(),
            Some(Action::Bless(bless)) => bless.run(),
            Some(Action::Show(show)) => show.run(),
            Some(Action::Diff(diff)) => diff.run(),
            Some(Action::List(list)) => list.run(),
            Some(Action::Lint(lint)) => lint.run(project),
            Some(Action::Import(import)) => import.run(),
            Some(Action::Export(export)) => export.run(),
            Some(Action::Report(report)) => report.run(),
        };
        done.unwrap_or_else(|fault| {
            let style = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!("{style}error{style:#}: {fault}");
            fault.code
        })
        .into()
    }
}
