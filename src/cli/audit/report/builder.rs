//! Records → the sessions, calls and profiles of a report.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

use serde_json::Value;

use super::denied;
use super::model::{Attempt, Call, Chain, Counts, Denials, Ending, LogReport, Profile, Row, Session, Step};
use super::record::{Record, field, list, number};
use crate::audit::{Report, Tail};
use crate::cli::audit::describe;
use crate::cli::audit::filter::Decision;
use crate::policy::hex::hex;
use crate::policy::path::{display, escape};

/// The tool that is shown by its command.
const SHELL: &str = "shell";

/// Builds a report from records.
pub(super) struct ReportBuilder {
    limit: usize,
    sessions: Vec<Session>,
    /// The index of each session.
    known: BTreeMap<String, usize>,
    /// The session of each call, in the order in which the calls began.
    order: VecDeque<usize>,
    /// The number of the last call of a session with an id.
    numbers: HashMap<(usize, String), u64>,
    profiles: Vec<Profile>,
    left_out: u64,
    unreadable: u64,
}

impl ReportBuilder {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            sessions: Vec::new(),
            known: BTreeMap::new(),
            order: VecDeque::new(),
            numbers: HashMap::new(),
            profiles: Vec::new(),
            left_out: 0,
            unreadable: 0,
        }
    }

    pub(super) fn unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: &Record) {
        let event = field(record, "event");
        let step = Step {
            time: clock(&field(record, "time")),
            event: event.clone(),
            text: describe::event_text(&event, record),
        };
        match event.as_str() {
            // The header of a file belongs to no session.
            "header" => return,
            "profile" => self.profile(record),
            "start" => self.count_command(&field(record, "profile")),
            _ => {}
        }
        let at = self.session(record);
        let Some(session) = self.sessions.get_mut(at) else {
            return;
        };
        match event.as_str() {
            "session_start" => {
                let facts = [
                    ("Holds commands", "regime_line"),
                    ("Mode", "mode"),
                    ("Config", "config"),
                    ("Ceilings", "ceilings"),
                    ("Version", "service.version"),
                    ("Process", "process.pid"),
                    ("User", "process.real_user.id"),
                ];
                let facts = facts.map(|(label, name)| (label.to_owned(), fact(record, name)));
                session.facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
                return;
            }
            "session_end" => {
                session.ended = Some(step.time);
                return;
            }
            "call" => {
                let call = Call::begun(record, &step);
                if !call.id.is_empty() {
                    self.numbers.insert((at, call.id.clone()), session.called);
                }
                session.calls.push_back(call);
                session.called += 1;
                self.order.push_back(at);
                self.drop_oldest();
                return;
            }
            _ => {}
        }
        let id = field(record, "gen_ai.tool.call.id");
        let first = session.called - session.calls.len() as u64;
        let number = self.numbers.get(&(at, id.clone()));
        let index = number.and_then(|number| usize::try_from(number.checked_sub(first)?).ok());
        match index.and_then(|index| session.calls.get_mut(index)) {
            Some(call) => call.add(record, &event, step),
            // Its call is beyond the limit, or it belongs to none.
            None if id.is_empty() => session.steps.push(step),
            None => {}
        }
    }

    fn session(&mut self, record: &Record) -> usize {
        let name = field(record, "session");
        if let Some(at) = self.known.get(&name) {
            return *at;
        }
        self.known.insert(name.clone(), self.sessions.len());
        self.sessions.push(Session {
            name,
            begun: clock(&field(record, "time")),
            ended: None,
            facts: Vec::new(),
            calls: VecDeque::new(),
            called: 0,
            steps: Vec::new(),
        });
        self.sessions.len() - 1
    }

    /// Drops the oldest call beyond the limit.
    fn drop_oldest(&mut self) {
        if self.order.len() <= self.limit {
            return;
        }
        let Some(at) = self.order.pop_front() else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(at) {
            let number = session.called - session.calls.len() as u64;
            if let Some(call) = session.calls.pop_front() {
                self.left_out += 1;
                let id = (at, call.id);
                if self.numbers.get(&id) == Some(&number) {
                    self.numbers.remove(&id);
                }
            }
        }
    }

    fn profile(&mut self, record: &Record) {
        let name = field(record, "profile");
        if self.profiles.iter().any(|known| known.name == name) {
            return;
        }
        let rows = list(record, "map").map(|row| Row {
            clause: field(row, "clause"),
            origin: field(row, "origin"),
            status: field(row, "held"),
            detail: field(row, "detail"),
        });
        self.profiles.push(Profile {
            name,
            regime: field(record, "regime"),
            self_test: field(record, "self_test"),
            rows: rows.collect(),
            more: number(record, "more"),
            commands: 0,
        });
    }

    fn count_command(&mut self, name: &str) {
        if let Some(profile) = self.profiles.iter_mut().find(|known| known.name == name) {
            profile.commands += 1;
        }
    }

    /// Returns the report.
    pub(super) fn done(mut self, log: &Path, report: &Report, decision: Option<Decision>) -> LogReport {
        for session in &mut self.sessions {
            session.calls.retain(|call| call.matches(decision));
        }
        // A session whose calls are all left out is left out too.
        self.sessions
            .retain(|session| session.called == 0 || !session.calls.is_empty());
        denied::keep_the_last(&mut self.sessions);
        LogReport {
            counts: Counts::of(self.sessions.iter().flat_map(|session| &session.calls)),
            log: display(log.as_os_str()),
            chain: Chain {
                fault: report.fault.as_ref().map(ToString::to_string),
                records: report.records,
                last: report.last.map(|(_, hash)| hex(&hash)),
                partial: match report.tail {
                    Tail::Complete => None,
                    Tail::Partial(bytes) => Some(bytes),
                },
            },
            sessions: self.sessions,
            profiles: self.profiles,
            left_out: self.left_out,
            unreadable: self.unreadable,
        }
    }
}

impl Call {
    fn begun(record: &Record, step: &Step) -> Self {
        let tool = field(record, "gen_ai.tool.name");
        let arguments = record.get("gen_ai.tool.call.arguments");
        // Only the shell is shown by its command.
        let command = arguments.filter(|_| tool == SHELL).and_then(|arguments| {
            match (arguments.get("command"), arguments.get("argv")) {
                (Some(Value::String(line)), None) => Some(escape(line.as_bytes())),
                (None, Some(Value::Array(words))) => {
                    Some(words.iter().map(describe::value_text).collect::<Vec<_>>().join(" "))
                }
                (_, _) => None,
            }
        });
        Self {
            id: field(record, "gen_ai.tool.call.id"),
            time: step.time.clone(),
            what: command.unwrap_or_else(|| arguments.map(describe::raw_text).unwrap_or_default()),
            tool,
            end: Ending::Open,
            why: Vec::new(),
            steps: vec![step.clone()],
            reached: Vec::new(),
            denials: Denials::default(),
            profiles: Vec::new(),
            approved: 0,
            denied: 0,
            violations: 0,
        }
    }

    /// Whether the call has such a decision.
    fn matches(&self, decision: Option<Decision>) -> bool {
        match decision {
            None => true,
            Some(Decision::Approved) => self.approved > 0,
            Some(Decision::Denied) => self.denied > 0,
            Some(Decision::Any) => self.approved + self.denied > 0,
        }
    }

    fn add(&mut self, record: &Record, event: &str, mut step: Step) {
        match event {
            "decision" if field(record, "decision") == "approved" => self.approved += 1,
            "decision" => {
                self.denied += 1;
                self.why.push(step.text.clone());
            }
            "start" => {
                let profile = field(record, "profile");
                if !self.profiles.contains(&profile) {
                    self.profiles.push(profile);
                }
            }
            "violation" => {
                self.violations += 1;
                self.why.push(step.text.clone());
            }
            "network" => {
                for attempt in list(record, "attempts") {
                    let tried = Attempt {
                        host: field(attempt, "place"),
                        result: field(attempt, "result"),
                        why: field(attempt, "why"),
                        times: number(attempt, "times"),
                        up: number(attempt, "up"),
                        down: number(attempt, "down"),
                    };
                    if tried.result == "refused" {
                        self.why.push(format!("{} {}", tried.host, tried.why));
                    }
                    self.reached.push(tried);
                }
            }
            "denials" => {
                let before = self.denials.all();
                self.deny(record);
                // The table has the rest.
                if let denied @ 1.. = self.denials.all() - before {
                    step.text = format!("different things that were denied: {denied}");
                }
            }
            "outcome" => {
                self.end = match field(record, "outcome").as_str() {
                    "done" => Ending::Done,
                    "denied" | "pending" => Ending::Denied,
                    "blocked" => Ending::Blocked,
                    "cancelled" => Ending::Cancelled,
                    _ => Ending::Failed,
                };
                let error = field(record, "error.message");
                if !error.is_empty() {
                    self.why.push(error);
                }
            }
            _ => {}
        }
        self.steps.push(step);
    }
}

/// A fact about a session; files as `PATH (sha256 …)`.
fn fact(record: &Record, name: &str) -> String {
    match record.get(name) {
        Some(Value::Array(items)) => {
            let items = items.iter().map(|item| match item.as_object() {
                Some(file) if file.contains_key("path") && file.contains_key("sha256") => {
                    format!("{} (sha256 {})", field(file, "path"), field(file, "sha256"))
                }
                Some(_) | None => describe::value_text(item),
            });
            items.collect::<Vec<_>>().join("; ")
        }
        Some(value) => describe::value_text(value),
        None => String::new(),
    }
}

/// The time as `2026-11-23 07:12:24.123`, in UTC.
fn clock(time: &str) -> String {
    time.replace('T', " ").trim_end_matches('Z').to_owned()
}
