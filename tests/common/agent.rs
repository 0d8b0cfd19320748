//! A client of `stockade mcp`, line by line: what it sends is exactly what a test says, hostile or not.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::{Invocation, PATIENCE, eventually, started};

/// Which revision of the protocol the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a handshake: 2025-11-25.
    Session,
    /// Each request by itself: 2026-07-28.
    Stateless,
}

/// What a client gives the server for standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wires {
    Pipes,
    Sockets,
    SocketIn,
    SocketOut,
}

/// A client and the server that it started.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    to: Option<File>,
    from: Receiver<Value>,
    said: std::thread::JoinHandle<String>,
    aside: VecDeque<Value>,
    era: Era,
    capabilities: Value,
    last: u64,
}

impl Agent {
    /// Starts the server, and shakes hands where the era has it. `capabilities` is what the client says it can.
    pub(crate) fn start(invocation: Invocation, era: Era, capabilities: Value) -> Self {
        Self::start_over(Wires::Pipes, invocation, era, capabilities)
    }

    /// The same over these.
    pub(crate) fn start_over(wires: Wires, invocation: Invocation, era: Era, capabilities: Value) -> Self {
        let mut agent = Self::hearing(wires, invocation, era, capabilities, true);
        if era == Era::Session {
            let hello = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": agent.capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            });
            let answer = agent.ask("initialize", hello);
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        agent
    }

    /// Starts the server, says nothing, and never reads what it says.
    pub(crate) fn deaf(wires: Wires, invocation: Invocation) -> Self {
        Self::hearing(wires, invocation, Era::Session, json!({}), false)
    }

    /// Sends these bytes as fast as the server takes them, on a thread of its own.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        let mut to = self.to.take().unwrap();
        // The server may end before it has read all of it.
        std::thread::spawn(move || to.write_all(&bytes));
    }

    /// Starts the server and says nothing.
    pub(crate) fn bare(invocation: Invocation, era: Era, capabilities: Value) -> Self {
        Self::hearing(Wires::Pipes, invocation, era, capabilities, true)
    }

    fn hearing(wires: Wires, invocation: Invocation, era: Era, capabilities: Value, hears: bool) -> Self {
        let pair = || UnixStream::pair().unwrap();
        let to = matches!(wires, Wires::Sockets | Wires::SocketIn).then(pair);
        let from = matches!(wires, Wires::Sockets | Wires::SocketOut).then(pair);
        let (to, stdin) = to.map_or((None, Stdio::piped()), |(ours, theirs)| {
            (Some(ours), OwnedFd::from(theirs).into())
        });
        let (from, stdout) = from.map_or((None, Stdio::piped()), |(ours, theirs)| {
            (Some(ours), OwnedFd::from(theirs).into())
        });
        let mut command = invocation.into_command();
        let mut child = started(command.stdin(stdin).stdout(stdout).stderr(Stdio::piped()));
        let to = to.map_or_else(|| OwnedFd::from(child.stdin.take().unwrap()), OwnedFd::from);
        let from = from.map_or_else(|| OwnedFd::from(child.stdout.take().unwrap()), OwnedFd::from);
        let stdout = BufReader::new(File::from(from));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            if !hears {
                // The end stays open for as long as the test runs.
                let _open = (stdout, sender);
                loop {
                    std::thread::park();
                }
            }
            for line in stdout.lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            stderr.read_to_end(&mut said).unwrap();
            said.escape_ascii().to_string().replace("\\n", "\n")
        });
        Self {
            to: Some(to.into()),
            child,
            from,
            said,
            aside: VecDeque::new(),
            era,
            capabilities,
            last: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Sends these bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let to = self.to.as_mut().unwrap();
        to.write_all(bytes).unwrap();
        to.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request, and gives its number.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        let mut params = params;
        if self.era == Era::Stateless {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            });
            let members = params.as_object_mut().unwrap();
            let own = members.remove("_meta").unwrap_or_else(|| json!({}));
            let mut all = meta;
            all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            members.insert("_meta".to_owned(), all);
        }
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message, whatever it is; `None` where none comes in this time, or the server is gone.
    pub(crate) fn next_within(&mut self, time: Duration) -> Option<Value> {
        if let Some(message) = self.aside.pop_front() {
            return Some(message);
        }
        self.from.recv_timeout(time).ok()
    }

    /// The first message that `wanted` says yes to; others wait for whoever asks next.
    #[track_caller]
    pub(crate) fn first(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&wanted) {
            return self.aside.remove(at).unwrap();
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(message) = self.from.recv_timeout(left) else {
                panic!("no such message came; there were {:?}", self.aside);
            };
            if wanted(&message) {
                return message;
            }
            self.aside.push_back(message);
        }
    }

    /// The answer to the request of this number.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.first(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// What a call gives: the result as it is.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin_call(tool, arguments);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// The same, where somebody is asked: how a form comes and goes is the era's.
    #[track_caller]
    pub(crate) fn call_answering(&mut self, tool: &str, arguments: &Value, form: &Value) -> (String, Value) {
        let id = self.begin_call(tool, arguments);
        match self.era {
            Era::Session => {
                let question = self.first(|message| message["method"] == "elicitation/create");
                let message = question["params"]["message"].as_str().unwrap().to_owned();
                self.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": form}));
                (message, self.answer(id)["result"].clone())
            }
            Era::Stateless => {
                let returned = self.answer(id)["result"].clone();
                assert_eq!(returned["resultType"], "input_required", "{returned}");
                let question = &returned["inputRequests"]["approval"]["params"];
                let message = question["message"].as_str().unwrap().to_owned();
                let again = json!({
                    "name": tool,
                    "arguments": arguments,
                    "requestState": returned["requestState"],
                    "inputResponses": {"approval": form},
                });
                (message, self.ask("tools/call", again)["result"].clone())
            }
        }
    }

    /// Closes the server's input.
    pub(crate) fn hang_up(&mut self) {
        drop(self.to.take());
    }

    /// Closes the server's input, waits for its end, and gives its exit code and what it said on standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.to.take());
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut status = None;
        eventually("the end of the server", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let said = std::mem::replace(&mut self.said, std::thread::spawn(String::new));
        (status.unwrap().code(), said.join().unwrap())
    }
}

/// A failing test leaves no process behind.
impl Drop for Agent {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _dying = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

/// What a client says that shows forms.
pub(crate) fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// A form filled in so.
pub(crate) fn filled(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}
