//! Which cases are run.

mod selection;

use std::{fmt, str::FromStr};

use regex::Regex;

pub use self::selection::{Partition, Selection};
use crate::{
    EvalCase, EvalSet,
    text::{listed, nearest},
};

/// An expression that selects cases, such as `tag(sql) & !case(/slow/)`.
///
/// | term | the cases |
/// |---|---|
/// | `case(text)` | whose id contains the text |
/// | `tag(text)`, `set(text)`, `split(text)`, `group(text)` | with this tag, of this set, split or group |
/// | `all()`, `none()` | all of them, none of them |
///
/// Instead of a text there may be `=text` (exactly it), `~text` (contains it) or `/regex/` (matches somewhere). Terms
/// are combined with `not` or `!`, `and` or `&`, `or` or `|`, and parentheses; `not` binds strongest, `or` weakest.
///
/// ```
/// use agent_eval::Filter;
///
/// let filter: Filter = "tag(sql) & !case(/slow|large/)".parse()?;
/// let error = "tag(sql) & cse(join)".parse::<Filter>().unwrap_err();
/// assert_eq!(error.position, 11);
/// # Ok::<_, agent_eval::FilterError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filter(Node);

#[derive(Debug, Clone)]
enum Node {
    All,
    None,
    Term(Field, Pattern),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Case,
    Group,
    Set,
    Split,
    Tag,
}

#[derive(Debug, Clone)]
enum Pattern {
    Exact(String),
    Contains(String),
    Regex(Regex),
}

/// What a term may be called.
const FUNCTIONS: [&str; 7] = ["all", "case", "group", "none", "set", "split", "tag"];

/// A filter that cannot be read. Its text shows the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The filter.
    pub filter: String,
    /// Where it goes wrong, in bytes.
    pub position: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.filter[..self.position].chars().count();
        write!(f, "read the filter: {}\n  {}\n  {:column$}^", self.message, self.filter, "")
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Whether it selects a case of this set.
    pub fn matches(&self, set: &EvalSet, case: &EvalCase) -> bool {
        self.0.matches(set, case)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let node = parser.or()?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.error("expected `and`, `or` or the end"));
        }
        Ok(Self(node))
    }
}

impl Node {
    fn matches(&self, set: &EvalSet, case: &EvalCase) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Not(node) => !node.matches(set, case),
            Self::And(nodes) => nodes.iter().all(|node| node.matches(set, case)),
            Self::Or(nodes) => nodes.iter().any(|node| node.matches(set, case)),
            Self::Term(field, pattern) => match field {
                Field::Case => pattern.matches(&case.id),
                Field::Group => case.group.as_deref().is_some_and(|group| pattern.matches(group)),
                Field::Set => pattern.matches(&set.name),
                Field::Split => case.split.as_deref().is_some_and(|split| pattern.matches(split)),
                Field::Tag => case.tags.iter().chain(&set.defaults.tags).any(|tag| pattern.matches(tag)),
            },
        }
    }
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => text == exact,
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// How many parentheses and negations are around this place.
    depth: u32,
}

/// The most parentheses and negations in one another: reading and matching them is recursive.
const DEEPEST: u32 = 100;

impl Parser<'_> {
    fn or(&mut self) -> Result<Node, FilterError> {
        let first = self.and()?;
        let mut nodes = vec![first];
        while self.takes("|") || self.takes_word("or") {
            nodes.push(self.and()?);
        }
        Ok(Node::Or(nodes))
    }

    fn and(&mut self) -> Result<Node, FilterError> {
        let first = self.not()?;
        let mut nodes = vec![first];
        while self.takes("&") || self.takes_word("and") {
            nodes.push(self.not()?);
        }
        Ok(Node::And(nodes))
    }

    fn not(&mut self) -> Result<Node, FilterError> {
        if self.takes("!") || self.takes_word("not") {
            return Ok(Node::Not(Box::new(self.inside(Self::not)?)));
        }
        if self.takes("(") {
            let node = self.inside(Self::or)?;
            return if self.takes(")") { Ok(node) } else { Err(self.error("expected `)`")) };
        }
        self.term()
    }

    fn inside(&mut self, read: impl FnOnce(&mut Self) -> Result<Node, FilterError>) -> Result<Node, FilterError> {
        if self.depth == DEEPEST {
            return Err(self.error(format!("more than {DEEPEST} parentheses and negations in one another")));
        }
        self.depth += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn term(&mut self) -> Result<Node, FilterError> {
        self.space();
        let start = self.at;
        let name = self.word().to_owned();
        if name.is_empty() {
            return Err(self.error(format!("expected one of {}", listed(FUNCTIONS))));
        }
        if !FUNCTIONS.contains(&name.as_str()) {
            let meant = nearest(&name, FUNCTIONS).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            return Err(self.error(format!("unknown function `{name}`; {meant}known are {}", listed(FUNCTIONS))));
        }
        self.at = start + name.len();
        if !self.takes("(") {
            return Err(self.error(format!("expected `(` after `{name}`")));
        }
        let field = match name.as_str() {
            "case" => Field::Case,
            "group" => Field::Group,
            "set" => Field::Set,
            "split" => Field::Split,
            "tag" => Field::Tag,
            constant => {
                let node = if constant == "all" { Node::All } else { Node::None };
                return if self.takes(")") {
                    Ok(node)
                } else {
                    Err(self.error(format!("`{constant}` takes nothing; expected `)`")))
                };
            }
        };
        let pattern = self.pattern(field)?;
        if self.takes(")") { Ok(Node::Term(field, pattern)) } else { Err(self.error("expected `)`")) }
    }

    fn pattern(&mut self, field: Field) -> Result<Pattern, FilterError> {
        if self.takes("/") {
            let start = self.at;
            let Some(end) = end_of_regex(&self.text[start..]) else {
                return Err(self.error("this regular expression has no end; expected `/`"));
            };
            let regex = Regex::new(&self.text[start..start + end].replace("\\/", "/"));
            let regex = regex.map_err(|error| {
                let error = error.to_string();
                self.error(format!(
                    "no regular expression: {}",
                    error.lines().last().unwrap_or_default().trim_start_matches("error: ")
                ))
            })?;
            self.at = start + end + 1;
            return Ok(Pattern::Regex(regex));
        }
        let exact = self.takes("=");
        let part = !exact && self.takes("~");
        self.space();
        let rest = &self.text[self.at..];
        let Some(length) = rest.find(')') else {
            self.at = self.text.len();
            return Err(self.error("expected `)`"));
        };
        let text = rest[..length].trim_end().to_owned();
        if text.is_empty() {
            return Err(self.error("expected a text, `=text`, `~text` or `/regex/`"));
        }
        self.at += length;
        let part = part || (matches!(field, Field::Case) && !exact);
        Ok(if part { Pattern::Contains(text) } else { Pattern::Exact(text) })
    }

    /// The letters at this place; they are not taken.
    fn word(&self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    }

    fn takes(&mut self, token: &str) -> bool {
        self.space();
        let found = self.text[self.at..].starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.space();
        let found = self.word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, message: impl Into<String>) -> FilterError {
        FilterError { filter: self.text.to_owned(), position: self.at, message: message.into() }
    }
}

/// Where the slash is that ends a regular expression: one that no backslash escapes.
fn end_of_regex(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'/' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}
