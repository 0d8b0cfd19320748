//! What a hostile command can make of the parent: some memory, some lines, and no more.

use std::fs;

use crate::common::{Actor, eventually};
use crate::inside::{Inside, Recorded};
use crate::lab::{Lab, in_the_lab, lab_with};

in_the_lab! {
    five_hundred_connections_at_once_stay_bounded ["python3"];
    somebody_who_does_not_read_is_held_back ["python3"];
    a_flood_of_refused_attempts_is_a_short_list ["python3"];
    a_slow_client_holds_nobody_up ["python3"];
    names_that_are_never_answered_hold_nobody_up_for_ever ["python3"];
}

/// The most memory that a process ever had, in KiB.
fn most_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

fn five_hundred_connections_at_once_stay_bounded(lab: &Lab) {
    let mut inside = Inside::new(lab, &["www.example.org:9999"]);
    inside.does("tunnel('www.example.org', 9999, b'x')").unwrap();
    let (memory, open) = (most_memory(inside.stockade()), descriptors(inside.stockade()));
    let told = inside.does(
        "
import selectors
held, watch = [], selectors.DefaultSelector()
for n in range(500):
    s = socket.create_connection(way, timeout=PATIENCE)
    s.sendall(b'CONNECT www.example.org:9999 HTTP/1.1\\r\\nHost: www.example.org:9999\\r\\n\\r\\n' + b'x' * 1000)
    held.append(s); watch.register(s, selectors.EVENT_READ)
codes, latest = {}, time.time() + 4
while len(codes) < 500 and (time.time() < latest or '200' not in codes.values()):
    for key, _ in watch.select(0.1):
        if said := key.fileobj.recv(100): codes[key.fd] = said[9:12].decode()
        watch.unregister(key.fileobj)
sorted((code, list(codes.values()).count(code)) for code in set(codes.values()))",
    );
    let told = told.unwrap();
    let (more, now) = (most_memory(inside.stockade()) - memory, descriptors(inside.stockade()));
    println!("{told}: {more} KiB more at most, {open} descriptors before, {now} at once");
    assert!(told.contains("'200'"), "{told}");
    assert!(more < 96 * 1024, "{more} KiB more; {told}");
    assert!(now < 1200, "{now} descriptors");
    // And then it goes on as before.
    let after = inside
        .does("for s in held: s.close()\ntime.sleep(0.3); tunnel('www.example.org', 9999, b'x')")
        .unwrap();
    assert!(after.contains("reached"), "{after}");
    eventually("few open descriptors", || descriptors(inside.stockade()) <= open + 10);
    Recorded::of(&inside.end());
}

fn somebody_who_does_not_read_is_held_back(lab: &Lab) {
    let mut inside = Inside::new(lab, &["www.example.org"]);
    inside.does("raw(absolute('http://www.example.org/'))").unwrap();
    let memory = most_memory(inside.stockade());
    inside
        .does(
            "
lazy = []
for n in range(8):
    s = socket.create_connection(way); s.sendall(absolute('http://www.example.org/bytes/500000000').encode()); lazy.append(s)
    s = connect('www.example.org', 80); s.sendall(get('www.example.org', '/bytes/500000000').encode()); lazy.append(s)
time.sleep(2)",
        )
        .unwrap();
    let more = most_memory(inside.stockade()) - memory;
    println!("{more} KiB more for 16 who do not read");
    assert!(more < 32 * 1024, "{more} KiB more");
    assert!(
        inside
            .does("raw(absolute('http://www.example.org/'))")
            .unwrap()
            .contains("reached")
    );
    inside.end();
}

fn a_flood_of_refused_attempts_is_a_short_list(lab: &Lab) {
    let mut inside = Inside::new(lab, &["www.example.org"]);
    inside.does("raw(absolute('http://www.example.org/'))").unwrap();
    let memory = most_memory(inside.stockade());
    lab.forget();
    inside
        .does(
            "
for n in range(3000):
    with socket.create_connection(way) as s:
        name = 'n%d.%s.evil.example.net' % (n, 'x' * 60) if n % 3 else '\\x1b' * 200 + str(n)
        s.sendall(f'CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}:443\\r\\n\\r\\n'.encode()); s.recv(1000)",
        )
        .unwrap();
    lab.seen().nothing();
    let more = most_memory(inside.stockade()) - memory;
    let run = inside.end();
    let (out, lines) = (run.out().len(), run.err().lines().count());
    println!("3000 refused: {more} KiB more, {out} bytes of outcome, {lines} lines");
    let recorded = Recorded::of(&run);
    assert!(recorded.0.len() <= 500, "{} entries", recorded.0.len());
    // What was let through is not pushed out by what was not.
    assert_eq!(recorded.passed().count(), 1, "{:?}", recorded.0);
    let outcome: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
    let listed: u64 = recorded
        .0
        .iter()
        .map(|attempt| attempt["times"].as_u64().unwrap())
        .sum();
    assert_eq!(listed + outcome["network"]["more_unreached"].as_u64().unwrap(), 3001);
    assert_eq!(outcome["network"]["more_reached"], 0);
    assert!(
        more < 32 * 1024 && out < 512 * 1024 && lines < 600,
        "{more} KiB, {out} bytes, {lines} lines"
    );
}

fn a_slow_client_holds_nobody_up(lab: &Lab) {
    let mut inside = Inside::new(lab, &["www.example.org"]);
    let told = inside
        .does(
            "
slow = [socket.create_connection(way) for _ in range(50)]
for s in slow[:25]: s.sendall(b'GET http://www.example.org/ HTTP/1.1\\r\\nHo')
told = raw(absolute('http://www.example.org/'))
import select
# They are sent away much later.
(told, len(select.select(slow, [], [], 0)[0]) < 50)",
        )
        .unwrap();
    assert!(told.contains("reached") && told.ends_with("True)"), "{told}");
    inside.end();
}

fn names_that_are_never_answered_hold_nobody_up_for_ever(lab: &Lab) {
    // The system gives up soon, and before the proxy does.
    let text = "nameserver 93.184.216.53\noptions timeout:1 attempts:2\n";
    fs::write(lab.folder().join("resolv.conf"), text).unwrap();
    let mut inside = Inside::new(lab, &["*.example.org"]);
    let told = inside
        .does(
            "
waits = [socket.create_connection(way) for _ in range(24)]
for s in waits: s.sendall(absolute('http://silent.example.org/').encode())
told = raw(absolute('http://www.example.org/'))
codes = set()
for s in waits: s.settimeout(PATIENCE); codes.add(s.recv(100)[9:12])
(told, sorted(codes))",
        )
        .unwrap();
    println!("{told}");
    assert!(told.contains("reached") && !told.contains("200'"), "{told}");
    inside.end();
}

#[test]
fn who_says_nothing_and_who_never_ends_a_head_are_sent_away() {
    let Some(lab) = lab_with(Actor::User, &["python3"]) else {
        return;
    };
    let mut inside = Inside::new(&lab, &["www.example.org"]);
    // One that says nothing, one that drips.
    let told = inside
        .does(
            "
silent, drips = socket.create_connection(way), socket.create_connection(way)
head = b'GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\n' + b'X: a\\r\\n' * 2000
began, ended = time.time(), {}
drips.setblocking(False); silent.setblocking(False)
while len(ended) < 2 and time.time() < began + PATIENCE:
    for name, s in ('silent', silent), ('drips', drips):
        if name in ended: continue
        try:
            if name == 'drips' and head: s.send(head[:1]); head = head[1:]
            if not s.recv(1000): ended[name] = time.time() - began
        except BlockingIOError: pass
        except OSError: ended[name] = time.time() - began
    time.sleep(0.1)
sorted(ended)",
        )
        .unwrap();
    assert_eq!(told, "['drips', 'silent']");
    inside.end();
}
