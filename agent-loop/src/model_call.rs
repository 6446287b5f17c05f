//! A model call beside the agent's own: a judge's, a summary's, or one of an evaluator that you write.

use std::time::Duration;

use agent_core::{ChatClient, ChatRequest, ChatResponse, ChatUpdate, Error, ErrorKind, Result, RunContext};
use futures_util::StreamExt;
use tracing::Instrument;

use crate::{Interrupted, telemetry};

/// How long to wait for a model beside the agent's own, and how often to ask again: what an evaluator needs that calls
/// one.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use agent_core::{ChatMessage, ChatRequest, RunContext, testing::ScriptedClient};
/// use agent_loop::Patience;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let request = ChatRequest { messages: Arc::from([ChatMessage::user("Is it done?")]), ..ChatRequest::default() };
/// let patience = Patience { timeout: Duration::from_secs(30), ..Patience::default() };
/// let answer = patience.ask(&ScriptedClient::new().says("Yes."), &request, &RunContext::default()).await?;
/// assert_eq!(answer.message.text(), "Yes.");
/// # Ok::<_, agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For one call; 2 minutes by default.
    pub timeout: Duration,
    /// After a transient error or a time-out; 2 by default. Between calls is the wait that the service asks for, or 1, 2, 4
    /// … seconds, and never more than the time-out.
    pub retries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(2), retries: 2 }
    }
}

/// The wait before the first retry, if the service names none; it doubles with each.
const BACKOFF: Duration = Duration::from_secs(1);

impl Patience {
    /// Asks a model. Each call, a retry too, is taken from the run's limits before, and its tokens are billed after.
    ///
    /// # Errors
    /// The client's; [`Interrupted`] if a limit refuses a call or the run is interrupted.
    pub async fn ask(self, client: &dyn ChatClient, request: &ChatRequest, run: &RunContext) -> Result<ChatResponse> {
        let mut retry = 0;
        loop {
            let error = match self.call(client, request, run).await {
                Err(error) if error.is_transient() && retry < self.retries => error,
                end => return end,
            };
            let backoff = || BACKOFF.saturating_mul(1 << retry.min(16));
            let delay = error.retry_after().unwrap_or_else(backoff).min(self.timeout);
            retry += 1;
            tokio::select! {
                () = tokio::time::sleep(delay) => (),
                stop = run.interrupted() => return Err(Interrupted(stop).into()),
            }
        }
    }

    async fn call(self, client: &dyn ChatClient, request: &ChatRequest, run: &RunContext) -> Result<ChatResponse> {
        run.take_model_call().map_err(Interrupted)?;
        let model = request.options.model.as_deref().unwrap_or(client.model());
        let span = telemetry::chat(client, model);
        let answer = self.listen(client, request.clone(), run).instrument(span.clone()).await;
        match &answer {
            Ok(answer) => telemetry::tokens(&span, answer.usage),
            Err(error) => telemetry::failed(&span, error),
        }
        let answer = answer?;
        run.bill(answer.usage);
        Ok(answer)
    }

    async fn listen(self, client: &dyn ChatClient, request: ChatRequest, run: &RunContext) -> Result<ChatResponse> {
        let too_late = |_| {
            let context = format!("ask model `{}`: no answer within {:?}", client.model(), self.timeout);
            Error::new(ErrorKind::Provider, context).transient()
        };
        tokio::select! {
            biased;
            answer = tokio::time::timeout(self.timeout, whole(client, request)) => answer.map_err(too_late)?,
            stop = run.interrupted() => Err(Interrupted(stop).into()),
        }
    }
}

async fn whole(client: &dyn ChatClient, request: ChatRequest) -> Result<ChatResponse> {
    let mut answer = client.stream(request);
    while let Some(update) = answer.next().await {
        if let ChatUpdate::Done(response) = update? {
            return Ok(response);
        }
    }
    let context = format!("model `{}` stopped without saying that its answer is whole", client.model());
    Err(Error::new(ErrorKind::Contract, context))
}
