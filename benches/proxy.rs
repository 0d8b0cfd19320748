//! What the proxy costs: 1 GiB through a tunnel of it beside the same through a plain relay, turn by turn, and the memory
//! of 500 connections at once.
//!
//! Run with `cargo bench --bench proxy`, on a quiet machine. Client, server and what is between run on a thread each.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use stockade::policy::HostName;
use stockade::proxy::{Addresses, Attempt, Bounds, ConnectRequest, Decision, Gate, Proxy, Resolve, Verdict};
use tokio::runtime::{Builder, Runtime};

const SIZE: usize = 1 << 30;
const PIECE: usize = 64 * 1024;
const ROUNDS: usize = 5;
const CROWD: usize = 500;
/// Four for each connection, twice that for the process, and the same again because a proxy takes half of it.
const FILES: u64 = 16 * 1024;

static SENT: [u8; PIECE] = [0x2a; PIECE];

fn main() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, FILES.min(most), most).unwrap();
    let port = serve();
    let relay = relay(port);
    let (proxy, _attempts) = proxy(Bounds::default());
    let request = format!("CONNECT bench.example:{port} HTTP/1.1\r\nHost: bench.example:{port}\r\n\r\n");
    let (mut plain, mut through) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(timed(|| download(TcpStream::connect(relay).unwrap())));
        through.push(timed(|| download(open(proxy, &request))));
    }
    let (plain, through) = (median(plain), median(through));
    let speed = |time: Duration| 1024.0 / time.as_secs_f64();
    println!(
        "1 GiB    relay {:>7.0} MiB/s   proxy {:>7.0} MiB/s   {:.2} x",
        speed(plain),
        speed(through),
        plain.as_secs_f64() / through.as_secs_f64()
    );
    crowd(&request);
}

/// So many tunnels at once, each of which has carried something both ways.
fn crowd(request: &str) {
    let (proxy, attempts) = proxy(Bounds {
        connections: CROWD,
        ..Bounds::default()
    });
    let before = resident();
    let mut open: Vec<_> = (0..CROWD).map(|_| open(proxy, request)).collect();
    let tunnels = resident();
    // Each has said and heard something, and as much waits for it as fits on the way.
    for stream in &mut open {
        stream.write_all(&[1; 4096]).unwrap();
        stream.read_exact(&mut [0; 4096]).unwrap();
    }
    thread::sleep(Duration::from_secs(2));
    let full = resident();
    println!(
        "{CROWD} at once    {before} KiB before, {tunnels} KiB open, {full} KiB when nobody takes what comes ({} KiB each)",
        (full - before) / CROWD as u64
    );
    drop(open);
    let ended = attempts.iter().take(CROWD).count();
    println!("{ended} of them recorded");
}

/// A server that sends on each connection, as fast as it goes.
fn serve() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let runtime = current();
        runtime.block_on(async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    // Until whoever takes it is gone. Takes no memory, which would be counted too.
                    while tokio::io::AsyncWriteExt::write_all(&mut stream, &SENT).await.is_ok() {}
                });
            }
        });
    });
    port
}

/// What any userspace relay does, and nothing else.
fn relay(port: u16) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        current().block_on(async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut server = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                        .await
                        .unwrap();
                    let _cut = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
    });
    address
}

fn proxy(bounds: Bounds) -> (SocketAddr, mpsc::Receiver<Attempt>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (attempts, ended) = mpsc::channel();
    thread::spawn(move || {
        current().block_on(async {
            let gate = Arc::new(Everything { attempts });
            let _proxy = Proxy::start(vec![listener], gate, Arc::new(Loopback), bounds).unwrap();
            std::future::pending::<()>().await;
        });
    });
    (address, ended)
}

/// Lets everything through.
struct Everything {
    attempts: mpsc::Sender<Attempt>,
}

impl Gate for Everything {
    fn decide(&self, _: ConnectRequest) -> Decision<'_> {
        Box::pin(async { Verdict::Allowed })
    }

    fn reaches(&self, _: IpAddr, _: u16) -> bool {
        true
    }

    fn attempted(&self, attempt: Attempt) {
        // Not all are counted.
        let _unheard = self.attempts.send(attempt);
    }
}

/// Every name is this machine.
struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a HostName) -> Addresses<'a> {
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn open(proxy: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", answer.escape_ascii());
    stream
}

fn download(mut stream: TcpStream) {
    let (mut left, mut piece) = (SIZE, vec![0; PIECE]);
    while left > 0 {
        let most = left.min(PIECE);
        let read = stream.read(&mut piece[..most]).unwrap();
        assert!(read > 0, "{left} bytes are missing");
        left -= read;
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The memory that this process holds, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
