//! Call → assess → approve → confine → [`Outcome`]: the only floor that sees both approval and confine.
//!
//! [`plan`] lowers a profile and holds each arrow of the never-weaker promise before anything starts;
//! `environment` makes the environment of a command, `git` carries its user's git settings in, `search` its PATH, `authorities` looks whether files that it names can be read, and `programs` finds the files that its names stand for; [`shell`] is the shell tool: it judges the line, asks,
//! confines, runs and reports. [`regime`] says in one line what holds, [`held`] is a plan with its readers. [`enforcement`] finds the regime to hold commands in: `remembered` knows that namespaces worked, and
//! `fall` takes the regime below where they do not, or cannot hold the config. `anew` follows a preset to what replaced a file while a session lasted. [`Provider`] is what a server for agents calls; [`Lanes`] has
//! several calls of one config under way at once. [`mod@explain`] says what was denied to a command, and why. [`network`] is the way out of a command that may reach
//! the hosts of a list. `recorder` puts what happens on record, where the policy wants that; `on_record` is
//! what an executor says to it. `denied_names` looks for what a pattern denies; `others_root` finds roots in which root writes nothing.

mod allowing;
mod approval_authority;
mod approvals;
pub mod approver_program;
mod assessor;
mod authorities;
mod backend_options;
pub mod call;
pub mod checked_plan;
mod command_slots;
mod covered_names;
mod custom;
mod deciding;
mod denied_names;
pub mod doctor;
pub mod enforcement;
mod environment;
mod escape_truncated;
pub mod executor;
pub mod explain;
mod fallback;
pub mod files;
mod filters;
pub mod function;
mod git;
pub mod guarded;
mod lanes;
mod limits;
pub mod narrowing;
pub mod network;
mod new_files;
mod offered_tools;
mod on_record;
pub mod outcome;
mod permission;
mod permit;
pub mod plan;
mod pool;
mod private;
mod probe_cache;
mod profile_digest;
mod profiles;
mod programs;
pub(crate) mod protected_names;
mod provider;
mod reachability;
mod recorder;
pub mod regime;
mod replaced_files;
pub mod restored;
mod run_command;
mod search;
pub mod served;
pub mod serving;
pub mod session;
mod session_policy;
pub mod set;
mod shared;
pub mod shell;
mod shell_tool;
mod start_command;
mod starter;
pub(crate) mod surroundings;
#[cfg(test)]
mod tests;
pub mod tool;
pub(crate) mod tool_question;
mod undo_offer;
mod unwritable_roots;
mod user_paths;
pub(crate) mod writers;

pub use crate::approval::TerminalApprover;
pub use crate::confine::io::terminal::{restore as restore_terminal, size as terminal_size};
pub use crate::confine::io::{HeadTail, OutputMode, Pipe, Stdin};
pub use crate::confine::protect::{Waiting, waiting};
pub use authorities::unreadable_authorities;
pub use call::{ShellCall, ShellCommand, ToolError, words};
pub use custom::CommandTool;
pub use deciding::{ExtraApprover, SharedController};
pub use environment::Caches;
pub use executor::Executor;
pub use explain::{Blocked, Explained};
pub use files::{FileKind, FileTool};
pub use function::FunctionTool;
pub use git::{GitFiles, person, preset};
pub use guarded::{Guard, Guarded, Hook, Override};
pub use lanes::Lanes;
pub use narrowing::Narrowing;
pub use network::{NetworkUse, Tried, TriedResult};
pub use outcome::{Outcome, Status};
pub use plan::PlanError;
pub(crate) use private::leaves_no_place;
pub use provider::{Progress, ProvidedCall, Provider};
pub(crate) use reachability::reachable_reason;
pub use recorder::log_stays_out_of_reach;
pub use regime::RegimeLine;
pub use restored::{Changed, Recovery, Restored, Then};
pub use served::{Ending, Served, ServedEnd, ServedStreams};
pub use session::{Session, SessionError};
pub use set::{ToolInfo, ToolSet};
pub use shell_tool::ShellTool;
pub use tool::{
    Answered, ApprovalContext, Assessed, Assessment, Boxed, CallRequest, Effect, Output, OutputEnd, Picture, Prepared,
    Question, Reach, Tool,
};
pub use unwritable_roots::unwritable_root_warning;
pub use user_paths::UserPaths;
