//! The workspace's own commands, run as `cargo xtask`.

mod bench;
mod ci;
mod command;
mod features;

use std::process::ExitCode;

use clap::Parser;

/// The workspace's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    Bench(bench::Bench),
    Ci(ci::Ci),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Bench(_) => bench::Bench::run(),
        Task::Ci(ci) => ci.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error}");
            ExitCode::FAILURE
        }
    }
}
