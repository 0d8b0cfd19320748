//! Which files are read for the sake of settings, and how far they are believed.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::unistd::geteuid;

use crate::config;
use crate::policy::{AbsPath, Access, Identity, Operation, Policy};
use crate::profile::{FileReach, Profile};

/// What a session may do, and a forker of it: no setting leads beyond.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) struct Bounds<'a> {
    pub(in crate::tools) policy: &'a Policy,
    /// What any call of the session may do.
    pub(in crate::tools) envelope: &'a Profile,
    /// What the commands of this forker may do.
    pub(in crate::tools) profile: &'a Profile,
}

pub(super) enum Trust {
    /// A user wrote it.
    Whole(Found),
    /// Commands or another user may write it, so it leads nowhere.
    Plain(Found),
    /// It is not read, for this reason; none where nothing is there.
    Not(Option<&'static str>),
}

pub(super) struct Found {
    pub(super) path: AbsPath,
    identity: Identity,
}

impl Bounds<'_> {
    /// Whether the commands of the forker may read the path by themselves.
    pub(super) fn reads(self, path: &AbsPath) -> bool {
        may(Operation::Read, self.profile, path)
    }

    pub(super) fn trust(self, path: &Path) -> Trust {
        let Ok(walked) = config::walk(path) else {
            return Trust::Not(Some("cannot be looked at"));
        };
        let (Some(found), Some(identity)) = (&walked.found, walked.identity()) else {
            return Trust::Not(None);
        };
        // Root may be given the HOME of somebody else, who would choose for it what is read.
        let is_own = |found: &Metadata| found.uid() == 0 || found.uid() == geteuid().as_raw();
        let is_of_others = |link: &AbsPath| !std::fs::symlink_metadata(link.as_path()).is_ok_and(|link| is_own(&link));
        if walked.links.iter().any(is_of_others) {
            return Trust::Not(Some("lies behind a link of another user"));
        }
        let is_own = is_own(found);
        let may_write = |path: &AbsPath| may(Operation::Write, self.envelope, path);
        if walked.links.iter().any(may_write) {
            return Trust::Not(Some("lies behind a link that commands may change"));
        }
        let path = walked.path;
        let is_kept = self.policy.roots.iter().any(|root| path.is_within(&root.path)) && !self.reads(&path);
        let denies = self.profile.denies.iter().chain(&self.envelope.denies);
        let mut denies = denies.map(|deny| deny.leaves(Operation::Read, &path));
        if is_kept || denies.any(|left| left == Access::Denied) {
            return Trust::Not(Some("is not for commands to read"));
        }
        let is_plain = may_write(&path) || !is_own;
        let found = Found { path, identity };
        if is_plain {
            Trust::Plain(found)
        } else {
            Trust::Whole(found)
        }
    }

    /// The same of a file whose content commands are to have: no ceiling may keep it from them either. A command of an earlier
    /// session may have made a link, or another name of a file, where settings expect a file of the user's.
    pub(super) fn trust_content(self, path: &Path, home: Option<&Path>) -> Trust {
        let Ok(walked) = config::walk(path) else {
            return Trust::Not(Some("cannot be looked at"));
        };
        let is_above_home = |link: &AbsPath| home.is_some_and(|home| home.starts_with(link.as_path()));
        if !walked.links.iter().all(is_above_home) {
            return Trust::Not(Some("lies behind a link, which a command may have made"));
        }
        if walked.found.is_some_and(|found| found.nlink() > 1 && found.is_file()) {
            return Trust::Not(Some("has another name, which a command may have given it"));
        }
        match self.trust(path) {
            Trust::Whole(found) | Trust::Plain(found) if !self.is_below_ceilings(&found.path) => {
                Trust::Not(Some("is beyond a ceiling"))
            }
            trust => trust,
        }
    }

    fn is_below_ceilings(self, path: &AbsPath) -> bool {
        let mut ceilings = self.policy.ceilings.all.iter();
        ceilings.all(|ceiling| FileReach::access(&ceiling.policy, Operation::Read, path) > Access::Denied)
    }
}

impl Found {
    /// What is in it, if it is the regular file that was found, and at most so long.
    pub(super) fn content(&self, longest: u64) -> Option<Vec<u8>> {
        let mut options = OpenOptions::new();
        let options = options
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
        // A device is not even opened.
        let is_file = |found: &Metadata| {
            found.is_file() && (found.dev(), found.ino()) == (self.identity.device, self.identity.inode)
        };
        if !std::fs::symlink_metadata(self.path.as_path()).is_ok_and(|found| is_file(&found)) {
            return None;
        }
        let file: File = options.open(self.path.as_path()).ok()?;
        if !file.metadata().is_ok_and(|found| is_file(&found)) {
            return None;
        }
        let mut content = Vec::new();
        file.take(longest + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= longest).then_some(content)
    }
}

fn may(operation: Operation, profile: &Profile, path: &AbsPath) -> bool {
    profile.access(operation, path) > Access::Denied
}
