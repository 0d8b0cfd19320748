//! The environment of a command: empty but for what is named.

mod proxies;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::confine::session::PrivateDirectories;
use crate::policy::{AbsPath, Access, EnvRule, HomeChoice, Network, Operation};
use crate::profile::{FileReach, Profile};

/// The directories searched when none of the caller's own PATH is executable inside.
const FALLBACK_PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// Passed on from the caller when set, beside what the config passes.
const ALWAYS_PASSED: [&str; 2] = ["LANG", "TERM"];

/// The variables of a command under `profile`, each once, sorted by name.
///
/// PATH keeps the caller's order and loses what cannot be executed inside; HOME and TMPDIR are the
/// private ones. `extra` (from `--env`) wins over all of it, but for what leads to the `proxy`, where there is one on that port
/// of the command's own loopback: nothing else leads anywhere.
pub fn build(
    profile: &Profile,
    private: &PrivateDirectories,
    home: HomeChoice,
    extra: &[(OsString, OsString)],
    proxy: Option<u16>,
) -> Vec<(OsString, OsString)> {
    let mut variables = std::collections::BTreeMap::new();
    for name in ALWAYS_PASSED {
        if let Some(value) = std::env::var_os(name) {
            variables.insert(OsString::from(name), value);
        }
    }
    for (name, rule) in profile.environment.iter() {
        let value = match rule {
            EnvRule::Pass => std::env::var_os(name.as_str()),
            EnvRule::Set(value) => Some(value.clone()),
        };
        if let Some(value) = value {
            variables.insert(OsString::from(name.as_str()), value);
        }
    }
    variables.insert("PATH".into(), search_path(profile, std::env::var_os("PATH").as_deref()));
    match (home, std::env::var_os("HOME")) {
        (HomeChoice::Real, Some(real)) => variables.insert("HOME".into(), real),
        (HomeChoice::Real, None) | (HomeChoice::Private, _) => {
            variables.insert("HOME".into(), private.home.clone().into_os_string())
        }
    };
    variables.insert("TMPDIR".into(), private.tmp.clone().into_os_string());
    variables.extend(extra.iter().cloned());
    match (proxy, &profile.network) {
        (Some(port), Network::Hosts(list)) => variables.extend(proxies::variables(port, list)),
        (None, _) | (Some(_), Network::Off | Network::Full) => {}
    }
    variables.into_iter().collect()
}

fn search_path(profile: &Profile, own: Option<&OsStr>) -> OsString {
    let executable = |directory: &[u8]| {
        if !directory.starts_with(b"/") {
            return false;
        }
        // Where /bin is a link to /usr/bin, the profile knows the latter.
        std::fs::canonicalize(OsStr::from_bytes(directory))
            .ok()
            .and_then(|directory| AbsPath::new(directory).ok())
            .and_then(|path| path.child("program"))
            .is_some_and(|program| profile.access(Operation::Execute, &program) == Access::Full)
    };
    let kept: Vec<&[u8]> = own
        .map(OsStr::as_bytes)
        .unwrap_or_default()
        .split(|byte| *byte == b':')
        .filter(|dir| executable(dir))
        .collect();
    if kept.is_empty() {
        FALLBACK_PATH.join(":").into()
    } else {
        OsString::from_vec(kept.join(&b':'))
    }
}
