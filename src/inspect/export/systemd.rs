//! The profile as a drop-in of a systemd service.
//!
//! The service sees an empty tree with the granted paths bound into it, so what is not granted is not there.
//! Left out, which only takes away: grants of write or execute without read, listings without content, files by
//! suffix. A root with a size limit is read-only. Denies of names at any depth have no words here, and are
//! refused rather than left out. What systemd cannot hold of the filters is said in the text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use super::error::ExportError;
use crate::backend::landlock::rights::OLDEST_ABI;
use crate::backend::namespaces::NetworkNamespace;
use crate::backend::seccomp::table::{Action, Table};
use crate::backend::seccomp::{Attempts, Attributes, Copies, HIGHEST, IpSockets, Role, Settings, UnixDomain};
use crate::policy::path::is_escaped;
use crate::policy::{AbsPath, Deny, EnvRule, Grant, Network, Right, Rights, Scope, Target, UnixSockets};
use crate::profile::Profile;
use crate::tools::explain::call_name;

const FORM: &str = "a systemd drop-in";

/// What holds whatever the profile says.
const ALWAYS: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
RestrictNamespaces=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
KeyringMode=private
PrivateIPC=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=tmpfs
ProtectProc=invisible
ProtectHostname=yes
ProtectClock=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
DevicePolicy=closed
";

/// What the filters of a command hold by an argument, and a service's cannot.
const NOT_ENFORCED: &str = "\
# Not held here: ioctls that reach a terminal or an interface, leases, odd socket types and protocols, the
# priority and limits of other processes of this user. Attribute changes are held by the read-only binds.
";

/// The text of the drop-in.
pub(super) fn drop_in(profile: &Profile) -> Result<String, ExportError> {
    // Rights that a plain deny takes are not granted: here the most specific path would win.
    let profile = profile.clone().canonical();
    let mut text = String::from(
        "# Made by `stockade profile export --format systemd`; never weaker than the profile for files and sockets.\n",
    );
    text.push_str(NOT_ENFORCED);
    text.push_str("[Service]\n");
    text.push_str(ALWAYS);
    text.push_str(&files(&profile)?);
    text.push_str(&network(&profile));
    text.push_str(&calls(&profile));
    text.push_str(&limits(&profile));
    text.push_str(&environment(&profile)?);
    Ok(text)
}

#[derive(Default)]
struct Lists {
    read_only: BTreeSet<AbsPath>,
    writable: BTreeSet<AbsPath>,
    executable: BTreeSet<AbsPath>,
    inaccessible: BTreeSet<AbsPath>,
    unwritable: BTreeSet<AbsPath>,
    inexecutable: BTreeSet<AbsPath>,
    devices: BTreeSet<AbsPath>,
}

fn files(profile: &Profile) -> Result<String, ExportError> {
    let mut lists = Lists::default();
    profile.grants.iter().for_each(|grant| lists.grant(grant));
    for deny in &profile.denies {
        lists.deny(deny)?;
    }
    // What is not to be seen at all is not bound below either.
    let inaccessible = lists.inaccessible.clone();
    let hidden = |path: &AbsPath| inaccessible.iter().any(|inaccessible| path.is_within(inaccessible));
    for list in [&mut lists.read_only, &mut lists.writable, &mut lists.executable] {
        list.retain(|path| !hidden(path));
    }
    let read_only: BTreeSet<AbsPath> = lists.read_only.difference(&lists.writable).cloned().collect();
    let visible = |path: &AbsPath| {
        read_only
            .iter()
            .chain(&lists.writable)
            .any(|visible| path.is_within(visible))
    };
    let mut text = String::from("TemporaryFileSystem=/:ro\n");
    let root = AbsPath::root();
    if read_only.contains(&root) || lists.writable.contains(&root) {
        text.clear();
    }
    let mut list = |key: &str, optional: &str, paths: &mut dyn Iterator<Item = &AbsPath>| -> Result<(), ExportError> {
        for path in paths {
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "{key}={}", quoted(path, optional)?);
        }
        Ok(())
    };
    let below = |path: &&AbsPath| **path != root;
    list("BindReadOnlyPaths", "-", &mut read_only.iter().filter(below))?;
    list("BindPaths", "-", &mut lists.writable.iter().filter(below))?;
    list("ReadWritePaths", "-", &mut lists.writable.iter())?;
    list("NoExecPaths", "", &mut std::iter::once(&root))?;
    list("ExecPaths", "-", &mut lists.executable.iter())?;
    // Without `-`: a path that is not there yet could not be hidden later, so the service does not start.
    list(
        "InaccessiblePaths",
        "",
        &mut lists.inaccessible.iter().filter(|path| visible(path)),
    )?;
    list(
        "ReadOnlyPaths",
        "",
        &mut lists.unwritable.iter().filter(|path| visible(path)),
    )?;
    list(
        "NoExecPaths",
        "",
        &mut lists.inexecutable.iter().filter(|path| visible(path)),
    )?;
    for device in &lists.devices {
        let _infallible = writeln!(text, "DeviceAllow={} rw", quoted(device, "")?);
    }
    Ok(text)
}

impl Lists {
    fn grant(&mut self, grant: &Grant) {
        let Grant {
            path, rights, scope, ..
        } = grant;
        if *scope == Scope::Names || grant.suffixes.is_some() || !rights.has(Right::Read) {
            return;
        }
        if rights.has(Right::Write) && grant.max_file_bytes.is_none() {
            self.writable.insert(path.clone());
            if *scope == Scope::File && path.as_bytes().starts_with(b"/dev/") {
                self.devices.insert(path.clone());
            }
        } else {
            self.read_only.insert(path.clone());
        }
        if rights.has(Right::Execute) {
            self.executable.insert(path.clone());
        }
    }

    fn deny(&mut self, deny: &Deny) -> Result<(), ExportError> {
        let path = match &deny.target {
            Target::Path(path) => path,
            Target::Pattern { .. } => {
                return Err(ExportError::Clause {
                    form: FORM,
                    clause: deny.to_string(),
                    origin: deny.origin.to_string(),
                });
            }
        };
        if deny.rights.has(Right::Read) {
            self.inaccessible.insert(path.clone());
        }
        if deny.rights.has(Right::Write) {
            self.unwritable.insert(path.clone());
        }
        if deny.rights.and(Rights::EXECUTE) == Rights::EXECUTE {
            self.inexecutable.insert(path.clone());
        }
        Ok(())
    }
}

fn settings(profile: &Profile) -> Settings {
    Settings {
        ip: IpSockets::of(&profile.network, NetworkNamespace::Host),
        unix: UnixDomain::of(profile.unix_sockets, OLDEST_ABI),
        role: Role::Command,
        attempts: Attempts::Unseen,
        copies: Copies::None,
        attributes: Attributes::Brokered,
    }
}

fn network(profile: &Profile) -> String {
    let unix = match profile.unix_sockets {
        UnixSockets::All => Some("AF_UNIX"),
        UnixSockets::None | UnixSockets::WithinRoots => None,
    };
    let (inet, own) = match &profile.network {
        // A list is held by Stockade's proxy, which a service does not have: nothing is reached.
        Network::Off | Network::Hosts(_) => (None, "PrivateNetwork=yes\nIPAddressDeny=any\n"),
        Network::Full => (Some("AF_INET AF_INET6 AF_NETLINK"), ""),
    };
    let families: Vec<&str> = unix.into_iter().chain(inet).collect();
    let families = if families.is_empty() {
        "none".to_owned()
    } else {
        families.join(" ")
    };
    format!("{own}RestrictAddressFamilies={families}\n")
}

/// The calls that are allowed at all; what systemd does not know by name is not.
fn calls(profile: &Profile) -> String {
    let table = Table::of(settings(profile));
    let allowed = |number: &u32| {
        table
            .rows_for(*number)
            .iter()
            .all(|active_row| match active_row.action {
                Action::Allow | Action::Notify(_) | Action::ErrorIf(..) => true,
                Action::Error(_) | Action::Report(_) => false,
            })
    };
    let mut names: Vec<&str> = (0..=HIGHEST).filter(allowed).filter_map(call_name).collect();
    names.sort_unstable();
    let mut text = String::new();
    for some in names.chunks(12) {
        let _infallible = writeln!(text, "SystemCallFilter={}", some.join(" "));
    }
    text.push_str("SystemCallErrorNumber=EPERM\n");
    text
}

fn limits(profile: &Profile) -> String {
    let limits = &profile.limits;
    let seconds = limits.timeout.map(|time| format!("{}ms", time.as_millis().max(1)));
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let lines = [
        ("RuntimeMaxSec", seconds),
        ("MemoryMax", number(limits.memory)),
        ("TasksMax", number(limits.processes)),
        ("LimitNOFILE", number(limits.open_files)),
        ("LimitFSIZE", number(limits.file_size)),
    ];
    let set = lines.into_iter().filter_map(|(key, value)| Some((key, value?)));
    set.fold(String::new(), |mut text, (key, value)| {
        let _infallible = writeln!(text, "{key}={value}");
        text
    })
}

fn environment(profile: &Profile) -> Result<String, ExportError> {
    let mut text = String::new();
    for (name, rule) in profile.environment.iter() {
        let plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let unfit = || ExportError::Value {
            form: FORM,
            name: crate::policy::path::escape(name.as_str().as_bytes()),
        };
        if !name.as_str().chars().all(plain) || name.as_str().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(unfit());
        }
        let _infallible = match rule {
            EnvRule::Pass => writeln!(text, "PassEnvironment={name}"),
            EnvRule::Set(value) => {
                let value = std::str::from_utf8(value.as_bytes()).map_err(|_| unfit())?;
                writeln!(text, "Environment=\"{name}={}\"", escaped(value).ok_or_else(unfit)?)
            }
        };
    }
    Ok(text)
}

/// A value between double quotes, where C escapes are read; `None` for what a unit file does not take.
fn escaped(value: &str) -> Option<String> {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '%' => text.push_str("%%"),
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if is_escaped(c.encode_utf8(&mut [0; 4]).as_bytes()) => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

/// A path of a list. Some lists read backslashes and some do not, so none may be in it.
fn quoted(path: &AbsPath, optional: &str) -> Result<String, ExportError> {
    let unfit = |why| ExportError::Name {
        form: FORM,
        path: path.to_string(),
        why,
    };
    let text = std::str::from_utf8(path.as_bytes()).map_err(|_| unfit("it is not text"))?;
    if text.contains(['\\', '"', '\'']) {
        return Err(unfit("it has a quote or a backslash"));
    }
    if text.contains(':') {
        return Err(unfit("it has a colon, which parts source and target"));
    }
    if is_escaped(text.as_bytes()) {
        return Err(unfit("it has a character that cannot be seen"));
    }
    let text = text.replace('%', "%%");
    Ok(if text.contains(char::is_whitespace) {
        format!("\"{optional}{text}\"")
    } else {
        format!("{optional}{text}")
    })
}
