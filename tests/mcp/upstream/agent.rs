//! An agent that calls the tools of a server behind Stockade.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use nix::unistd::{Uid, User};
use serde_json::{Value, json};

use crate::common::{Fixture, PATIENCE, eventually};

/// A config under which the workspace is written unasked and nobody is asked about anything. No call meets its timeout.
pub(crate) const OPEN: &str = "
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    work: {root: ./workspace, mode: rw, write_approval: false}
shell: {limits: {timeout: 1h, output: 100KiB}}
approval: {mode: approve_all}
";

/// The client, in an older revision of the protocol unless it is said otherwise.
pub(crate) struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    said: Arc<Mutex<String>>,
    stderr: Option<JoinHandle<()>>,
    next: u64,
    early: BTreeMap<u64, Value>,
    /// Whatever came beside answers.
    pub(crate) others: Vec<Value>,
    /// What whoever sits before the client decides; nothing at all where it is not said.
    pub(crate) decides: Option<&'static str>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) text: String,
    pub(crate) failed: bool,
    pub(crate) whole: Value,
}

impl Called {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(!self.failed, "{}", self.whole);
        self.text
    }

    /// Fails unless it failed, for this reason.
    #[track_caller]
    pub(crate) fn fails(self, why: &str) -> Self {
        assert!(self.failed, "it did not fail: {}", self.whole);
        assert!(self.text.contains(why), "failed for another reason: {}", self.text);
        self
    }

    /// Fails unless the server itself was refused by the system.
    #[track_caller]
    pub(crate) fn refused(self) {
        assert!(self.failed, "was permitted: {}", self.whole);
        let refusals = [
            "Permission denied",
            "Operation not permitted",
            "No such file or directory",
            "Read-only file system",
            "Network is unreachable",
            "Address family not supported",
            "Connection refused",
            "EACCES",
            "EPERM",
            "ENOENT",
            "EROFS",
        ];
        assert!(
            refusals.iter().any(|refusal| self.text.contains(refusal)),
            "failed for another reason: {}",
            self.text
        );
    }
}

impl Agent {
    /// Starts the scripted server, with these flags, behind Stockade, with these flags.
    pub(crate) fn start(world: &Fixture, config: &str, flags: &[&str], server_flags: &[&str]) -> Self {
        Self::try_start(world, config, flags, server_flags).greeted()
    }

    /// The same, where it may come to nothing.
    pub(crate) fn try_start(world: &Fixture, config: &str, flags: &[&str], server_flags: &[&str]) -> Self {
        let script = world.write("server.py", include_str!("server.py"));
        let words = [&["/usr/bin/python3", script.to_str().unwrap()], server_flags].concat();
        Self::serving(world, config, flags, &words)
    }

    /// Any command as the server.
    pub(crate) fn serving(world: &Fixture, config: &str, flags: &[&str], command: &[&str]) -> Self {
        let config = world.write(world.base().join("agent.yaml"), config);
        let config = config.to_str().unwrap();
        let arguments = [&["mcp", "--config", config], flags, &["--upstream", "--"], command].concat();
        let mut child = world.stockade(&arguments).converse();
        let (tell, from) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let said = Arc::new(Mutex::new(String::new()));
        let mut stderr = child.stderr.take().unwrap();
        let heard = Arc::clone(&said);
        let stderr = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut piece) {
                heard
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        Self {
            to: child.stdin.take(),
            child,
            from,
            said,
            stderr: Some(stderr),
            next: 0,
            early: BTreeMap::new(),
            others: Vec::new(),
            decides: None,
        }
    }

    /// Shakes hands as a client does that shows forms.
    #[track_caller]
    pub(crate) fn greeted(mut self) -> Self {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.ask("initialize", hello);
        assert!(answer.get("result").is_some(), "{answer}; said: {}", self.said());
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\n").as_bytes()).unwrap();
        to.flush().unwrap();
    }

    #[expect(clippy::needless_pass_by_value, reason = "every caller makes it on the spot")]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// The answer to a request; questions that the client is asked are declined.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        let start = Instant::now();
        loop {
            if let Some(answer) = self.early.remove(&id) {
                return answer;
            }
            let left = PATIENCE.checked_sub(start.elapsed()).unwrap_or_default();
            let message = match self.from.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("no answer; said: {}", self.said()),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended; said: {}", self.said()),
            };
            if let (None, Some(id)) = (message.get("method"), message["id"].as_u64()) {
                self.early.insert(id, message);
                continue;
            }
            if message.get("method").is_some() && message.get("id").is_some() {
                let id = &message["id"];
                let result = match self.decides {
                    Some(decision) => json!({"action": "accept", "content": {"decision": decision}}),
                    None => json!({"action": "decline"}),
                };
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
            self.others.push(message);
        }
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let answer = self.ask("tools/list", json!({}));
        answer["result"]["tools"].as_array().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn names(&mut self) -> Vec<String> {
        let tools = self.tools();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "every caller makes it on the spot")]
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let texts = result["content"].as_array().map(|blocks| {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        });
        Called {
            text: texts.unwrap_or_else(|| answer["error"]["message"].as_str().unwrap_or_default().to_owned()),
            failed: answer.get("error").is_some() || result["isError"] == json!(true),
            whole: answer.clone(),
        }
    }

    /// How often the client was asked for a yes.
    pub(crate) fn questions(&self) -> usize {
        let asks = |other: &&Value| other["method"] == "elicitation/create";
        self.others.iter().filter(asks).count()
    }

    /// What Stockade has said to standard error so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn says(&self, what: &str) {
        eventually(&format!("the words {what:?}"), || self.said().contains(what));
    }

    /// Hangs up, and waits until it has ended; its exit code and all that it said.
    #[track_caller]
    pub(crate) fn end(mut self) -> (i32, String) {
        drop(self.to.take());
        let mut status = None;
        eventually("the end of the server", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.stderr.take().unwrap().join().unwrap();
        (status.unwrap().code().unwrap_or(-1), self.said())
    }
}

/// The records of what servers of this fixture said first; in the state directory of the actor.
pub(crate) fn records(base: &Path, uid: u32) -> Vec<PathBuf> {
    let Some(user) = User::from_uid(Uid::from_raw(uid)).unwrap() else {
        return Vec::new();
    };
    let folder = user.dir.join(".local/state/stockade/upstream");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if text.contains(base.to_str().unwrap()) {
            found.push(entry.path());
        }
    }
    found
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _dying = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

/// Takes away what a test's servers left in the state directory, at its end.
pub(crate) struct Forgets {
    base: PathBuf,
    uid: u32,
}

impl Forgets {
    pub(crate) fn after(world: &Fixture) -> Self {
        Self {
            base: world.base().to_owned(),
            uid: world.actor.uid(),
        }
    }
}

impl Drop for Forgets {
    fn drop(&mut self) {
        for record in records(&self.base, self.uid) {
            let _gone = fs::remove_file(record);
        }
    }
}
