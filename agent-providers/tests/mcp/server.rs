//! A server that does what it is told, faults included.

use std::{
    collections::BTreeSet,
    io::{BufRead, Write},
    process::Command,
};

use serde_json::{Value, json};

/// Not a test: what the tests start as their server.
#[test]
#[ignore = "the tests start it as their server"]
fn serves() {
    let mood = std::env::var("MOOD").expect("a test says which server it wants");
    match mood.as_str() {
        "dies at start" => {
            eprintln!("reading the configuration\nerror: --db is missing");
            std::process::exit(2);
        }
        "is deaf" => {
            eprintln!("waiting for a license server");
            std::thread::sleep(std::time::Duration::from_mins(5));
        }
        _ => {}
    }
    let mut server = Server::new(&mood);
    for line in std::io::stdin().lock().lines() {
        let message = serde_json::from_str(&line.unwrap()).unwrap();
        let replies = server.answer(&message).unwrap_or_else(|Dies| {
            eprintln!("thread 'main' panicked: out of cheese");
            if let Ok(key) = std::env::var("ITS_KEY") {
                eprintln!("key={key}");
            }
            std::process::exit(3)
        });
        let mut stdout = std::io::stdout().lock();
        for reply in replies {
            if mood == "talks nonsense" {
                stdout
                    .write_all(b"Downloading 3 packages...\n{ half a message\n\xff\xfe\n\n[]\n{\"jsonrpc\":7}\n")
                    .unwrap();
            }
            writeln!(stdout, "{reply}").unwrap();
        }
        stdout.flush().unwrap();
    }
    if mood == "does not leave" {
        std::thread::sleep(std::time::Duration::from_mins(5));
    }
    std::process::exit(0);
}

/// It is gone without another word.
#[derive(Debug)]
pub(crate) struct Dies;

/// The state of a server, apart from how it is spoken to.
pub(crate) struct Server {
    mood: String,
    tools: BTreeSet<&'static str>,
    /// Calls that are never answered.
    hanging: Vec<Value>,
    cancelled: usize,
    /// The call that asked the client for something, and what it was answered so far.
    asking: Option<(Value, Vec<Value>)>,
}

const TOOLS: &[&str] = &[
    "add",
    "ask",
    "cancelled",
    "die",
    "echo",
    "fail",
    "fork",
    "grow",
    "hang",
    "hanging",
    "huge",
    "place",
    "refuse",
    "shrink",
];

impl Server {
    pub(crate) fn new(mood: &str) -> Self {
        let tools = TOOLS.iter().copied().collect();
        Self { mood: mood.to_owned(), tools, hanging: Vec::new(), cancelled: 0, asking: None }
    }

    /// What it says to a message.
    pub(crate) fn answer(&mut self, message: &Value) -> Result<Vec<Value>, Dies> {
        let (id, params) = (&message["id"], &message["params"]);
        let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let error = |text: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": text } });
        let info = json!({ "name": "fault", "version": "1" });
        let capabilities = json!({ "tools": { "listChanged": true } });
        Ok(match message["method"].as_str() {
            Some("initialize") if self.mood == "is modern" => vec![error("initialize is of the past")],
            Some("initialize") if self.mood == "refuses" => vec![error("come back tomorrow")],
            Some("initialize") => vec![result(json!({
                "protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info,
            }))],
            Some("server/discover") if self.mood == "is modern" => vec![result(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "serverInfo": info, "ttlMs": 0, "cacheScope": "private",
            }))],
            Some("tools/list") => vec![result(self.list(params))],
            Some("notifications/cancelled") => {
                self.cancelled += usize::from(self.hanging.contains(&params["requestId"]));
                vec![]
            }
            Some("tools/call") => {
                let name = params["name"].as_str().unwrap();
                match self.call(id, name, &params["arguments"])? {
                    None => vec![],
                    Some(Answer::Refusal(text)) => vec![error(&text)],
                    Some(Answer::Messages(messages)) => messages,
                    Some(Answer::Result(value)) => vec![result(value)],
                    Some(Answer::Changed(text)) => {
                        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                        vec![changed, result(says(text))]
                    }
                }
            }
            Some(method) if !id.is_null() => vec![error(method)],
            Some(_) => vec![],
            None => self.hear(message),
        })
    }

    fn list(&self, params: &Value) -> Value {
        let tool = |name: &str| {
            json!({ "name": name, "description": format!("Does {name}."), "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        } })
        };
        match (self.mood.as_str(), params["cursor"].as_str()) {
            ("has pages", None) => json!({ "tools": [tool("first.one"), tool("same")], "nextCursor": "2" }),
            ("has pages", Some("2")) => json!({ "tools": [tool("same"), tool("first_one")], "nextCursor": "3" }),
            ("has pages", Some(_)) => json!({ "tools": [tool(&"long".repeat(20))] }),
            ("has no end", _) => json!({ "tools": [tool("again")], "nextCursor": "more" }),
            _ => json!({ "tools": self.tools.iter().map(|name| tool(name)).collect::<Vec<_>>() }),
        }
    }

    fn call(&mut self, id: &Value, name: &str, arguments: &Value) -> Result<Option<Answer>, Dies> {
        if !self.tools.contains(name) {
            return Ok(Some(Answer::Refusal(format!("unknown tool {name}"))));
        }
        Ok(Some(Answer::Result(match name {
            "add" => {
                let sum = arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap();
                json!({ "content": [], "structuredContent": { "sum": sum } })
            }
            "ask" => {
                self.asking = Some((id.clone(), Vec::new()));
                let asked = ["sampling/createMessage", "roots/list", "elicitation/create"];
                let asked = asked.iter().enumerate().map(|(n, method)| {
                    let params = match n {
                        0 => json!({ "messages": [], "maxTokens": 9 }),
                        2 => json!({ "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } }),
                        _ => json!({}),
                    };
                    json!({ "jsonrpc": "2.0", "id": format!("asked-{n}"), "method": method, "params": params })
                });
                return Ok(Some(Answer::Messages(asked.collect())));
            }
            "cancelled" => says(self.cancelled.to_string()),
            "hanging" => says(self.hanging.len().to_string()),
            "echo" => says(arguments["text"].as_str().unwrap()),
            "fail" => json!({ "content": [{ "type": "text", "text": "the disk is full" }], "isError": true }),
            "refuse" => return Ok(Some(Answer::Refusal("not today".to_owned()))),
            "hang" => {
                self.hanging.push(id.clone());
                return Ok(None);
            }
            "die" => return Err(Dies),
            "huge" => says("x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap())),
            "grow" => {
                self.tools.insert("extra");
                return Ok(Some(Answer::Changed("grown")));
            }
            "shrink" => {
                self.tools.remove("extra");
                return Ok(Some(Answer::Changed("shrunk")));
            }
            "extra" => says("extra"),
            "fork" => says(Command::new("sleep").arg("300").spawn().unwrap().id().to_string()),
            "place" => {
                let variables = std::env::vars().map(|(name, _)| name).collect::<Vec<_>>();
                let place = std::env::current_dir().unwrap();
                json!({ "content": [], "structuredContent": { "dir": place, "variables": variables } })
            }
            other => unreachable!("{other}"),
        })))
    }

    /// Hears the client's answer to what it was asked.
    fn hear(&mut self, answer: &Value) -> Vec<Value> {
        let Some((call, answers)) = &mut self.asking else { return vec![] };
        let said = if answer["error"].is_null() { &answer["result"] } else { &answer["error"]["message"] };
        answers.push(json!([answer["id"], said]));
        if answers.len() < 3 {
            return vec![];
        }
        answers.sort_by_key(ToString::to_string);
        let text = answers.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        vec![json!({ "jsonrpc": "2.0", "id": call, "result": says(text) })]
    }
}

enum Answer {
    Result(Value),
    Refusal(String),
    Messages(Vec<Value>),
    Changed(&'static str),
}

fn says(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}
