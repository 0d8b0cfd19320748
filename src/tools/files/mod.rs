//! The file tools: what a coding agent reads and changes files with.
//!
//! The story, file by file: `arguments` reads the JSON; `place` turns a written path into one to look at;
//! `look` asks the confined file server where it leads; `judge` holds that against the config; `steps` makes
//! changes of the arguments, `change` and `read` assess a call and do what was assessed; `operand` is a file
//! that a command names; `patch` splits a diff into files; `question` and `present` make what a person is
//! asked and shown; `ask` speaks with the servers; `told` tells what came of it, in the shapes of `shapes`,
//! `failures` why something could not be done.
//!
//! The parent opens no path that an agent chose. A path is judged where it leads, and opened by the server so that a
//! symlink put there since makes it fail.

mod arguments;
mod ask;
mod change;
mod failures;
#[cfg(any(test, feature = "fuzzing"))]
pub mod hostile;
mod judge;
mod look;
mod operand;
mod patch;
mod place;
mod present;
mod question;
mod read;
mod shapes;
mod steps;
mod told;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use arguments::FileKind;
pub(super) use arguments::{bare, parse};
pub(super) use operand::{Operand, Operands, Seen};
pub(in crate::tools) use place::plain;

use super::call::ToolError;
use super::permission::Overruled;
use super::room::Takes;
use super::session::Shared;
use super::tool::{ApprovalContext, Assessed, Boxed, Effect, Output, Prepared, Reach, Tool, ready};

/// One of the file tools, in a session.
pub struct FileTool {
    kind: FileKind,
    session: Arc<Shared>,
    overruled: Overruled,
}

impl FileTool {
    pub(super) const fn new(kind: FileKind, session: Arc<Shared>, overruled: Overruled) -> Self {
        Self {
            kind,
            session,
            overruled,
        }
    }
}

impl Tool for FileTool {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn description(&self) -> String {
        self.kind.description().to_owned()
    }

    fn input_schema(&self) -> Value {
        self.kind.schema()
    }

    fn output_schema(&self) -> Option<Value> {
        Some(shapes::of(self.kind))
    }

    fn effect(&self) -> Effect {
        match self.kind {
            FileKind::Read | FileKind::List | FileKind::Search => Effect::Reads,
            FileKind::MakeDirectory => Effect::Adds,
            FileKind::Write | FileKind::Edit | FileKind::Patch | FileKind::Delete | FileKind::Move => {
                Effect::Destroys(Reach::Files)
            }
        }
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            let mut executor = self.session.executor.lock().await;
            let mut stops = self.session.stops.lock().await;
            let directory = &self.session.directory;
            if self.kind.changes() {
                executor.assess_change(self.kind, context, directory, &mut stops).await
            } else {
                executor
                    .assess_read(self.kind, context, directory, self.overruled, &mut stops)
                    .await
            }
        })
    }

    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let prepared = ready(self, context, prepared).await?;
            let mut executor = self.session.executor.lock().await;
            let mut stops = self.session.stops.lock().await;
            let lost = || ToolError::NoSuchTool(format!("{} was prepared as another tool", self.kind.name()));
            if self.kind.changes() {
                let _place = self.session.room.take(Takes::One, &mut stops).await?;
                let work = prepared.take().ok_or_else(lost)?;
                executor.make_change(work, context.call.as_deref(), &mut stops).await
            } else {
                let work = prepared.take().ok_or_else(lost)?;
                executor.look(work, &mut stops).await
            }
        })
    }
}

impl fmt::Debug for FileTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTool")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
