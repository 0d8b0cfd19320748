//! A command inside the sandbox that does one attempt after the other, and tables of attempts.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Invocation, Run, Running, eventually};
use crate::lab::{Lab, Seen, WWW, WWW6};

/// One attempt at something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    /// Python, in the words of `inside.py`.
    pub(crate) does: &'static str,
    pub(crate) meets: Meets,
}

/// What an attempt meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meets {
    /// The kernel: nothing leaves, and there is nothing to record.
    TheKernel,
    /// The proxy, before anything is looked up: recorded.
    TheProxy,
    /// The proxy, when the name has been looked up: recorded, and nothing is connected.
    TheAddress,
    /// The proxy, when the listed host has been connected: recorded, and of what is not allowed nothing arrives there.
    TheTunnel,
    /// Nobody: the listed host gets what is meant for it, and only that.
    Nothing,
}

pub(crate) use Meets::{Nothing, TheAddress, TheKernel, TheProxy, TheTunnel};

/// A row of a table.
pub(crate) const fn row(name: &'static str, meets: Meets, does: &'static str) -> Attempt {
    Attempt { name, does, meets }
}

/// A command that waits to be told what to try.
pub(crate) struct Inside<'a> {
    pub(crate) lab: &'a Lab,
    running: Option<Running>,
    folder: PathBuf,
    count: u32,
}

impl<'a> Inside<'a> {
    /// Starts it with these hosts.
    pub(crate) fn new(lab: &'a Lab, allow: &[&str]) -> Self {
        Self::with(lab, &format!("{{allow: {}}}", serde_json::json!(allow)), &["--json"])
    }

    /// Starts it with this network of a config, and flags.
    pub(crate) fn with(lab: &'a Lab, network: &str, flags: &[&str]) -> Self {
        let line = "exec /usr/bin/python3 inside.py talk";
        Self::start(lab, lab.confined(network, flags, line))
    }

    /// Starts it as root with nothing around it.
    pub(crate) fn bare(lab: &'a Lab) -> Self {
        let stockade = Invocation::new("/usr/bin/python3".as_ref(), None, &lab.world.workspace());
        let stockade = stockade
            .env("PATH", "/usr/bin:/bin:/usr/sbin")
            .args(["inside.py", "talk"]);
        Self::start(lab, stockade)
    }

    fn start(lab: &'a Lab, command: Invocation) -> Self {
        let script = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/inside.py")).unwrap();
        lab.world.write("inside.py", script);
        let folder = lab.world.workspace().join("talk");
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        lab.world.write("talk/begun", "");
        let running = Some(lab.on_the_machine(|| command.spawn()));
        Self {
            lab,
            running,
            folder,
            count: 0,
        }
    }

    /// The Stockade around it.
    pub(crate) fn stockade(&self) -> i32 {
        self.running.as_ref().unwrap().pid()
    }

    /// Lets it begin with something.
    pub(crate) fn tell(&mut self, python: &str) -> u32 {
        // Made beside its place and moved there: it is read as soon as it is there.
        let made = self.lab.world.write(self.folder.join("made"), python);
        fs::rename(made, self.folder.join(format!("ask-{}", self.count))).unwrap();
        self.count += 1;
        self.count - 1
    }

    /// What came of it: what it gave, or how it failed.
    #[track_caller]
    pub(crate) fn answer(&mut self, number: u32) -> Result<String, String> {
        let file = self.folder.join(format!("answer-{number}"));
        eventually("the answer", || {
            if !file.exists() && !self.running.as_mut().unwrap().is_alive() {
                let run = self.running.take().unwrap().wait();
                panic!("it has ended: {} {}", run.out(), run.err());
            }
            file.exists()
        });
        let told: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        match told["gave"].as_str() {
            Some(gave) => Ok(gave.to_owned()),
            None => Err(told["failed"].as_str().unwrap().to_owned()),
        }
    }

    #[track_caller]
    pub(crate) fn does(&mut self, python: &str) -> Result<String, String> {
        let number = self.tell(python);
        self.answer(number)
    }

    /// Ends it, and gives how Stockade ended.
    pub(crate) fn end(mut self) -> Run {
        self.tell("");
        self.running.take().unwrap().wait()
    }

    /// Waits until it has ended by itself, and gives how Stockade ended.
    pub(crate) fn ended(mut self) -> Run {
        self.running.take().unwrap().wait()
    }

    /// Tries what is in a table, row by row, and holds each against what was told and what was seen. Gives what was recorded.
    #[track_caller]
    pub(crate) fn tries(mut self, table: &[Attempt]) -> Recorded {
        let mut wrong = self.wrong(table);
        let recorded = Recorded::of(&self.end());
        let due = table
            .iter()
            .filter(|row| matches!(row.meets, TheProxy | TheAddress | TheTunnel));
        let times = |attempt: &Value| attempt["times"].as_u64().unwrap();
        let (due, refused) = (due.count() as u64, recorded.refused().map(times).sum::<u64>());
        if refused < due {
            let lines = recorded.lines().join("\n    ");
            wrong.push(format!(
                "{due} attempts met the proxy, {refused} were recorded as refused:\n    {lines}"
            ));
        }
        assert!(
            wrong.is_empty(),
            "{} of {}:\n{}",
            wrong.len(),
            table.len(),
            wrong.join("\n")
        );
        recorded
    }

    /// What went wrong in a table, a line each.
    pub(crate) fn wrong(&mut self, table: &[Attempt]) -> Vec<String> {
        let mut wrong = Vec::new();
        for attempt in table {
            let patience = match attempt.meets {
                TheKernel | TheProxy | TheAddress | TheTunnel => "PATIENCE = 3.0",
                Nothing => "PATIENCE = 200.0",
            };
            self.does(patience).unwrap();
            self.lab.forget();
            let told = self.does(attempt.does);
            let seen = self.lab.seen();
            if let Err(why) = judge(attempt, &told, &seen) {
                wrong.push(format!("{}: {why}\n    told: {told:?}", attempt.name));
            }
        }
        wrong
    }
}

/// What is wrong with what an attempt came to.
fn judge(attempt: &Attempt, told: &Result<String, String>, seen: &Seen) -> Result<(), String> {
    let text = match told {
        Ok(text) | Err(text) => text,
    };
    if !seen.machine.is_empty() {
        return Err(format!("the machine's own services were reached: {:?}", seen.machine));
    }
    let listed: Vec<String> = [80, 443, 9999]
        .iter()
        .flat_map(|port| [format!("tcp {WWW}:{port}"), format!("tcp [{WWW6}]:{port}")])
        .collect();
    let may_connect = matches!(attempt.meets, TheTunnel | Nothing);
    let beyond: Vec<_> = seen
        .beyond_names()
        .into_iter()
        .filter(|flow| !may_connect || !listed.iter().any(|one| one == flow))
        .collect();
    if !beyond.is_empty() {
        return Err(format!("left the machine: {beyond:?}"));
    }
    let may_look_up = matches!(attempt.meets, TheAddress | TheTunnel | Nothing);
    let names: Vec<_> = seen
        .names()
        .into_iter()
        .filter(|name| !may_look_up || !name.ends_with("example.org"))
        .collect();
    if !names.is_empty() || (!may_look_up && !seen.wire.is_empty()) {
        return Err(format!("names were looked up: {names:?} {:?}", seen.wire));
    }
    let for_others: Vec<_> = seen
        .requests()
        .into_iter()
        .filter(|request| request.contains("evil") || request.contains("smuggled"))
        .collect();
    if !for_others.is_empty() {
        return Err(format!("the listed host was asked for another: {for_others:?}"));
    }
    let hellos = seen
        .hellos()
        .filter(|name| !name.eq_ignore_ascii_case("www.example.org"));
    let hellos: Vec<_> = hellos.filter(|_| attempt.meets == TheTunnel).collect();
    if !hellos.is_empty() {
        return Err(format!("the listed host was greeted as another: {hellos:?}"));
    }
    // Every server says so: `reached 93.184.216.66:443`.
    let places = text.split("reached ").skip(1);
    let reached = places
        .clone()
        .any(|place| place.starts_with(|c: char| c.is_ascii_digit() || c == '[' || c == 'a'));
    let elsewhere = places
        .clone()
        .any(|place| !place.starts_with(WWW) && !place.starts_with(&format!("[{WWW6}]")));
    match attempt.meets {
        TheKernel | TheProxy | TheAddress | TheTunnel if reached => Err("something was reached".to_owned()),
        Nothing if reached && elsewhere => Err("something else was reached".to_owned()),
        Nothing if !reached => Err("it does not work, and should".to_owned()),
        TheKernel | TheProxy | TheAddress | TheTunnel | Nothing => Ok(()),
    }
}

/// The attempts that an outcome tells of.
#[derive(Debug)]
pub(crate) struct Recorded(pub(crate) Vec<Value>);

impl Recorded {
    pub(crate) fn of(run: &Run) -> Self {
        let outcome: Value =
            serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("no outcome: {} {}", run.out(), run.err()));
        let attempts = outcome["network"]["attempts"].as_array();
        Self(attempts.unwrap_or_else(|| panic!("no attempts: {outcome}")).clone())
    }

    /// A line for each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let fields = ["place", "protocol", "result", "times", "why"];
        let line = |attempt: &Value| fields.map(|field| attempt[field].to_string()).join(" ");
        self.0.iter().map(line).collect()
    }

    pub(crate) fn refused(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(|attempt| attempt["result"] != "passed")
    }

    pub(crate) fn passed(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(|attempt| attempt["result"] == "passed")
    }
}
