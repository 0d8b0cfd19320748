//! One of the file tools, as a tool of a session.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::arguments::FileKind;
use super::change::{assess_change, make_change};
use super::read::{assess_read, look};
use super::shapes;
use crate::tools::approval_authority::ApprovalAuthority;
use crate::tools::call::ToolError;
use crate::tools::command_slots::SlotCount;
use crate::tools::output::Output;
use crate::tools::prepared::Prepared;
use crate::tools::session_shared::Shared;
use crate::tools::tool::{ApprovalContext, Assessed, Boxed, Effect, Reach, Tool, ready};

/// One of the file tools, in a session.
pub struct FileTool {
    kind: FileKind,
    session: Arc<Shared>,
    authority: ApprovalAuthority,
}

impl FileTool {
    pub(in crate::tools) const fn new(kind: FileKind, session: Arc<Shared>, authority: ApprovalAuthority) -> Self {
        Self {
            kind,
            session,
            authority,
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
                assess_change(&mut executor, self.kind, context, directory, &mut stops).await
            } else {
                assess_read(&mut executor, self.kind, context, directory, self.authority, &mut stops).await
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
                let _slot = self.session.slots.acquire(SlotCount::One, &mut stops).await?;
                let work = prepared.take().ok_or_else(lost)?;
                make_change(&mut executor, work, context.call.as_deref(), &mut stops).await
            } else {
                let work = prepared.take().ok_or_else(lost)?;
                look(&mut executor, work, &mut stops).await
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
