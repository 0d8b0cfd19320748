//! The config of the next round: its text, the accepted changes, and its policy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::LearnArgs;
use crate::cli::error::CliError;
use crate::cli::policy::{self, Chosen, Purpose};
use crate::config::amend::{Basis, Change, Original, amend, load_amended, new_config};
use crate::config::{Context, Loaded, resolve_path};
use crate::learn::{outermost, verify as verify_changes};
use crate::policy::{AbsPath, Policy};
use crate::tools::Narrowing;

#[derive(Debug)]
pub(super) struct Draft {
    /// The text of the file as it is now; empty for a new file.
    before: String,
    /// The text before anything was accepted.
    begun: String,
    /// The policy before anything was accepted.
    old: Policy,
    text: String,
    loaded: Loaded,
    pub(super) narrowing: Narrowing,
    path: PathBuf,
    directory: AbsPath,
    accepted: Vec<Change>,
}

impl Draft {
    /// The config in use, or a new one with the same meaning.
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
            None => new_config(&loaded, beginning, &directory).map_err(CliError::failed)?,
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

    /// Verifies that the paths of the config lead where they led at first. A command of a round may have replaced one with a link, which the
    /// config would follow.
    pub(super) fn verify_paths(&self) -> Result<(), CliError> {
        let roots = self.old.roots.iter().map(|root| &root.path);
        let bases = self.old.base.iter().map(|base| &base.grant.path);
        for path in roots.chain(bases) {
            let elsewhere = match resolve_path(path.as_path()) {
                Ok(now) if now == *path => continue,
                Ok(now) => format!("to {now}"),
                // A config that names a missing path is refused elsewhere.
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

    /// The diff that these changes would make.
    pub(super) fn difference(&self, changes: impl IntoIterator<Item = Change>) -> Result<String, CliError> {
        Ok(unified(&self.text, &self.amended(&self.with(changes))?))
    }

    /// The diff of everything accepted so far.
    pub(super) fn total_difference(&self) -> String {
        unified(&self.before, &self.text)
    }

    /// The policy of the config with this change.
    ///
    /// # Errors
    /// One line on why such a config would not load or hold.
    pub(super) fn policy_with(&self, args: &LearnArgs, change: &Change, context: &Context) -> Result<Policy, String> {
        let message = |failure: CliError| failure.into_parts().0;
        let all = self.with([change.clone()]);
        let text = self.amended(&all).map_err(message)?;
        let loaded = load_amended(&self.path, &text, context)
            .map_err(|error| format!("the config cannot grant it: {}", error.line()))?;
        Ok(self.verify(args, loaded, &all).map_err(message)?.policy)
    }

    /// Accepts these changes and no others.
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

    /// The accepted changes with these, without those that a larger one includes.
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
        // Always from the first text: a change that a larger one includes leaves no trace.
        amend(&self.begun, &self.directory, all).map_err(CliError::failed)
    }

    /// Loads a text and verifies its policy.
    fn load(&self, args: &LearnArgs, text: &str, changes: &[Change], context: &Context) -> Result<Loaded, CliError> {
        let loaded = load_amended(&self.path, text, context)
            .map_err(|error| CliError::failed(error).remedy("the config with that change would not be one"))?;
        self.verify(args, loaded, changes)
    }

    /// Applies flags and ceilings, and verifies that the policy permits no more than the old one and the accepted changes.
    fn verify(&self, args: &LearnArgs, mut loaded: Loaded, changes: &[Change]) -> Result<Loaded, CliError> {
        policy::apply_flags(&args.policy, &mut loaded.policy, Purpose::Run)?;
        args.audit.apply(&mut loaded.policy)?;
        verify_changes(&self.old, &loaded.policy, &changes.iter().collect::<Vec<_>>()).map_err(|strayed| {
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
