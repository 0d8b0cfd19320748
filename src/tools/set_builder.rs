//! The settings of a tool set to be, without a sandbox.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use super::deciding::Deciding;
use super::guarded::Guard;
use super::hook::Hook;
use super::nobody::Nobody;
use super::overriding::Loosening;
use super::restored::Recovered;
use super::set::ToolSet;
use crate::approval::{Approver, Controller};
use crate::policy::{Demand, Mode, Origin, ToolRule};

/// The settings of a [`ToolSet`] to be, around the functions of a program and without a sandbox.
///
/// [`ToolSet::builder`] makes one. Use it for approval alone: there is no config, no root and no child, and nothing is confined.
/// [`init`](crate::init) is not needed. The calls are asked about, remembered and kept in the history as those of a
/// [`Session`](crate::Session) are, so a program can begin here and open a session later.
///
/// ```
/// use serde_json::json;
/// use stockade::{ApprovalDecision, ApprovalRequest, Demand, FunctionTool, Mode, ToolSet};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let mut tools = ToolSet::builder()
///     .mode(Mode::Interactive)
///     .tool("drop_table", Demand::Deny)
///     .approver(|request: &ApprovalRequest| {
///         println!("may I {}?", request.description);
///         ApprovalDecision::approve().for_session()
///     })
///     .build();
/// tools.add(Box::new(FunctionTool::new("notify", "Tell the team.", json!({}), |_| async { Ok(json!("sent")) })));
/// tools.call("notify", json!({})).await?;
/// assert_eq!(tools.approvals().len(), 1);
/// # Ok::<(), stockade::ToolError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct ToolSetBuilder {
    mode: Mode,
    rules: BTreeMap<String, ToolRule>,
    hook: Option<Hook>,
    approver: Box<dyn Approver + Send>,
}

impl ToolSet {
    /// The settings of a set without a sandbox. [`Session::tools`](crate::Session::tools) makes one whose tools are confined.
    pub fn builder() -> ToolSetBuilder {
        ToolSetBuilder {
            mode: Mode::Interactive,
            rules: BTreeMap::new(),
            hook: None,
            approver: Box::new(Nobody),
        }
    }
}

impl ToolSetBuilder {
    /// How questions are answered. The default is [`Mode::Interactive`].
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// What calls of a tool need, whatever the tool itself thinks. It never un-blocks.
    pub fn tool(mut self, name: &str, approval: Demand) -> Self {
        let origin = Origin::Flag("`ToolSet::builder()`".into());
        self.rules.insert(name.to_owned(), ToolRule { approval, origin });
        self
    }

    /// A function that may override assessments.
    pub fn overridden_by(self, hook: Hook) -> Self {
        Self {
            hook: Some(hook),
            ..self
        }
    }

    /// The approver. Without one, every question is denied.
    pub fn approver(self, approver: impl Approver + Send + 'static) -> Self {
        Self {
            approver: Box::new(approver),
            ..self
        }
    }

    /// The set, which is empty. Its calls need a tokio runtime.
    pub fn build(self) -> ToolSet {
        let controller = Controller::new(self.mode, self.approver);
        // Nobody stops a call from outside: the program itself makes it.
        let (_, stops) = mpsc::channel(1);
        ToolSet::new(Guard {
            deciding: Deciding::by(Arc::new(controller)),
            rules: Arc::new(self.rules),
            loosening: Loosening::ByCode,
            hook: self.hook,
            caller: None,
            stops: Arc::new(Mutex::new(stops)),
            recovered: Recovered::default(),
        })
    }
}

impl fmt::Debug for ToolSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSetBuilder")
            .field("mode", &self.mode)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
