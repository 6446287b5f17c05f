//! What a writer is told: short, and the same each time. No paths, lines, times, or names of hidden tests.

use agent_eval::{SandboxEnd, SandboxRun};
use serde::Deserialize;

use super::{
    grader::{Grade, Program},
    task::{Example, Task},
};

/// How many errors of the compiler, and how many tests, are told.
const MOST: usize = 2;
/// Characters of one quoted value or message.
const LONGEST: usize = 200;

/// A message of the compiler (the JSON of `--error-format=json`, of which this much is used).
#[derive(Debug, Deserialize)]
struct Diagnostic {
    message: String,
    #[serde(default)]
    level: String,
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Code {
    code: String,
}

#[derive(Debug, Deserialize)]
struct Span {
    line_start: usize,
    is_primary: bool,
    #[serde(default)]
    text: Vec<Line>,
    label: Option<String>,
    suggested_replacement: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Line {
    text: String,
}

/// The first errors, those in the hidden tests apart.
pub(super) fn of_compiler(ran: &SandboxRun, program: &Program) -> String {
    if !matches!(ran.end, SandboxEnd::Exit(_)) {
        return "Of an earlier draft the compiler was stopped: it took too much time or memory.".to_owned();
    }
    let messages = ran.stderr.lines().filter_map(|line| serde_json::from_str::<Diagnostic>(line).ok());
    let errors: Vec<Diagnostic> = messages
        .filter(|message| message.level == "error" && !message.message.starts_with("aborting due to"))
        .collect();
    let told: Vec<String> = errors.iter().filter_map(|error| error.told(program)).take(MOST).collect();
    if told.is_empty() {
        let told = "An earlier draft did not fit its tests: keep the name and the types that were asked for.";
        return told.to_owned();
    }
    format!("An earlier draft did not compile.\n\n{}", told.join("\n\n"))
}

impl Diagnostic {
    /// The error with the line that it is about; none if it is the error of a hidden test.
    fn told(&self, program: &Program) -> Option<String> {
        let mut at = self.spans.iter().find(|span| span.is_primary);
        if at.is_some_and(|at| at.line_start >= program.hidden_begin) {
            if self.code.is_some() {
                return None;
            }
            // An error of syntax: the draft's, such as a bracket that is not closed, which is found at the end.
            at = None;
        }
        let code = self.code.as_ref().map(|code| format!("[{}]", code.code)).unwrap_or_default();
        let mut told = vec![format!("error{code}: {}", cut(&self.message))];
        if let Some(at) = at {
            // A test's own line would show how it is called here, and not what was written.
            let line = at.text.first().map(|line| line.text.trim());
            let line = line.map(|line| if at.line_start < program.tests_begin { line } else { tested(line) });
            let label = at.label.as_deref().filter(|label| !self.message.contains(label));
            told.extend([line, label].into_iter().flatten().map(|text| format!("    {}", cut(text))));
        }
        if let Some(help) = self.children.iter().find(|child| child.level == "help") {
            let replacement = help.spans.iter().find_map(|span| span.suggested_replacement.as_deref());
            let replacement = replacement.map(str::trim).filter(|text| !text.is_empty());
            let replacement = replacement.map(|text| format!(": `{}`", cut(text))).unwrap_or_default();
            told.push(format!("help: {}{replacement}", cut(&help.message)));
        }
        Some(told.join("\n"))
    }
}

/// The call and what is expected of it, out of a test's line.
fn tested(line: &str) -> &str {
    let inner = || line.split_once("::std::assert_eq!(")?.1.strip_suffix("); }");
    inner().unwrap_or(line)
}

/// What the visible tests come to, and what all of them come to.
pub(super) fn of_tests(ran: &SandboxRun, task: &Task) -> Grade {
    let mut visible = objections(ran, "seen", &task.visible);
    let mut hidden = objections(ran, "unseen", &task.hidden);
    if visible.is_empty() && hidden.is_empty() && ran.end != SandboxEnd::Exit(0) {
        hidden.push("the tests passed, and their program failed".to_owned());
    }
    visible.truncate(MOST);
    hidden.truncate(MOST);
    let feedback = (!visible.is_empty())
        .then(|| format!("An earlier draft compiled, but its results were wrong.\n\n{}", visible.join("\n")));
    let failure = match (visible.is_empty(), hidden.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("the visible tests pass; a hidden one does not: {}", hidden.join(" "))),
        (false, _) => Some(visible.join(" ")),
    };
    Grade { feedback, failure }
}

/// What is wrong with the tests of a module, up to the one that ended their program.
fn objections(ran: &SandboxRun, module: &str, examples: &[Example]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, Example { call, expected }) in examples.iter().enumerate() {
        let test = format!("{module}::t{number:02}");
        let verdict = ran.stdout.lines().find_map(|line| line.strip_prefix(&format!("test {test} ... ")));
        let but = match (verdict, ran.end) {
            (Some("ok"), _) => continue,
            (Some("FAILED"), _) => but(ran, &test),
            (_, SandboxEnd::Exit(_)) => "the program ended before".to_owned(),
            (_, SandboxEnd::Signal(_) | SandboxEnd::TimeLimit) => {
                "it was stopped: an endless loop, or too much memory".to_owned()
            }
        };
        found.push(format!("`{call}` should be `{expected}`, but {but}."));
        if !matches!(verdict, Some("FAILED")) {
            break;
        }
    }
    found
}

/// What a failed test found instead.
fn but(ran: &SandboxRun, test: &str) -> String {
    let said = ran.stdout.split_once(&format!("---- {test} stdout ----\n")).map_or("", |(_, said)| said);
    let said = said.split("\n---- ").next().unwrap_or_default();
    // Behind it is what the panic says; before it, what the draft printed, and where the panic was.
    let panic =
        said.rsplit_once(" panicked at ").and_then(|(_, panic)| panic.split_once('\n')).map_or("", |(_, said)| said);
    match panic.lines().find_map(|line| line.trim_start().strip_prefix("left: ")) {
        Some(left) if panic.starts_with("assertion `left == right` failed") => format!("it is `{}`", cut(left)),
        _ => match panic.lines().next().filter(|line| !line.is_empty()) {
            Some(why) => format!("it panicked: {}", cut(why)),
            None => "it is not".to_owned(),
        },
    }
}

/// One line, not too long.
fn cut(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
