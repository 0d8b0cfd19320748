//! A client of MCP servers over stdio that costs next to nothing: a line out, a line in, no runtime.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long any server may take for anything here.
const PATIENCE: Duration = Duration::from_mins(2);

/// A server, and the talk with it.
pub(crate) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    /// Starts the server and shakes hands with it.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self {
            child,
            input,
            output,
            last: 0,
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        let id = client.ask("initialize", &hello.to_string());
        client.answer_to(id);
        client.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        client
    }

    /// The server's process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// One call, and what it brought; a call that fails ends the measuring.
    pub(crate) fn call(&mut self, call: &str) -> Value {
        let id = self.ask("tools/call", call);
        done(self.answer_to(id))
    }

    /// How long one call takes until its answer has come; the client's own reading of it is left out.
    pub(crate) fn time(&mut self, call: &str) -> Duration {
        let start = Instant::now();
        let id = self.ask("tools/call", call);
        loop {
            let line = self.line();
            let took = start.elapsed();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                done(message);
                return took;
            }
        }
    }

    /// Sends the call `count` times and reads the first answer only then.
    pub(crate) fn call_at_once(&mut self, call: &str, count: usize) {
        let mut waiting: Vec<u64> = (0..count).map(|_| self.ask("tools/call", call)).collect();
        while !waiting.is_empty() {
            let message = self.read();
            let Some(id) = message["id"].as_u64() else { continue };
            let place = waiting.iter().position(|asked| *asked == id);
            waiting.swap_remove(place.unwrap_or_else(|| panic!("an answer that nobody waits for: {message}")));
            done(message);
        }
    }

    /// The most memory that the server ever had resident, in bytes; its children not counted.
    pub(crate) fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    fn ask(&mut self, method: &str, parameters: &str) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{parameters}}}\n"
        ));
        id
    }

    fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn write(&mut self, message: &str) {
        self.input.write_all(message.as_bytes()).unwrap();
    }

    fn read(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        assert!(length > 0, "the server hung up");
        line
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Whichever way it ended, nothing of it stays.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends the whole program, loudly, if the work takes longer than any server may.
pub(crate) fn within_patience<T>(work: impl FnOnce() -> T) -> T {
    let (finished, over) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("no answer within {PATIENCE:?}");
            std::process::exit(1);
        }
    });
    let result = work();
    drop(finished);
    watch.join().unwrap();
    result
}

fn done(mut message: Value) -> Value {
    let result = message["result"].take();
    assert!(result.is_object() && result["isError"] != true, "{message} {result}");
    result
}
