//! A denial → the change that would permit it.

use std::fs::FileType;

use crate::config;
use crate::confine::protect::{is_git_directory, protected_by};
use crate::policy::path::display;
use crate::policy::{
    AbsPath, Access, Destination, HostList, HostRule, Network, Operation, Origin, Policy, Right, Rights, Scope,
};
use crate::tools::explain::{Blocked, Layer, Permitted, Subject, Wanted};
use crate::tools::protected_names::names;

/// What would permit a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// These rights on this place, as it is now.
    File(AbsPath, Scope, Rights),
    /// The names in a directory.
    Names(AbsPath),
    /// A host.
    Host(Destination),
    /// Hosts, whose names nobody knows.
    SomeHost,
    /// No change, for this reason.
    Nothing(String),
}

/// The port on which names are resolved.
const DNS: u16 = 53;
/// A name that no clause mentions.
const ANY: &str = ".learn-any";

/// What would permit a denial under this policy.
pub(super) fn remedy(policy: &Policy, blocked: &Blocked) -> Remedy {
    let explanation = || {
        let reasons: Vec<&str> = blocked
            .notes
            .iter()
            .chain(&blocked.change)
            .map(String::as_str)
            .collect();
        Remedy::Nothing(if reasons.is_empty() {
            "no config permits it".to_owned()
        } else {
            reasons.join("; ")
        })
    };
    match &blocked.subject {
        Subject::File(path, permitted) => match (blocked.by, permitted) {
            (Layer::Capabilities, _) | (_, Permitted::Approved) => explanation(),
            (_, Permitted::Yes) => match protected(policy, path).filter(|_| changes(blocked.wanted)) {
                Some(reason) => Remedy::Nothing(format!("it is protected: {reason}")),
                None => explanation(),
            },
            (
                Layer::Landlock | Layer::Mounts | Layer::NetworkNamespace | Layer::Seccomp | Layer::Broker,
                Permitted::No,
            ) => file(policy, blocked.wanted, path).unwrap_or_else(Remedy::Nothing),
        },
        Subject::UnixSocket(_) | Subject::UnixSockets => Remedy::Nothing(
            "`shell.unix_sockets: all` permits it, and with it the desktop's, the agent of your keys, and a container engine's, \
             which is root: a person writes that"
                .to_owned(),
        ),
        Subject::Address(address) if address.port() == DNS => Remedy::SomeHost,
        Subject::Address(address) => match Destination::parse(&address.to_string()) {
            Ok(host) => Remedy::Host(host),
            Err(error) => Remedy::Nothing(format!("it cannot be listed: {error}")),
        },
        Subject::IpSockets => Remedy::SomeHost,
        Subject::Nothing => explanation(),
    }
}

/// Whether something would be another after it.
const fn changes(wanted: Wanted) -> bool {
    match wanted {
        Wanted::Write | Wanted::Make | Wanted::Remove | Wanted::Link | Wanted::Attributes => true,
        Wanted::Read
        | Wanted::List
        | Wanted::Execute
        | Wanted::Look
        | Wanted::Connect
        | Wanted::Socket
        | Wanted::Call => false,
    }
}

/// The ceiling that does not give it, if there is one.
pub(super) fn bounded(policy: &Policy, gives: impl Fn(&Policy) -> bool) -> Option<String> {
    let ceiling = policy.ceilings.all.iter().find(|ceiling| !gives(&ceiling.policy))?;
    Some(format!(
        "the ceiling {} does not give it",
        display(ceiling.file.as_os_str())
    ))
}

/// The ceiling that does not give a host, if there is one.
pub(super) fn host_bounded(policy: &Policy, host: &Destination) -> Option<String> {
    let alone = Network::hosts(HostList::new([HostRule::free(host.clone(), Origin::Builtin("learn"))]));
    bounded(policy, |most| alone.within(&most.network).is_ok())
}

/// The rights that a policy gives on all of a place.
pub(super) fn granted(policy: &Policy, path: &AbsPath, scope: Scope) -> Rights {
    let inside = match scope {
        Scope::File => None,
        Scope::Tree | Scope::Names => path.child(ANY),
    };
    let gives = |operation| {
        let mut places = [Some(path), inside.as_ref()].into_iter().flatten();
        places.all(|host| policy.access(operation, host) == Access::Full)
    };
    let each = [
        (Operation::Read, Rights::READ),
        (Operation::Write, Rights::WRITE),
        (Operation::Execute, Rights::EXECUTE),
    ];
    let each = each.into_iter().filter(|(operation, _)| gives(*operation));
    each.fold(Rights::NONE, |all, (_, right)| all | right)
}

fn file(policy: &Policy, wanted: Wanted, path: &AbsPath) -> Result<Remedy, String> {
    let (at, operation, rights) = match wanted {
        // A name comes and goes by its directory.
        Wanted::Make | Wanted::Remove | Wanted::Link => {
            let around = path.parent().ok_or("it has no directory")?;
            (around, Operation::Write, Rights::READ | Rights::WRITE)
        }
        Wanted::Write | Wanted::Attributes => (path.clone(), Operation::Write, Rights::READ | Rights::WRITE),
        Wanted::Read | Wanted::Look => (path.clone(), Operation::Read, Rights::READ),
        Wanted::List => (path.clone(), Operation::List, Rights::READ),
        Wanted::Execute => (path.clone(), Operation::Execute, Rights::READ | Rights::EXECUTE),
        Wanted::Connect | Wanted::Socket | Wanted::Call => {
            return Err("no right is about it".to_owned());
        }
    };
    // What was asked about, and the directory that would be granted in its place.
    for is_asked in [path, &at] {
        let denies = policy.roots.iter().flat_map(|root| &root.denies);
        if let Some(deny) = denies
            .into_iter()
            .find(|deny| deny.leaves(operation, is_asked) == Access::Denied)
        {
            return Err(format!("`{deny}` ({}) forbids it", deny.origin));
        }
        if let Some(why) = bounded(policy, |most| most.access(operation, is_asked) != Access::Denied) {
            return Err(why);
        }
    }
    let walked = config::walk(at.as_path()).map_err(|error| format!("it cannot be looked at: {error}"))?;
    let found = walked.found.ok_or("it is gone by now")?;
    if walked.path != at {
        return Err(format!("it leads elsewhere by now: {}", walked.path));
    }
    if std::str::from_utf8(at.as_bytes()).is_err() {
        return Err("its name is not UTF-8, so no config can name it".to_owned());
    }
    let scope = scope(found.file_type())?;
    let names_only = matches!(wanted, Wanted::List | Wanted::Look) && scope == Scope::Tree;
    if names_only {
        return Ok(Remedy::Names(at));
    }
    if rights.has(Right::Write) {
        written(policy, at, scope, rights)
    } else {
        Ok(Remedy::File(at, scope, rights))
    }
}

/// Writing there. A root that is one file has no names in it that could be protected, and one that is a part of a git directory
/// is not seen to be one: so what is protected gets none, and what lies in a git directory all of it.
fn written(policy: &Policy, path: AbsPath, scope: Scope, rights: Rights) -> Result<Remedy, String> {
    let Some(files) = policy.protect.files() else {
        return Ok(Remedy::File(path, scope, rights));
    };
    if files.contains(&path) {
        return Err("it is protected: this config decides how the next command is confined".to_owned());
    }
    let around = path.ancestors().find(|above| is_git_directory(above.as_path()));
    let protected = match scope {
        Scope::File => protected(policy, &path),
        Scope::Tree | Scope::Names => None,
    };
    match (around, protected) {
        // In its directory, what git would run or obey is held.
        (Some(directory), _) => Ok(Remedy::File(directory, Scope::Tree, rights)),
        (None, Some(reason)) => Err(format!("it is protected: {reason}")),
        (None, None) => Ok(Remedy::File(path, scope, rights)),
    }
}

/// Why the config protects a path by its name, if it does.
fn protected(policy: &Policy, path: &AbsPath) -> Option<String> {
    policy.protect.files()?;
    protected_by(&names(policy), path.as_path())
}

fn scope(kind: FileType) -> Result<Scope, String> {
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Ok(Scope::Tree),
        (_, true) => Ok(Scope::File),
        (false, false) => {
            Err("it is neither a file nor a directory; devices stand under `sandbox.base.read_write`".to_owned())
        }
    }
}
