//! A client of HTTP that can do everything wrong: plain sockets, one connection a request.
#![allow(dead_code, reason = "two files of tests use their own parts of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// How long any answer may take. A busy machine must not reach it: it ends a hang.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

/// The current revision of the protocol.
pub(crate) const CURRENT: &str = "2026-07-28";
/// The last one with sessions.
pub(crate) const LEGACY: &str = "2025-11-25";

/// Where the server is, and the token.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// A request, as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct TestRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl TestRequest {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes a header away.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(named, _)| !named.eq_ignore_ascii_case(name));
        self
    }

    /// Puts a header in place of another.
    #[must_use]
    pub(crate) fn having(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    #[must_use]
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.having("Content-Length", &length)
    }

    /// The line and the headers.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }
}

impl Client {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A request that is as it should be, but for what it asks.
    pub(crate) fn request(&self, method: &str, path: &str) -> TestRequest {
        TestRequest::new(method, path)
            .with("Host", &self.address.to_string())
            .with("Authorization", &format!("Bearer {}", self.token))
    }

    /// A message.
    pub(crate) fn message(&self, message: &Value) -> TestRequest {
        self.request("POST", "/mcp")
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
            .body(message.to_string())
    }

    /// A request of the current revision.
    pub(crate) fn current(&self, method: &str, mut params: Value) -> TestRequest {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": CURRENT,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (name, value) in meta.as_object().unwrap() {
            if params["_meta"][name].is_null() {
                params["_meta"][name] = value.clone();
            }
        }
        let name = params["name"].as_str().map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self
            .message(&message)
            .with("MCP-Protocol-Version", CURRENT)
            .with("Mcp-Method", method);
        match name {
            Some(name) => request.with("Mcp-Name", &name),
            None => request,
        }
    }

    /// A call of a tool, in the current revision.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> TestRequest {
        self.current("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// A message of a session.
    pub(crate) fn in_session(&self, session: &str, message: &Value) -> TestRequest {
        self.message(message)
            .with("MCP-Protocol-Version", LEGACY)
            .with("Mcp-Session-Id", session)
    }

    /// What begins a session.
    pub(crate) fn initialize(&self, capabilities: &Value) -> TestRequest {
        self.message(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": LEGACY,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            },
        }))
    }

    /// Begins a session and returns its name.
    pub(crate) fn session(&self, capabilities: &Value) -> String {
        self.try_session(capabilities).unwrap()
    }

    /// The same; `None` where the server has closed it before it was ready.
    pub(crate) fn try_session(&self, capabilities: &Value) -> Option<String> {
        let begun = self.send(&self.initialize(capabilities));
        assert_eq!(begun.status, 200);
        let session = begun.header("mcp-session-id").unwrap().to_owned();
        drop(begun.read_all());
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        match self.send(&self.in_session(&session, &ready)).status {
            202 => Some(session),
            404 => None,
            status => panic!("{status}"),
        }
    }

    /// Sends it, and reads the answer's head.
    pub(crate) fn send(&self, request: &TestRequest) -> Answer {
        let mut stream = self.connect();
        // A server that answers before it has read everything may close its ear.
        let _refused = stream.write_all(&request.bytes());
        Answer::read(stream)
    }

    /// Sends it, and reads all of the answer.
    pub(crate) fn fetch(&self, request: &TestRequest) -> TestReply {
        self.send(request).read_all()
    }
}

/// An answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct TestReply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(named, _)| named.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

impl Answer {
    /// Reads the head of the next answer.
    pub(crate) fn read(stream: TcpStream) -> Self {
        Self::read_from(BufReader::new(stream))
    }

    fn read_from(mut stream: BufReader<TcpStream>) -> Self {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" if line.is_empty() => panic!("the connection was closed without an answer: {lines:?}"),
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines[1..]
            .iter()
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_owned(), value.trim().to_owned())
            })
            .collect();
        Self {
            status,
            headers,
            stream,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// A piece of the body; `None` at its end.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.stream.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    /// The next message of a stream.
    pub(crate) fn event(&mut self) -> Option<Value> {
        loop {
            let chunk = String::from_utf8(self.chunk()?).unwrap();
            if let Some(message) = messages(&chunk).into_iter().next() {
                return Some(message);
            }
        }
    }

    /// All of it.
    pub(crate) fn read_all(mut self) -> TestReply {
        let mut body = Vec::new();
        if self.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else if let Some(length) = self.header("content-length") {
            body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
        }
        TestReply {
            status: self.status,
            headers: self.headers,
            body,
        }
    }

    /// Reads all of it, and asks on over the same connection.
    pub(crate) fn then(mut self, request: &TestRequest) -> Self {
        let length = self.header("content-length").unwrap().parse().unwrap();
        self.stream.read_exact(&mut vec![0; length]).unwrap();
        self.stream.get_mut().write_all(&request.bytes()).unwrap();
        Self::read_from(self.stream)
    }
}

/// The messages in the text of a stream.
fn messages(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

impl TestReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The last message of it.
    pub(crate) fn message(&self) -> Value {
        let text = self.text();
        match serde_json::from_str(&text) {
            Ok(message) => message,
            Err(_) => messages(&text).pop().unwrap_or_else(|| panic!("no message: {text:?}")),
        }
    }

    /// What a tool said.
    pub(crate) fn tool_text(&self) -> String {
        let message = self.message();
        let text = message["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("no text: {message}")).to_owned()
    }
}
