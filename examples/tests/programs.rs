//! Each example as a program, offline: what it prints, and what it says to input that it cannot use.

mod support;

use support::{example, transcript};

const HELLO_LOOP: &str = env!("CARGO_BIN_EXE_hello_loop");
const SQL_REFINE: &str = env!("CARGO_BIN_EXE_sql_refine");
const INCIDENT_TRIAGE: &str = env!("CARGO_BIN_EXE_incident_triage");
const APPROVAL: &str = env!("CARGO_BIN_EXE_approval");
/// Those with files of tests of their own.
const OTHERS: [&str; 7] = [
    env!("CARGO_BIN_EXE_agent_as_tool"),
    env!("CARGO_BIN_EXE_fresh_context"),
    env!("CARGO_BIN_EXE_judge_loop"),
    env!("CARGO_BIN_EXE_nested_loops"),
    env!("CARGO_BIN_EXE_parallel_drafts"),
    env!("CARGO_BIN_EXE_streaming_server"),
    env!("CARGO_BIN_EXE_todo_loop"),
];

#[test]
fn hello_loop_asks_again_until_the_answer_is_short() {
    insta::assert_snapshot!(transcript(&mut example(HELLO_LOOP)));
}

#[test]
fn sql_refine_passes_after_feedback() {
    insta::assert_snapshot!(transcript(&mut example(SQL_REFINE)));
}

#[test]
fn the_front_page_shows_what_sql_refine_prints() {
    let printed = String::from_utf8(example(SQL_REFINE).output().unwrap().stdout).unwrap();
    let shown = format!("--bin sql_refine\n{}\n```", printed.trim_end());
    assert!(include_str!("../../README.md").contains(&shown), "README.md does not show:\n{printed}");
}

#[test]
fn sql_refine_answers_the_other_questions() {
    let answers = ["2", "3", "4"].map(|question| transcript(example(SQL_REFINE).args(["--question", question])));
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn sql_refine_says_plainly_that_it_has_no_answer() {
    insta::assert_snapshot!(transcript(example(SQL_REFINE).args(["--question", "5"])));
}

#[test]
fn incident_triage_finds_the_cause_within_its_bounds_and_thinks_elsewhere() {
    insta::assert_snapshot!(transcript(&mut example(INCIDENT_TRIAGE)));
}

#[test]
fn incident_triage_writes_its_thoughts_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace");
    let printed = transcript(example(INCIDENT_TRIAGE).arg("--trace").arg(&file));
    let trace = std::fs::read_to_string(file).unwrap();
    assert!(trace.starts_with("triage thinks: Is checkout broken itself"), "{trace}");
    assert_eq!(trace.lines().filter(|line| printed.contains(*line)).count(), 0);
}

#[test]
fn a_question_that_is_not_recorded_needs_a_model() {
    let asked = ["0", "6", "How many ports are there?"];
    let answers = asked.map(|question| transcript(example(SQL_REFINE).args(["--question", question])));
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn every_example_names_the_services_that_it_knows() {
    let programs = [HELLO_LOOP, SQL_REFINE, INCIDENT_TRIAGE, APPROVAL].into_iter().chain(OTHERS);
    let said = programs.map(|program| {
        let directory = tempfile::tempdir().unwrap();
        let mut command = example(program);
        if program == APPROVAL {
            command.arg("--dir").arg(directory.path());
        }
        transcript(command.args(["--model", "nonsense"]))
    });
    let said: Vec<String> = said.collect();
    assert_eq!(said, vec![said[0].as_str(); 11]);
    let (said, known) = said[0].split_once("there are: ").unwrap();
    assert!(known.contains("`openai:MODEL`") && known.contains("`openai-compatible:MODEL`"), "{known}");
    insta::assert_snapshot!(said, @r"
    --- stderr
    error: find the model `nonsense`: name a service and a model;
    ");
}

#[test]
fn the_model_may_come_from_the_environment() {
    let said = transcript(example(HELLO_LOOP).env("AGENT_MODEL", "nonsense"));
    assert_eq!(said, transcript(example(HELLO_LOOP).args(["--model", "nonsense"])));
}

#[test]
fn an_empty_variable_names_no_model() {
    assert_eq!(transcript(example(HELLO_LOOP).env("AGENT_MODEL", "")), transcript(&mut example(HELLO_LOOP)));
}

#[test]
fn a_service_that_is_not_there_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener); // nobody listens here now
    let url = format!("http://127.0.0.1:{port}/v1");
    let mut command = example(SQL_REFINE);
    let said = transcript(command.args(["--model", "openai-compatible:coder", "--base-url", &url]));
    assert!(said.contains("\n--- stderr\nerror: ask `coder`"), "{said}");
    assert!(said.contains("check the network and the base URL"), "{said}");
    assert!(said.ends_with("--- code 2\n"), "{said}");
}

#[test]
fn a_model_of_an_unknown_place_or_without_a_key_is_an_error() {
    let missing = [("openai-compatible:coder", "OPENAI_COMPATIBLE_BASE_URL"), ("openai:gpt-5", "OPENAI_API_KEY")];
    for (model, variable) in missing {
        let said = transcript(example(HELLO_LOOP).args(["--model", model]));
        assert!(said.starts_with("--- stderr\nerror: ") && said.contains(variable), "{said}");
        assert!(said.ends_with("--- code 2\n"), "{said}");
    }
}

#[test]
fn what_belongs_to_a_model_needs_one() {
    let said = transcript(example(HELLO_LOOP).args(["--base-url", "http://127.0.0.1:1/v1"]));
    insta::assert_snapshot!(said);
}

#[test]
fn the_help_lists_the_questions() {
    insta::assert_snapshot!(transcript(example(SQL_REFINE).arg("--help")));
}

#[test]
fn the_readme_shows_what_the_programs_print() {
    let readme = include_str!("../README.md");
    let directory = tempfile::tempdir().unwrap();
    let approval = |arguments: &[&str]| {
        let mut command = example(APPROVAL);
        command.args(arguments).arg("--dir").arg(directory.path());
        command
    };
    let programs = [
        example(HELLO_LOOP),
        example(SQL_REFINE),
        approval(&[]),
        approval(&["answer", "--approve"]),
        example(INCIDENT_TRIAGE),
    ];
    for mut program in programs {
        let output = program.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let printed = printed.replace(directory.path().to_str().unwrap(), "/tmp/agent-approval");
        assert!(readme.contains(&printed), "not in README.md:\n{printed}");
    }
}

#[test]
fn a_reader_that_is_gone_ends_no_program() {
    let programs = [
        HELLO_LOOP,
        SQL_REFINE,
        INCIDENT_TRIAGE,
        env!("CARGO_BIN_EXE_agent_as_tool"),
        env!("CARGO_BIN_EXE_fresh_context"),
        env!("CARGO_BIN_EXE_judge_loop"),
        env!("CARGO_BIN_EXE_nested_loops"),
        env!("CARGO_BIN_EXE_parallel_drafts"),
        env!("CARGO_BIN_EXE_todo_loop"),
    ];
    for program in programs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = example(program).stdout(writer).stderr(std::process::Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(0), "{program}");
    }
}
