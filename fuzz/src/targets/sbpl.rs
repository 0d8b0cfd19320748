//! A Seatbelt text with its parameters. What is read is written and read back the same; the readings stay in their
//! order; and what is held to be within a profile permits nothing beyond it on any path that was thought of.
//!
//! The first field is the text, the others are `NAME=VALUE`; a NUL ends each.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use crate::bounds::{Bounds, bounded};
use stockade::backend::seatbelt::reader::{Expressions, Reader, Semantics};
use stockade::backend::seatbelt::syntax::Script;
use stockade::backend::seatbelt::view::{Aspect, View, widest};
use stockade::backend::seatbelt::{Parameter, SeatbeltPlan, parse, validate};
use stockade::policy::{
    AbsPath, Access, Deny, Environment, Grant, Limits, Network, Operation, Origin, Pattern, Rights, Target, UnixSockets,
};
use stockade::profile::{FileReach, Profile};

const BOUNDS: Bounds = Bounds {
    bytes: 16 << 20,
    per_byte: 4096,
    time: Duration::from_secs(4),
};

const NOWHERE: Origin = Origin::Builtin("fuzz");

static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let grants = [("/w", Rights::READ | Rights::WRITE), ("/r", Rights::READ)];
    let denied = Deny::tree(at("/w/no"), Rights::ALL, NOWHERE);
    Profile {
        grants: grants
            .map(|(path, rights)| Grant::tree(at(path), rights, NOWHERE))
            .into(),
        denies: vec![
            Deny {
                target: Target::Pattern {
                    root: at("/w"),
                    pattern: Pattern::Suffix(".pem".into()),
                },
                ..denied.clone()
            },
            denied,
        ],
        identities: BTreeMap::new(),
        network: Network::Off,
        unix_sockets: UnixSockets::None,
        limits: Limits::default(),
        environment: Environment::default(),
    }
});

static PATHS: LazyLock<Vec<AbsPath>> = LazyLock::new(|| {
    let paths = "/ /w /w/a /w/a/b /w/no /w/no/x /w/NO /w/k.pem /w/a/k.PEM /r /r/a /x /x/y /etc /private/etc/passwd";
    paths.split(' ').map(at).collect()
});

fn at(path: &str) -> AbsPath {
    AbsPath::new(path).expect("a normal path")
}

pub(crate) fn run(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let mut fields = input.split('\0');
    let text = fields.next().unwrap_or_default().to_owned();
    let parameters = fields
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| Parameter {
            name: name.to_owned(),
            value: value.to_owned(),
        });
    let parameters = parameters.collect();
    let plan = SeatbeltPlan { text, parameters };
    bounded(input.as_bytes(), BOUNDS, || holds(plan));
}

fn holds(plan: SeatbeltPlan) {
    let Ok(script) = parse(&plan) else { return };
    let again = SeatbeltPlan {
        text: script.to_string(),
        ..plan
    };
    assert_eq!(parse(&again).as_ref(), Ok(&script), "written and read back");
    for path in PATHS.iter() {
        readings_are_in_order(&script, path);
    }
    if validate(&again, &PROFILE).is_ok() {
        for path in PATHS.iter().filter(|path| **path != AbsPath::root()) {
            for operation in Operation::ALL {
                let permitted = widest(&script, operation, path);
                assert!(permitted <= PROFILE.access(operation, path), "{operation} {path}");
            }
        }
    }
}

/// What the last match permits, the pessimistic reading and the one without inner cuts permit; and not to know an
/// expression permits no less than to know it.
fn readings_are_in_order(script: &Script, path: &AbsPath) {
    let [matched, understood] = [Expressions::Matched, Expressions::Understood].map(|how| Reader::new(script, how));
    for operation in Operation::ALL {
        let permits = |reader, semantics| {
            let aspect = Aspect::Content;
            let view = View {
                reader,
                semantics,
                aspect,
            };
            view.access(operation, path) != Access::Denied
        };
        let last = permits(&matched, Semantics::LastMatch);
        for wider in [Semantics::Pessimistic, Semantics::Trailing] {
            assert!(
                !last || permits(&matched, wider),
                "{operation} {path}: last match and {wider:?}"
            );
        }
        for semantics in Semantics::ALL {
            let known = permits(&matched, semantics);
            assert!(
                !known || permits(&understood, semantics),
                "{operation} {path}: {semantics:?}"
            );
        }
    }
}
