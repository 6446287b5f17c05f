//! A chat server as a process, asked over sockets.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

/// How the stream of a whole answer ends.
pub(crate) const DONE: &str = "event: done\ndata: {\"stop\":\"completed\"}";

/// A running server.
pub(crate) struct Server {
    pub(crate) process: Child,
    address: String,
}

impl Server {
    /// Starts one on a free port.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command.args(["--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        let address = address.flatten().next().unwrap();
        Self { process, address }
    }

    pub(crate) fn send(&self, request: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request = format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Answer(BufReader::new(stream))
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.send(&format!("POST /sessions/{path}"), "Content-Type: application/json\r\n", body)
    }

    pub(crate) fn say(&self, session: &str, text: &str) -> Answer {
        self.post(&format!("{session}/messages"), &serde_json::json!({ "text": text }).to_string())
    }

    pub(crate) fn get(&self, path: &str) -> serde_json::Value {
        let (head, body) = self.send(&format!("GET {path}"), "", "").read();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        serde_json::from_str(&body).unwrap()
    }

    /// What was said in a session, a line for each message.
    pub(crate) fn said(&self, session: &str) -> String {
        let body = self.get(&format!("/sessions/{session}"));
        let messages = body["messages"].as_array().unwrap().iter();
        let line = |message: &serde_json::Value| {
            format!("{}: {}", message["role"].as_str().unwrap(), message["contents"][0]["text"].as_str().unwrap())
        };
        messages.map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill()); // it may have ended by itself
        self.process.wait().unwrap();
    }
}

/// An answer, as it comes. Dropped, it closes the connection.
pub(crate) struct Answer(BufReader<TcpStream>);

impl Answer {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// Waits until a piece of the answer is there.
    pub(crate) fn begun(mut self) -> Self {
        while self.line() != "event: delta\n" {}
        self
    }

    /// The head, and the body without the marks of its chunks.
    pub(crate) fn read(mut self) -> (String, String) {
        let (mut head, mut body) = (String::new(), String::new());
        while !head.ends_with("\r\n\r\n") {
            head += &self.line();
        }
        if !head.contains("transfer-encoding: chunked") {
            self.0.read_to_string(&mut body).unwrap();
            return (head, body);
        }
        loop {
            let length = u64::from_str_radix(self.line().trim_end(), 16).unwrap();
            self.0.by_ref().take(length).read_to_string(&mut body).unwrap();
            assert_eq!(self.line(), "\r\n");
            if length == 0 {
                return (head, body);
            }
        }
    }

    /// What comes after what was read.
    pub(crate) fn rest(mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        rest
    }

    /// The streamed text, and how the stream ended.
    pub(crate) fn text(self) -> (String, String) {
        let (_, body) = self.read();
        let delta = |record: &str| {
            let data = record.strip_prefix("event: delta\ndata: ")?;
            Some(serde_json::from_str::<serde_json::Value>(data).unwrap()["text"].as_str().unwrap().to_owned())
        };
        let end = body.trim_end().rsplit("\n\n").next().unwrap().to_owned();
        (body.split("\n\n").filter_map(delta).collect(), end)
    }
}
