//! Tests of the whole way from text to policy, in a directory of their own each.

mod ceilings;
mod clauses;
mod errors;
mod extending;
mod hosts;
mod presets;
mod private;
mod protect;
mod robust;
mod root_errors;
mod schema;
mod second_path;
mod short;
mod start;
mod text;
mod trusting;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{ConfigError, Context, Loaded, SystemCeiling, load, presets as shipped};
use crate::policy::{AbsPath, Root};

/// A home, a project beside it, and a context that knows only these.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
    pub(crate) context: Context,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["home", "project"] {
            std::fs::create_dir(real.join(name)).unwrap();
        }
        let home = AbsPath::new(real.join("home")).unwrap();
        let variables = [("HOME", home.as_path()), ("EMPTY", Path::new(""))];
        let context = Context {
            variables: variables
                .map(|(name, value)| (name.into(), value.into()))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            home: Some(home),
            passwd: real.join("etc/passwd"),
            start: AbsPath::new(real.join("project")).ok(),
            system_ceiling: SystemCeiling {
                path: real.join("etc/stockade/ceiling.yaml"),
                owner: nix::unistd::Uid::effective().as_raw(),
            },
            ceilings: Vec::new(),
            presets: shipped::preset,
        };
        Self { dir, context }
    }

    pub(super) fn project(&self) -> PathBuf {
        std::fs::canonicalize(self.dir.path()).unwrap().join("project")
    }

    pub(super) fn home(&self) -> PathBuf {
        std::fs::canonicalize(self.dir.path()).unwrap().join("home")
    }

    pub(super) fn mkdir(&self, below_project: &str) {
        std::fs::create_dir_all(self.project().join(below_project)).unwrap();
    }

    pub(super) fn link(&self, target: impl AsRef<Path>, below_project: &str) {
        std::os::unix::fs::symlink(target, self.project().join(below_project)).unwrap();
    }

    pub(super) fn write(&self, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join("stockade.yaml");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(super) fn load(&self, text: impl AsRef<[u8]>) -> Result<Loaded, ConfigError> {
        load(&self.write(text), &self.context)
    }

    pub(super) fn ok(&self, text: &str) -> Loaded {
        self.load(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The rendered error, the temporary directory's name taken out.
    pub(super) fn error(&self, text: impl AsRef<[u8]>) -> String {
        self.shown(&self.load(text).unwrap_err().to_string())
    }

    pub(super) fn shown(&self, text: &str) -> String {
        let dir = std::fs::canonicalize(self.dir.path()).unwrap();
        text.replace(dir.to_str().unwrap(), "/dir")
    }
}

pub(super) fn root<'a>(loaded: &'a Loaded, name: &str) -> &'a Root {
    loaded.policy.roots.iter().find(|root| root.name == name).unwrap()
}
