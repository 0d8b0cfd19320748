//! An OS-sandboxed tool executor for AI agents.
//!
//! One YAML file says what an agent's commands may do and what needs a person's yes. From it Stockade
//! derives a profile, lowers it to Landlock rules and seccomp filters, proves that these permit no
//! more than the file says, runs each command in a child that the kernel confines, and asks for
//! approval in the parent. Where the machine cannot confine, it refuses.
//!
//! The floors, each importing only from those above it in this list: [`policy`] (the vocabulary) ·
//! [`config`] and [`profile`] · [`backend`] (profile → plan, pure) · [`confine`] and [`approval`] ·
//! [`tools`] · [`cli`].
//!
//! # Use
//!
//! A program that embeds the library calls [`confine::stage::main`] first, when
//! [`confine::stage::is_ours`] says so of its first argument: the confined child is the same binary, re-executed.
//!
//! ```no_run
//! use stockade::policy::Mode;
//! use stockade::policy::shell::{rule_covers, rule_matches};
//! use stockade::tools::{
//!     Executor, Narrowing, OutputMode, Places, ShellCall, ShellCommand, Stdin, TerminalApprover, terminal_size,
//! };
//! use stockade::{config, confine};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let here = std::env::current_dir()?;
//! let context = config::Context::host(config::Matchers { matches: rule_matches, covers: rule_covers });
//! let loaded = config::preset("workspace-write", &here, &context)?;
//! let places = Places { state: "/home/me/.local/state/stockade".into(), home: "/home/me".into() };
//! let approver = Box::new(TerminalApprover::new(terminal_size));
//! let mut executor = Executor::new(loaded.policy, Narrowing::default(), Mode::Strict, approver, places)?;
//! let (_stop, stops) = tokio::sync::mpsc::channel(1);
//! let outcome = executor
//!     .shell(ShellCall {
//!         command: ShellCommand::Line("make -j2".into()),
//!         directory: here,
//!         environment: Vec::new(),
//!         timeout: None,
//!         stdin: Stdin::Null,
//!         output: OutputMode::Capture,
//!         stops,
//!     })
//!     .await?;
//! println!("{:?}", outcome.status);
//! executor.finish().await;
//! # Ok(())
//! # }
//!
//! fn main() {
//!     if std::env::args_os().nth(1).is_some_and(|first| confine::stage::is_ours(&first)) {
//!         confine::stage::main();
//!     }
//!     // …
//! }
//! ```
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
pub mod backend;
pub mod cli;
pub mod config;
pub mod confine;
pub mod policy;
pub mod profile;
pub mod tools;
