//! Checks a text against the profile by reading it back.

use super::operation::{self, Name, grantable};
use super::parse::parse;
use super::plan::SeatbeltPlan;
use super::reader::{Expressions, Object, Reader, Semantics, Vnode};
use super::syntax::{Filter, Rule, Script, Verdict};
use super::view::{Aspect, View};
use super::{base, spelling};
use crate::policy::{
    AbsPath, Access, Deny, Grant, NetworkWitness, Operation, Pattern, Rights, Scope, Target, UnixSockets,
};
use crate::profile::order::Permission;
use crate::profile::{FileReach, Profile, Witness, files_within};

const PLAN: &str = "the Seatbelt profile";

/// Checks that the text permits nothing that the profile does not.
///
/// Under all semantics it checks files, moves of entries, other spellings of denied paths, the network and sockets. It refuses
/// rules about any other operation.
pub fn validate(plan: &SeatbeltPlan, profile: &Profile) -> Result<(), Witness> {
    let script = parse(plan).map_err(|error| kernel(format!("whatever this means: {error}")))?;
    let shipped = base::rules(&profile.network).map_err(|error| kernel(format!("a shipped rule: {error}")))?;
    let closed = |rule: &Rule| {
        rule.verdict == Verdict::Deny && rule.operations == [operation::DEFAULT] && rule.filters.is_empty()
    };
    if !script.rules.first().is_some_and(closed) {
        return Err(kernel("every operation that no rule names".to_owned()));
    }
    // The rules of the base only allow, so the other rules can be judged without them.
    let rest = Script {
        rules: script
            .rules
            .into_iter()
            .filter(|rule| !shipped.contains(rule))
            .collect(),
    };
    rest.rules.iter().try_for_each(rule_is_ours)?;

    let canonical = spelling::canonical(profile);
    let understood = Reader::new(&rest, Expressions::Understood);
    for semantics in Semantics::ALL {
        let view = |aspect| View {
            reader: &understood,
            semantics,
            aspect,
        };
        files_within(&view(Aspect::Content), &canonical)?;
        files_within(&view(Aspect::Moves), &spelling::moves(&canonical))
            .map_err(|witness| named("moving", &witness))?;
        files_within(&view(Aspect::Metadata), &looked_up(&canonical))
            .map_err(|witness| named("looking up", &witness))?;
        if profile.unix_sockets == UnixSockets::WithinRoots {
            files_within(&view(Aspect::Sockets), &canonical).map_err(|witness| named("a socket", &witness))?;
        }
    }
    let matched = Reader::new(&rest, Expressions::Matched);
    beyond_files(&matched, profile)?;
    ways_stay(&matched, &canonical)?;
    spellings_hold(&matched, &canonical)
}

fn kernel(what: String) -> Witness {
    Witness {
        what: Permission::Kernel(what),
        wide: PLAN,
        tight: "the profile",
    }
}

fn named(what: &str, witness: &Witness) -> Witness {
    kernel(format!("{what}: {}", witness.what))
}

/// Checks that the rule allows only operations of grants, and names paths only by parameters.
fn rule_is_ours(rule: &Rule) -> Result<(), Witness> {
    if rule.verdict == Verdict::Deny {
        return Ok(());
    }
    if let Some(name) = rule.operations.iter().find(|name| !grantable(**name)) {
        return Err(kernel(format!("the operation {name}")));
    }
    if rule.filters.is_empty() {
        return Err(kernel(format!("whatever `{rule}` reaches")));
    }
    if rule.operations.contains(&operation::IOCTL) {
        let device = |filter: &Filter| matches!(filter, Filter::Literal(argument) if argument.path.as_bytes().starts_with(b"/dev/"));
        if !rule.filters.iter().all(device) {
            return Err(kernel(format!("device control by `{rule}`")));
        }
    }
    match rule.filters.iter().find_map(written_out) {
        Some(path) => Err(kernel(format!("a path that is part of the text, {path}"))),
        None => Ok(()),
    }
}

fn written_out(filter: &Filter) -> Option<&AbsPath> {
    match filter {
        Filter::Literal(argument) | Filter::Subpath(argument) => argument.parameter.is_none().then_some(&argument.path),
        Filter::All(parts) | Filter::Any(parts) => parts.iter().find_map(written_out),
        Filter::Not(part) | Filter::Unix(_, Some(part)) => written_out(part),
        Filter::Regex(_)
        | Filter::Directory
        | Filter::Target(_)
        | Filter::Label(_)
        | Filter::Internet(_)
        | Filter::Unix(_, None)
        | Filter::UnixFamily => None,
    }
}

/// The profile of `stat`: it may look up every granted tree, and the directories above.
fn looked_up(canonical: &Profile) -> Profile {
    let above = canonical
        .grants
        .iter()
        .flat_map(|grant| grant.path.ancestors().skip(1).map(move |path| (grant, path)));
    let above = above.map(|(grant, path)| Grant {
        path,
        scope: Scope::File,
        rights: Rights::READ,
        suffixes: None,
        max_file_bytes: None,
        origin: grant.origin.clone(),
    });
    let trees = canonical.grants.iter().map(|grant| Grant {
        rights: Rights::READ,
        suffixes: None,
        scope: match grant.scope {
            Scope::File => Scope::File,
            Scope::Tree | Scope::Names => Scope::Tree,
        },
        ..grant.clone()
    });
    Profile {
        grants: above.chain(trees).collect(),
        denies: Vec::new(),
        ..canonical.clone()
    }
}

/// Checks that the rules give no internet access, and no socket where the profile permits none.
fn beyond_files(reader: &Reader<'_>, profile: &Profile) -> Result<(), Witness> {
    for semantics in Semantics::ALL {
        let any = |object| {
            operation::SOCKETS
                .iter()
                .any(|&name| reader.permits(semantics, name, object))
        };
        // Those of the shipped rules that do were left out before.
        if any(Object::Internet) {
            return Err(Witness {
                what: Permission::Network(NetworkWitness::EveryHost),
                ..kernel(String::new())
            });
        }
    }
    if profile.unix_sockets == UnixSockets::None && reader.allows_any(&operation::SOCKETS) {
        return Err(Witness {
            what: Permission::UnixSockets(UnixSockets::WithinRoots),
            ..kernel(String::new())
        });
    }
    Ok(())
}

/// Checks that no directory above a denied path can be moved away or created again.
fn ways_stay(reader: &Reader<'_>, canonical: &Profile) -> Result<(), Witness> {
    for way in spelling::ways(canonical) {
        for spelled in spelled(&way).chain([way.clone()]) {
            for name in [operation::CREATE, operation::UNLINK] {
                if let Some(semantics) = permitted(reader, name, &spelled) {
                    return Err(kernel(format!(
                        "{name} {spelled}, on the way to a denied path ({semantics:?})"
                    )));
                }
            }
        }
    }
    Ok(())
}

fn permitted(reader: &Reader<'_>, name: Name, path: &AbsPath) -> Option<Semantics> {
    Semantics::ALL.into_iter().find(|&semantics| {
        [Vnode::File, Vnode::Directory]
            .into_iter()
            .any(|vnode| reader.permits(semantics, name, Object::File(path, vnode)))
    })
}

/// Checks that each deny also holds for its path in upper case and in lower case.
fn spellings_hold(reader: &Reader<'_>, canonical: &Profile) -> Result<(), Witness> {
    for deny in canonical.denies.iter().filter(|deny| !deny.rights.is_empty()) {
        for path in examples(deny) {
            for spelled in spelled(&path).flat_map(|path| path.child("w").into_iter().chain([path])) {
                if let Some(semantics) = permitted(reader, operation::UNLINK, &spelled) {
                    return Err(kernel(format!("moving {spelled} away ({semantics:?})")));
                }
                if deny.except.is_some() {
                    // The excepted suffixes may be used under any spelling of the path.
                    continue;
                }
                for semantics in Semantics::ALL {
                    let view = View {
                        reader,
                        semantics,
                        aspect: Aspect::Content,
                    };
                    let reach = view.prepared()(&spelled);
                    let taken = |operation: &Operation| spelling::touches(deny, *operation);
                    let found = Operation::ALL
                        .into_iter()
                        .filter(taken)
                        .find(|&op| reach.get(op) != Access::Denied);
                    if let Some(operation) = found {
                        return Err(Witness {
                            what: Permission::File {
                                operation,
                                path: spelled,
                                access: reach.get(operation),
                            },
                            ..kernel(String::new())
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Examples of paths that the deny matches.
fn examples(deny: &Deny) -> Vec<AbsPath> {
    match &deny.target {
        Target::Path(path) => vec![path.clone()],
        Target::Pattern { root, pattern } => {
            let name = match pattern {
                Pattern::Name(name) => name.clone(),
                Pattern::Suffix(end) => {
                    let mut name = std::ffi::OsString::from("w");
                    name.push(end);
                    name
                }
            };
            let nested = root.child("w").and_then(|inner| inner.child(&name));
            root.child(&name).into_iter().chain(nested).collect()
        }
    }
}

/// The path with its last name in upper case and in lower case, without the path itself.
fn spelled(path: &AbsPath) -> impl Iterator<Item = AbsPath> {
    let both = path.parent().zip(path.name()).into_iter().flat_map(|(parent, name)| {
        let each = [name.to_ascii_uppercase(), name.to_ascii_lowercase()];
        each.into_iter().filter_map(move |name| parent.child(name))
    });
    let own = path.clone();
    both.filter(move |spelled| *spelled != own)
        .collect::<Vec<_>>()
        .into_iter()
}
