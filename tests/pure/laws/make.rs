//! Random clauses over a small universe, and that universe.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use proptest::collection::vec;
use proptest::option::{self, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use stockade::policy::{
    AbsPath, BackendChoice, BasePath, Channels, Demand, DemandSource, Deny, DenyFallback, Destination, Ending, EnvRule,
    Environment, Grant, HomeChoice, HostAccess, HostList, HostRule, Identity, Limits, Mode, NameChanges, Network,
    Origin, OsSandbox, Pattern, Policy, Protect, ProtectFallback, Residuals, Rights, Root, Scope, ShellRule, Suffix,
    SuffixSet, Target, UnixSockets, VarName,
};
use stockade::profile::{ApprovedRoots, Call, InAdvance, Profile};

use super::naive::{Names, names};

/// Names that suffixes and patterns treat differently, and one that is hostile in every way a name can be.
pub(crate) const NAMES: [&[u8]; 8] = [
    b"or.gz",
    b"a",
    b"b",
    b"k.gz",
    b"k.tar.gz",
    b".gz",
    b"n.md",
    b"'\"\n\x1b\xff.md",
];

/// Every path of at most three such names.
pub(crate) fn universe() -> Vec<(AbsPath, Names)> {
    let mut all = vec![AbsPath::root()];
    let mut last = all.clone();
    for _ in 0..3 {
        last = last
            .iter()
            .flat_map(|dir| NAMES.iter().filter_map(|name| dir.child(OsStr::from_bytes(name))))
            .collect();
        all.extend(last.iter().cloned());
    }
    all.into_iter().map(|path| (path.clone(), names(&path))).collect()
}

pub(crate) fn path() -> impl Strategy<Value = AbsPath> {
    let depth = prop_oneof![1 => Just(0_usize), 5 => Just(1), 5 => Just(2), 2 => Just(3)];
    depth
        .prop_flat_map(|depth| vec(select(&NAMES[..]), depth))
        .prop_map(|parts| {
            parts
                .iter()
                .fold(AbsPath::root(), |dir, name| dir.child(OsStr::from_bytes(name)).unwrap())
        })
}

pub(crate) fn rights() -> impl Strategy<Value = Rights> {
    vec(any::<bool>(), 3).prop_map(|bits| {
        let all = [Rights::READ, Rights::WRITE, Rights::EXECUTE];
        all.into_iter()
            .zip(bits)
            .filter(|(_, on)| *on)
            .fold(Rights::NONE, |set, (right, _)| set | right)
    })
}

fn suffixes() -> impl Strategy<Value = SuffixSet> {
    vec(select(&[".gz", ".tar.gz", ".md"][..]), 0..3)
        .prop_map(|texts| texts.into_iter().map(|text| Suffix::new(text).unwrap()).collect())
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![6 => Just(Scope::Tree), 1 => Just(Scope::File), 1 => Just(Scope::Names)]
}

fn size() -> impl Strategy<Value = Option<u64>> {
    weighted(0.25, select(&[10_u64, 20, 30][..]))
}

pub(crate) fn origin() -> Origin {
    Origin::Builtin("test")
}

pub(crate) fn grant() -> impl Strategy<Value = Grant> {
    (path(), rights(), scope(), weighted(0.3, suffixes()), size()).prop_map(
        |(path, rights, scope, suffixes, max_file_bytes)| Grant {
            path,
            rights,
            scope,
            suffixes,
            max_file_bytes,
            origin: origin(),
        },
    )
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let name = select(&NAMES[..]).prop_map(|name| Pattern::Name(OsStr::from_bytes(name).to_owned()));
    let ends = select(&[".gz", "r.gz", ".tar.gz", "z", "", "b", "k.gz"][..]);
    prop_oneof![name, ends.prop_map(|end| Pattern::Suffix(end.into()))]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![path().prop_map(Ending::Tree), path().prop_map(Ending::File)]
}

pub(crate) fn deny() -> impl Strategy<Value = Deny> {
    let target = prop_oneof![
        path().prop_map(Target::Path),
        (path(), pattern()).prop_map(|(root, pattern)| Target::Pattern { root, pattern })
    ];
    let ends = vec(ending(), 0..3);
    (target, rights(), weighted(0.25, suffixes()), size(), ends).prop_map(|(target, rights, except, beyond, ends)| {
        // A clause ends at roots inside its own, never at its own place.
        let own = match &target {
            Target::Path(path) => Some(path.clone()),
            Target::Pattern { .. } => None,
        };
        let ends = ends.into_iter().filter(|end| Some(end.path()) != own.as_ref());
        Deny {
            target,
            rights,
            except,
            beyond,
            ends: ends.collect(),
            origin: origin(),
        }
    })
}

fn environment() -> impl Strategy<Value = Environment> {
    let rule = prop_oneof![
        Just(EnvRule::Pass),
        select(&["1", "2"][..]).prop_map(|v| EnvRule::Set(v.into()))
    ];
    vec((select(&["A", "B"][..]), rule), 0..3).prop_map(|pairs| {
        let mut environment = Environment::default();
        for (name, rule) in pairs {
            environment.insert(VarName::new(name).unwrap(), rule);
        }
        environment
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (size(), size(), size()).prop_map(|(memory, processes, output)| Limits {
        memory,
        processes,
        output,
        ..Limits::default()
    })
}

/// A profile; the inode of a path is the same in all of them, as it is on one machine.
pub(crate) fn profile() -> impl Strategy<Value = Profile> {
    let network = select(&[Network::Off, Network::Full][..]);
    let sockets = select(&[UnixSockets::None, UnixSockets::WithinRoots, UnixSockets::All][..]);
    (
        vec(grant(), 0..6),
        vec(deny(), 0..4),
        network,
        sockets,
        limits(),
        environment(),
    )
        .prop_map(|(grants, denies, network, unix_sockets, limits, environment)| Profile {
            identities: grants
                .iter()
                .map(|grant| (grant.path.clone(), identity(&grant.path)))
                .collect(),
            grants,
            denies,
            network,
            unix_sockets,
            limits,
            environment,
        })
}

/// The same with lists of hosts: no backend without a network namespace holds those.
pub(crate) fn networked() -> impl Strategy<Value = Profile> {
    (profile(), network()).prop_map(|(profile, network)| Profile { network, ..profile })
}

/// Entries of lists: names above, below and beside one another; networks within one another, of every kind, and across kinds.
pub(crate) const PLACES: [&str; 24] = [
    "*",
    "*.example",
    "*.a.example",
    "a.example",
    "example",
    "b.a.example",
    "other.org",
    "8.8.8.8",
    "8.8.8.0/24",
    "8.0.0.0/5",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0/0",
    "128.0.0.0/1",
    "[::/0]",
    "[2000::/3]",
    "[2001:db8::1]",
    "[::1]",
    "[fd00::/8]",
    "[2606:4700::/32]",
    "[64:ff9b::/96]",
];

/// Sets of ports that touch, overlap and end at the edges.
pub(crate) const PORTS: [&str; 9] = ["80", "443", "80,443", "79-81", "1-1024", "*", "444-65535", "65535", "1"];

fn host_rule() -> impl Strategy<Value = HostRule> {
    let access = select(&[HostAccess::Free, HostAccess::Asked][..]);
    (select(&PLACES[..]), select(&PORTS[..]), access).prop_map(|(hosts, ports, access)| HostRule {
        destination: Destination::parse(&format!("{hosts}:{ports}")).unwrap(),
        access,
        origin: origin(),
    })
}

pub(crate) fn hosts() -> impl Strategy<Value = Vec<HostRule>> {
    vec(host_rule(), 0..6)
}

pub(crate) fn network() -> impl Strategy<Value = Network> {
    prop_oneof![
        1 => Just(Network::Off),
        1 => Just(Network::Full),
        6 => hosts().prop_map(|rules| Network::hosts(HostList::new(rules)))
    ]
}

pub(crate) fn identity(path: &AbsPath) -> Identity {
    let inode = path
        .as_bytes()
        .iter()
        .fold(7_u64, |sum, &b| sum.wrapping_mul(31).wrapping_add(u64::from(b)));
    Identity { device: 1, inode }
}

fn demand() -> impl Strategy<Value = Demand> {
    prop_oneof![
        4 => Just(Demand::None),
        1 => Just(Demand::OncePerSession),
        2 => Just(Demand::Required),
        1 => Just(Demand::Deny)
    ]
}

fn demand_source() -> impl Strategy<Value = DemandSource> {
    select(&[DemandSource::Default, DemandSource::Config][..])
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let root = (grant(), demand(), (demand(), demand_source()), vec(deny(), 0..2));
    (vec(root, 0..5), vec(grant(), 0..4), network()).prop_map(|(roots, base, network)| {
        let mut seen = BTreeSet::new();
        let mut roots: Vec<Root> = roots
            .into_iter()
            .filter(|(grant, ..)| seen.insert(grant.path.clone()))
            .enumerate()
            .map(
                |(i, (grant, read_approval, (write_approval, write_demand_source), denies))| Root {
                    name: format!("r{i}"),
                    identity: identity(&grant.path),
                    path: grant.path,
                    scope: grant.scope,
                    rights: grant.rights,
                    suffixes: grant.suffixes,
                    max_file_bytes: grant.max_file_bytes,
                    read_approval,
                    write_approval,
                    write_demand_source,
                    denies,
                    origin: origin(),
                },
            )
            .collect();
        roots.sort_by(|a, b| a.path.cmp(&b.path));
        let base = base
            .into_iter()
            .map(|grant| BasePath {
                identity: identity(&grant.path),
                grant,
            })
            .collect();
        Policy {
            network,
            ..with(roots, base)
        }
    })
}

pub(crate) fn with(roots: Vec<Root>, base: Vec<BasePath>) -> Policy {
    Policy {
        roots,
        links: Vec::new(),
        base,
        protect: Protect::None,
        names: NameChanges::default(),
        protect_fallback: ProtectFallback::Refuse,
        deny_fallback: DenyFallback::Refuse,
        residuals: Residuals::Report,
        os_sandbox: OsSandbox::FailFast,
        backend: BackendChoice::Auto,
        network: Network::Off,
        tool_networks: BTreeMap::new(),
        unix_sockets: UnixSockets::None,
        home: HomeChoice::Private,
        environment: Environment::default(),
        limits: Limits::default(),
        rules: Vec::new(),
        default_rule: ShellRule::plain(Vec::new(), Demand::Required, origin()),
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

fn root_names() -> impl Strategy<Value = BTreeSet<String>> {
    vec(0..5_usize, 0..4).prop_map(|numbers| numbers.into_iter().map(|i| format!("r{i}")).collect())
}

/// What a line gets in which one to three rules answer.
pub(crate) fn in_advance() -> impl Strategy<Value = InAdvance> {
    let names = proptest::option::of(root_names().prop_map(|names| names.into_iter().collect::<Vec<_>>()));
    vec(names, 1..4).prop_map(|rules| {
        let answers = rules.iter().map(|names| InAdvance::by(names.as_deref()));
        answers
            .reduce(|all, answer| all.and(&answer))
            .unwrap_or_else(|| InAdvance::by(None))
    })
}

pub(crate) fn asked() -> impl Strategy<Value = ApprovedRoots> {
    prop_oneof![
        Just(ApprovedRoots::None),
        in_advance().prop_map(ApprovedRoots::InAdvance),
        root_names().prop_map(ApprovedRoots::Named),
        Just(ApprovedRoots::All)
    ]
}

pub(crate) fn narrow() -> impl Strategy<Value = Option<Vec<String>>> {
    option::of(root_names().prop_map(|names| names.into_iter().collect()))
}

pub(crate) fn call() -> impl Strategy<Value = Call> {
    (asked(), narrow(), option::of(network())).prop_map(|(approved_roots, narrow, network)| Call {
        approved_roots,
        narrow,
        network,
    })
}
