//! Long conversations under a token budget.

mod cut;
mod size;
mod summary;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{ChatClient, ChatHook, ChatRequest, ChatResponse, Result, RunContext};
use async_trait::async_trait;
use uuid::Uuid;

use self::cut::{Cut, Layout};
use crate::{Interrupted, model_call::Patience};

/// A hook that keeps an agent's requests under a token budget, so that a loop can share one context for long.
///
/// When a request would be larger than the budget, its oldest messages are left out until it is half as large; so the
/// requests after it begin alike for a while, and services can cache that beginning. What stays: the instructions, the
/// tools, system messages, the request of the turn (the newest words by the caller) and the newest messages. A call is
/// never parted from its results. Where even the newest message and its results are too large, they are sent. The
/// session keeps everything.
///
/// Sizes are estimated, see [`estimate`](Self::estimate), and corrected by what the service reported of the run's last
/// request.
///
/// By default a line says how many messages are missing. [`summarize`](Self::summarize) lets a model write what they
/// came to. A summary is kept while the run lasts and extended from one cut to the next. Its calls count for
/// [`Limits`](agent_core::Limits), and its tokens are those of the agent's next answer. If a limit refuses one the
/// messages are left out without it; if it fails, so does the run.
///
/// ```
/// use agent_core::{ChatAgent, ChatAgentOptions, testing::ScriptedClient};
/// use agent_loop::Compaction;
///
/// let (model, small_model) = (ScriptedClient::new(), ScriptedClient::new());
/// let coder = ChatAgent::new("coder", model, ChatAgentOptions::default())
///     .hook(Compaction::new(100_000).summarize(small_model));
/// ```
#[derive(Clone)]
pub struct Compaction {
    /// Where a run keeps its cuts.
    key: Uuid,
    max_tokens: u64,
    summarizer: Option<Arc<dyn ChatClient>>,
}

impl Compaction {
    /// Requests of at most this many tokens, by estimate.
    pub fn new(max_tokens: u64) -> Self {
        Self { key: Uuid::now_v7(), max_tokens, summarizer: None }
    }

    /// Lets this model sum up what is left out. It is given at most as much as the budget allows, the newest of it, and
    /// its summary takes up at most an eighth of the budget.
    pub fn summarize(mut self, client: impl ChatClient + 'static) -> Self {
        self.summarizer = Some(Arc::new(client));
        self
    }

    /// About how many tokens a request has: one for every 4 bytes of its texts and of its JSON (a rule of thumb for
    /// English that services publish; other scripts have fewer letters a token and more bytes a letter), 4 for each
    /// message, and 1,000 for an image or a file.
    pub fn estimate(request: &ChatRequest) -> u64 {
        size::overhead(request) + request.messages.iter().map(size::of_message).sum::<u64>()
    }

    /// A cut that makes the request small enough, if it needs one; `known` is what the run knows of its beginning.
    async fn extend(&self, layout: &Layout<'_>, known: Cut, run: &RunContext) -> Result<Cut> {
        let Some(end) = layout.end(known.covered.len()) else { return Ok(known) };
        let summary = match &self.summarizer {
            None => None,
            Some(client) => {
                let request = summary::request(layout, &known, end);
                match Patience::default().ask(&**client, &request, run).await {
                    Ok(answer) => Some(summary::of(&answer, layout)),
                    // The agent's own call is refused next, and ends the run for what it is.
                    Err(error) if Interrupted::of(&error).is_some() => known.summary,
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(layout.cut(end, summary))
    }
}

/// What a run knows.
#[derive(Default)]
struct Memory {
    /// The newest last. An agent may work on several sessions in a run, as a tool.
    cuts: Vec<Cut>,
    /// The estimate of the last request.
    estimated: u64,
    /// The tokens that it had, for each that was estimated; 0 if unknown.
    ratio: f64,
}

/// How many cuts a run keeps.
const CUTS: usize = 8;
/// How far a service's count may correct the estimate: beyond, it counts something else.
const RATIO: (f64, f64) = (0.5, 4.0);

impl Memory {
    /// The cut that covers most of what this request begins with.
    fn longest(&self, layout: &Layout<'_>) -> Cut {
        let fits = self.cuts.iter().filter(|cut| layout.begins_with(cut));
        fits.max_by_key(|cut| cut.covered.len()).cloned().unwrap_or_default()
    }

    fn keep(&mut self, cut: Cut) {
        self.cuts.retain(|old| !cut.covered.starts_with(&old.covered));
        let surplus = (self.cuts.len() + 1).saturating_sub(CUTS);
        self.cuts.drain(..surplus);
        self.cuts.push(cut);
    }
}

#[async_trait]
impl ChatHook for Compaction {
    async fn before_model(&self, request: &mut ChatRequest, run: &RunContext) -> Result<()> {
        let memory = run.scratch::<Mutex<Memory>>(self.key);
        let memory = || memory.lock().unwrap_or_else(PoisonError::into_inner);
        let ratio = Some(memory().ratio).filter(|ratio| *ratio > 0.0).unwrap_or(1.0);
        let layout = Layout::of(request, scaled(self.max_tokens, ratio));
        let known = memory().longest(&layout);
        if layout.size(&known) > layout.budget {
            let cut = self.extend(&layout, known, run).await?;
            let messages = layout.apply(&cut);
            memory().keep(cut);
            request.messages = messages;
        } else if !known.covered.is_empty() {
            request.messages = layout.apply(&known);
        }
        memory().estimated = Self::estimate(request);
        Ok(())
    }

    async fn after_model(&self, response: &mut ChatResponse, run: &RunContext) -> Result<()> {
        let memory = run.scratch::<Mutex<Memory>>(self.key);
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        if response.usage.input_tokens > 0 && memory.estimated > 0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let ratio = response.usage.input_tokens as f64 / memory.estimated as f64;
            memory.ratio = ratio.clamp(RATIO.0, RATIO.1);
        }
        // Billed tokens of a summary are counted already; here an event reports them.
        if self.summarizer.is_some()
            && let Some(bill) = run.take_bill()
        {
            response.usage += bill;
        }
        Ok(())
    }
}

/// A budget in tokens as a budget in estimated tokens.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, not negative, and no larger than twice a budget"
)]
fn scaled(tokens: u64, ratio: f64) -> u64 {
    (tokens as f64 / ratio) as u64
}

impl fmt::Debug for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compaction")
            .field("max_tokens", &self.max_tokens)
            .field("summarizer", &self.summarizer.as_ref().map(ChatClient::model))
            .finish_non_exhaustive()
    }
}
