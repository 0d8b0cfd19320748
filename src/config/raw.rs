//! The raw mirror of a config file: what was typed, nothing looked up.
//!
//! One struct per mapping of the file. Doc comments here become the descriptions in the JSON Schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keywords::{
    RawApprovalMode, RawArgKind, RawBackend, RawChannel, RawDenyFallback, RawExplain, RawFallback, RawHome, RawMode,
    RawProtectFallback, RawResiduals, RawUnixSockets,
};
use super::scalar::{At, Entries, RawDemand, RawNetwork, RawProtect, RawSize, RawTime};

/// What an agent's file tools and shell tool may do, and what needs a person's yes.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Stockade config")]
pub(crate) struct RawConfig {
    /// Shipped presets, or files (`./base.yaml`), whose grants are added. Default `[system, toolchains]`; `[]` for none.
    pub(crate) extends: Option<Vec<At<String>>>,
    /// What the operating system enforces.
    pub(crate) sandbox: Option<RawSandbox>,
    /// What commands get, and which of them need a yes.
    pub(crate) shell: Option<RawShell>,
    /// Per-tool overrides, by tool name. They win over the tool's own opinion; they never un-block.
    pub(crate) tools: Option<Entries<RawTool>>,
    /// Commands with named arguments, offered as tools; without a command, functions of the program that embeds Stockade.
    pub(crate) custom_tools: Option<Entries<RawCustomTool>>,
    /// How questions are answered.
    pub(crate) approval: Option<RawApproval>,
    /// Whether what happens is recorded, and where.
    pub(crate) audit: Option<RawAudit>,
}

/// What the operating system enforces.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSandbox {
    /// `false` permits running unconfined when no regime works on this machine. Default true.
    pub(crate) require_os_sandbox: Option<At<bool>>,
    /// What a machine that cannot confine leads to. Default `fail_fast`.
    pub(crate) os_sandbox_fallback: Option<At<RawFallback>>,
    /// Which backend confines. Default `auto`, the strongest that passes its self-test.
    pub(crate) backend: Option<At<RawBackend>>,
    /// The named roots tools and commands may reach.
    pub(crate) paths: Option<Entries<RawRoot>>,
    /// Paths commands get besides the roots; missing ones are skipped.
    pub(crate) base: Option<RawBase>,
    /// Whether names the host will later trust or run are protected. Default `default`.
    pub(crate) protect: Option<At<RawProtect>>,
    /// What to do about them where a write-deny cannot be held. Default `undo`: it is put back after the command.
    pub(crate) protect_fallback: Option<At<RawProtectFallback>>,
    /// What to do about a deny inside a root where it cannot be held. Default `cover_existing`, which refuses what is no pattern, and refuses
    /// outside of namespaces.
    pub(crate) deny_fallback: Option<At<RawDenyFallback>>,
    /// What to do about metadata the regime cannot hide. Default `report`.
    pub(crate) residuals: Option<At<RawResiduals>>,
    /// A file written like this one that only takes away: what it does not grant is not granted.
    pub(crate) os_profile: Option<At<String>>,
}

/// A directory or file that tools and commands may reach.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRoot {
    /// Where it is: absolute, `~/…`, or relative to this file; `$CWD` is the directory Stockade was started in.
    pub(crate) root: At<String>,
    /// `ro` or `rw`. Default `ro`.
    pub(crate) mode: Option<At<RawMode>>,
    /// Whether files below it may be executed. Default false.
    pub(crate) execute: Option<At<bool>>,
    /// Only files with one of these suffixes.
    pub(crate) suffixes: Option<Vec<At<String>>>,
    /// The largest file that may be written.
    pub(crate) max_file_bytes: Option<At<RawSize>>,
    /// What reading and writing below it demand. Default `{read: none, write: required}`.
    pub(crate) approval: Option<At<RawRootApproval>>,
    /// Short form of `approval: {write: …}`.
    pub(crate) write_approval: Option<At<bool>>,
    /// Short form of `approval: {read: …}`.
    pub(crate) read_approval: Option<At<bool>>,
    /// What is forbidden below it: a path with a slash (relative to the root, or `$CWD/…`), or `name` or `*suffix` at any depth.
    pub(crate) deny: Option<Vec<At<String>>>,
    /// Make the directory if it is missing.
    pub(crate) create: Option<At<bool>>,
    /// Drop the root if it is missing.
    pub(crate) optional: Option<At<bool>>,
}

/// What reading and writing below a root demand.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRootApproval {
    /// What reading demands. Default `none`.
    pub(crate) read: Option<At<RawDemand>>,
    /// What writing demands. Default `required`.
    pub(crate) write: Option<At<RawDemand>>,
}

/// Paths commands get besides the roots.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBase {
    /// Readable.
    pub(crate) read: Option<Vec<At<String>>>,
    /// Readable and executable.
    pub(crate) read_execute: Option<Vec<At<String>>>,
    /// Devices that are readable and writable.
    pub(crate) read_write: Option<Vec<At<String>>>,
    /// Only the names in it, never content.
    pub(crate) list: Option<Vec<At<String>>>,
}

/// What commands get, and which of them need a yes.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawShell {
    /// Reach over IP. Default false.
    pub(crate) network: Option<At<RawNetwork>>,
    /// Reach over Unix sockets. Default `none`.
    pub(crate) unix_sockets: Option<At<RawUnixSockets>>,
    /// Whether outcomes say what was denied to a command, and why. Default `off`.
    pub(crate) explain: Option<At<RawExplain>>,
    /// Which HOME a command gets. Default `private`, an empty folder.
    pub(crate) home: Option<At<RawHome>>,
    /// The variables a command may see.
    pub(crate) env: Option<RawEnv>,
    /// Bounds on one command.
    pub(crate) limits: Option<RawLimits>,
    /// What holds where no rule matches. Default `{allowed: true, approval: required}`.
    pub(crate) default: Option<At<RawDefault>>,
    /// Rules, the first match deciding; `allowed: false` anywhere blocks.
    pub(crate) rules: Option<Vec<At<RawRule>>>,
}

/// The variables a command may see.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEnv {
    /// Names passed on from Stockade's own environment.
    pub(crate) pass: Option<Vec<At<String>>>,
    /// Names with fixed values.
    pub(crate) set: Option<Entries<At<String>>>,
}

/// Bounds on one command.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    /// Wall-clock time.
    pub(crate) timeout: Option<At<RawTime>>,
    /// Resident memory of the whole tree.
    pub(crate) memory: Option<At<RawSize>>,
    /// Processes and threads of the whole tree.
    pub(crate) processes: Option<At<u64>>,
    /// Open files of one process.
    pub(crate) open_files: Option<At<u64>>,
    /// Largest file one process may write.
    pub(crate) file_size: Option<At<RawSize>>,
    /// Bytes of output kept.
    pub(crate) output: Option<At<RawSize>>,
}

/// What holds where no rule matches.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDefault {
    /// `false` blocks every command no rule allows. Default true.
    pub(crate) allowed: Option<At<bool>>,
    /// What a command demands. Default `required`.
    pub(crate) approval: Option<At<RawDemand>>,
    /// Told to the agent when it is blocked.
    pub(crate) reason: Option<String>,
}

/// One shell rule.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRule {
    /// The words a command must begin with.
    pub(crate) pattern: At<String>,
    /// `false` blocks every line in which such a command stands. Default true.
    pub(crate) allowed: Option<At<bool>>,
    /// What a matching command demands. Default `required`.
    pub(crate) approval: Option<At<RawDemand>>,
    /// Matches only when the command's path arguments lie in these roots, and confines its writes to them.
    pub(crate) sandbox_paths: Option<Vec<At<String>>>,
    /// Reach over IP of a matching command, in place of `shell.network`.
    pub(crate) network: Option<At<RawNetwork>>,
    /// What the prompt shows.
    pub(crate) description: Option<String>,
    /// Why it is blocked, told to the agent.
    pub(crate) reason: Option<String>,
    /// Lines this rule must match; checked when the file is loaded.
    #[serde(rename = "match")]
    pub(crate) matches: Option<Vec<At<String>>>,
    /// Lines this rule must not match; checked when the file is loaded.
    #[serde(rename = "not_match")]
    pub(crate) not_matches: Option<Vec<At<String>>>,
}

/// An override for one tool.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTool {
    /// What the tool demands.
    pub(crate) approval: Option<At<RawDemand>>,
    /// `true` is a synonym of `approval: none`.
    pub(crate) pre_approved: Option<At<bool>>,
    /// Of `shell`: commands that nobody is asked about. Each is a rule `{pattern, approval: none}` after `shell.rules`.
    pub(crate) safe_commands: Option<Vec<At<String>>>,
    /// Of `shell`: regular expressions. A line that one matches is asked about, whatever rule answers for it.
    pub(crate) dangerous_patterns: Option<Vec<At<String>>>,
    /// Of a tool that changes files: paths, relative to this file, at or below which nobody is asked.
    pub(crate) safe_paths: Option<Vec<At<String>>>,
}

/// A command with named arguments, offered as a tool; without a command, a function of the program that embeds Stockade.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCustomTool {
    /// What it does, told to the agent. A command needs it.
    pub(crate) description: Option<String>,
    /// The program and its arguments; `{name}` is replaced by the argument of that name.
    pub(crate) command: Option<Vec<At<String>>>,
    /// The arguments.
    pub(crate) args: Option<Entries<At<RawArg>>>,
    /// What a call demands. Default `required`.
    pub(crate) approval: Option<At<RawDemand>>,
    /// The only roots that its writes reach. Default: those that its path arguments are bound to, and no other.
    pub(crate) sandbox_paths: Option<Vec<At<String>>>,
    /// Its reach over IP, in place of `shell.network`.
    pub(crate) network: Option<At<RawNetwork>>,
}

/// One argument of a custom tool.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawArg {
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: At<RawArgKind>,
    /// For a path: the root it must lie in.
    pub(crate) root: Option<At<String>>,
    /// For a choice: what may be chosen.
    pub(crate) choices: Option<Vec<At<String>>>,
    /// Told to the agent.
    pub(crate) description: Option<String>,
}

/// How questions are answered.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawApproval {
    /// Default `interactive`.
    pub(crate) mode: Option<At<RawApprovalMode>>,
    /// Where somebody is asked: the first of these that can be. `terminal`, `socket`, `program`, `elicitation`; none of
    /// them means that nobody is.
    pub(crate) channel: Option<At<Vec<At<RawChannel>>>>,
}

/// Whether what happens is recorded, and where.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAudit {
    /// `off`, `default` (in your state directory), or the absolute path of a file outside every root. In a ceiling, `required`:
    /// there is a log. Default `off`.
    pub(crate) log: Option<At<String>>,
    /// How large a file grows before the next one is begun. Default 64MiB.
    pub(crate) max_bytes: Option<At<RawSize>>,
    /// How many earlier files are kept. Default all.
    pub(crate) keep: Option<At<u64>>,
}
