use agent_core::{AgentResponse, ChatMessage, Content, Draft, Result, RunContext, Session, StopReason, agent_fn};
use agent_loop::{Iteration, LoopContext, LoopEvaluation, LoopEvaluator};

use super::go;

/// Passes of a loop for an evaluator to judge, without the loop.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    pub(crate) session: Session,
    pub(crate) run: RunContext,
    /// How many messages the request has.
    request: usize,
    earlier: Vec<Iteration>,
    last: Option<AgentResponse>,
}

impl Passes {
    /// Passes that said these texts, the last one last.
    pub(crate) async fn of(texts: &[&str]) -> Self {
        let mut passes = Self::default();
        for text in texts {
            passes = passes.then(&[ChatMessage::assistant(*text)], Draft::default()).await;
        }
        passes
    }

    /// The caller asks this; without it the loop serves no request.
    pub(crate) fn asked(mut self, request: impl Into<ChatMessage>) -> Self {
        self.session.push(request);
        self.request += 1;
        self
    }

    /// One more pass, which said this.
    pub(crate) async fn then(mut self, messages: &[ChatMessage], draft: Draft) -> Self {
        if let Some(response) = self.last.take() {
            let digest = self.context(&response).digest();
            self.earlier.push(Iteration { response, by: None, feedback: None, digest });
        }
        let messages = messages.to_vec();
        let draft = messages.into_iter().fold(draft, Draft::say);
        let agent = agent_fn("w", move |session, out| {
            let draft = draft.clone();
            Box::pin(async move {
                out.record(session, draft).await;
                Ok(StopReason::Completed)
            })
        });
        self.last = Some(go(&agent, &mut self.session).await);
        self
    }

    /// Who objected to the passes before the last.
    pub(crate) fn objected(mut self, by: &[&str]) -> Self {
        for (earlier, by) in self.earlier.iter_mut().zip(by) {
            earlier.by = Some((*by).to_owned());
        }
        self
    }

    pub(crate) async fn ask(&self, evaluator: &impl LoopEvaluator) -> Result<LoopEvaluation> {
        evaluator.evaluate(&self.context(self.last.as_ref().unwrap())).await
    }

    pub(crate) fn digest(&self) -> u64 {
        self.context(self.last.as_ref().unwrap()).digest()
    }

    fn context<'a>(&'a self, last: &'a AgentResponse) -> LoopContext<'a> {
        let iteration = u32::try_from(self.earlier.len()).unwrap() + 1;
        let Self { session, run, request, earlier, .. } = self;
        let request = &session.messages()[..*request];
        LoopContext { session, request, iteration, is_last: false, earlier, last, run }
    }
}

/// The digest of a pass that said this.
pub(crate) async fn digest_of(contents: impl IntoIterator<Item = Content>) -> u64 {
    let message = ChatMessage::new(agent_core::Role::Assistant, contents);
    Passes::default().then(&[message], Draft::default()).await.digest()
}
