//! Files of certificate authorities that the environment names: whoever is told of one must be able to read it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::narrowing::Narrowing;
use crate::policy::path::escape;
use crate::policy::{AbsPath, Access, EnvRule, Operation, Policy, VarName};
use crate::profile::{ApprovedRoots, Call, FileReach, derive};

/// The variables by which programs are told of them, as the preset `system` passes them.
const NAMES: [&str; 15] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_PROXY_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "BUNDLE_SSL_CA_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// A sentence for each of these variables that commands get and whose file they cannot read; `extra` is what one command gets beside.
pub fn unreadable_authorities(policy: &Policy, narrowing: &Narrowing, extra: &[(OsString, OsString)]) -> Vec<String> {
    let values: Vec<(&str, OsString)> = NAMES
        .into_iter()
        .filter_map(|name| Some((name, value(name, policy, extra)?)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if values.is_empty() {
        return Vec::new();
    }
    let envelope = narrowing.narrow(derive(policy, &Call::of(ApprovedRoots::All)));
    // What is not there is missed without a sandbox too.
    let is_unreadable = |path: &Path| {
        let Ok(path) = std::fs::canonicalize(path) else {
            return false;
        };
        let operation = if path.is_dir() {
            Operation::List
        } else {
            Operation::Read
        };
        AbsPath::new(path).is_ok_and(|path| envelope.access(operation, &path) == Access::Denied)
    };
    let warning = |(name, value): (&str, OsString)| {
        let paths = value.as_bytes().split(|byte| name == "SSL_CERT_DIR" && *byte == b':');
        let unreadable = paths
            .map(OsStr::from_bytes)
            .find(|path| is_unreadable(Path::new(path)))?;
        Some(format!(
            "commands cannot read {}, which {name} names: connections over TLS will fail; a root for it with `mode: ro` (`--ro`) \
             lets them read it",
            escape(unreadable.as_bytes())
        ))
    };
    values.into_iter().filter_map(warning).collect()
}

/// What commands find under a name.
fn value(name: &str, policy: &Policy, extra: &[(OsString, OsString)]) -> Option<OsString> {
    let given = extra.iter().rev().find(|(given, _)| given == name);
    if let Some((_, value)) = given {
        return Some(value.clone());
    }
    match policy.environment.get(&VarName::new(name).ok()?)? {
        EnvRule::Pass => std::env::var_os(name),
        EnvRule::Set(value) => Some(value.clone()),
    }
}
