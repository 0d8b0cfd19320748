//! Call → assess → approve → confine → [`Outcome`]: the only floor that sees both approval and confine.
//!
//! Plans: [`plan`] lowers a profile and proves the result before anything starts; [`checked_plan`] answers questions by the
//! plan's readers. [`enforcement`] chooses the regime, `fallback` takes the weaker one where the config allows it, `probe_cache` stores
//! that namespaces worked, and `replaced_files` follows a preset to files that were replaced. [`regime`] describes the result in a line.
//!
//! Commands: `environment`, `search` and `git` make what a command finds; `programs` finds the files behind its names, and
//! `missing_program` says which grant would add one that is not there; `shell` judges,
//! asks, confines, runs and reports; [`network`] connects it to listed hosts; [`mod@explain`] says what was denied to it, and why.
//!
//! Sessions: `session_builder` opens one with a policy from a file or from code, `set_builder` makes a set of tools that are asked
//! about and not confined, [`guarded`] asks, and `overriding` is what entries and hooks make of a tool's own opinion.
//!
//! Calls: [`Provider`] is what a server for agents calls, [`Lanes`] runs several calls at once. `recorder` and `on_record` write the log.

mod allowing;
mod approval_authority;
pub mod approver_program;
mod assess_shell;
mod assessor;
mod backend_options;
mod ca_files;
pub mod call;
pub mod checked_plan;
mod command_payload;
mod command_question;
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
pub(crate) mod foreign_writers;
mod foreseen;
pub mod function;
mod git;
pub mod guarded;
mod hook;
mod lanes;
mod limits;
mod missing_program;
pub mod narrowing;
pub mod network;
mod network_summary;
mod new_files;
mod nobody;
mod offered_tools;
mod on_record;
pub mod outcome;
mod output;
mod overriding;
mod permit;
pub mod plan;
mod pool;
mod prepared;
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
mod session_builder;
mod session_directory;
mod session_error;
mod session_policy;
mod session_shared;
pub mod set;
mod set_builder;
pub mod shell;
mod shell_tool;
mod start_command;
mod start_directory;
mod starter;
pub(crate) mod surroundings;
#[cfg(test)]
mod tests;
pub mod tool;
pub(crate) mod tool_question;
mod undo_offer;
mod unwritable_roots;
mod user_paths;

pub use crate::approval::TerminalApprover;
pub use crate::confine::io::terminal::{restore as restore_terminal, size as terminal_size};
pub use crate::confine::io::{HeadTail, OutputMode, Pipe, Stdin};
pub use crate::confine::protect::{Waiting, waiting};
pub use ca_files::unreadable_authorities;
pub(crate) use call::shell;
pub use call::{ShellCall, ShellCommand, ToolError, words};
pub use custom::CommandTool;
pub(crate) use custom::written_roots;
pub use deciding::{ExtraApprover, SharedController};
pub use environment::Caches;
pub use executor::Executor;
pub use explain::{Blocked, Explained};
pub use files::{FileKind, FileTool};
pub(crate) use foreseen::check_runs;
pub use foreseen::{Foreseen, foresee};
pub use function::FunctionTool;
pub use git::{GitFiles, person, preset};
pub use guarded::Guarded;
pub use hook::{Hook, Override};
pub use lanes::Lanes;
pub use narrowing::Narrowing;
pub use network::{NetworkUse, Tried, TriedResult};
pub(crate) use offered_tools::offers_commands;
pub use outcome::{Outcome, Status, not_found};
pub use output::{Output, OutputEnd, Picture};
pub use plan::PlanError;
pub use prepared::{Answered, Prepared};
pub use provider::{Progress, ProvidedCall, Provider};
pub(crate) use reachability::reachable_reason;
pub use recorder::log_stays_out_of_reach;
pub use regime::RegimeLine;
pub use restored::{Changed, Recovery, Restored, Then};
pub use served::{Ending, Served, ServedEnd, ServedStreams};
pub use session::Session;
pub use session_builder::SessionBuilder;
pub use session_error::SessionError;
pub use set::{ToolInfo, ToolSet};
pub use set_builder::ToolSetBuilder;
pub use shell_tool::ShellTool;
pub use start_directory::unseen_directory_warning;
pub use tool::{
    ApprovalContext, Assessed, Assessment, Boxed, CallRequest, Effect, OverrideByConfig, Question, Reach, Tool,
};
pub use unwritable_roots::unwritable_root_warning;
pub use user_paths::UserPaths;
