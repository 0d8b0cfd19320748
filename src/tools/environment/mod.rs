//! The environment of a command: empty but for what is named.

mod caches;
mod proxies;

use std::ffi::{OsStr, OsString};

use super::network::ProxySession;
use super::pool::Pool;
use super::search::{Search, UngrantedFiles, own_path};
use crate::confine::Confinement;
use crate::confine::session::PrivateDirectories;
use crate::policy::{AbsPath, Access, EnvRule, HomeChoice, Network, Operation};
use crate::profile::{FileReach as _, Profile};
pub use caches::Caches;

/// Passed on from the caller when set, beside what the config passes.
const ALWAYS_PASSED: [&str; 2] = ["LANG", "TERM"];

/// The variables of a command under `profile`, each once, sorted by name.
///
/// PATH is what `search` makes of the caller's; HOME and TMPDIR are the private ones. `extra` (from `--env`) wins over all of it,
/// but for directories that are not searched, and for what leads to the `proxy`, where there is one on that port of the command's own
/// loopback: nothing else leads anywhere. `envelope` is what the session may do at most.
fn build(
    (profile, envelope): (&Profile, &Profile),
    (search, ungranted): (&Search, UngrantedFiles),
    private: &PrivateDirectories,
    (home, caches): (HomeChoice, &Caches),
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
    let path = |own: Option<OsString>| search.path(own.as_deref(), (profile, envelope), ungranted);
    variables.insert("PATH".into(), path(std::env::var_os("PATH")));
    match (home, std::env::var_os("HOME")) {
        (HomeChoice::Real, Some(real)) => drop(variables.insert("HOME".into(), real)),
        (HomeChoice::Real, None) | (HomeChoice::Private, _) => {
            variables.insert("HOME".into(), private.home.clone().into_os_string());
            for (name, value) in caches.variables(profile, ungranted, &private.home) {
                variables.entry(name).or_insert(value);
            }
        }
    }
    variables.insert("TMPDIR".into(), private.tmp.clone().into_os_string());
    // Where zsh keeps here-documents. By itself it takes /tmp, which is not there in every regime.
    variables
        .entry("TMPPREFIX".into())
        .or_insert_with(|| private.tmp.join("zsh").into_os_string());
    // Java asks no variable where temporary files go. By itself it takes /tmp as well.
    if ungranted == UngrantedFiles::Visible && !writes_tmp(profile) {
        let option = [OsStr::new("-Djava.io.tmpdir="), private.tmp.as_os_str()];
        variables
            .entry("JAVA_TOOL_OPTIONS".into())
            .or_insert_with(|| option.into_iter().collect());
    }
    variables.extend(extra.iter().cloned());
    match search {
        Search::Everywhere => {}
        Search::Outside { .. } => drop(variables.insert("PATH".into(), path(own_path(extra)))),
    }
    match (proxy, &profile.network) {
        (Some(port), Network::Hosts(list)) => variables.extend(proxies::variables(port, list)),
        (None, _) | (Some(_), Network::Off | Network::Full) => {}
    }
    variables.into_iter().collect()
}

fn writes_tmp(profile: &Profile) -> bool {
    AbsPath::new("/tmp/java").is_ok_and(|path| profile.access(Operation::Write, &path) == Access::Full)
}

/// The environment of a command under this profile, in a forker of the session.
pub(super) fn environment(
    pool: &Pool,
    profile: &Profile,
    search: &Search,
    forker: &Confinement,
    extra: &[(OsString, OsString)],
    proxy_session: Option<&ProxySession>,
) -> Vec<(OsString, OsString)> {
    let session = pool.session();
    build(
        (profile, &session.envelope),
        (search, pool.ungranted()),
        &forker.session().private(),
        (session.policy.home, &pool.user_paths().caches),
        extra,
        proxy_session.map(ProxySession::port),
    )
}
