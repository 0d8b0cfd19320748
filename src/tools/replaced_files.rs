//! What a preset gives, looked at anew where it was replaced while a session lasts.
//!
//! `useradd` in another terminal puts a new `/etc/passwd` in the place of the old one, and no forker could start any more
//! until the session ends. Nobody named that file but a preset, which a new start would follow to what is there now. So
//! that is taken here, too, where root alone can have put it there; what a person named stays the file that it was.

use nix::unistd::Uid;

use super::foreign_writers::objection;
use super::plan::PlanError;
use crate::backend::status::Refusal;
use crate::config;
use crate::policy::{AbsPath, Identity, Origin, Rights, Scope};
use crate::profile::Profile;

/// Makes something of a profile, once more where it speaks of a file that was replaced and can be looked at anew; with the profile that
/// it was made of.
pub(in crate::tools) fn retry_with_current<T>(
    profile: Profile,
    of: impl Fn(&Profile) -> Result<T, PlanError>,
) -> Result<(T, Profile), PlanError> {
    let replaced = match of(&profile) {
        Ok(made) => return Ok((made, profile)),
        Err(error @ PlanError::Refused(Refusal::Replaced(_))) => error,
        Err(error) => return Err(error),
    };
    let Some(current) = with_current_identities(&profile, Uid::from_raw(0)) else {
        return Err(replaced);
    };
    Ok((of(&current)?, current))
}

/// The profile with what is there now, if any of it may be taken: files that only `keeper` and root can have put there.
fn with_current_identities(profile: &Profile, keeper: Uid) -> Option<Profile> {
    let mut current = profile.clone();
    for (path, known) in &profile.identities {
        if let Some(now) = current_identity(profile, path, *known, keeper) {
            current.identities.insert(path.clone(), now);
        }
    }
    (current.identities != profile.identities).then_some(current)
}

/// What a new start would grant there in the place of what is gone.
fn current_identity(profile: &Profile, path: &AbsPath, known: Identity, keeper: Uid) -> Option<Identity> {
    let mut clauses = profile.grants.iter().filter(|grant| grant.path == *path).peekable();
    clauses.peek()?;
    let is_presets = clauses.all(|grant| {
        matches!(grant.origin, Origin::Preset { .. }) && grant.scope == Scope::File && grant.rights == Rights::READ
    });
    if !is_presets {
        return None;
    }
    // A link that stands on the way by now would have a new start grant another path.
    let walked = config::walk(path.as_path())
        .ok()
        .filter(|walked| walked.path == *path)?;
    let now = walked.identity()?;
    let is_alike = walked.found.as_ref().is_some_and(std::fs::Metadata::is_file) && now.device == known.device;
    (is_alike && now != known && objection(path, keeper).is_none()).then_some(now)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::Path;
    use std::slice::from_ref;

    use super::*;
    use crate::config::Context;
    use crate::config::amend::load_amended;
    use crate::policy::Grant;
    use crate::profile::{ApprovedRoots, Call, derive};

    fn identity(path: &Path) -> Identity {
        let meta = fs::symlink_metadata(path).unwrap();
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
        }
    }

    /// A profile that grants nothing.
    fn nothing() -> Profile {
        let context = Context::host();
        let text = "sandbox: {paths: {}}\n";
        let loaded = load_amended(Path::new("/agent.yaml"), text, &context).unwrap();
        derive(&loaded.policy, &Call::of(ApprovedRoots::None))
    }

    /// A profile that reads one file, which was another one before.
    fn profile(file: &AbsPath, grants: &[Grant]) -> Profile {
        let mut profile = nothing();
        profile.grants = grants.to_vec();
        let now = identity(file.as_path());
        profile.identities.insert(
            file.clone(),
            Identity {
                inode: now.inode + 1,
                ..now
            },
        );
        profile
    }

    #[test]
    fn what_a_preset_reads_is_looked_at_anew_and_nothing_that_a_person_named_or_others_can_write() {
        let directory = tempfile::tempdir().unwrap();
        let base = AbsPath::new(fs::canonicalize(directory.path()).unwrap()).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let file = base.child("names").unwrap();
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let keeper = Uid::effective();
        let preset = || Origin::Preset {
            name: "system".into(),
            line: 1,
        };
        let grant = |scope, rights, origin| Grant {
            scope,
            ..Grant::tree(file.clone(), rights, origin)
        };
        let read = grant(Scope::File, Rights::READ, preset());
        let current = |grants: &[Grant]| with_current_identities(&profile(&file, grants), keeper);
        let taken = current(from_ref(&read)).unwrap();
        assert_eq!(taken.identities[&file], identity(file.as_path()));
        assert_eq!(taken.grants, from_ref(&read));
        // What is as it was is left alone.
        assert_eq!(with_current_identities(&taken, keeper), None);
        let written = || Origin::File {
            file: std::sync::Arc::new("/agent.yaml".into()),
            line: 1,
        };
        for other in [
            grant(Scope::File, Rights::READ, written()),
            grant(Scope::File, Rights::READ, Origin::Flag("--ro".into())),
            grant(Scope::Tree, Rights::READ, preset()),
            grant(Scope::File, Rights::READ | Rights::WRITE, preset()),
            grant(Scope::File, Rights::READ | Rights::EXECUTE, preset()),
        ] {
            assert_eq!(current(from_ref(&other)), None, "{other:?}");
            assert_eq!(current(&[read.clone(), other.clone()]), None, "{other:?}");
        }
        assert_eq!(current(&[]), None);
        // Somebody else could have put it there.
        let another = Uid::from_raw(keeper.as_raw() + 1);
        if !keeper.is_root() {
            assert_eq!(with_current_identities(&profile(&file, from_ref(&read)), another), None);
        }
        for place in [&base, &file] {
            let mode = fs::symlink_metadata(place).unwrap().permissions();
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
            assert_eq!(current(from_ref(&read)), None, "{place}");
            fs::set_permissions(place, mode).unwrap();
        }
        assert!(current(from_ref(&read)).is_some());
        // Another file system, another kind.
        let mut elsewhere = profile(&file, from_ref(&read));
        elsewhere.identities.get_mut(&file).unwrap().device += 1;
        assert_eq!(with_current_identities(&elsewhere, keeper), None);
        let known = profile(&file, &[read]);
        fs::rename(&file, base.child("moved").unwrap()).unwrap();
        assert_eq!(with_current_identities(&known, keeper), None);
        symlink("moved", &file).unwrap();
        assert_eq!(with_current_identities(&known, keeper), None);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(with_current_identities(&known, keeper), None);
    }

    #[test]
    fn what_cannot_be_looked_at_anew_stays_refused() {
        let path = AbsPath::new("/nowhere/names").unwrap();
        let refused = retry_with_current(nothing(), |_| {
            Err::<(), _>(PlanError::Refused(Refusal::Replaced(path.clone())))
        });
        let told = refused.unwrap_err().to_string();
        assert!(
            told.contains("/nowhere/names was replaced") && told.contains("new session"),
            "{told}"
        );
    }
}
