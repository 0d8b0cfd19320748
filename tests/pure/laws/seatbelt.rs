//! A Seatbelt text never permits more than its profile, however the kernel weighs its rules.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use stockade::backend::seatbelt::reader::{Expressions, Reader, Semantics};
use stockade::backend::seatbelt::view::{Aspect, View};
use stockade::backend::seatbelt::{Options, Parameter, SeatbeltPlan, lower, parse, validate};
use stockade::backend::survey::Survey;
use stockade::policy::{AbsPath, Access, Deny, Operation, Origin, Residuals, Rights, Scope, UnixSockets};
use stockade::profile::order::Permission;
use stockade::profile::{FileReach, Profile};

use crate::laws::make;
use crate::laws::naive::{self, names};

const OPTIONS: Options = Options {
    residuals: Residuals::Report,
};

fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else {
        40
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..default
    }
}

fn plan(profile: &Profile) -> SeatbeltPlan {
    lower(profile, &Survey::default(), &OPTIONS).unwrap().plan
}

/// Paths of the universe that a Mac could have, but for most of the deepest.
fn universe() -> Vec<AbsPath> {
    let all = make::universe().into_iter().map(|(path, _)| path);
    let spelled = all.filter(|path| path.as_path().to_str().is_some());
    let few = |(number, path): &(usize, AbsPath)| path.as_path().iter().count() < 4 || number % 7 == 0;
    spelled.enumerate().filter(few).map(|(_, path)| path).collect()
}

/// Everything that a text permits, in all readings; its own rules alone, as the base gives no content.
fn permits(reader: &Reader<'_>, semantics: Semantics, path: &AbsPath, operation: Operation) -> bool {
    let view = View {
        reader,
        semantics,
        aspect: Aspect::Content,
    };
    let base = path == &AbsPath::root() && operation == Operation::List;
    !base && view.access(operation, path) != Access::Denied
}

/// Whether a text permits something that the profile does not, by matching every path of the universe.
fn weaker(plan: &SeatbeltPlan, profile: &Profile, universe: &[AbsPath]) -> Option<String> {
    let script = parse(plan).ok()?;
    let reader = Reader::new(&script, Expressions::Matched);
    for path in universe {
        for operation in Operation::ALL {
            for semantics in [Semantics::LastMatch, Semantics::Pessimistic] {
                if permits(&reader, semantics, path, operation)
                    && naive::profile(profile, operation, &names(path)) != Access::Full
                {
                    return Some(format!("{operation} {path} ({semantics:?})"));
                }
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_text_is_never_weaker_than_its_profile(profile in make::profile()) {
        let plan = plan(&profile);
        prop_assert_eq!(validate(&plan, &profile), Ok(()), "{}", plan.text);
    }

    #[test]
    fn matched_path_by_path_it_is_not_weaker_either(profile in make::profile()) {
        let plan = plan(&profile);
        prop_assert_eq!(weaker(&plan, &profile, &universe()), None, "{}", plan.text);
    }

    #[test]
    fn plain_trees_are_exact(mut profile in make::profile()) {
        profile.denies.clear();
        profile.grants.retain(|grant| grant.path.as_path().to_str().is_some());
        for grant in &mut profile.grants {
            grant.scope = Scope::Tree;
            grant.suffixes = None;
            grant.max_file_bytes = None;
        }
        let plan = plan(&profile);
        let script = parse(&plan).unwrap();
        let reader = Reader::new(&script, Expressions::Matched);
        for path in universe() {
            for operation in Operation::ALL {
                let expected = naive::profile(&profile, operation, &names(&path)) == Access::Full;
                for semantics in Semantics::ALL {
                    let base = path == AbsPath::root() && operation == Operation::List;
                    if !base {
                        prop_assert_eq!(permits(&reader, semantics, &path, operation), expected, "{} {}", operation, path);
                    }
                }
            }
        }
    }

    #[test]
    fn a_part_that_is_denied_takes_nothing_from_the_rest(
        mut profile in make::profile(),
        denied in vec((make::path(), make::rights()), 1..3),
    ) {
        let plain = |path: &AbsPath| path.as_path().to_str().is_some();
        profile.grants.retain(|grant| plain(&grant.path));
        for grant in &mut profile.grants {
            grant.scope = Scope::Tree;
            grant.suffixes = None;
            grant.max_file_bytes = None;
        }
        let origin = Origin::Builtin("test");
        profile.denies = denied
            .into_iter()
            .filter(|(path, _)| plain(path))
            .map(|(path, rights)| Deny::tree(path, rights, origin.clone()))
            .collect();
        let plan = plan(&profile);
        prop_assert_eq!(validate(&plan, &profile), Ok(()));
        let script = parse(&plan).unwrap();
        let reader = Reader::new(&script, Expressions::Matched);
        for path in universe() {
            for operation in [Operation::Read, Operation::Write, Operation::Execute] {
                let expected = naive::profile(&profile, operation, &names(&path)) == Access::Full;
                prop_assert_eq!(permits(&reader, Semantics::LastMatch, &path, operation), expected, "{} {}", operation, path);
            }
        }
    }

    #[test]
    fn a_dropped_form_is_caught_or_makes_nothing_weaker(profile in make::profile(), at in any::<Index>()) {
        let whole = plan(&profile);
        for edited in [without_a_deny(&whole, at), without_a_cut(&whole, at), with_a_literal_widened(&whole, at)] {
            let Some(edited) = edited else { continue };
            match validate(&edited, &profile) {
                Ok(()) => prop_assert_eq!(weaker(&edited, &profile, &universe()), None, "{}", edited.text),
                Err(witness) => {
                    if let Permission::File { operation, path, .. } = &witness.what
                        && *path != AbsPath::root()
                    {
                        // What the witness says is really permitted in one of the readings.
                        let script = parse(&edited).unwrap();
                        let reader = Reader::new(&script, Expressions::Understood);
                        let found = Semantics::ALL.into_iter().any(|semantics| permits(&reader, semantics, path, *operation));
                        prop_assert!(found, "{}", witness);
                    }
                }
            }
        }
    }

    #[test]
    fn a_changed_parameter_is_caught_or_makes_nothing_weaker(
        profile in make::profile(),
        at in any::<Index>(),
        path in make::path(),
    ) {
        let mut edited = plan(&profile);
        if let (Some(value), false) = (path.as_path().to_str(), edited.parameters.is_empty()) {
            let number = at.index(edited.parameters.len());
            value.clone_into(&mut edited.parameters[number].value);
            if validate(&edited, &profile).is_ok() {
                prop_assert_eq!(weaker(&edited, &profile, &universe()), None, "{}", edited.text);
            }
        }
    }

    #[test]
    fn a_text_that_is_read_at_all_is_held_against_the_profile(
        profile in make::profile(),
        edits in vec((any::<Index>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        let mut edited = plan(&profile);
        let mut bytes = edited.text.into_bytes();
        for (at, kind, byte) in edits {
            let at = at.index(bytes.len());
            match kind % 4 {
                0 => bytes[at] = byte % 128,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte % 128),
                _ => {
                    let end = (at + usize::from(byte)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
            if bytes.is_empty() {
                bytes.push(b'(');
            }
        }
        edited.text = String::from_utf8(bytes).unwrap();
        if validate(&edited, &profile).is_ok() {
            prop_assert_eq!(weaker(&edited, &profile, &universe()), None, "{}", edited.text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_fall_over(bytes in vec(any::<u8>(), 0..400), value in any::<String>()) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let parameters = vec![Parameter { name: "P0".into(), value }];
        for text in [text.clone(), format!("(version 1)(allow file-read-data (regex (param \"P0\"))){text}")] {
            drop(parse(&SeatbeltPlan { text, parameters: parameters.clone() }));
        }
    }

    #[test]
    fn words_of_the_language_in_any_order_are_refused_or_known(words in vec(word(), 0..60)) {
        let text = format!("(version 1)\n(deny default)\n{}", words.join(" "));
        let plan = SeatbeltPlan { text, parameters: Vec::new() };
        if let Ok(script) = parse(&plan) {
            // Written again it reads the same, so nothing was passed over.
            let again = SeatbeltPlan { text: script.to_string(), parameters: Vec::new() };
            prop_assert_eq!(parse(&again), Ok(script));
        }
    }
}

fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "(",
        ")",
        "(allow",
        "(deny",
        "default",
        "file-read*",
        "file-write-unlink",
        "(literal \"/a\")",
        "(subpath \"/\")",
        "(require-not",
        "(require-all",
        "(require-any",
        "(with no-sandbox)",
        "appleevent-send",
        "(import \"system.sb\")",
        "mach-lookup",
        "(global-name \"x\")",
        "\"",
        ";",
        "#",
        "(vnode-type DIRECTORY)",
        "(regex #\"a\")",
        "lsopen",
    ])
}

/// The spans of lists that begin with `head`.
fn lists(text: &str, head: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for (begin, _) in text.match_indices(head) {
        let mut depth = 0;
        for (offset, byte) in text.as_bytes()[begin..].iter().enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                found.push(begin..begin + offset + 1);
                break;
            }
        }
    }
    found
}

fn edited(plan: &SeatbeltPlan, head: &str, at: Index, with: &str) -> Option<SeatbeltPlan> {
    let spans = lists(&plan.text, head);
    let span = (!spans.is_empty()).then(|| spans[at.index(spans.len())].clone())?;
    let mut plan = plan.clone();
    plan.text.replace_range(span, with);
    Some(plan)
}

fn without_a_deny(plan: &SeatbeltPlan, at: Index) -> Option<SeatbeltPlan> {
    edited(plan, "(deny file", at, "")
}

fn without_a_cut(plan: &SeatbeltPlan, at: Index) -> Option<SeatbeltPlan> {
    edited(plan, "(require-not", at, "")
}

fn with_a_literal_widened(plan: &SeatbeltPlan, at: Index) -> Option<SeatbeltPlan> {
    let spans: Vec<usize> = plan
        .text
        .match_indices("(literal (param")
        .map(|(begin, _)| begin)
        .collect();
    let begin = (!spans.is_empty()).then(|| spans[at.index(spans.len())])?;
    let mut plan = plan.clone();
    plan.text.replace_range(begin..begin + "(literal".len(), "(subpath");
    Some(plan)
}

#[cfg(test)]
mod by_hand {
    use super::*;
    use stockade::policy::{Grant, Network, Pattern, Target};

    /// A writable tree with a denied part, a denied name, and a readable tree beside it.
    fn profile() -> Profile {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let origin = Origin::Builtin("test");
        Profile {
            grants: vec![
                Grant::tree(at("/Users/me/w"), Rights::ALL, origin.clone()),
                Grant::tree(at("/usr"), Rights::READ | Rights::EXECUTE, origin.clone()),
            ],
            denies: vec![
                Deny::tree(at("/Users/me/w/a/secret"), Rights::ALL, origin.clone()),
                Deny {
                    target: Target::Pattern {
                        root: at("/Users/me/w"),
                        pattern: Pattern::Name(".env".into()),
                    },
                    ..Deny::tree(at("/"), Rights::READ, origin)
                },
            ],
            identities: std::collections::BTreeMap::default(),
            network: Network::Off,
            unix_sockets: UnixSockets::None,
            limits: stockade::policy::Limits::default(),
            environment: stockade::policy::Environment::default(),
        }
    }

    #[track_caller]
    fn caught(edited: &SeatbeltPlan) -> String {
        match validate(edited, &profile()) {
            Err(witness) => witness.to_string(),
            Ok(()) => panic!("not caught:\n{}", edited.text),
        }
    }

    #[test]
    fn every_cut_counts() {
        let whole = plan(&profile());
        assert_eq!(validate(&whole, &profile()), Ok(()));
        let spans = lists(&whole.text, "(require-not");
        // The one in the base is about directories.
        let ours: Vec<_> = spans
            .into_iter()
            .filter(|span| whole.text[span.clone()].contains("param"))
            .collect();
        assert!(ours.len() > 20, "{}", whole.text);
        let mut missed = Vec::new();
        for span in ours {
            let mut edited = whole.clone();
            edited.text.replace_range(span.clone(), "");
            if validate(&edited, &profile()).is_ok() {
                missed.push(whole.text[span].to_owned());
            }
        }
        // `subpath` has the node itself too: where both stand, the literal one is for a kernel that slips.
        assert!(missed.iter().all(|cut| cut.contains("(literal")), "{missed:#?}");
    }

    #[test]
    fn every_trailing_deny_counts() {
        let whole = plan(&profile());
        for head in ["(deny file", "(deny process"] {
            for span in lists(&whole.text, head) {
                let mut edited = whole.clone();
                edited.text.replace_range(span.clone(), "");
                let value =
                    |parameter: &&Parameter| whole.text[span.clone()].contains(&format!("{:?}", parameter.name));
                let values: Vec<&str> = whole
                    .parameters
                    .iter()
                    .filter(value)
                    .map(|p| p.value.as_str())
                    .collect();
                // What shows below the data volume is granted by nothing here.
                if !values.iter().any(|value| value.starts_with("/System/Volumes/Data")) {
                    caught(&edited);
                }
            }
        }
    }

    #[test]
    fn every_line_that_is_added_is_named() {
        let whole = plan(&profile());
        for (line, what) in [
            ("(allow default)", "the operation default"),
            ("(allow file-read*)", "the operation file-read*"),
            ("(allow file-read-data)", "whatever `(allow file-read-data)` reaches"),
            (
                "(allow file-read-data (subpath \"/usr\"))",
                "a path that is part of the text",
            ),
            ("(allow mach-lookup)", "the operation mach-lookup"),
            (
                "(allow mach-lookup (global-name \"com.apple.coreservices.launchservicesd\"))",
                "the operation mach-lookup",
            ),
            ("(allow signal)", "the operation signal"),
            ("(allow network-outbound (remote ip \"*:*\"))", "network full"),
            ("(allow network-outbound (remote unix-socket))", "unix sockets"),
            ("(allow file-link (subpath (param \"P0\")))", "the operation file-link"),
            ("(allow appleevent-send)", "`appleevent-send` is not known"),
            ("(allow process-exec* (with no-sandbox))", "`(with …)` is not known"),
            ("(import \"system.sb\")", "`(import …)` is not known"),
            (
                "(allow file-read-data (require-all (subpath (param \"P9999\"))))",
                "`P9999` has no single value",
            ),
        ] {
            let mut edited = whole.clone();
            edited.text.push_str(line);
            let witness = caught(&edited);
            assert!(witness.contains(what), "{line}: {witness}");
        }
    }

    #[test]
    fn the_line_that_denies_the_rest_must_come_first() {
        let whole = plan(&profile());
        let mut edited = whole.clone();
        edited.text = whole.text.replacen("(deny default)\n", "", 1);
        assert!(caught(&edited).contains("every operation that no rule names"));
        edited.text = whole.text.replacen("(deny default)", "(allow default)", 1);
        assert!(caught(&edited).contains("every operation that no rule names"));
    }

    #[test]
    fn every_parameter_counts() {
        let whole = plan(&profile());
        let mut idle = Vec::new();
        for number in 0..whole.parameters.len() {
            let mut edited = whole.clone();
            edited.parameters[number].value = if edited.parameters[number].name.starts_with('P') {
                "/elsewhere/entirely".to_owned()
            } else {
                "^/nowhere$".to_owned()
            };
            if validate(&edited, &profile()).is_ok() {
                idle.push(whole.parameters[number].value.clone());
            }
        }
        // Spellings that no grant reaches; and a directory on the way, which its spellings match too.
        let unreached =
            |value: &String| value.contains("System/Volumes") || value.starts_with(&format!("^{}", "/[^/]+".repeat(6)));
        idle.retain(|value| !unreached(value));
        assert_eq!(idle, ["/Users/me/w/a"]);
    }

    #[test]
    fn a_deny_holds_when_a_directory_around_it_would_be_moved() {
        let whole = plan(&profile());
        let script = parse(&whole).unwrap();
        let reader = Reader::new(&script, Expressions::Matched);
        let view = |semantics| View {
            reader: &reader,
            semantics,
            aspect: Aspect::Moves,
        };
        let moves = |path: &str| {
            let path = AbsPath::new(path).unwrap();
            Semantics::ALL.map(|semantics| view(semantics).access(Operation::Write, &path) == Access::Full)
        };
        for kept in [
            "/Users/me/w",
            "/Users/me/w/a",
            "/Users/me/w/A",
            "/Users/me/w/a/secret",
            "/Users/me/w/b/.env",
        ] {
            assert_eq!(moves(kept), [false; 3], "{kept}");
        }
        for free in ["/Users/me/w/b", "/Users/me/w/a/other", "/Users/me/w/b/env"] {
            assert_eq!(moves(free), [true; 3], "{free}");
        }
    }

    #[test]
    fn temporary_directories_are_written_as_the_kernel_sees_them() {
        let mut profile = profile();
        let at = |path: &str| AbsPath::new(path).unwrap();
        profile
            .grants
            .push(Grant::tree(at("/tmp/x"), Rights::ALL, Origin::Builtin("test")));
        profile
            .denies
            .push(Deny::tree(at("/tmp/x/y"), Rights::ALL, Origin::Builtin("test")));
        let plan = plan(&profile);
        let values: Vec<&str> = plan
            .parameters
            .iter()
            .map(|parameter| parameter.value.as_str())
            .collect();
        assert!(
            values.contains(&"/private/tmp/x") && !values.contains(&"/tmp/x"),
            "{values:#?}"
        );
        for spelling in ["/private/tmp/x/y", "/tmp/x/y", "/System/Volumes/Data/private/tmp/x/y"] {
            assert!(values.contains(&spelling), "{values:#?}");
        }
    }
}
