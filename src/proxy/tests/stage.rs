//! A proxy, whoever it asks, and servers behind it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::policy::{Host, HostName};
use crate::proxy::file_budget::FileBudget;
use crate::proxy::{
    Addresses, Attempt, Bounds, ConnectRequest, Decision, Failure, Gate, Proxy, Refusal, Resolve, Verdict,
};

/// Longer than anything here takes, on the busiest machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(4);

/// Lets `*.open.example`, `*.private.example` and addresses in; holds `slow.open.example` up for ever.
#[derive(Default)]
pub(super) struct TestGate {
    pub(super) attempts: Mutex<Vec<Attempt>>,
    pub(super) asked: Mutex<Vec<ConnectRequest>>,
    told: Notify,
}

impl Gate for TestGate {
    fn decide(&self, wanted: ConnectRequest) -> Decision<'_> {
        let host = wanted.host.to_string();
        self.asked.lock().unwrap().push(wanted);
        Box::pin(async move {
            match &*host {
                "slow.open.example" => std::future::pending().await,
                "127.0.0.1" | "10.1.2.3" | "0.0.0.0" | "[::1]" | "127.0.0.9" => Verdict::Allowed,
                name if name.ends_with("open.example") || name.ends_with("private.example") => Verdict::Allowed,
                "denied.example" => Verdict::Refused(Refusal::Denied),
                "unanswered.example" => Verdict::Refused(Refusal::Unanswered),
                "odd.example" => Verdict::Refused(Refusal::Other("is \r\nX-Evil: odd, \u{fc}".into())),
                _ => Verdict::Refused(Refusal::NotListed("shell.network.allow".into())),
            }
        })
    }

    fn reaches(&self, address: IpAddr, _port: u16) -> bool {
        address == IpAddr::V4(Ipv4Addr::LOCALHOST) || address == IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    }

    fn attempted(&self, attempt: Attempt) {
        self.attempts.lock().unwrap().push(attempt);
        self.told.notify_waiters();
    }
}

/// Names below `open.example` lead to 127.0.0.1, and those below `private.example` to a private network.
#[derive(Default)]
pub(super) struct TestResolver {
    pub(super) asked: Mutex<BTreeMap<String, usize>>,
}

impl Resolve for TestResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Addresses<'a> {
        *self.asked.lock().unwrap().entry(name.to_string()).or_default() += 1;
        Box::pin(async move {
            match name.as_str() {
                "nowhere.open.example" => Err(Failure::NoAddress),
                "late.open.example" => Err(Failure::ResolveTime),
                name if name.ends_with("open.example") => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
                _ => Ok(vec![Ipv4Addr::new(10, 1, 2, 3).into()]),
            }
        })
    }
}

/// A running proxy.
pub(super) struct Stage {
    pub(super) gate: Arc<TestGate>,
    pub(super) resolver: Arc<TestResolver>,
    pub(super) address: SocketAddr,
    proxy: Proxy,
}

impl Stage {
    pub(super) fn start(bounds: Bounds) -> Self {
        Self::start_within(FileBudget::of_this_process(), bounds)
    }

    /// One of those that have these files together.
    pub(super) fn start_within(files: &FileBudget, bounds: Bounds) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (gate, resolver) = (Arc::new(TestGate::default()), Arc::new(TestResolver::default()));
        let asked: Arc<dyn Gate> = Arc::<TestGate>::clone(&gate);
        let names: Arc<dyn Resolve> = Arc::<TestResolver>::clone(&resolver);
        let proxy = Proxy::start_within(files, vec![listener], asked, names, bounds).unwrap();
        Self {
            gate,
            resolver,
            address,
            proxy,
        }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// What comes back to these bytes, until the proxy closes the connection.
    pub(super) async fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        // What is refused early may not be read to its end.
        let _sent = stream.write_all(bytes).await;
        rest(&mut stream).await
    }

    pub(super) async fn stop(self) -> Vec<Attempt> {
        timeout(PATIENCE, self.proxy.stop()).await.unwrap();
        let attempts = self.gate.attempts.lock().unwrap();
        attempts.clone()
    }

    /// Waits until so many attempts were told of.
    pub(super) async fn attempts(&self, count: usize) -> Vec<Attempt> {
        let waiting = async {
            loop {
                let told = self.gate.told.notified();
                let attempts = self.gate.attempts.lock().unwrap().clone();
                if attempts.len() >= count {
                    return attempts;
                }
                // A notification may come between the look and the wait.
                let _soon = timeout(Duration::from_millis(50), told).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap()
    }
}

/// Tries it with one time after the other, the last enough for whoever must do something before it is over, on the busiest
/// machine as well.
pub(super) async fn comes_to<T: PartialEq + Debug>(expected: &T, trial: impl AsyncFn(Duration) -> T) {
    let mut got = Vec::new();
    for millis in [150, 3_000, 30_000] {
        got.push(trial(Duration::from_millis(millis)).await);
        if got.last() == Some(expected) {
            return;
        }
    }
    panic!("{got:?}");
}

/// What is left to read, until it ends. A reset ends it too.
pub(super) async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let _reset = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    answer
}

/// Reads up to and with these bytes.
pub(super) async fn until(stream: &mut TcpStream, end: &[u8]) -> String {
    let mut text = Vec::new();
    let reading = async {
        while !text.ends_with(end) {
            let byte = stream.read_u8().await;
            text.push(byte.unwrap_or_else(|error| panic!("{error} after {}", text.escape_ascii())));
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// A server that keeps what it is sent, and gives one answer to each connection.
pub(super) struct Origin {
    pub(super) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// Answers with this when a whole request was read.
    pub(super) async fn start(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let heard = Arc::clone(&all);
                tokio::spawn(async move {
                    let mut text = Vec::new();
                    while !is_whole(&text) {
                        match stream.read_buf(&mut text).await {
                            Ok(1..) => {}
                            Ok(0) | Err(_) => break,
                        }
                    }
                    heard.lock().unwrap().push(String::from_utf8(text).unwrap());
                    let _gone = stream.write_all(answer).await;
                });
            }
        });
        Self { port, heard }
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn is_whole(text: &[u8]) -> bool {
    let text = str::from_utf8(text).unwrap();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// A server that sends back what it is sent.
pub(super) async fn echo() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ended = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    port
}

/// The name of a place, as attempts tell of it.
pub(super) fn place(host: &str, port: u16) -> String {
    format!("{}:{port}", Host::parse(host).unwrap())
}
