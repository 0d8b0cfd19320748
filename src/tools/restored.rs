//! What became of protected names that were changed, for people, agents and `--json`.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

use super::escape_truncated::escape_truncated;
use super::new_files::is_none;
use crate::confine::protect::ASIDE;
use crate::confine::wire::protocol::{PutBack, Violation};
use crate::policy::AbsPath;
use crate::policy::path::escape;

/// A protected name that was changed, and restored where that could be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restored {
    /// The protected path, escaped; of a long one the beginning, and its length.
    pub path: String,
    /// The whole path.
    #[serde(skip)]
    pub(super) full_path: OsString,
    /// What the command did to it.
    pub what: String,
    /// Where the intruder is kept, escaped.
    pub quarantined: Option<String>,
    /// The settings of a git config that were undone, escaped; what else it sets stays. Absent where none was the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub settings: Vec<String>,
    /// How many more settings were undone; absent where there are none.
    #[serde(skip_serializing_if = "is_none")]
    #[schemars(default)]
    pub more_settings: u64,
    /// Whether HEAD has another version than what is there now, so that a commit of everything would revert it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_other_in_head: bool,
    /// Whether a person saw the change and wanted it all the same.
    pub then: Then,
    /// When it was changed.
    #[serde(skip)]
    pub(super) when: ChangedWhen,
}

/// When a protected name was changed that was restored now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ChangedWhen {
    /// While the command ran whose outcome says so.
    #[default]
    Meanwhile,
    /// Before it.
    Earlier,
}

/// Why what is gone was not put back.
pub const GONE: &str = "a socket or device can only be made again by who made it";

/// What is said of a directory that let its owner in no longer.
const SHUT: &str = "shut";

/// What is said of what was there and became a hook.
const ADOPTED: &str = "adopted";

/// What is said where a mode, a group or an access list was changed, and nothing else.
const ACCESS: &str = "access";

/// Protected names that were changed, as they are told: of each kind the first, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// Those that were restored; of very many the first.
    pub restored: Vec<Restored>,
    /// Those that could not be restored; of very many the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub not_restored: Vec<Restored>,
    /// How many more were changed than these lists have; absent where there are none.
    #[serde(rename = "more_changed", skip_serializing_if = "is_none")]
    #[schemars(default)]
    pub more: u64,
}

impl Changed {
    const MAX_NAMES: usize = 50;
    /// About the most bytes of one list.
    const MOST_BYTES: usize = 64 << 10;

    pub(super) fn of(all: &[Restored]) -> Self {
        let list = |is_wanted: fn(&Restored) -> bool| -> Vec<Restored> {
            let mut left = Self::MOST_BYTES;
            let first = all.iter().filter(|one| is_wanted(one)).take(Self::MAX_NAMES);
            let fits = first.take_while(|one| {
                let room = left.checked_sub(one.size());
                left = room.unwrap_or_default();
                room.is_some()
            });
            fits.cloned().collect()
        };
        let (restored, not_restored) = (list(|one| !one.has_failed()), list(Restored::has_failed));
        Self {
            more: (all.len() - restored.len() - not_restored.len()) as u64,
            restored,
            not_restored,
        }
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.not_restored.is_empty() && self.more == 0
    }

    /// What is to be said of them, a line each, and how many more there are; they were changed at that time.
    pub fn messages(&self, when: &str) -> Vec<String> {
        let all = self.not_restored.iter().chain(&self.restored);
        let more = (self.more > 0).then(|| format!("… and {} more protected names were changed {when}", self.more));
        all.map(|one| one.message(when)).chain(more).collect()
    }
}

/// When a command that is over changed them.
pub(super) const MEANWHILE: &str = "meanwhile";
/// When they were changed before a call.
const EARLIER: &str = "earlier, by a session that was killed or by somebody else";

impl Restored {
    /// The message about it; `when` says when it was changed.
    pub(super) fn message(&self, when: &str) -> String {
        let path = &self.path;
        let when = match self.when {
            ChangedWhen::Meanwhile => when,
            ChangedWhen::Earlier => EARLIER,
        };
        let kept = || match &self.quarantined {
            Some(place) if place.contains(ASIDE) => format!(
                "; what was there is kept as {place}: it could not be moved to the quarantine, and no tool reads that name"
            ),
            Some(place) => format!("; what was there is kept in {place}"),
            None if self.what == "created" => "; what was there could not be kept".to_owned(),
            None => String::new(),
        };
        let beginning = match &self.then {
            Then::PutBack => return format!("{path} is protected; it is as the command left it, as you said"),
            Then::NotRestored(why) => {
                let what = match self.what.as_str() {
                    "gone" => "removed",
                    ACCESS => "changed as to who may use it",
                    SHUT => "closed to you",
                    what => what,
                };
                return format!(
                    "{path} is protected and was {what} {when}; it could NOT be restored: {why}{}",
                    kept()
                );
            }
            Then::NotPutBack(why) => format!("{path} could not be put back: {why}; it"),
            Then::StayedUndone => path.clone(),
        };
        if self.is_gone() {
            return format!("{beginning} is protected and was removed {when}; {GONE}{}", kept());
        }
        if self.what == ADOPTED {
            return format!(
                "{beginning} was there before, and git would run it as a hook of what was made a work tree {when}; it was taken away{}",
                kept()
            );
        }
        if self.what == SHUT {
            return format!(
                "{beginning} holds protected names and was closed to you {when} (its mode); it is open to you again"
            );
        }
        if self.what == ACCESS {
            return format!(
                "{beginning} is protected, and who may use it was changed {when} (its mode, group or access list); that is put right, and \
                 what it holds stays"
            );
        }
        format!(
            "{beginning} is protected and was {} {when}; restored{}{}{}",
            self.what,
            self.because(),
            kept(),
            self.warning()
        )
    }

    /// Whether it is not as it was: nothing could restore it.
    fn has_failed(&self) -> bool {
        match self.then {
            Then::NotRestored(_) => true,
            Then::StayedUndone => self.is_gone(),
            Then::PutBack | Then::NotPutBack(_) => false,
        }
    }

    /// About how many bytes it takes to tell of it.
    fn size(&self) -> usize {
        let why = match &self.then {
            Then::NotRestored(why) | Then::NotPutBack(why) => why.len(),
            Then::StayedUndone | Then::PutBack => 0,
        };
        let settings: usize = self.settings.iter().map(String::len).sum();
        self.path.len() + self.quarantined.as_ref().map_or(0, String::len) + settings + why
    }

    fn is_gone(&self) -> bool {
        self.what == "gone"
    }

    /// What a commit of everything would do, where HEAD has another version.
    fn warning(&self) -> String {
        if !self.is_other_in_head {
            return String::new();
        }
        let now = match self.what.as_str() {
            "created" => "there is none now; do not commit that",
            _ => "what is there now is the old one; do not commit it",
        };
        format!(". HEAD has another version of it: {now} by accident")
    }

    /// Which settings were undone, where some were the reason.
    fn because(&self) -> String {
        if self.settings.is_empty() {
            return String::new();
        }
        let mut names: Vec<String> = self.settings.iter().map(|name| format!("`{name}`")).collect();
        if self.more_settings > 0 {
            names.push(format!("{} more", self.more_settings));
        }
        let last = names.pop().unwrap_or_default();
        let all = match names.as_slice() {
            [] => last,
            others => format!("{} and {last}", others.join(", ")),
        };
        format!(" as to {all}, which may make git run something or lead it elsewhere")
    }
}

/// What became of a change after it was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It stayed undone.
    StayedUndone,
    /// A person saw it and approved: it is there again.
    PutBack,
    /// A person approved, and it could not be put back, for this reason.
    NotPutBack(String),
    /// It could not be undone, for this reason: it is as the command left it, or is missing.
    NotRestored(String),
}

impl From<Violation> for Restored {
    fn from(violation: Violation) -> Self {
        Self {
            // The forker said it: nothing it says moves a cursor, or fills a screen.
            path: escape_truncated(violation.path.as_bytes()),
            what: escape_truncated(violation.what.as_bytes()),
            quarantined: violation
                .quarantined
                .as_ref()
                .map(|path| escape_truncated(path.as_bytes())),
            settings: violation.settings.iter().map(|name| escape_truncated(name)).collect(),
            more_settings: violation.more_settings,
            is_other_in_head: violation.is_other_in_head,
            full_path: violation.path,
            then: match &violation.failed {
                Some(why) => Then::NotRestored(escape_truncated(why.as_bytes())),
                None => Then::StayedUndone,
            },
            when: ChangedWhen::Meanwhile,
        }
    }
}

/// What a start put back of what an earlier session left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// All that was, for the log.
    pub(super) restored: Vec<Restored>,
    /// Why the rest was not.
    pub(super) unsettled: Option<String>,
}

impl Recovery {
    /// What is to be said of it, a line each.
    pub fn messages(&self) -> Vec<String> {
        let unsettled = self.unsettled.iter();
        let unsettled = unsettled.map(|why| format!("protected names could not be restored: {why}"));
        Changed::of(&self.restored)
            .messages(EARLIER)
            .into_iter()
            .chain(unsettled)
            .collect()
    }
}

impl From<PutBack> for Recovery {
    fn from(put_back: PutBack) -> Self {
        Self {
            restored: put_back.violations.into_iter().map(Into::into).collect(),
            unsettled: put_back.unsettled.map(|why| escape(why.as_bytes())),
        }
    }
}

/// What starts of one session restored of what earlier ones left, and no call has reported yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Recovered(Arc<Mutex<Unreported>>);

/// Whether an agent may be told of a path.
struct MayTell(Box<dyn Fn(&AbsPath) -> bool + Send>);

impl fmt::Debug for MayTell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MayTell")
    }
}

#[derive(Debug, Default)]
struct Unreported {
    recovery: Recovery,
    /// What says which paths an agent may be told of; `None` where a person reads the outcomes.
    may_tell: Option<MayTell>,
    /// What it may not be told of.
    elsewhere: Vec<Restored>,
    /// How much of that is on record.
    recorded: usize,
}

impl Recovered {
    /// From now on an agent reads the outcomes, who is told only of such paths.
    pub(super) fn told_to_an_agent(&self, may_tell: impl Fn(&AbsPath) -> bool + Send + 'static) {
        self.lock().may_tell = Some(MayTell(Box::new(may_tell)));
    }

    pub(super) fn add(&self, put_back: PutBack) {
        let Recovery { restored, unsettled } = put_back.into();
        let mut all = self.lock();
        for one in restored {
            let one = Restored {
                when: ChangedWhen::Earlier,
                ..one
            };
            let path = AbsPath::new(Path::new(&one.full_path));
            let may_tell = |tell: &MayTell| path.as_ref().is_ok_and(|path| tell.0(path));
            if all.may_tell.as_ref().is_none_or(may_tell) {
                all.recovery.restored.push(one);
            } else {
                all.elsewhere.push(one);
            }
        }
        all.recovery.unsettled = all.recovery.unsettled.take().or(unsettled);
    }

    /// Takes the recovery; the caller must report it.
    pub(super) fn take(&self) -> Option<Recovery> {
        let all = std::mem::take(&mut self.lock().recovery);
        (all != Recovery::default()).then_some(all)
    }

    /// Adds what there is to what a command changed, which comes first.
    pub(super) fn append_to(&self, restored: &mut Vec<Restored>, unsettled: &mut Option<String>) {
        let Some(recovery) = self.take() else { return };
        restored.extend(recovery.restored);
        *unsettled = unsettled.take().or(recovery.unsettled);
    }

    /// What an agent is not told of and is not on record yet; the caller must record it.
    pub(super) fn unrecorded_elsewhere(&self) -> Vec<Restored> {
        let mut all = self.lock();
        let recorded = all.recorded;
        all.recorded = all.elsewhere.len();
        all.elsewhere.iter().skip(recorded).cloned().collect()
    }

    /// What only a person is told, a line each.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        Changed::of(&self.lock().elsewhere).messages(EARLIER)
    }

    fn lock(&self) -> MutexGuard<'_, Unreported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{self, Context};
    use crate::tools::Narrowing;
    use crate::tools::session_policy::SessionPolicy;

    fn restored(path: &str, failed: Option<&str>) -> Restored {
        Restored::from(Violation {
            path: path.into(),
            what: "changed".to_owned(),
            quarantined: None,
            settings: Vec::new(),
            more_settings: 0,
            is_other_in_head: false,
            failed: failed.map(str::to_owned),
        })
    }

    /// Its own roots, but for what they deny; a person is told of the rest.
    #[test]
    fn of_what_earlier_sessions_left_an_agent_is_told_what_it_may_read() {
        let scene = tempfile::tempdir().unwrap();
        let at = |path: &str| scene.path().join(path);
        std::fs::create_dir_all(at("work/secret/client")).unwrap();
        std::fs::write(
            at("c.yaml"),
            "extends: []\nsandbox: {paths: {w: {root: ./work, mode: rw, deny: [secret]}}}\n",
        )
        .unwrap();
        let policy = config::load(&at("c.yaml"), &Context::host()).unwrap().policy;
        let session = SessionPolicy::of(policy, Narrowing::default());
        let recovered = Recovered::default();
        recovered.told_to_an_agent(move |path| session.may_tell(path));
        let names = ["work/.envrc", "work/secret/client/.envrc", "elsewhere/.envrc"];
        let violation = |name: &str| Violation {
            path: at(name).into_os_string(),
            what: "changed".to_owned(),
            quarantined: None,
            settings: Vec::new(),
            more_settings: 0,
            is_other_in_head: false,
            failed: None,
        };
        recovered.add(PutBack {
            violations: names.map(violation).into(),
            ..PutBack::default()
        });
        let paths = |all: Vec<Restored>| {
            all.into_iter()
                .map(|one| PathBuf::from(one.full_path))
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(recovered.take().unwrap().restored), [at("work/.envrc")]);
        assert_eq!(recovered.elsewhere().len(), 2);
        assert_eq!(
            paths(recovered.unrecorded_elsewhere()),
            names[1..].iter().map(|name| at(name)).collect::<Vec<_>>()
        );
        assert!(recovered.unrecorded_elsewhere().is_empty());
    }

    #[test]
    fn what_could_not_be_restored_is_not_told_as_restored() {
        let changed = Changed::of(&[restored("/a", None), restored("/b", Some("no room"))]);
        assert_eq!(
            (changed.restored.len(), changed.not_restored.len(), changed.more),
            (1, 1, 0)
        );
        let told = changed.messages(MEANWHILE);
        assert_eq!(
            told,
            [
                "/b is protected and was changed meanwhile; it could NOT be restored: no room",
                "/a is protected and was changed meanwhile; restored",
            ]
        );
        let json = serde_json::to_value(&changed).unwrap();
        assert_eq!(json["not_restored"][0]["then"]["not_restored"], "no room");
    }

    #[test]
    fn of_very_many_names_the_first_are_told_and_the_others_counted() {
        let many: Vec<Restored> = (0..30_000)
            .map(|number| restored(&format!("/w/{number}"), None))
            .collect();
        let changed = Changed::of(&many);
        assert_eq!((changed.restored.len(), changed.more), (50, 29_950));
        assert_eq!(
            changed.messages(MEANWHILE).last().unwrap(),
            "… and 29950 more protected names were changed meanwhile"
        );
        let long: Vec<Restored> = (0..40).map(|_| restored(&"x".repeat(4000), None)).collect();
        let changed = Changed::of(&long);
        assert!(serde_json::to_string(&changed).unwrap().len() < 80 << 10);
        assert_eq!(changed.restored.len() as u64 + changed.more, 40);
    }
}
