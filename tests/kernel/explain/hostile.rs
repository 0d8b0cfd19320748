//! What a command does against its being looked at: nothing is permitted by it, and what was seen is told.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::common::{
    Fixture, PATIENCE, assert_no_process_left, descendants, in_both_regimes, marker, may_starve_its_runner,
};
use crate::explain::tried::{Trial, blocked};

in_both_regimes! {
    what_was_seen_is_told_though_the_command_is_killed [];
    who_looks_cannot_be_killed_stopped_or_traced ["python3"];
    descriptors_that_are_closed_close_no_listener ["python3"];
    a_flood_is_bounded_and_what_is_beyond_it_is_counted ["python3"];
    a_crowd_is_looked_at_to_the_last ["python3"];
    a_fork_bomb_ends_and_what_was_seen_is_told ["bash"];
    a_path_that_changes_while_the_call_waits_permits_nothing ["cc"];
    a_program_with_a_set_uid_bit_is_looked_at_like_any_other ["su"];
    what_is_made_and_removed_at_once_was_denied_all_the_same [];
}

fn explained(world: &Fixture, flags: &[&str], line: &str) -> Value {
    let words = [&["run", "--explain", "--json"], flags, &["-c", line]].concat();
    let run = world.stockade(&words).output();
    serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()))
}

fn python(world: &Fixture, flags: &[&str], script: &str) -> Value {
    world.write("script.py", script);
    explained(world, flags, "python3 script.py")
}

/// Fails unless the secret outside is what was denied, and only that.
#[track_caller]
fn told_of_the_secret(world: &Fixture, outcome: &Value) {
    let told = blocked(outcome);
    // The kernel tells of signals, where its records are read.
    let whats: Vec<(&str, &str)> = told
        .iter()
        .filter(|told| told.wanted != "signal")
        .map(|told| (told.wanted.as_str(), told.what.as_str()))
        .collect();
    let secret = world.outside().join("secret");
    assert_eq!(whats, [("read", secret.to_str().unwrap())], "{outcome:#}");
}

fn what_was_seen_is_told_though_the_command_is_killed(world: &Fixture) {
    let secret = world.outside().join("secret");
    let itself = explained(world, &[], &format!("cat {}; kill -9 $$", secret.display()));
    assert_eq!(itself["status"], "signaled", "{itself:#}");
    told_of_the_secret(world, &itself);
    let late = got_there(world, &["2s", "20s", "120s"], |time, there| {
        let line = format!("cat {}; touch {}; sleep 86400", secret.display(), there.display());
        explained(world, &["--timeout", time], &line)
    });
    assert_eq!(late["status"], "timed_out", "{late:#}");
    told_of_the_secret(world, &late);
}

/// What comes of a command that its time ends, once that is enough for it to make a file. On a busy machine the first may not
/// be.
fn got_there<'t>(world: &Fixture, times: &[&'t str], run: impl Fn(&'t str, PathBuf) -> Value) -> Value {
    let there = world.workspace().join("there");
    let mut outcomes = times.iter().map(|time| run(time, there.clone()));
    outcomes.find(|_| there.exists()).expect("the command got nowhere")
}

fn who_looks_cannot_be_killed_stopped_or_traced(world: &Fixture) {
    let script = format!(
        "import os, signal
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
    try:
        os.kill(os.getppid(), number)
        print('signalled')
    except OSError:
        pass
try:
    open({:?})
except OSError:
    print('denied')
",
        world.outside().join("secret")
    );
    world.write("script.py", script);
    let run = world
        .stockade(&["run", "--explain", "--json", "--", "/usr/bin/python3", "script.py"])
        .output();
    let outcome: Value = serde_json::from_str(&run.out()).unwrap();
    assert_eq!(outcome["stdout"], "denied\n", "{outcome:#}");
    told_of_the_secret(world, &outcome);
}

fn descriptors_that_are_closed_close_no_listener(world: &Fixture) {
    let secret = world.outside().join("secret");
    let script = format!(
        "import os
os.closerange(3, 65536)
try:
    open({secret:?})
except OSError:
    os.write(1, b'denied')
"
    );
    let outcome = python(world, &[], &script);
    assert_eq!(outcome["stdout"], "denied", "{outcome:#}");
    told_of_the_secret(world, &outcome);
}

fn a_flood_is_bounded_and_what_is_beyond_it_is_counted(world: &Fixture) {
    const FLOOD: u64 = 50_000;
    let script = format!(
        "import os
for number in range({FLOOD}):
    try:
        os.mkdir('{}/%d' % number)
    except OSError:
        pass
",
        world.outside().display()
    );
    world.write("script.py", script);
    let running = world
        .stockade(&["run", "--explain", "--json", "-c", "python3 script.py"])
        .spawn();
    let (pid, begun) = (running.pid(), std::time::Instant::now());
    let largest = std::thread::spawn(move || {
        let mut largest = 0;
        while begun.elapsed() < PATIENCE && fs::exists(format!("/proc/{pid}")).unwrap() {
            let all = descendants(pid);
            largest = all.into_iter().filter_map(resident).fold(largest, u64::max);
            std::thread::sleep(Duration::from_millis(100));
        }
        largest
    });
    let run = running.wait();
    let outcome: Value = serde_json::from_str(&run.out()).unwrap();
    assert_eq!(outcome["code"], 0, "{outcome:#}");
    let explained = &outcome["explained"];
    assert_eq!(explained["blocked"].as_array().unwrap().len(), 500);
    let (more, unseen) = (
        explained["more"].as_u64().unwrap(),
        explained["unseen"].as_u64().unwrap(),
    );
    assert_eq!(500 + more + unseen, FLOOD);
    assert!(unseen >= FLOOD - 20_000, "{unseen}");
    let largest = largest.join().unwrap();
    assert!(largest < 200 * 1024, "{largest} KiB");
}

/// KiB of memory of one of Stockade's own processes.
fn resident(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    of("Name:").filter(|name| name.contains("stockade"))?;
    of("VmHWM:")?.strip_suffix(" kB")?.parse().ok()
}

fn a_crowd_is_looked_at_to_the_last(world: &Fixture) {
    let script = format!(
        "import os
children = []
for number in range(200):
    child = os.fork()
    if child == 0:
        try:
            open({:?})
        except OSError:
            os._exit(7)
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 7 << 8
",
        world.outside().join("secret")
    );
    let outcome = python(world, &[], &script);
    assert_eq!(outcome["code"], 0, "{outcome:#}");
    told_of_the_secret(world, &outcome);
    assert_eq!(outcome["explained"]["blocked"][0]["times"], 200);
}

fn a_fork_bomb_ends_and_what_was_seen_is_told(world: &Fixture) {
    let marker = marker();
    let outcome = got_there(world, &["5s", "50s"], |time, there| {
        let text = format!("extends: [workspace-write]\nshell:\n  limits: {{processes: 64, timeout: {time}}}\n");
        let config = world.write("agent.yaml", text);
        let line = format!(
            "cat {}; touch {}; bomb() {{ bomb | bomb & }}; bomb 2>/dev/null; exec sleep {marker}",
            world.outside().join("secret").display(),
            there.display()
        );
        explained(world, &["--config", config.to_str().unwrap()], &line)
    });
    let status = outcome["status"].as_str().unwrap();
    // A bomb that cannot grow goes out by itself, and the foreground runs into its time.
    assert_no_process_left(&marker);
    if status == "failed" && may_starve_its_runner(world) {
        // The session was killed, and with it the process that had noted the denial.
        return;
    }
    assert!(["timed_out", "over_limit", "exited"].contains(&status), "{outcome:#}");
    told_of_the_secret(world, &outcome);
}

fn a_path_that_changes_while_the_call_waits_permits_nothing(world: &Fixture) {
    let mut trial = Trial::new(world);
    let (allowed, denied) = (world.write("i/a", "\x7fx"), world.outside().join("secret"));
    let told = trial.told("read", &denied);
    // Fails where it ever reads anything but what the first one begins with.
    trial.either('3', &allowed, &denied, &[told]);
    trial.permitted('4', "", "");
    trial.try_all(&[]);
}

fn a_program_with_a_set_uid_bit_is_looked_at_like_any_other(world: &Fixture) {
    let line = format!("su --version; cat {}", world.outside().join("secret").display());
    told_of_the_secret(world, &explained(world, &[], &line));
}

fn what_is_made_and_removed_at_once_was_denied_all_the_same(world: &Fixture) {
    // A file that may be made and read and not run, where the root says so, and is gone when the denial is explained.
    let text = "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    free: {root: ./free, mode: rw, write_approval: false}\nshell:\n  default: {allowed: true, approval: none}\n";
    world.write("free/kept", "");
    let config = world.write("agent.yaml", text);
    let free = world.workspace().join("free");
    let outcome = explained(
        world,
        &["--config", config.to_str().unwrap(), "--cwd", free.to_str().unwrap()],
        "cp /usr/bin/true new && chmod 755 new; ./new; rm new",
    );
    let told = blocked(&outcome);
    let new = free.join("new");
    let whats: Vec<(&str, &str)> = told
        .iter()
        .map(|told| (told.wanted.as_str(), told.what.as_str()))
        .collect();
    assert_eq!(whats, [("execute", new.to_str().unwrap())], "{outcome:#}");
}
