//! Runs the examples as programs.

use std::process::{Command, Output};

/// An example, without the settings that a developer's environment may have.
pub(crate) fn example(program: &str) -> Command {
    let mut command = Command::new(program);
    for variable in ["AGENT_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_COMPATIBLE_BASE_URL"] {
        command.env_remove(variable);
    }
    command
}

/// What a program prints, and the code that it ends with.
pub(crate) fn transcript(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    let code = status.code().unwrap();
    let stderr = if stderr.is_empty() { stderr } else { format!("--- stderr\n{stderr}") };
    format!("{stdout}{stderr}--- code {code}\n")
}
