//! Compiles a draft with its tests, runs them, and says what comes of it.

use std::{
    collections::HashMap,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use agent_eval::{Sandbox, SandboxEnd, SandboxLimits};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, Semaphore},
};

use super::{
    feedback, forbidden,
    task::{Example, Task},
};

/// The file, as messages of the compiler name it.
const FILE: &str = "draft.rs";
/// A compiler maps much memory that it does not use, and starts a linker. It runs no line of the draft, but can read
/// files for it: where root's sandboxes can run it as nobody, they do.
const COMPILER: SandboxLimits = SandboxLimits {
    cpu_seconds: 20,
    wall: Duration::from_mins(2),
    memory: 4 << 30,
    file_size: 64 << 20,
    processes: Some(256),
    output: 512 << 10,
};
/// A test takes microseconds.
const TESTS: SandboxLimits = SandboxLimits {
    cpu_seconds: 1,
    wall: Duration::from_mins(1),
    memory: 256 << 20,
    file_size: 1 << 20,
    processes: Some(16),
    output: 64 << 10,
};
/// Hash maps take their keys from here, so that a draft that depends on their order does the same in each run.
const FIXED_HASHES: &str = r#"
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    unsafe { std::ptr::write_bytes(buffer, 7, length) };
    length as isize
}
"#;

/// What a draft is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grade {
    /// What the writer is told; none if it compiles and the visible tests pass.
    pub(super) feedback: Option<String>,
    /// Why it is not good; none if all tests pass. It may name a hidden test.
    pub(super) failure: Option<String>,
}

/// A file for the compiler, and from which line on the hidden tests stand in it.
pub(super) struct Program {
    pub(super) text: String,
    pub(super) tests_begin: usize,
    pub(super) hidden_begin: usize,
}

/// A grade that is being found.
type Cell = Arc<OnceCell<Grade>>;

/// Grades drafts, each once: the same text always comes to the same.
pub(super) struct Grader {
    shared: Arc<Shared>,
    /// Grading goes on here, whatever its callers do meanwhile: one that is not polled, or blocks its thread, would
    /// keep a turn or a cell from the others.
    runtime: Option<Runtime>,
}

struct Shared {
    rustc: PathBuf,
    version: String,
    /// What the compiler may use: once it is known whether nobody can run it.
    compiler: OnceCell<SandboxLimits>,
    /// By task and draft.
    graded: Mutex<HashMap<(String, String), Cell>>,
    at_once: Semaphore,
}

impl Grader {
    /// # Errors
    /// If there is no compiler.
    pub(super) fn new() -> Result<Self> {
        let ask = |args: &[&str]| {
            let failed = || Error::new(ErrorKind::Invalid, "find the compiler of the tasks: `rustc` must be in `PATH`");
            let output = Command::new("rustc").args(args).output().map_err(|error| failed().with_source(error))?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() { Ok(text) } else { Err(failed()) }
        };
        // The program itself, not one that looks it up anew each time.
        let rustc = PathBuf::from(ask(&["--print", "sysroot"])?).join("bin/rustc");
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let shared = Shared {
            rustc,
            version: ask(&["--version"])?,
            compiler: OnceCell::new(),
            graded: Mutex::default(),
            at_once: Semaphore::new(cores),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime
            .map_err(|error| Error::new(ErrorKind::Store, "make a runtime for the compiler").with_source(error))?;
        Ok(Self { shared: Arc::new(shared), runtime: Some(runtime) })
    }

    /// The compiler's version: its messages are feedback.
    pub(super) fn version(&self) -> &str {
        &self.shared.version
    }

    /// Grades an answer.
    ///
    /// # Errors
    /// If the compiler or the tests cannot be run; a draft that is no good is a grade.
    pub(super) async fn grade(&self, task: &Task, answer: &str) -> Result<Grade> {
        let (send, receive) = tokio::sync::oneshot::channel();
        self.spawn(task, answer, move |grade| drop(send.send(grade)));
        receive.await.unwrap_or_else(|_| Err(ended()))
    }

    /// The same for callers that are not async; it blocks their thread.
    pub(super) fn grade_blocking(&self, task: &Task, answer: &str) -> Result<Grade> {
        let (send, receive) = mpsc::channel();
        self.spawn(task, answer, move |grade| drop(send.send(grade)));
        receive.recv().unwrap_or_else(|_| Err(ended()))
    }

    fn spawn(&self, task: &Task, answer: &str, then: impl FnOnce(Result<Grade>) + Send + 'static) {
        let (shared, task, answer) = (self.shared.clone(), task.clone(), answer.to_owned());
        let runtime = self.runtime.as_ref().expect("there until it is dropped");
        runtime.spawn(async move { then(shared.grade(&task, &answer).await) });
    }
}

impl Drop for Grader {
    fn drop(&mut self) {
        // Dropped in async code, a runtime would panic: it waits for its threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Store, "grade a draft: the compiler's runtime has ended")
}

impl Shared {
    async fn grade(&self, task: &Task, answer: &str) -> Result<Grade> {
        let draft = code_of(answer, task.function());
        if let Some(why) = forbidden::found_in(draft) {
            let told = format!("not allowed: {why}");
            return Ok(Grade { failure: Some(told.clone()), feedback: Some(told) });
        }
        let key = (task.id.clone(), draft.to_owned());
        let cell = self.graded.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        cell.get_or_try_init(|| self.compile_and_test(task, draft)).await.cloned()
    }

    async fn compile_and_test(&self, task: &Task, draft: &str) -> Result<Grade> {
        let _turn = self.at_once.acquire().await.expect("never closed");
        let program = program(task, draft);
        let compiler = self.compiler.get_or_try_init(|| self.compiler_limits()).await?;
        let sandbox = Sandbox::new()?;
        sandbox.write(FILE, &program.text)?;
        let rustc = sandbox.run(&self.rustc, compiler_args(), compiler).await?;
        if rustc.end != SandboxEnd::Exit(0) {
            let feedback = feedback::of_compiler(&rustc, &program);
            return Ok(Grade { failure: Some(feedback.clone()), feedback: Some(feedback) });
        }
        let tests = sandbox.path().join("tests");
        let ran = sandbox.run(tests, ["--test-threads=1"], &TESTS).await?;
        Ok(feedback::of_tests(&ran, task))
    }

    /// A compiler in the home of root is none that nobody can run.
    async fn compiler_limits(&self) -> Result<SandboxLimits> {
        let ran = Sandbox::new()?.run(&self.rustc, ["--version"], &COMPILER).await?;
        let processes = COMPILER.processes.filter(|_| ran.end == SandboxEnd::Exit(0));
        Ok(SandboxLimits { processes, ..COMPILER })
    }
}

fn compiler_args() -> [&'static str; 13] {
    let [debug, opt, units] = ["debuginfo=0", "opt-level=0", "codegen-units=1"];
    // Warnings are not shown.
    let form = "--error-format=json";
    ["--test", "--edition=2024", "--cap-lints=allow", form, "-C", debug, "-C", opt, "-C", units, "-o", "tests", FILE]
}

/// The draft, then the tests: in modules whose names say which, and so ordered that the visible ones run first.
pub(super) fn program(task: &Task, draft: &str) -> Program {
    let draft = format!("{draft}\n{FIXED_HASHES}");
    let (visible, hidden) = (module("seen", &task.visible), module("unseen", &task.hidden));
    let tests_begin = draft.lines().count() + 1;
    let hidden_begin = tests_begin + visible.lines().count();
    Program { text: [draft, visible, hidden].concat(), tests_begin, hidden_begin }
}

fn module(name: &str, examples: &[Example]) -> String {
    let test = |(number, Example { call, expected }): (usize, &Example)| {
        format!("    #[test] fn t{number:02}() {{ ::std::assert_eq!({call}, {expected}); }}\n")
    };
    let tests: String = examples.iter().enumerate().map(test).collect();
    format!("mod {name} {{\n    use super::*;\n{tests}}}\n")
}

/// The code of an answer: its first fenced block that has the function, or else its first one, or else all of it. A
/// block that is not closed ends with the answer.
pub(super) fn code_of<'a>(answer: &'a str, function: &str) -> &'a str {
    let blocks =
        || answer.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').map_or(block, |(_, code)| code));
    let has_function = |block: &&str| block.contains(&format!("fn {function}"));
    blocks().find(has_function).or_else(|| blocks().next()).unwrap_or(answer).trim()
}
