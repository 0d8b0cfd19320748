//! The settings of a session to be.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::git;
use super::narrowing::Narrowing;
use super::nobody::Nobody;
use super::session::Session;
use super::session_error::SessionError;
use crate::approval::Approver;
use crate::config::{Base, ConfigError, Context, Diagnostic, Loaded, Settings};
use crate::policy::path::display;
use crate::policy::{Demand, Mode};

/// The settings of a [`Session`] to be.
///
/// [`Session::builder`] makes one. The policy is a file, a text or a shipped preset, and what code adds to it: each setting is a
/// key of the config, with the value that stands there in a file, and is parsed, checked and proved with the rest. A setting wins
/// over the file, the text or the preset; rules come before theirs, and roots stand beside theirs. Without any policy, the session
/// has the presets `system` and `toolchains` and no root. `docs/config.md` has all keys. The audit log has a
/// hash of the text and of the settings.
///
/// ```no_run
/// use serde_json::json;
/// use stockade::{Demand, Mode, Session, SessionError, TerminalApprover};
///
/// # fn main() -> Result<(), SessionError> {
/// let session = Session::builder()
///     .directory("/srv/project")
///     .root("notes", json!({"root": "./notes", "mode": "rw", "write_approval": false}))
///     .rule(json!({"pattern": "git status", "approval": "none"}))
///     .tool("delete_file", Demand::Deny)
///     .set("shell.network", json!({"allow": ["crates.io:443"]}))
///     .mode(Mode::Interactive)
///     .approver(TerminalApprover::new())
///     .open()?;
/// for warning in session.warnings() {
///     eprintln!("{warning}");
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
#[derive(Debug, Default)]
pub struct SessionBuilder {
    base: Option<Base>,
    settings: Settings,
    /// The first setting that contradicts another.
    wrong: Option<Box<Diagnostic>>,
    ceilings: Vec<PathBuf>,
    directory: Option<PathBuf>,
    approver: Option<BoxedApprover>,
}

struct BoxedApprover(Box<dyn Approver + Send>);

impl std::fmt::Debug for BoxedApprover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Approver")
    }
}

impl Session {
    /// The settings of a session to be: its policy, its approver, its directory.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }
}

impl SessionBuilder {
    /// The policy of a config file, which is trusted. Its relative paths are relative to it.
    pub fn config_file(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let call = format!("config_file({})", display(&path));
        self.with_base(Base::File(path), &call)
    }

    /// The policy of a config as YAML text. Its relative paths are relative to the [directory](Self::directory).
    pub fn config_text(self, yaml: impl Into<String>) -> Self {
        self.with_base(Base::Text(yaml.into()), "config_text(…)")
    }

    /// The policy of a shipped preset, such as `workspace-write`, whose workspace is the [directory](Self::directory).
    pub fn preset(self, name: impl Into<String>) -> Self {
        let name = name.into();
        let call = format!("preset({name:?})");
        self.with_base(Base::Preset(name), &call)
    }

    fn with_base(mut self, base: Base, call: &str) -> Self {
        if self.base.replace(base).is_some() {
            let two = Diagnostic::error(format!("`{call}` is a second policy")).hint(
                "a session has one of `config_file`, `config_text` and `preset`; a config names others by `extends`",
            );
            self.wrong.get_or_insert(two);
        }
        self
    }

    /// One more root: what stands under `sandbox.paths` in a config, `{"root": "./notes", "mode": "rw"}` for example.
    pub fn root(self, name: &str, root: impl Into<Value>) -> Self {
        self.with(&["sandbox", "paths", name], root.into(), format!("root({name:?}, …)"))
    }

    /// One more shell rule, after those of earlier calls: an entry of `shell.rules`,
    /// `{"pattern": "git status", "approval": "none"}` for example.
    pub fn rule(mut self, rule: impl Into<Value>) -> Self {
        let pushed = self
            .settings
            .push(&["shell", "rules"], rule.into(), "rule(…)".to_owned());
        self.wrong = self.wrong.or(pushed.err());
        self
    }

    /// What calls of a tool need, whatever the tool itself thinks: `tools.NAME.approval`. It never un-blocks.
    pub fn tool(self, name: &str, approval: Demand) -> Self {
        let call = format!("tool({name:?}, Demand::{approval:?})");
        self.with(&["tools", name, "approval"], Value::from(approval.to_string()), call)
    }

    /// How questions are answered: `approval.mode`. The default is [`Mode::Interactive`].
    pub fn mode(self, mode: Mode) -> Self {
        self.with(
            &["approval", "mode"],
            Value::from(mode.to_string()),
            format!("mode(Mode::{mode:?})"),
        )
    }

    /// Any other key, with a dot before each key within another: `shell.limits`, `custom_tools.lint`.
    ///
    /// A key that has a dot itself stands in the value: `.set("custom_tools", json!({"server.tool": {}}))`.
    pub fn set(self, key: &str, value: impl Into<Value>) -> Self {
        let keys: Vec<&str> = key.split('.').collect();
        self.with(&keys, value.into(), format!("set({key:?}, …)"))
    }

    fn with(mut self, keys: &[&str], value: Value, call: String) -> Self {
        let set = self.settings.set(keys, value, call);
        self.wrong = self.wrong.or(set.err());
        self
    }

    /// One more ceiling: a file that is written like a config and only takes away. It must exist.
    pub fn ceiling(mut self, path: impl AsRef<Path>) -> Self {
        self.ceilings.push(path.as_ref().to_owned());
        self
    }

    /// Where commands start, what relative paths are relative to, and `$CWD` in a config. The default is the working directory
    /// of the program.
    pub fn directory(self, path: impl AsRef<Path>) -> Self {
        Self {
            directory: Some(path.as_ref().to_owned()),
            ..self
        }
    }

    /// The approver. Without one, every question is denied.
    pub fn approver(self, approver: impl Approver + Send + 'static) -> Self {
        Self {
            approver: Some(BoxedApprover(Box::new(approver))),
            ..self
        }
    }

    /// Opens the session. The roots with `create: true` are created; no command runs yet.
    ///
    /// # Errors
    /// [`init`](crate::init) was not called in time; the policy is wrong; the approver cannot be trusted; the user has no home; or
    /// this machine cannot confine what the policy permits.
    pub fn open(self) -> Result<Session, SessionError> {
        Session::require_init()?;
        let directory = self.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        let directory = std::path::absolute(&directory)
            .and_then(|absolute| absolute.metadata().map(|_| absolute))
            .map_err(|error| SessionError::Directory {
                directory,
                why: error.to_string(),
            })?;
        let context = Context {
            ceilings: self.ceilings.clone(),
            ..Context::host()
        };
        let loaded = self.load(&directory, &context)?;
        let approver = match self.approver {
            Some(BoxedApprover(approver)) => approver,
            None => Box::new(Nobody),
        };
        Session::open(loaded, Narrowing::default(), &directory, approver, &context)
    }

    fn load(&self, directory: &Path, context: &Context) -> Result<Loaded, ConfigError> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone().into());
        }
        let nothing = Base::default();
        let base = self.base.as_ref().unwrap_or(&nothing);
        match base {
            Base::Preset(name) => {
                git::with_git_directory(name, directory, |git| self.settings.load(base, directory, git, context))
            }
            Base::Nothing | Base::File(_) | Base::Text(_) => self.settings.load(base, directory, None, context),
        }
    }
}
