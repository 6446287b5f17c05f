//! A server of bytes: it reads one request a connection, and answers by a script.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// One step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again, until the client is gone.
    Repeat(&'static [u8], Duration),
    /// Sends nothing more and keeps the connection, until the client is gone.
    Stall,
    /// Breaks the connection (TCP RST).
    Reset,
}

/// A running server. It ends when this is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    hang_ups: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Server {
    /// A server that answers its first connection by the first script, and so on; the last one again and again.
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (hung_up, hang_ups) = mpsc::unbounded_channel();
        let log = requests.clone();
        let task = tokio::spawn(async move {
            for n in 0.. {
                let Ok((socket, _)) = listener.accept().await else { return };
                let script = scripts[n.min(scripts.len() - 1)].clone();
                tokio::spawn(serve(socket, script, log.clone(), hung_up.clone()));
            }
        });
        Self { url, requests, hang_ups, task }
    }

    /// The requests so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client has closed its connection while the server still had it open.
    pub(crate) async fn hung_up(&mut self) {
        self.hang_ups.recv().await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut socket: TcpStream,
    script: Vec<Step>,
    log: Arc<Mutex<Vec<String>>>,
    hung_up: mpsc::UnboundedSender<()>,
) {
    socket.set_nodelay(true).unwrap();
    let Some(request) = read_request(&mut socket).await else { return };
    log.lock().unwrap().push(request);
    for step in script {
        match step {
            Step::Send(bytes) => {
                if socket.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Repeat(bytes, pause) => loop {
                if socket.write_all(bytes).await.is_err() {
                    return;
                }
                tokio::time::sleep(pause).await;
            },
            Step::Stall => {
                let mut rest = [0; 64];
                // Zero bytes, or an error: the client is gone.
                while socket.read(&mut rest).await.is_ok_and(|len| len > 0) {}
                let _ = hung_up.send(());
                return;
            }
            Step::Reset => {
                socket.set_zero_linger().unwrap();
                return;
            }
        }
    }
    let _ = socket.shutdown().await;
}

/// A request's head and body.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let len = socket.read(&mut chunk).await.ok().filter(|len| *len > 0)?;
        bytes.extend_from_slice(&chunk[..len]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or(0) {
            return Some(text);
        }
    }
}

/// A response's head, whose body ends with the connection.
pub(crate) fn head(status: u16, content_type: &str, headers: &str) -> Step {
    Step::Send(
        format!("HTTP/1.1 {status} Test\r\ncontent-type: {content_type}\r\nconnection: close\r\n{headers}\r\n")
            .into_bytes(),
    )
}

/// A response's head, whose body comes in [`chunk`]s.
pub(crate) fn chunked_head(content_type: &str) -> Step {
    Step::Send(
        format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes(),
    )
}

/// A piece of a chunked body; an empty one is its end.
pub(crate) fn chunk(bytes: &[u8]) -> Step {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    Step::Send(chunk)
}
