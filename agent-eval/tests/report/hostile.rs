//! Texts that try to be more than texts.

use agent_eval::{ExitRules, Outcome, Report, TextOptions, Verdict};

use crate::sample::{case, failure, gate, report, set};

const EVIL: &str = "</script></style><img src=x onerror=alert(1)>\" ' & | ``` ~~~ @team #12 \u{1b}[2J\u{0}\u{8}\u{202e}\u{ffff}\r\n\
                    </details>\n| a | b |\n````\n]]>";

/// A report with this in every text that comes from elsewhere.
fn hostile(evil: &str) -> Report {
    let outcome = Outcome::fail(evil).with_diff(format!("- {evil}\n+ {evil}"));
    let mut bad = failure(0, evil, outcome, evil);
    bad.error = Some(evil.to_owned());
    let mut case = case(evil, &[Verdict::Fail], vec![bad]);
    case.tags = vec![evil.to_owned()];
    case.quarantine = Some(evil.to_owned());
    let mut set = set(evil, vec![case]);
    set.tags = [(evil.to_owned(), set.total.clone())].into();
    set.gates = vec![gate(evil, agent_eval::GateVerdict::Failed, evil)];
    let rich = crate::sample::rich();
    set.comparison.clone_from(&rich.sets[1].comparison);
    set.loops.clone_from(&rich.sets[1].loops);
    let (comparison, loops) = (set.comparison.as_mut().unwrap(), set.loops.as_mut().unwrap());
    comparison.worse = vec![(evil.to_owned(), 1.0, 0.0)];
    comparison.missing = vec![evil.to_owned()];
    evil.clone_into(&mut comparison.baseline);
    loops.stops = [(evil.to_owned(), 3)].into();
    loops.diagnoses = vec![evil.to_owned()];
    let mut report = report(vec![set]);
    evil.clone_into(&mut report.manifest.run);
    report.manifest.revision = Some(evil.to_owned());
    report.warnings = vec![evil.to_owned()];
    report
}

#[test]
fn a_page_has_only_its_own_elements() {
    let page = hostile(EVIL).to_html(&ExitRules::default());
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!((page.matches("</script").count(), page.matches("</style").count()), (1, 1));
    assert!(page.contains("&lt;/script&gt;") && !page.contains("<img"));
    let harmless = hostile("just\nfive\nlines\nof\ntext").to_html(&ExitRules::default());
    let tags = tags_of(&page);
    assert_eq!(tags_of(&harmless), tags, "no tag comes from a text");
    assert!(!page.contains(['\u{1b}', '\u{0}', '\u{202e}']));
}

/// The names of all tags, in order.
fn tags_of(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|tag| tag.split([' ', '>', '\n']).next().unwrap()).collect()
}

#[test]
fn a_page_names_no_other_place() {
    let page = crate::sample::rich().to_html(&ExitRules::default());
    for link in ["://", "src=", "@import", "url(", "fetch", "<link", "<iframe"] {
        assert!(!page.contains(link), "{link}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_terminal_gets_no_commands() {
    let text = hostile(EVIL).to_text(&TextOptions::default());
    let commands: Vec<char> = text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect();
    assert_eq!((commands, text.contains('\u{202e}')), (Vec::new(), false));
    assert!(text.contains("\\u{1b}[2J"), "{text}");
}

#[test]
fn junit_is_xml_whatever_it_holds() {
    let xml = hostile(EVIL).to_junit(&ExitRules::default());
    let read = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((read.tests, read.failures, read.test_suites.len()), (3, 2, 2));
    let root = xml.split("<testsuites").nth(1).unwrap().split('>').next().unwrap();
    let attributes: Vec<&str> = root.split_whitespace().map(|pair| pair.split('=').next().unwrap()).collect();
    assert_eq!(attributes, ["name", "tests", "failures", "errors"], "those of the common schema");
    let is_allowed =
        |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(is_allowed), "{xml}");
    assert!(read.test_suites[0].name.as_str().starts_with("</script></style><img"));
}

#[test]
fn markdown_keeps_its_form() {
    let text = hostile(EVIL).to_markdown(&ExitRules::default());
    let mut fence: Option<&str> = None;
    let (mut opened, mut closed) = (0, 0);
    for line in text.lines() {
        let run = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line.trim_end() == open => fence = None,
            Some(_) => (),
            None if run.len() >= 3 && !line[run.len()..].contains('`') => fence = Some(run),
            None => {
                let outside = without_code(line);
                opened += outside.matches("<details>").count();
                closed += outside.matches("</details>").count();
                assert!(!outside.contains("<img") && !outside.contains("@team "), "{line}");
                if line.starts_with("| ") {
                    assert!(line.ends_with(" |"), "{line}");
                }
            }
        }
    }
    assert_eq!((fence, opened), (None, closed));
    assert!(opened > 2, "{text}");
    insta::assert_snapshot!(text.lines().find(|line| line.starts_with("- ⚠️")).unwrap().replace('\u{200b}', "␣"), @r#"- ⚠️ &lt;/script&gt;&lt;/style&gt;&lt;img src=x onerror=alert(1)&gt;" ' &amp; \| \`\`\` \~\~\~ @␣team #␣12 \\u{1b}\[2J\\u{0}\\u{8}\\u{202e}\\u{ffff} &lt;/details&gt; \| a \| b \| \`\`\`\` \]\]&gt;"#);
}

/// A line without its spans of code.
fn without_code(line: &str) -> String {
    let Some(start) = line.find('`') else { return line.to_owned() };
    let run = line[start..].split(|c| c != '`').next().unwrap();
    let after = &line[start + run.len()..];
    let end = after.match_indices(run).find(|(at, _)| {
        let is_tick = |character: Option<char>| character == Some('`');
        !is_tick(after[..*at].chars().next_back()) && !is_tick(after[at + run.len()..].chars().next())
    });
    let end = end.map_or(0, |(at, _)| at + run.len());
    line[..start].to_owned() + &without_code(&after[end..])
}
