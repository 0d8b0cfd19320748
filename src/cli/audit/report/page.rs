//! A report as one page of HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::model::{Attempt, Call, Denial, Denials, Ending, LogReport, Profile, Row, Session, Step};

const STYLE: &str = include_str!("page.css");

pub(super) fn page(log_report: &LogReport) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { "Stockade: what was called, decided and run" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (top(log_report))
                main {
                    (stopped(log_report))
                    (calls(log_report))
                    (profiles(&log_report.profiles))
                }
                footer {
                    p { "A hash chain shows that a record was changed, not that none was made up: whoever may write the log could write all of it anew." }
                }
            }
        }
    };
    page.into_string()
}

/// The Content-Security-Policy: only the inline style, nothing else.
fn policy() -> String {
    use base64::Engine as _;
    let style = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{style}'")
}

fn top(log_report: &LogReport) -> Markup {
    let counts = &log_report.counts;
    let tiles = [
        ("calls", counts.calls, "plain"),
        ("approved", counts.approved, "good"),
        ("denied", counts.denied, "bad"),
        ("blocked", counts.blocked, "bad"),
        ("failed", counts.failed, "odd"),
        ("places refused", counts.refused, "bad"),
        ("names restored", counts.violations, "bad"),
        ("denied to commands", counts.denials, "odd"),
    ];
    html! {
        header {
            h1 { "Stockade " span { "what was called, decided and run" } }
            p .log { code { (log_report.log) } }
            @match &log_report.chain.fault {
                None => p .chain.good role="status" {
                    strong { "The log is as it was written." } " "
                    (log_report.chain.records) " records"
                    @if let Some(last) = &log_report.chain.last { ", the last one " code title=(last) { (short(last)) } }
                    "."
                    @if let Some(bytes) = log_report.chain.partial {
                        " A crash left " (bytes) " bytes behind it, which were never certainly written."
                    }
                },
                Some(fault) => p .chain.bad role="alert" {
                    strong { "The log is not as it was written, so this may not be what happened." } " " (fault)
                },
            }
            @if log_report.unreadable > 0 { p .chain.bad { (log_report.unreadable) " lines are no records." } }
            ul .tiles {
                @for (label, number, kind) in tiles {
                    li class=(if number == 0 { "plain" } else { kind }) { b { (number) } " " (label) }
                }
            }
            @if log_report.left_out > 0 {
                p { (log_report.left_out) " earlier calls are left out; " code { "--limit" } " shows more." }
            }
        }
    }
}

fn is_stopped(call: &Call) -> bool {
    match call.end {
        Ending::Denied | Ending::Blocked => true,
        Ending::Done | Ending::Failed | Ending::Cancelled | Ending::Open => {
            call.denied > 0
                || call.violations > 0
                || call.denials.all() > 0
                || call.reached.iter().any(|reached| reached.result == "refused")
        }
    }
}

/// The anchor of a call in the page.
fn anchor(session: usize, call: usize) -> String {
    format!("call-{session}-{call}")
}

fn stopped(log_report: &LogReport) -> Markup {
    let all = || {
        log_report.sessions.iter().enumerate().flat_map(|(at, session)| {
            let calls = session.calls.iter().enumerate().filter(|(_, call)| is_stopped(call));
            calls.map(move |(number, call)| (anchor(at, number), call))
        })
    };
    html! {
        section #stopped {
            h2 { "What was stopped, and why" }
            @if all().next().is_none() { p { "Nothing was." } }
            ol .stopped {
                @for (anchor, call) in all() {
                    li {
                        a href={ "#" (anchor) } { (call.tool) } " " code { (call.what) } " " (ending(call.end))
                        ul { @for why in &call.why { li { (why) } } }
                    }
                }
            }
        }
    }
}

fn calls(log_report: &LogReport) -> Markup {
    html! {
        section #calls {
            h2 { "Calls, in order" }
            @if log_report.sessions.is_empty() { p { "The log holds no session." } }
            @for (at, session) in log_report.sessions.iter().enumerate() {
                (self::session(at, session))
            }
        }
    }
}

fn session(at: usize, session: &Session) -> Markup {
    html! {
        section .session {
            h3 { "Session " code title=(session.name) { (short(&session.name)) } " " time { (session.begun) } " UTC" }
            details .facts {
                summary { "How it was held" }
                dl {
                    @for (label, value) in &session.facts { dt { (label) } dd { (value) } }
                    dt { "Ended" }
                    dd { @match &session.ended { Some(time) => (time), None => "not in order, or it still runs" } }
                }
                (steps(&session.steps))
            }
            @if session.calls.is_empty() { p { "Nothing was called in it." } }
            @for (number, call) in session.calls.iter().enumerate() {
                (self::call(&anchor(at, number), call))
            }
        }
    }
}

fn call(anchor: &str, call: &Call) -> Markup {
    html! {
        details .call id=(anchor) {
            summary {
                time { (time_of_day(&call.time)) } " "
                b { (call.tool) } " "
                code { (call.what) } " "
                (ending(call.end))
                @if is_stopped(call) && call.end == Ending::Done { " " span .badge.bad { "partly stopped" } }
            }
            @if !call.why.is_empty() { ul .why { @for why in &call.why { li { (why) } } } }
            (steps(&call.steps))
            @if !call.reached.is_empty() { (reached(&call.reached)) }
            (denials(&call.denials))
            @for profile in &call.profiles {
                p { "Held by profile " a href={ "#profile-" (profile) } { (short(profile)) } }
            }
        }
    }
}

fn steps(steps: &[Step]) -> Markup {
    html! {
        @if !steps.is_empty() {
            ol .steps {
                @for step in steps {
                    li { time { (time_of_day(&step.time)) } " " b { (step.event) } " " span { (step.text) } }
                }
            }
        }
    }
}

fn reached(reached: &[Attempt]) -> Markup {
    html! {
        table {
            caption { "What it reached for" }
            thead { tr { th scope="col" { "Place" } th scope="col" { "" } th scope="col" { "Why" } th scope="col" { "Times" } th scope="col" { "Sent" } th scope="col" { "Received" } } }
            tbody {
                @for one in reached {
                    tr {
                        th scope="row" { code { (one.host) } }
                        td { span .badge.(if one.result == "passed" { "good" } else { "bad" }) { (one.result) } }
                        td { (one.why) }
                        td .number data-label="times" { (one.times) } td .number data-label="sent" { (one.up) } td .number data-label="received" { (one.down) }
                    }
                }
            }
        }
    }
}

fn denials(denials: &Denials) -> Markup {
    html! {
        @if denials.all() > 0 {
            table .denials {
                caption { "What was denied to its command" }
                thead { tr { th scope="col" { "Wanted" } th scope="col" { "Denied by" } th scope="col" { "Clause" } th scope="col" { "Written in" } th scope="col" { "What would permit it" } } }
                tbody { @for one in &denials.blocked { (denial(one)) } }
            }
            @let left = denials.all() - denials.blocked.len() as u64;
            @if left > 0 { p { (left) " more denied; " code { "stockade audit show --json" } " has those that are in the log." } }
        }
        @if denials.unseen > 0 { p { "Attempts of its command that were not looked at: " (denials.unseen) "." } }
    }
}

fn denial(one: &Denial) -> Markup {
    html! {
        tr {
            th scope="row" { (one.wanted) " " code { (one.what) } @if one.times > 1 { " " (one.times) " times" } }
            td data-label="denied by" { span .badge.odd { (one.by) } }
            td data-label="clause" { @if one.clause.is_empty() { "none speaks of it" } @else { code { (one.clause) } } }
            td data-label="in" { (one.origin) }
            td { ul .changes { @for line in one.change.iter().chain(&one.notes) { li { (line) } } } }
        }
    }
}

fn profiles(profiles: &[Profile]) -> Markup {
    html! {
        section #profiles {
            h2 { "What held commands" }
            @if profiles.is_empty() { p { "No command was held by a profile in what is shown." } }
            @for profile in profiles {
                details .profile id={ "profile-" (profile.name) } open[profiles.len() == 1] {
                    summary {
                        b { (profile.regime) } " profile " code title=(profile.name) { (short(&profile.name)) }
                        ", self-test " (profile.self_test) ", " (profile.commands) " commands"
                    }
                    @for (label, kind) in [("Left open (residuals)", "residual"), ("Undone afterwards", "undone"), ("Blocked more than was asked", "stricter"), ("Held exactly", "enforced")] {
                        (clauses(label, kind, profile.rows.iter().filter(|row| row.status == kind).collect()))
                    }
                    @if profile.more > 0 { p { (profile.more) " more clauses are not in the log." } }
                }
            }
        }
    }
}

fn clauses(label: &str, kind: &str, rows: Vec<&Row>) -> Markup {
    html! {
        @if !rows.is_empty() {
            table {
                caption { span .badge.(kind) { (label) } " " (rows.len()) }
                thead { tr { th scope="col" { "Clause" } th scope="col" { "Written in" } th scope="col" { "" } } }
                tbody {
                    @for row in rows {
                        tr { th scope="row" { code { (row.clause) } } td { (row.origin) } td { (row.detail) } }
                    }
                }
            }
        }
    }
}

fn ending(end: Ending) -> Markup {
    let (kind, word) = match end {
        Ending::Done => ("good", "done"),
        Ending::Failed => ("odd", "failed"),
        Ending::Denied => ("bad", "denied"),
        Ending::Blocked => ("bad", "blocked"),
        Ending::Cancelled => ("odd", "cancelled"),
        Ending::Open => ("odd", "no end in the log"),
    };
    html! { span .badge.(kind) { (word) } }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn time_of_day(time: &str) -> &str {
    time.split_once(' ').map_or(time, |(_, time)| time)
}
