//! Which records are wanted.

use std::collections::BTreeSet;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::{Map, Value};

use crate::config;

/// The flags that say which records are wanted; each narrows.
#[derive(Debug, Clone, Args)]
pub struct Filter {
    /// Only calls of this tool, and what came of them.
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only decisions, and of these only such.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub decision: Option<Decision>,
    /// Only what happened since then: a time (`2026-11-23T07:00:00Z`, `2026-11-23`, in UTC), or so long ago (`90m`, `24h`).
    #[arg(long, value_name = "TIME|DURATION", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Only what happened before then.
    #[arg(long, value_name = "TIME|DURATION", value_parser = moment)]
    pub until: Option<Timestamp>,
    /// Only this session, or those whose name begins so.
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
}

/// `--decision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Decision {
    /// Yes.
    Approved,
    /// No.
    Denied,
    /// Either.
    Any,
}

/// Calls of the selected tool so far: later records of a call do not name its tool.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeSet<(String, String)>);

fn field<'a>(record: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    record.get(name).and_then(Value::as_str)
}

impl Filter {
    /// Whether the record passes the filter.
    pub(super) fn matches(&self, record: &Map<String, Value>, calls: &mut Calls) -> bool {
        let of_tool = self.tool.as_deref().is_none_or(|tool| calls.of(tool, record));
        let session = self.session.as_deref();
        let of_session = session.is_none_or(|name| field(record, "session").is_some_and(|own| own.starts_with(name)));
        let decision = match (self.decision, field(record, "decision")) {
            (None, _) | (Some(Decision::Any), Some(_)) => true,
            (Some(Decision::Approved), Some(found)) => found == "approved",
            (Some(Decision::Denied), Some(found)) => found == "denied",
            (Some(_), None) => false,
        };
        of_tool && of_session && decision && self.is_in_time(record)
    }

    fn is_in_time(&self, record: &Map<String, Value>) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let time = field(record, "time").and_then(|time| time.parse::<Timestamp>().ok());
        let since = self.since.is_none_or(|since| time.is_some_and(|time| time >= since));
        let until = self.until.is_none_or(|until| time.is_some_and(|time| time < until));
        since && until
    }
}

impl Calls {
    fn of(&mut self, tool: &str, record: &Map<String, Value>) -> bool {
        let call = field(record, "session").zip(field(record, "gen_ai.tool.call.id"));
        let call = call.map(|(session, call)| (session.to_owned(), call.to_owned()));
        match field(record, "gen_ai.tool.name") {
            Some(name) if name == tool => {
                self.0.extend(call);
                true
            }
            Some(_) => false,
            None => call.is_some_and(|call| self.0.contains(&call)),
        }
    }
}

/// Parses a time or a duration before now.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = config::duration(text) {
        let now = Timestamp::try_from(SystemTime::now()).map_err(|error| error.to_string())?;
        let ago = Span::try_from(ago).map_err(|error| error.to_string())?;
        return now.checked_sub(ago).map_err(|error| error.to_string());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let time = text.parse::<DateTime>().and_then(|time| time.to_zoned(TimeZone::UTC));
    time.map(|time| time.timestamp()).map_err(|_| {
        "write a time, as in `2026-11-23T07:00:00Z` or `2026-11-23`, or how long ago, as in `90m`".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_how_long_ago() {
        let at = |text: &str| moment(text).unwrap();
        assert_eq!(at("2026-11-23T07:00:00Z"), at("2026-11-23T08:00:00+01:00"));
        assert_eq!(at("2026-11-23"), at("2026-11-23T00:00:00Z"));
        assert!(at("2h") < at("1m"));
        for wrong in ["", "yesterday", "5", "2026-13-01"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_came_of_a_call_belongs_to_its_tool() {
        let record = |value: Value| value.as_object().unwrap().clone();
        let mut calls = Calls::default();
        let call = |tool: &str, session: &str| {
            record(serde_json::json!({"session": session, "gen_ai.tool.name": tool, "gen_ai.tool.call.id": "1"}))
        };
        let outcome = |session: &str| record(serde_json::json!({"session": session, "gen_ai.tool.call.id": "1"}));
        assert!(calls.of("shell", &call("shell", "a")));
        assert!(!calls.of("shell", &call("read_file", "b")));
        assert!(calls.of("shell", &outcome("a")));
        assert!(!calls.of("shell", &outcome("b")));
    }
}
