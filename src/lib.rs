//! An OS-sandboxed tool executor for AI agents.
//!
//! One YAML file says what an agent's commands may do and what needs a person's yes. From it Stockade
//! derives a profile, lowers it to Landlock rules and seccomp filters, proves that these permit no
//! more than the file says, runs each command in a child that the kernel confines, and asks for
//! approval in the parent. Where the machine cannot confine, it refuses.
//!
//! # Use
//!
//! A program that embeds the library calls [`init`] first: the confined child is the same binary, started again.
//!
//! ```no_run
//! use serde_json::json;
//! use stockade::{Session, TerminalApprover};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Session::builder().config_file("agent.yaml").approver(TerminalApprover::new()).open()?;
//! let mut tools = session.tools();
//! match tools.call("shell", json!({"command": "make -j2"})).await {
//!     Ok(output) => println!("{}", output.text),
//!     // What a rule forbids and what a person says no to, in words for the agent.
//!     Err(error) => println!("{error}"),
//! }
//! session.finish().await;
//! # Ok(())
//! # }
//!
//! fn main() {
//!     stockade::init();
//!     // …
//! }
//! ```
//!
//! What is listed below is the whole public API. A [`Session`] is one policy, its tools and whoever answers questions; a
//! [`SessionBuilder`] takes the policy from a file, a text, a preset or code. An [`Approver`] answers: a closure, or one that is
//! ready. A [`FunctionTool`], or any other [`Tool`], is a function of the program that is asked about as well.
//!
//! Approval works without a sandbox, too: [`ToolSet::builder`] makes a set of functions of the program, with the same modes,
//! memory, groups and history, and needs neither a config nor [`init`].
//!
//! In `examples/`: `embed.rs` is the least program, `own_tool.rs` and `own_approver.rs` have one idea each, `approval_alone.rs`
//! has no sandbox, `agent_loop.rs` is a whole program, and in `delegates.rs` agents call agents.
//!
//! # What it does not protect
//!
//! - **Names, sizes and times** of files outside the grants can be found out by guessing their paths.
//! - **The right to execute is not code integrity**: an interpreter, or the loader, runs what it can read.
//! - **Protected names** (git hooks, editor tasks, …) inside a writable root are restored after a
//!   command, not kept from changing while it runs.
//! - **Memory limits** of a whole tree are sampled; process limits too, but for an ordinary user in namespaces.
//! - **The kernel itself**, and other programs of the same user outside the sandbox that act on what a
//!   command wrote where it may write.
//!
//! `SECURITY.md` has the threat model in full.

// The modules are for the program, the tests and the benches of this crate. They change without notice.
#[doc(hidden)]
pub mod approval;
#[doc(hidden)]
pub mod audit;
#[doc(hidden)]
pub mod backend;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod confine;
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod learn;
#[doc(hidden)]
pub mod mcp;
#[doc(hidden)]
pub mod policy;
#[doc(hidden)]
pub mod profile;
#[doc(hidden)]
pub mod proxy;
#[doc(hidden)]
pub mod tools;

#[doc(inline)]
pub use approval::{
    AnswerOf, Approval, ApprovalDecision, ApprovalRequest, Approver, ApproverError, AsyncApprover, CancelHandle,
    CommandView, Content, DecidedBy, Fact, FileView, Fingerprint, Lazy, Presentation, ProgramApprover, Record,
    Remember, RemovalView, Removed, SessionScope, SocketApprover, TerminalApprover, Verdict,
};
#[doc(inline)]
pub use config::{ConfigError, Diagnostic, Severity, schema};
#[doc(inline)]
pub use policy::{Demand, Mode, ToolRule};
#[doc(inline)]
pub use tools::{
    Answered, ApprovalContext, Assessed, Assessment, Boxed, CallRequest, Effect, FunctionTool, Guarded, Hook, Outcome,
    Output, OutputEnd, Override, OverrideByConfig, Picture, Prepared, Question, Reach, RegimeLine, Session,
    SessionBuilder, SessionError, Tool, ToolError, ToolInfo, ToolSet, ToolSetBuilder,
};

/// Becomes the confined child, where this program was started as one; else returns at once.
///
/// Call it first in `main`, before threads, a runtime or an argument parser exist: a [`Session`] starts this program again to
/// confine commands. Where it was not called, or came too late, no session opens: [`SessionError::NotInitialized`],
/// [`SessionError::InitializedLate`]. A [`ToolSet::builder`] does without it.
///
/// ```no_run
/// stockade::init();
/// // … a runtime, an argument parser, a session.
/// ```
pub fn init() {
    confine::init();
}
