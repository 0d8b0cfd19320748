//! The config as it stands: a text, what was accepted for it, and the policy that it comes to.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::LearnArgs;
use crate::cli::error::CliError;
use crate::cli::policy::{self, Chosen, Purpose};
use crate::config::amend::{Basis, Change, Original, amend, load_amended, new_config};
use crate::config::{Context, Loaded, resolve_path};
use crate::learn::{hold, outermost};
use crate::policy::{AbsPath, Policy};
use crate::tools::Narrowing;

/// The config of the next round.
#[derive(Debug)]
pub(super) struct Draft {
    /// What is written there now; of a new config, what it began with.
    before: String,
    /// The text before anything was accepted.
    begun: String,
    /// What the policy was before anything was accepted.
    old: Policy,
    text: String,
    loaded: Loaded,
    pub(super) narrowing: Narrowing,
    path: PathBuf,
    directory: AbsPath,
    accepted: Vec<Change>,
}

impl Draft {
    /// The config that holds now, or a new one that says the same.
    pub(super) fn new(
        args: &LearnArgs,
        chosen: Chosen,
        original: Option<&Original>,
        beginning: &Basis,
        path: &Path,
        context: &Context,
    ) -> Result<Self, CliError> {
        let Chosen { loaded, narrowing } = chosen;
        let directory = path.parent().map(std::fs::canonicalize);
        let directory = directory
            .and_then(Result::ok)
            .and_then(|directory| AbsPath::new(directory).ok());
        let directory = directory.ok_or_else(|| {
            CliError::failed(format!(
                "the directory of {} is not there",
                crate::policy::path::display(path)
            ))
        })?;
        let text = match original {
            Some(original) => original.text().to_owned(),
            None => fresh(&loaded, beginning, &directory).map_err(CliError::failed)?,
        };
        let is_same_file = original.is_some_and(|original| original.path() == path);
        let mut draft = Self {
            before: if is_same_file { text.clone() } else { String::new() },
            begun: text.clone(),
            old: loaded.policy.clone(),
            text: text.clone(),
            loaded,
            narrowing,
            path: path.to_owned(),
            directory,
            accepted: Vec::new(),
        };
        if !is_same_file {
            draft.loaded = draft.load(args, &text, &[], context)?;
        }
        Ok(draft)
    }

    /// Holds what the config named at first against what is there: a command that could write for a round may have put a
    /// link where the config, as it is in its file, follows one.
    pub(super) fn verify_paths(&self) -> Result<(), CliError> {
        let roots = self.old.roots.iter().map(|root| &root.path);
        let bases = self.old.base.iter().map(|base| &base.grant.path);
        for path in roots.chain(bases) {
            let elsewhere = match resolve_path(path.as_path()) {
                Ok(now) if now == *path => continue,
                Ok(now) => format!("to {now}"),
                // A config that names what is not there is refused.
                Err(_) if std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) => {
                    continue;
                }
                Err(error) => format!("elsewhere ({error})"),
            };
            return Err(CliError::failed(format!(
                "{path}, which the config names, leads {elsewhere} since the command ran"
            ))
            .remedy("look at the link and remove it before that config is used again: it would be followed; nothing was written"));
        }
        Ok(())
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.loaded.policy
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was accepted.
    pub(super) fn accepted(&self) -> &[Change] {
        &self.accepted
    }

    /// What these changes would do to the text, as a person reads it.
    pub(super) fn difference(&self, changes: impl IntoIterator<Item = Change>) -> Result<String, CliError> {
        Ok(unified(&self.text, &self.amended(&self.with(changes))?))
    }

    /// All that is changed of what is written now.
    pub(super) fn total_difference(&self) -> String {
        unified(&self.before, &self.text)
    }

    /// The policy of a config that says this as well.
    ///
    /// # Errors
    /// Why there is none; in a line, where the config would not load.
    pub(super) fn policy_with(&self, args: &LearnArgs, change: &Change, context: &Context) -> Result<Policy, String> {
        let message = |failure: CliError| failure.into_parts().0;
        let all = self.with([change.clone()]);
        let text = self.amended(&all).map_err(message)?;
        let loaded = load_amended(&self.path, &text, context)
            .map_err(|error| format!("the config cannot grant it: {}", error.line()))?;
        Ok(self.verify(args, loaded, &all).map_err(message)?.policy)
    }

    /// Accepts these changes: the text says them from here on, and nothing else that is new.
    pub(super) fn accept(
        &mut self,
        args: &LearnArgs,
        changes: impl IntoIterator<Item = Change>,
        context: &Context,
    ) -> Result<(), CliError> {
        let all = self.with(changes);
        let text = self.amended(&all)?;
        let loaded = self.load(args, &text, &all, context)?;
        (self.text, self.loaded, self.accepted) = (text, loaded, all);
        Ok(())
    }

    /// What was accepted, with this, without what has become part of something larger.
    fn with(&self, changes: impl IntoIterator<Item = Change>) -> Vec<Change> {
        let mut all = self.accepted.clone();
        for change in changes {
            if !all.contains(&change) {
                all.push(change);
            }
        }
        outermost(&mut all, self.policy(), |change| change);
        all
    }

    fn amended(&self, all: &[Change]) -> Result<String, CliError> {
        // Always from what it began with: what has become part of something larger leaves no trace.
        amend(&self.begun, &self.directory, all).map_err(CliError::failed)
    }

    /// The policy of a text, held against the old one and what was accepted.
    fn load(&self, args: &LearnArgs, text: &str, changes: &[Change], context: &Context) -> Result<Loaded, CliError> {
        let loaded = load_amended(&self.path, text, context)
            .map_err(|error| CliError::failed(error).remedy("the config with that change would not be one"))?;
        self.verify(args, loaded, changes)
    }

    /// The policy with what flags and ceilings say, held against the old one and what was accepted.
    fn verify(&self, args: &LearnArgs, mut loaded: Loaded, changes: &[Change]) -> Result<Loaded, CliError> {
        policy::apply_flags(&args.policy, &mut loaded.policy, Purpose::Run)?;
        args.audit.apply(&mut loaded.policy)?;
        hold(&self.old, &loaded.policy, &changes.iter().collect::<Vec<_>>()).map_err(|strayed| {
            let failure = CliError::failed(strayed);
            if self.before.is_empty() {
                failure.remedy(
                    "a config that lies elsewhere means other places where it says `.`: write it beside what it speaks of",
                )
            } else {
                failure
            }
        })?;
        Ok(loaded)
    }
}

fn unified(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .to_string()
}
