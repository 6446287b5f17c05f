//! A loop's journal, cut after every step and gone on with by another process (D1, D3, D6, H3).

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatMessage, ChatRequest, Content, Event, Role, RunContext, Session, Step, Steps,
    StopReason, ToolCall, testing::PairingClient,
};
use agent_loop::{LoopAgent, LoopOutcome};
use serde_json::json;

use crate::support::{Count, cap, client_fn, fresh, gated, outcome, response, tokens, until};

/// What a process does to the world.
#[derive(Default)]
struct Process {
    asked: Count,
    paid: Count,
}

/// Asked to go on, the model pays; after a result, it says so; and it says so again if it is asked again.
fn answer(request: &ChatRequest) -> ChatMessage {
    match request.messages.last() {
        Some(last) if last.role == Role::User => {
            let call = ToolCall { id: "c".to_owned(), name: "pay".to_owned(), arguments: json!({}) };
            ChatMessage::new(Role::Assistant, [Content::ToolCall(call)])
        }
        Some(_) | None => ChatMessage::assistant("paid"),
    }
}

impl Process {
    fn steps(&mut self, forgets: bool) -> Steps {
        let asked = self.asked.clone();
        let client = client_fn(move |request| {
            asked.up();
            let answer = response(answer(&request), tokens(1, 1));
            Box::pin(async move { Ok(answer) })
        });
        let (pay, paid) = gated("pay");
        self.paid = paid;
        let agent = ChatAgent::new("inner", PairingClient::new(client), ChatAgentOptions::default()).tool(pay);
        let options = if forgets { fresh(5) } else { cap(5) };
        let agent = LoopAgent::new("loop", agent, options).evaluator(until(3));
        let steps = Steps::new(agent, Session::new(), RunContext::default());
        steps.ended_by(|session| LoopOutcome::stop_of_turn(session, "loop"))
    }
}

/// Goes on from what is in the journal, answers what is asked, and writes the journal to its end.
async fn go_on(steps: &mut Steps, journal: &mut Vec<Step>) {
    for step in &*journal {
        steps.accept(step);
    }
    loop {
        let step = match journal.last() {
            None => steps.say("go").unwrap(),
            Some(Step::Done { stop: StopReason::AwaitingApproval, .. }) => {
                let open = steps.session().open_approvals().remove(0);
                steps.say(ChatMessage::approve(open.id)).unwrap()
            }
            Some(Step::Done { .. }) => return,
            Some(Step::Event { .. }) => steps.next().await.unwrap(),
        };
        let step = serde_json::from_str(&serde_json::to_string(&step).unwrap()).unwrap();
        steps.accept(&step);
        journal.push(step);
    }
}

fn events(journal: &[Step]) -> impl Iterator<Item = &Event> {
    journal.iter().filter_map(|step| match step {
        Step::Event { event, .. } => Some(event),
        Step::Done { .. } => None,
    })
}

/// How often the tool's result is in these steps.
fn results(journal: &[Step]) -> u32 {
    let messages = events(journal).flat_map(|event| &event.messages);
    u32::try_from(messages.flat_map(ChatMessage::tool_results).count()).unwrap()
}

/// How often the model's answer is in these steps.
fn answers(journal: &[Step]) -> u32 {
    let asked = |event: &&Event| event.usage.is_some();
    u32::try_from(events(journal).filter(asked).count()).unwrap()
}

/// The outcome, without times and tokens.
fn told(session: &Session) -> (Option<StopReason>, Vec<[Option<String>; 2]>) {
    let LoopOutcome { stop, iterations, .. } = outcome(session);
    (stop, iterations.into_iter().map(|iteration| [iteration.by, iteration.feedback]).collect())
}

#[tokio::test]
async fn what_a_loop_came_to_in_an_earlier_turn_does_not_end_this_one() {
    let mut process = Process::default();
    let mut steps = process.steps(false);
    go_on(&mut steps, &mut Vec::new()).await;
    let mut session = steps.session().clone();
    let ends = |session: &Session| (LoopOutcome::stop_of_turn(session, "loop"), outcome(session).stop);
    assert_eq!(ends(&session), (Some(StopReason::Completed), Some(StopReason::Completed)));
    session.push("once more");
    assert_eq!(ends(&session), (None, Some(StopReason::Completed)));
    assert_eq!(LoopOutcome::stop_of_turn(&session, "unknown"), None);
}

#[tokio::test]
async fn a_journal_that_is_cut_after_any_step_comes_to_the_same_outcome() {
    for forgets in [false, true] {
        let (mut process, mut whole) = (Process::default(), Vec::new());
        let mut steps = process.steps(forgets);
        go_on(&mut steps, &mut whole).await;
        let undisturbed = told(steps.session());
        let iterations = [Some("f1"), Some("f2"), None].map(|told| told.map(str::to_owned));
        assert_eq!(undisturbed.0, Some(StopReason::Completed));
        assert_eq!(undisturbed.1.iter().map(|told| told[1].clone()).collect::<Vec<_>>(), iterations);
        assert_eq!((process.asked.get(), process.paid.get()), (6, 3));

        for cut in 1..whole.len() {
            let (mut second, mut journal) = (Process::default(), whole[..cut].to_vec());
            let mut steps = second.steps(forgets);
            go_on(&mut steps, &mut journal).await;
            assert_eq!(told(steps.session()), undisturbed, "cut after {cut}");
            assert_eq!(
                results(&whole[..cut]) + second.paid.get(),
                3,
                "cut after {cut}: what was done is not done again"
            );
            // An answer that ends a pass, without the pass's record: the pass is asked once more.
            let answered = events(&whole[..cut]).last().is_some_and(Event::is_final_response);
            let asked = answers(&whole[..cut]) + second.asked.get();
            assert_eq!(asked, 6 + u32::from(answered), "cut after {cut}");
        }
    }
}
