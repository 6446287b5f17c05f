//! Reports, printed and written.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{codes::Outcome, gate::Judged, place::write, settings::Format, stdout::print_text, verdict::text_options};
use crate::{ExitRules, HtmlOptions, Report, RunLog};

impl Format {
    /// The report in this form; the terminal's has colors.
    pub(super) fn render(self, report: &Report, rules: &ExitRules) -> String {
        match self {
            Self::Table => report.to_text(&text_options(*rules)),
            Self::Json => report.to_json(rules),
            Self::Junit => report.to_junit(rules),
            Self::Md => report.to_markdown(rules),
            Self::Html => report.to_html(rules),
        }
    }

    /// The same of a run that is there: a page shows its trials.
    fn render_run(self, report: &Report, rules: &ExitRules, run: &RunLog, all_trials: bool) -> Outcome<String> {
        match self {
            Self::Html => {
                let options = HtmlOptions { rules: *rules, passed: all_trials, ..HtmlOptions::default() };
                Ok(report.to_html_with_trials(run, &options)?)
            }
            Self::Table | Self::Json | Self::Junit | Self::Md => Ok(self.render(report, rules)),
        }
    }

    /// The name of the file in a run's folder; none if it has none.
    fn file(self) -> Option<&'static str> {
        match self {
            Self::Table => None,
            Self::Json => Some("report.json"),
            Self::Junit => Some("junit.xml"),
            Self::Md => Some("report.md"),
            Self::Html => Some("report.html"),
        }
    }
}

/// Writes the forms that have a file, and says their names.
pub(super) fn write_reports(
    report: &Report,
    dir: &Path,
    formats: &[Format],
    rules: &ExitRules,
) -> Outcome<Vec<&'static str>> {
    let run = RunLog::open(dir)?;
    let mut written = vec!["trials.jsonl"];
    for (format, file) in formats.iter().filter_map(|format| Some((format, format.file()?))) {
        write(&dir.join(file), &format.render_run(report, rules, &run, false)?)?;
        written.push(file);
    }
    Ok(written)
}

/// Prints the report for a terminal.
pub(super) fn print(report: &Report, rules: &ExitRules) -> Outcome<()> {
    print_text(&Format::Table.render(report, rules))
}

/// Report on a run again, in another form or with other gates.
#[derive(Debug, Clone, Args)]
pub(super) struct ReportOn {
    #[command(flatten)]
    judged: Judged,
    /// In which form.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// As one page for a browser: `--format html`.
    #[arg(long, conflicts_with = "format")]
    html: bool,
    /// Show the trials that passed, too, in the page.
    #[arg(long)]
    all_trials: bool,
    /// Where to write it [default: the standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ReportOn {
    pub(super) fn run(self) -> Outcome<u8> {
        let run = self.judged.log()?;
        let (report, rules) = self.judged.report()?;
        let format = if self.html { Format::Html } else { self.format };
        let text = format.render_run(&report, &rules, &run, self.all_trials)?;
        match &self.output {
            None => print_text(&text)?,
            Some(path) => write(path, &anstream::adapter::strip_str(&text).to_string())?,
        }
        Ok(report.exit_code(&rules))
    }
}
