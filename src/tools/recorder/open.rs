//! A call that is on record, and whose end is yet to be.

use std::time::Instant;

use super::command::CallId;
use super::log::Recorder;
use super::to_event;
use crate::audit::event::{CallEnd, Event};
use crate::audit::{Durability, Text};
use crate::tools::call::ToolError;
use crate::tools::output::{Output, OutputEnd};
use crate::tools::tool::ApprovalContext;

/// A call that is on record. One that is dropped without an end was given up.
#[derive(Debug)]
pub(in crate::tools) struct OpenCall {
    call: CallId,
    started: Instant,
    /// Nobody once its end is on record.
    recorder: Option<Recorder>,
}

impl OpenCall {
    /// Puts a call of a tool on record, with what the tool says may be seen of its arguments.
    pub(in crate::tools) async fn of(
        recorder: Option<&Recorder>,
        context: &ApprovalContext,
        arguments: serde_json::Value,
    ) -> Result<Option<Self>, ToolError> {
        let Some(recorder) = recorder else {
            return Ok(None);
        };
        let call = recorder.next_call();
        let event = Event::Call(to_event::call(call.clone(), context, &arguments));
        Self::put(recorder, call, event).await.map(Some)
    }

    /// Records a call with this event.
    pub(in crate::tools) async fn put(recorder: &Recorder, call: CallId, event: Event) -> Result<Self, ToolError> {
        recorder.note(vec![event]).await?;
        Ok(Self {
            call,
            started: Instant::now(),
            recorder: Some(recorder.clone()),
        })
    }

    pub(in crate::tools) fn name(&self) -> &str {
        &self.call
    }

    /// Puts what came of it on record. Where that fails, what was done is done, and the error says so.
    pub(in crate::tools) async fn end(self, done: Result<Output, ToolError>) -> Result<Output, ToolError> {
        let bytes = done.as_ref().ok().map(|output| output.text.len() as u64);
        let is_done = |output: &Output| output.end == OutputEnd::Done;
        self.end_with(done, is_done, bytes).await
    }

    /// The same for whatever came of it, and whether that is what was wanted.
    pub(in crate::tools) async fn end_with<T>(
        mut self,
        done: Result<T, ToolError>,
        is_done: impl FnOnce(&T) -> bool,
        bytes: Option<u64>,
    ) -> Result<T, ToolError> {
        let outcome = match &done {
            Ok(outcome) if is_done(outcome) => "done",
            Ok(_) => "failed",
            Err(error) => to_event::outcome_name(error),
        };
        let error = done.as_ref().err().map(|error| Text::of(&error.to_string()));
        let event = self.outcome(outcome, error, bytes);
        let recorded = match self.recorder.take() {
            Some(recorder) => recorder.note(vec![event]).await,
            None => Ok(()),
        };
        match (done, recorded) {
            (Ok(_), Err(error)) => Err(error.after_the_call()),
            (done, _) => done,
        }
    }

    fn outcome(&self, outcome: &'static str, error: Option<Text>, bytes: Option<u64>) -> Event {
        Event::Outcome(CallEnd {
            call: self.call.clone(),
            outcome,
            error,
            duration: self.started.elapsed().as_secs_f64(),
            bytes,
        })
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            let event = self.outcome("given_up", None, None);
            // There is nobody left who could be told.
            let _recorded = recorder.write(vec![event], Durability::Later);
        }
    }
}
