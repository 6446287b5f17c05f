//! The workspace's own commands, run as `cargo xtask`.

mod bench;
mod ci;
mod command;
mod eval;
mod features;
mod inspect;
mod peers;

use std::process::ExitCode;

use clap::Parser;

/// The workspace's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    Bench(bench::Bench),
    Ci(ci::Ci),
    Eval(Box<agent_eval::EvalCommand>),
    Inspect(inspect::Inspect),
    Peers(peers::Peers),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Bench(bench) => bench.run(),
        Task::Ci(ci) => ci.run(),
        Task::Eval(eval) => return eval::run(*eval),
        Task::Inspect(inspect) => inspect.run(),
        Task::Peers(peers) => peers.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error}");
            ExitCode::FAILURE
        }
    }
}
