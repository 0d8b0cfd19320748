//! Random policies over a tree, and random calls under them.

use std::collections::{BTreeMap, BTreeSet};

use stockade::policy::{
    BackendChoice, BasePath, Channels, Demand, DemandSource, Deny, DenyFallback, Environment, Grant, HomeChoice,
    Limits, Mode, NameChanges, Network, Origin, OsSandbox, Pattern, Policy, Protect, ProtectFallback, Residuals,
    Rights, Root, Scope, ShellRule, Suffix, SuffixSet, Target, UnixSockets,
};
use stockade::profile::{ApprovedRoots, Call, InAdvance};

use super::random::Random;
use super::tools::Tools;
use super::tree::{Kind, Tree, abs, identity};

const HERE: Origin = Origin::Builtin("test");

fn rights(random: &mut Random) -> Rights {
    let (r, w, x) = (Rights::READ, Rights::WRITE, Rights::EXECUTE);
    let (many, few) = ([r | w, r | w | x, r | w | x, r | x], [r, x, w, w | x]);
    if random.chance(70) {
        *random.pick(&many)
    } else {
        *random.pick(&few)
    }
}

fn suffixes(random: &mut Random) -> SuffixSet {
    let of = |texts: &[&str]| texts.iter().map(|text| Suffix::new(text).unwrap()).collect();
    match random.below(3) {
        0 => of(&[".txt"]),
        1 => of(&[".txt", ".md"]),
        _ => of(&[".bak"]),
    }
}

fn demand(random: &mut Random) -> Demand {
    match random.below(24) {
        0 | 1 => Demand::Required,
        2 => Demand::OncePerSession,
        3 => Demand::Deny,
        _ => Demand::None,
    }
}

fn deny(random: &mut Random, tree: &Tree, root: &std::path::Path) -> Deny {
    let target = if random.chance(60) {
        let below: Vec<_> = tree.entries.iter().filter(|(path, _)| path.starts_with(root)).collect();
        let (path, _) = random.pick(&below);
        if random.chance(10) {
            Target::Path(abs(&path.join("not there")))
        } else {
            Target::Path(abs(path))
        }
    } else {
        let pattern = match random.below(3) {
            0 => Pattern::Name(".env".into()),
            1 => Pattern::Suffix(".pem".into()),
            _ => Pattern::Suffix(".txt".into()),
        };
        Target::Pattern {
            root: abs(root),
            pattern,
        }
    };
    let (r, w, x) = (Rights::READ, Rights::WRITE, Rights::EXECUTE);
    Deny {
        target,
        rights: *random.pick(&[Rights::ALL, Rights::ALL, r, w, r | w, x]),
        except: None,
        beyond: None,
        ends: BTreeSet::new(),
        origin: HERE,
    }
}

fn root(random: &mut Random, tree: &Tree, number: usize) -> Root {
    let (path, scope) = match random.below(12) {
        0 | 1 => {
            let files: Vec<_> = tree.entries.iter().filter(|(_, kind)| *kind == Kind::File).collect();
            (random.pick(&files).0.clone(), Scope::File)
        }
        2 => (random.pick(&tree.area).clone(), Scope::Names),
        // The outer folders have more in them.
        3..6 => (random.pick(&tree.area[..3]).clone(), Scope::Tree),
        _ => (random.pick(&tree.area).clone(), Scope::Tree),
    };
    let denies = (0..random.below(3) * random.below(2))
        .map(|_| deny(random, tree, &path))
        .collect();
    Root {
        name: format!("r{number}"),
        identity: identity(&path),
        path: abs(&path),
        scope,
        rights: if scope == Scope::Names {
            Rights::READ
        } else {
            rights(random)
        },
        suffixes: random.chance(20).then(|| suffixes(random)),
        max_file_bytes: random.chance(6).then_some(4096),
        read_approval: demand(random),
        write_approval: demand(random),
        write_demand_source: *random.pick(&[DemandSource::Default, DemandSource::Config]),
        denies,
        origin: HERE,
    }
}

/// Some policies are made so that what is rare in the others happens in them.
fn themed(random: &mut Random, tree: &Tree, roots: &mut Vec<Root>) {
    let (r, w) = (Rights::READ, Rights::WRITE);
    let plain = |number: usize, rights: Rights| {
        let path = &tree.area[number];
        Root {
            name: format!("r{number}"),
            path: abs(path),
            identity: identity(path),
            scope: Scope::Tree,
            rights,
            suffixes: None,
            max_file_bytes: None,
            read_approval: Demand::None,
            write_approval: Demand::None,
            write_demand_source: DemandSource::Default,
            denies: Vec::new(),
            origin: HERE,
        }
    };
    let theme = match random.below(100) {
        // A richer root inside a poorer one.
        0..12 => vec![plain(0, r | w), plain(1, Rights::ALL)],
        // Suffixes all over.
        12..24 => {
            let mut by_name = plain(0, Rights::ALL);
            by_name.suffixes = Some(suffixes(random));
            vec![by_name, plain(2, r | w)]
        }
        // Small files only.
        24..34 => {
            let mut by_size = plain(0, Rights::ALL);
            by_size.max_file_bytes = Some(4096);
            vec![by_size, plain(2, r | w)]
        }
        _ => return,
    };
    roots.splice(.., theme);
}

/// A policy that grants, beside its random roots, the program that performs the operations.
pub(crate) fn policy(random: &mut Random, tree: &Tree, tools: &Tools) -> Policy {
    let mut seen = BTreeSet::new();
    let mut roots: Vec<Root> = (0..=random.below(5)).map(|number| root(random, tree, number)).collect();
    themed(random, tree, &mut roots);
    roots.retain(|root| seen.insert(root.path.clone()));
    roots.sort_by(|a, b| a.path.cmp(&b.path));
    let program = Grant {
        scope: Scope::File,
        ..Grant::tree(abs(&tools.operate), Rights::READ | Rights::EXECUTE, HERE)
    };
    let mut base = vec![BasePath {
        identity: identity(&tools.operate),
        grant: program,
    }];
    if random.chance(15) {
        let path = random.pick(&tree.area);
        base.push(BasePath {
            identity: identity(path),
            grant: Grant::tree(abs(path), rights(random), HERE),
        });
    }
    Policy {
        roots,
        base,
        links: Vec::new(),
        protect: Protect::None,
        names: NameChanges::default(),
        protect_fallback: ProtectFallback::Refuse,
        deny_fallback: if random.chance(90) {
            DenyFallback::Decompose
        } else {
            DenyFallback::Refuse
        },
        residuals: Residuals::Report,
        os_sandbox: OsSandbox::FailFast,
        backend: BackendChoice::Auto,
        network: if random.chance(20) { Network::Full } else { Network::Off },
        tool_networks: BTreeMap::new(),
        unix_sockets: if random.chance(20) {
            UnixSockets::All
        } else {
            UnixSockets::None
        },
        home: HomeChoice::Private,
        environment: Environment::default(),
        limits: Limits::default(),
        rules: Vec::new(),
        default_rule: ShellRule::plain(Vec::new(), Demand::Required, HERE),
        dangerous: Vec::new(),
        tools: BTreeMap::new(),
        safe_paths: BTreeMap::new(),
        mode: Mode::Strict,
        channels: Channels::default(),
        audit: stockade::policy::Audit::default(),
        explain: stockade::policy::Explain::Off,
        ceilings: stockade::policy::Ceilings::default(),
    }
}

/// Grants everything where no root speaks, so that two policies have something in common.
pub(crate) fn widen(policy: &mut Policy, tree: &Tree) {
    let path = &tree.area[0];
    policy.base.push(BasePath {
        identity: identity(path),
        grant: Grant::tree(abs(path), Rights::ALL, HERE),
    });
}

/// What somebody was asked, and what a rule narrows the call to.
pub(crate) fn call(random: &mut Random) -> Call {
    let some = |random: &mut Random| {
        (0..4)
            .filter(|_| random.chance(50))
            .map(|n| format!("r{n}"))
            .collect::<Vec<_>>()
    };
    let asked = match random.below(5) {
        0 => ApprovedRoots::None,
        1 => {
            let by = |random: &mut Random| InAdvance::by(random.chance(70).then(|| some(random)).as_deref());
            ApprovedRoots::InAdvance(by(random).and(&by(random)))
        }
        2 => ApprovedRoots::Named(some(random).into_iter().collect()),
        _ => ApprovedRoots::All,
    };
    let narrow = random.chance(15).then(|| some(random));
    Call {
        narrow,
        ..Call::of(asked)
    }
}
