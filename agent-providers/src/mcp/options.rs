//! How tools of a server are called and named, and which of them need consent.

use std::time::Duration;

use wildmatch::WildMatch;

/// How tools of a server are called and named, and which of them need consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpOptions {
    /// Put before the name of each tool, such as `files_`, so that tools of several servers have names of their own.
    pub prefix: String,
    /// Which tools the caller is asked about before each run: none.
    pub approval: McpApproval,
    /// Whether what is no text is told in words instead of being handed on, for services whose results of tools are
    /// nothing but text: OpenAI's Chat Completions and what is compatible with it, and Ollama.
    pub text_only: bool,
    /// How long the server may take to start, and to list its tools: 1 minute each.
    pub start: Duration,
    /// How long one call may take; then the server is told, and the result is an error: 1 minute.
    pub call: Duration,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            approval: McpApproval::None,
            text_only: false,
            start: Duration::from_mins(1),
            call: Duration::from_mins(1),
        }
    }
}

/// Which tools of a server the caller is asked about before each run.
///
/// Patterns match a tool's whole name as the server gives it, without the prefix; `*` is any text, `?` any one
/// character. What a server says of its own tools (`readOnlyHint` and the like) is not relied on.
///
/// ```
/// use agent_providers::McpApproval;
///
/// let approval = McpApproval::AllBut(vec!["read_*".to_owned(), "list_*".to_owned()]);
/// assert!(approval.is_needed_for("write_file") && !approval.is_needed_for("read_file"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum McpApproval {
    /// No tool.
    #[default]
    None,
    /// Every tool.
    All,
    /// Every tool but those that match one of the patterns. Tools that the server adds later need approval.
    AllBut(Vec<String>),
    /// The tools that match one of the patterns. Tools that the server adds later may need none.
    Only(Vec<String>),
}

impl McpApproval {
    /// Whether the caller is asked about the tool of this name, as the server gives it.
    pub fn is_needed_for(&self, name: &str) -> bool {
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| WildMatch::new(pattern).matches(name));
        match self {
            Self::None => false,
            Self::All => true,
            Self::AllBut(patterns) => !matches(patterns),
            Self::Only(patterns) => matches(patterns),
        }
    }
}
