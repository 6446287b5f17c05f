//! Values that know where in their file they are.

use std::fmt;

use agent_core::{Error, ErrorKind, Result};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A place in a file; lines and columns from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) spot: Spot,
    pub(crate) node: Node,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Leaf(Value),
    List(Vec<Tree>),
    Map(Vec<(Spot, String, Tree)>),
}

/// An error at a place of a file.
pub(crate) fn error_at(file: &str, spot: Spot, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("{file}:{}:{}: {what}", spot.line, spot.column))
}

impl Tree {
    /// Reads YAML.
    pub(crate) fn yaml(file: &str, text: &str) -> Result<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        let spanned = serde_saphyr::from_str_with_options::<Yaml>(text, options);
        spanned.map(Tree::from).map_err(|error| {
            let spot = error.location().map_or(Spot { line: 1, column: 1 }, spot);
            error_at(file, spot, format!("no YAML: {}", plain(&error)))
        })
    }

    /// Reads JSON; `first` is the place of the text in its file.
    pub(crate) fn json(file: &str, text: &str, first: Spot) -> Result<Self> {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            let (line, column) = (error.line() as u64, error.column() as u64);
            let spot = Spot { line: first.line + line.max(1) - 1, column: column.max(1) };
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or(&what);
            return Err(error_at(file, spot, format!("no JSON: {what}")));
        }
        Scanner { file, text, at: 0, seen: 0, spot: first, depth: 0 }.value()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Tree> {
        match &self.node {
            Node::Map(entries) => entries.iter().find(|(_, name, _)| name == key).map(|(_, _, tree)| tree),
            Node::Leaf(_) | Node::List(_) => None,
        }
    }

    /// The place of a key, or of the value if there is no such key.
    pub(crate) fn key(&self, key: &str) -> Spot {
        match &self.node {
            Node::Map(entries) => entries.iter().find(|(_, name, _)| name == key).map_or(self.spot, |(spot, ..)| *spot),
            Node::Leaf(_) | Node::List(_) => self.spot,
        }
    }

    pub(crate) fn items(&self) -> &[Tree] {
        match &self.node {
            Node::List(items) => items,
            Node::Leaf(_) | Node::Map(_) => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.node {
            Node::Leaf(value) => value.as_str(),
            Node::List(_) | Node::Map(_) => None,
        }
    }

    pub(crate) fn value(&self) -> Value {
        match &self.node {
            Node::Leaf(value) => value.clone(),
            Node::List(items) => items.iter().map(Tree::value).collect(),
            Node::Map(entries) => {
                Value::Object(entries.iter().map(|(_, key, tree)| (key.clone(), tree.value())).collect::<Map<_, _>>())
            }
        }
    }
}

fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    // The place is said before it.
    let what = text.rsplit_once(" at line ").map_or(text.lines().next().unwrap_or_default(), |(what, _)| what);
    if what.starts_with("budget breached") {
        return "the document is too large, or nests too deep; write a large set as JSONL, or as a folder".to_owned();
    }
    match what.strip_prefix("duplicate mapping key: ").and_then(|rest| rest.split(',').next()) {
        Some(key) => format!("`{key}` is given twice; take one out"),
        None => what.to_owned(),
    }
}

fn spot(location: serde_saphyr::Location) -> Spot {
    Spot { line: location.line(), column: location.column() }
}

/// What a YAML parser says.
struct Yaml(Spanned<YamlNode>);

enum YamlNode {
    Leaf(Value),
    List(Vec<Yaml>),
    Map(Vec<(Spanned<String>, Yaml)>),
}

impl From<Yaml> for Tree {
    fn from(yaml: Yaml) -> Self {
        let node = match yaml.0.value {
            YamlNode::Leaf(value) => Node::Leaf(value),
            YamlNode::List(items) => Node::List(items.into_iter().map(Tree::from).collect()),
            YamlNode::Map(entries) => {
                let entry = |(key, value): (Spanned<String>, Yaml)| (spot(key.referenced), key.value, value.into());
                Node::Map(entries.into_iter().map(entry).collect())
            }
        };
        Self { spot: spot(yaml.0.referenced), node }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<YamlNode, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        Ok(YamlNode::Leaf(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf(value.into()))
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf(Value::Null))
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        YamlNode::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlNode::Map(entries))
    }
}

/// Walks a text that is known to be JSON.
struct Scanner<'a> {
    file: &'a str,
    text: &'a str,
    at: usize,
    /// How far `spot` has come.
    seen: usize,
    spot: Spot,
    /// How many lists and objects are around this place.
    depth: u32,
}

/// The most lists and objects in one another: what is read is walked by functions that call themselves.
const DEEPEST: u32 = 100;

impl Scanner<'_> {
    fn value(&mut self) -> Result<Tree> {
        self.space();
        let spot = self.spot();
        if self.depth == DEEPEST {
            return Err(error_at(self.file, spot, format!("more than {DEEPEST} lists and objects in one another")));
        }
        self.depth += 1;
        let node = match self.text.as_bytes()[self.at] {
            b'{' => {
                let mut entries: Vec<(Spot, String, Tree)> = Vec::new();
                while self.next_item(b'}') {
                    let place = self.spot();
                    let key = self.leaf()?;
                    let key = key.as_str().unwrap_or_default().to_owned();
                    if entries.iter().any(|(_, other, _)| *other == key) {
                        return Err(error_at(self.file, place, format!("`{key}` is given twice; take one out")));
                    }
                    self.space();
                    self.at += 1; // the colon
                    entries.push((place, key, self.value()?));
                }
                Node::Map(entries)
            }
            b'[' => {
                let mut items = Vec::new();
                while self.next_item(b']') {
                    items.push(self.value()?);
                }
                Node::List(items)
            }
            _ => Node::Leaf(self.leaf()?),
        };
        self.depth -= 1;
        Ok(Tree { spot, node })
    }

    /// Steps over an opening bracket or a comma; false at the closing bracket, which is stepped over.
    fn next_item(&mut self, closing: u8) -> bool {
        self.space();
        let byte = self.text.as_bytes()[self.at];
        self.at += 1;
        if byte == closing {
            return false;
        }
        self.space();
        let empty = self.text.as_bytes()[self.at] == closing;
        self.at += usize::from(empty);
        !empty
    }

    fn leaf(&mut self) -> Result<Value> {
        let rest = &self.text[self.at..];
        let mut leaves = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let leaf = leaves.next().and_then(Result::ok);
        let length = leaves.byte_offset();
        let spot = self.spot();
        let leaf = leaf.ok_or_else(|| error_at(self.file, spot, "no JSON"))?;
        self.at += length;
        Ok(leaf)
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn spot(&mut self) -> Spot {
        for c in self.text[self.seen..self.at].chars() {
            self.spot.column += 1;
            if c == '\n' {
                self.spot = Spot { line: self.spot.line + 1, column: 1 };
            }
        }
        self.seen = self.at;
        self.spot
    }
}
