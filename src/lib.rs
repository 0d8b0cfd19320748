//! An OS-sandboxed tool executor for AI agents.
//!
//! One YAML file says what an agent's commands may do and what needs a person's yes. From it Stockade
//! derives a profile, lowers it to Landlock rules and seccomp filters, proves that these permit no
//! more than the file says, runs each command in a child that the kernel confines, and asks for
//! approval in the parent. Where the machine cannot confine, it refuses.
//!
//! The floors, each importing only from those above it in this list: [`policy`] (the vocabulary) ·
//! [`config`] and [`profile`] · [`backend`] (profile → plan, pure) · [`confine`], [`approval`], [`audit`] and [`proxy`] ·
//! [`tools`] · [`inspect`] and [`learn`] · [`cli`] and [`mcp`].
//!
//! # Use
//!
//! A program that embeds the library calls [`confine::main`] first, when
//! [`confine::is_ours`] says so of its first argument: the confined child is the same binary, re-executed.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use serde_json::json;
//! use stockade::confine;
//! use stockade::tools::{Session, TerminalApprover, terminal_size};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let approver = Box::new(TerminalApprover::new(terminal_size));
//! let session = Session::with_config(Path::new("agent.yaml"), &std::env::current_dir()?, approver)?;
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
//!     if std::env::args_os().nth(1).is_some_and(|first| confine::is_ours(&first)) {
//!         confine::main();
//!     }
//!     // …
//! }
//! ```
//!
//! [`tools::Session`] tells more: who answers, what a function of the program needs to be asked about as well
//! ([`tools::FunctionTool`]), and how a delegate shares it all. `examples/agent_loop.rs` is a whole program.
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

pub mod approval;
pub mod audit;
pub mod backend;
pub mod cli;
pub mod config;
pub mod confine;
pub mod inspect;
pub mod learn;
pub mod mcp;
pub mod policy;
pub mod profile;
pub mod proxy;
pub mod tools;
