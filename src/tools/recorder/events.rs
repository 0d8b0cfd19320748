//! What is recorded of a command.

use super::command::{CallId, CommandEnd};
use super::to_event;
use crate::audit::Text;
use crate::audit::event::{self, Event};
use crate::tools::call::ShellCall;
use crate::tools::restored::Restored;

pub(in crate::tools) fn command_end(call: &str, end: &CommandEnd<'_>) -> Vec<Event> {
    let mut events = vec![Event::End(to_event::end(call, end))];
    events.extend(violations(call, end.restored));
    events.extend(
        end.network
            .map(|network| Event::Network(to_event::network(call, network))),
    );
    let denials = end.explained.map(|explained| to_event::denials(call, explained));
    events.extend(denials.map(Event::Denials));
    events
}

pub(in crate::tools) fn violations(call: &str, restored: &[Restored]) -> Vec<Event> {
    let restored = restored.iter();
    restored
        .map(|one| Event::Violation(to_event::violation(call, one)))
        .collect()
}

/// A command that a person runs, as a call of this tool.
pub(in crate::tools) fn call_of_a_command(call: CallId, tool: &str, command: &ShellCall) -> Event {
    Event::Call(event::Call {
        operation: event::EXECUTE_TOOL,
        tool: Text::of(tool),
        call,
        arguments: to_event::command_arguments(command),
        caller: None,
        run: None,
        conversation: None,
        request: None,
    })
}
