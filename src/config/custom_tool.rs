//! A command with named arguments, offered as a tool.

use crate::policy::{Demand, Origin};

/// A command with named arguments, offered as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The program and its arguments, with `{name}` where an argument goes.
    pub command: Vec<String>,
    /// The arguments.
    pub args: Vec<CustomArg>,
    /// The approval that a call needs.
    pub approval: Demand,
    /// The only roots that its writes reach; without them, those that its path arguments are bound to.
    pub sandbox_paths: Option<Vec<String>>,
    /// Where it was written.
    pub origin: Origin,
}

/// One argument of a custom tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomArg {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ArgKind,
    /// The description for the agent.
    pub description: Option<String>,
}

/// The type of a custom tool's argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgKind {
    /// A path inside the root of that name, or in any root.
    Path(Option<String>),
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One of these.
    Choice(Vec<String>),
}
