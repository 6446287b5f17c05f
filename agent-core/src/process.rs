//! Programs with everything that they start.

use std::{io, process::ExitStatus};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A program and what it started: on Unix, a process group of its own; elsewhere, its process alone. Dropped, all of it
/// is killed, and what it left behind is killed when it has ended. A process that leaves the group is out of reach.
///
/// For tools and evaluators that run programs: a time-out, a cancellation, or a run that is dropped ends them as a whole.
///
/// ```
/// use std::process::Stdio;
///
/// use agent_core::ProcessGroup;
/// use tokio::{io::AsyncReadExt, process::Command};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo done; sleep 60 &"]).stdout(Stdio::piped());
/// let mut group = ProcessGroup::spawn(command)?;
/// let mut stdout = group.take_stdout().expect("it is piped");
/// assert!(group.wait().await?.success());
///
/// let mut said = String::new();
/// stdout.read_to_string(&mut said).await?; // at once: the sleeper, which holds it open, was killed
/// assert_eq!(said, "done\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    /// None once it was killed: later, another group may have the number.
    #[cfg(unix)]
    id: Option<Pid>,
}

impl ProcessGroup {
    /// Starts the program.
    ///
    /// # Errors
    /// What the system says.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Self {
            #[cfg(unix)]
            id: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            child,
        })
    }

    /// The program's input, the first time, if it is piped.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The program's output, the first time, if it is piped.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The program's error output, the first time, if it is piped.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits for the program's end, then kills what it left behind. May be dropped and called again. Closes the input if
    /// that was not taken.
    ///
    /// # Errors
    /// What the system says.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill();
        Ok(status)
    }

    /// Asks all of it to end, by the signal `SIGTERM`. Does nothing where there are no signals.
    pub fn terminate(&self) {
        #[cfg(unix)]
        self.signal(Signal::TERM);
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        {
            self.signal(Signal::KILL);
            self.id = None;
        }
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // There may be nothing left.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
