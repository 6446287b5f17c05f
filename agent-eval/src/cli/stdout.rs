//! What a command prints for others to read on.

use std::io::{ErrorKind, Write};

use super::codes::{Fault, Outcome};

/// Prints a result; colors are taken out where there is no terminal. Nobody has to read all of it.
pub(super) fn print_text(text: &str) -> Outcome<()> {
    write(anstream::stdout(), text)
}

/// The same, as it is.
pub(super) fn print_exactly(text: &str) -> Outcome<()> {
    write(std::io::stdout(), text)
}

fn write(mut out: impl Write, text: &str) -> Outcome<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Fault::setup(format!("print to the standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind, Write};

    use super::write;

    /// An output that fails so.
    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_cannot_be_printed_is_an_error_unless_nobody_reads_it() {
        assert!(write(Failing(ErrorKind::BrokenPipe), "text").is_ok());
        let fault = write(Failing(ErrorKind::StorageFull), "text").unwrap_err();
        assert_eq!((fault.code, fault.to_string().as_str()), (96, "print to the standard output: no storage space"));
    }
}
