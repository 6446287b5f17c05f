//! A model call beside the agent's own: a judge's, a summary's.

use std::time::Duration;

use agent_core::{ChatClient, ChatRequest, ChatResponse, ChatUpdate, Error, ErrorKind, Result, RunContext};
use futures::StreamExt;
use tracing::{Instrument, field::Empty, info_span};

use crate::Interrupted;

/// How long to wait for a model, and how often to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// For one call.
    pub(crate) timeout: Duration,
    /// After a transient error or a time-out.
    pub(crate) retries: u32,
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
    pub(crate) async fn ask(
        self,
        client: &dyn ChatClient,
        request: &ChatRequest,
        run: &RunContext,
    ) -> Result<ChatResponse> {
        let mut retry = 0;
        loop {
            let error = match self.call(client, request.clone(), run).await {
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

    async fn call(self, client: &dyn ChatClient, request: ChatRequest, run: &RunContext) -> Result<ChatResponse> {
        run.take_model_call().map_err(Interrupted)?;
        let model = request.options.model.as_deref().unwrap_or(client.model());
        let span = info_span!(
            "chat",
            otel.name = %format_args!("chat {model}"),
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.request.model = model,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
        );
        let answer = tokio::select! {
            biased;
            answer = tokio::time::timeout(self.timeout, whole(client, request).instrument(span.clone())) => answer,
            stop = run.interrupted() => return Err(Interrupted(stop).into()),
        };
        let too_late = |_| {
            let context = format!("ask model `{}`: no answer within {:?}", client.model(), self.timeout);
            Error::new(ErrorKind::Provider, context).transient()
        };
        let answer = answer.map_err(too_late)??;
        span.record("gen_ai.usage.input_tokens", answer.usage.input_tokens);
        span.record("gen_ai.usage.output_tokens", answer.usage.output_tokens);
        run.bill(answer.usage);
        Ok(answer)
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
