//! One resolved config, and its ceilings, which are policies too.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::audit::Audit;
use super::channel::Channels;
use super::cut::{Cut, Lines};
use super::decision::{Demand, Mode};
use super::environment::Environment;
use super::grant::{Access, Origin, Scope};
use super::limits::Limits;
use super::name_pattern::NameChanges;
use super::network::{Network, OwnNetwork, UnixSockets};
use super::path::{AbsPath, escape};
use super::right::Operation;
use super::root::{BasePath, Root};
use regex::Regex;

use super::rule::ShellRule;

/// What a config says, once its paths are absolute and its presets are merged in.
///
/// This is the oracle: [`Policy::access`] answers from the roots of the config (the most specific
/// root decides), independently of how a profile is derived from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The named roots, sorted by path; no two have the same path.
    pub roots: Vec<Root>,
    /// Symlinks on the paths of the roots. They grant nothing; commands may use the roots under these paths, too.
    pub links: Vec<AbsPath>,
    /// System paths from presets. No tool uses them; a root at the path of one replaces it.
    pub base: Vec<BasePath>,
    /// Whether names the host will later trust or run are protected below writable roots.
    pub protect: Protect,
    /// Changes to the list of protected names.
    pub names: NameChanges,
    /// What to do about protected names where a write-deny cannot be held.
    pub protect_fallback: ProtectFallback,
    /// What to do about a deny inside a granted root where it cannot be held.
    pub deny_fallback: DenyFallback,
    /// What to do about metadata that the regime cannot hide.
    pub residuals: Residuals,
    /// What a machine that cannot confine leads to.
    pub os_sandbox: OsSandbox,
    /// Which backend is asked for.
    pub backend: BackendChoice,
    /// IP reach of commands, where no rule and no tool has its own.
    pub network: Network,
    /// IP reach of custom tools that have their own, by name.
    pub tool_networks: BTreeMap<String, OwnNetwork>,
    /// Unix-socket reach of commands.
    pub unix_sockets: UnixSockets,
    /// Which HOME a command gets.
    pub home: HomeChoice,
    /// The environment of commands, beyond what Stockade itself sets (HOME, TMPDIR, PATH).
    pub environment: Environment,
    /// Bounds on commands.
    pub limits: Limits,
    /// Whether outcomes of commands say what was denied.
    pub explain: Explain,
    /// Shell rules in file order.
    pub rules: Vec<ShellRule>,
    /// What holds where no rule matches; its pattern is empty.
    pub default_rule: ShellRule,
    /// Lines that are asked about, whatever rule answers for them.
    pub dangerous: Vec<LinePattern>,
    /// Per-tool overrides, by tool name.
    pub tools: BTreeMap<String, ToolRule>,
    /// Paths at or below which a tool that changes files asks nobody, by tool name.
    pub safe_paths: BTreeMap<String, Vec<SafePath>>,
    /// How questions are answered unless a flag says otherwise.
    pub mode: Mode,
    /// Where somebody may be asked.
    pub channels: Channels,
    /// Whether what happens is recorded, and where.
    pub audit: Audit,
    /// The ceilings.
    pub ceilings: Ceilings,
}

/// The ceilings of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ceilings {
    /// Each of them; their order means nothing.
    pub all: Vec<Ceiling>,
    /// The requests beyond them, except for files, which take a derivation to compare.
    pub cuts: Vec<Cut>,
    /// The networks of the policy before any ceiling was applied; empty without ceilings.
    pub requested: Vec<Network>,
    /// The lines that the policy's own settings come from.
    pub lines: Lines,
}

/// A file that bounds a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// Where it was read.
    pub file: Arc<PathBuf>,
    /// The bounds; it has no ceilings itself.
    pub policy: Policy,
}

/// Whether outcomes of commands say what was denied, and why. It changes nothing of what is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Explain {
    /// They do not.
    #[default]
    Off,
    /// Where a command fails and speaks of a refusal, its outcome says how to find out.
    OnFailure,
    /// They do; each call with a path in it is slower.
    Always,
}

/// `sandbox.protect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protect {
    /// Nothing is protected.
    None,
    /// The default names, and these files by path (the config itself): what the host runs at once is covered, the rest is
    /// restored after each command.
    Default(Vec<AbsPath>),
    /// The same names: all that exist are read-only.
    Prevent(Vec<AbsPath>),
}

impl Protect {
    /// The files that are protected by path; `None` where nothing is protected.
    pub fn files(&self) -> Option<&[AbsPath]> {
        match self {
            Self::None => None,
            Self::Default(files) | Self::Prevent(files) => Some(files),
        }
    }

    /// The stricter of two, with the files of the first.
    #[must_use]
    pub fn and(&self, most: &Self) -> Self {
        match (self, most) {
            (Self::None, Self::Default(_)) => Self::Default(Vec::new()),
            (Self::None, Self::Prevent(_)) => Self::Prevent(Vec::new()),
            (Self::Default(files), Self::Prevent(_)) => Self::Prevent(files.clone()),
            (Self::None, Self::None)
            | (Self::Default(_), Self::None | Self::Default(_))
            | (Self::Prevent(_), Self::None | Self::Default(_) | Self::Prevent(_)) => self.clone(),
        }
    }

    /// Its keyword in a config.
    pub const fn keyword(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Default(_) => "default",
            Self::Prevent(_) => "prevent",
        }
    }
}

/// `sandbox.protect_fallback`. Ordered: less is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtectFallback {
    /// Refuse to start.
    Refuse,
    /// Restore protected names after the command.
    Undo,
}

/// `sandbox.deny_fallback`. Ordered: less is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenyFallback {
    /// Refuse to start, naming the clause.
    Refuse,
    /// Rule the siblings one by one; stricter, because the directories on the way are frozen.
    Decompose,
    /// Cover the names of a pattern that exist before each command, where mounts can. One that a command makes is open to that
    /// command, reported, and covered from the next one on. Elsewhere the same as `Refuse`.
    CoverExisting,
}

impl DenyFallback {
    /// Its keyword in a config.
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Decompose => "decompose",
            Self::CoverExisting => "cover_existing",
        }
    }

    /// Whether a name that matches a pattern may appear while a command runs, and is covered from the next command on. A
    /// config that refuses residuals does not admit that.
    pub const fn admits_new_names(self, residuals: Residuals) -> bool {
        matches!((self, residuals), (Self::CoverExisting, Residuals::Report))
    }
}

/// `sandbox.residuals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Residuals {
    /// Refuse to start while the regime leaves anything open.
    Refuse,
    /// Name what it leaves open in the regime line.
    Report,
}

/// `sandbox.require_os_sandbox` with `sandbox.os_sandbox_fallback`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OsSandbox {
    /// Refuse to start on a machine that cannot confine.
    FailFast,
    /// Start, and refuse every tool call with the reason.
    RefuseTools,
    /// Run unconfined when no regime works, and say so with every outcome.
    NotRequired,
}

/// `sandbox.backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendChoice {
    /// The strongest that passes its self-test.
    Auto,
    /// Landlock and seccomp.
    Landlock,
    /// Namespaces, with Landlock and seccomp inside, whoever can make them.
    Namespaces,
    /// The same, and bwrap makes them.
    Bwrap,
}

impl BackendChoice {
    /// The word for it in a config.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Bwrap => "bwrap",
        }
    }
}

/// `shell.home`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeChoice {
    /// An empty folder of the session's own.
    Private,
    /// The user's own HOME variable; what lies there is reachable only as far as roots grant it.
    Real,
}

/// One entry of `tools:` in a config: what a call of the tool needs.
///
/// [`Session::rules`](crate::Session::rules) returns them by tool name.
///
/// ```no_run
/// use stockade::{Demand, Session};
///
/// fn unasked(session: &Session) -> Vec<&String> {
///     let rules = session.rules().iter();
///     rules.filter(|(_, rule)| rule.approval == Demand::None).map(|(name, _)| name).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRule {
    /// The demand of the config. It overrides the tool's own opinion, and never un-blocks.
    pub approval: Demand,
    /// The line of the config.
    pub origin: Origin,
}

/// A path at or below which a tool asks nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafePath {
    /// The path, without symlinks.
    pub path: AbsPath,
    /// Where it was written.
    pub origin: Origin,
}

/// A regular expression on a command line.
#[derive(Debug, Clone)]
pub struct LinePattern {
    /// The expression; it is searched for, not matched from the start.
    pub expression: Regex,
    /// Where it was written.
    pub origin: Origin,
}

impl PartialEq for LinePattern {
    fn eq(&self, other: &Self) -> bool {
        self.expression.as_str() == other.expression.as_str() && self.origin == other.origin
    }
}

impl Eq for LinePattern {}

/// The owner of a network of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkOf<'a> {
    /// The commands that a rule matches.
    Rule(&'a ShellRule),
    /// A custom tool.
    Tool(&'a str),
}

impl fmt::Display for NetworkOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "command `{}`", escape(rule.pattern.join(" ").as_bytes())),
            Self::Tool(name) => write!(f, "tool `{name}`"),
        }
    }
}

impl Policy {
    /// Whether some backend may enforce a pattern in a writable root.
    pub fn may_hold_patterns(&self) -> bool {
        let by_entry = self.deny_fallback == DenyFallback::Decompose;
        by_entry || self.backend != BackendChoice::Landlock && self.deny_fallback.admits_new_names(self.residuals)
    }

    /// Everything with a network of its own: rules in file order, then tools.
    pub fn own_networks(&self) -> impl Iterator<Item = (NetworkOf<'_>, &OwnNetwork)> {
        let rules = self.rules.iter();
        let rules = rules.filter_map(|rule| rule.network.as_ref().map(|own| (NetworkOf::Rule(rule), own)));
        let tools = self.tool_networks.iter();
        rules.chain(tools.map(|(name, own)| (NetworkOf::Tool(name), own)))
    }

    /// Every network that some call may get.
    pub fn networks(&self) -> impl Iterator<Item = &Network> {
        std::iter::once(&self.network).chain(self.own_networks().map(|(_, own)| &own.network))
    }

    /// What the config gives for `operation` on `path`.
    ///
    /// The most specific root above the path decides, and base paths below that root add to it.
    /// Denies of every root win over both, and ceilings bound the result.
    pub fn access(&self, operation: Operation, path: &AbsPath) -> Access {
        let root = match operation {
            // A file has no listing, so the root around a one-file root decides.
            Operation::List => self.root_among(path, |root| root.scope != Scope::File),
            Operation::Read | Operation::Write | Operation::Execute => self.root_for(path),
        };
        let from_root = root.map_or(Access::Denied, |root| root.gives(operation, path));
        let from_base = self
            .base
            .iter()
            .filter(|base| root.is_none_or(|root| base.grant.path.is_below(&root.path)))
            .map(|base| base.grant.gives(operation, path));
        let granted = from_base.fold(from_root, Access::max);
        let denies = self.roots.iter().flat_map(|root| &root.denies);
        let own = denies
            .map(|deny| deny.leaves(operation, path))
            .fold(granted, Access::min);
        let ceilings = self.ceilings.all.iter();
        ceilings
            .map(|ceiling| ceiling.policy.access(operation, path))
            .fold(own, Access::min)
    }

    /// The most specific root above `path`. A one-file root counts for its own path only.
    pub fn root_for(&self, path: &AbsPath) -> Option<&Root> {
        self.root_among(path, |_| true)
    }

    fn root_among(&self, path: &AbsPath, eligible: impl Fn(&Root) -> bool) -> Option<&Root> {
        self.roots
            .iter()
            .filter(|root| eligible(root))
            .filter(|root| match root.scope {
                Scope::File => *path == root.path,
                Scope::Tree | Scope::Names => path.is_within(&root.path),
            })
            .max_by_key(|root| root.path.as_path().components().count())
    }
}
