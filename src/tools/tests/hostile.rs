//! A file server that was taken over: whatever it says, the parent neither falls over nor believes it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::OnceLock;

use proptest::prelude::*;

use super::super::environment::Caches;
use super::super::executor::Executor;
use super::super::files::hostile::{Made, Parent, is_as_prepared, paths};
use super::super::git::GitFiles;
use super::super::narrowing::Narrowing;
use super::super::user_paths::UserPaths;
use super::*;
use crate::approval::{AnswerOf, DecidedBy};
use crate::config::{self, Context};
use crate::confine::files::protocol::{
    Contents, Done, End, Entry, Failure, FileReply, FileState, Found, Kind, Match, Near, Prepared as Measured, Removed,
    Shown, Special, State, Text, View, Why,
};
use crate::confine::protect::Person;
use crate::confine::wire;
use crate::policy::AbsPath;

/// Where the parent looks.
const START: &str = "/w";

fn parent() -> &'static Parent {
    static PARENT: OnceLock<Parent> = OnceLock::new();
    PARENT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stockade.yaml");
        let text = "extends: [system]\nsandbox: {backend: landlock, paths: {all: {root: /, optional: true}}}\n";
        fs::write(&file, text).unwrap();
        let context = Context::host();
        let policy = config::load(&file, &context).unwrap().policy;
        let places = UserPaths {
            state: folder.path().join("state"),
            git: GitFiles::default(),
            person: Person::default(),
            caches: Caches::default(),
        };
        let (approver, _) = saying(false, Remember::None);
        let executor = Executor::new(policy, Narrowing::default(), Mode::Strict, approver, places).unwrap();
        Parent::new(executor, AbsPath::new(START).unwrap())
    })
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()]
}

fn path() -> BoxedStrategy<OsString> {
    prop_oneof![
        Just(START.into()),
        "/w/[a-z]{0,8}".prop_map(OsString::from),
        Just("/w/../etc/shadow".into()),
        Just("/etc/shadow".into()),
        Just("relative".into()),
        Just("".into()),
        Just("/w//x/".into()),
        Just("/w/\u{1b}[2J\u{202e}\n".into()),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(OsString::from_vec),
    ]
    .boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![any::<String>(), Just("\u{1b}]0;x\u{7}\n\u{202e}\n".to_owned())].boxed()
}

fn state() -> BoxedStrategy<State> {
    let file = (
        number(),
        number(),
        any::<u32>(),
        any::<i128>(),
        any::<Option<[u8; 32]>>(),
    )
        .prop_map(|(inode, size, mode, modified, digest)| {
            State::File(FileState {
                device: 0,
                inode,
                size,
                mode,
                links: 0,
                modified,
                changed: modified,
                digest,
            })
        });
    prop_oneof![
        Just(State::Absent),
        file,
        (number(), number()).prop_map(|(device, inode)| State::Directory { device, inode }),
        path().prop_map(State::Symlink),
        Just(State::Other(Special::Fifo)),
    ]
    .boxed()
}

fn measured() -> BoxedStrategy<Measured> {
    (
        prop::collection::vec(state(), 0..3),
        any::<Option<[u8; 32]>>(),
        number(),
        number(),
        prop::option::of((number(), number(), number(), any::<Option<[u8; 32]>>())),
    )
        .prop_map(|(before, after, size, files, contents)| Measured {
            before,
            after,
            size,
            files,
            contents: contents.map(|(directories, files, bytes, digest)| Contents {
                directories,
                files,
                bytes,
                digest,
            }),
        })
        .boxed()
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Complete), Just(End::Limit), Just(End::Time)]
}

fn near() -> BoxedStrategy<Option<Near>> {
    prop::option::of((number(), text(), text()).prop_map(|(line, text, difference)| Near { line, text, difference }))
        .boxed()
}

fn why() -> BoxedStrategy<Why> {
    prop_oneof![
        Just(Why::Missing),
        path().prop_map(Why::Spelled),
        Just(Why::Changed),
        Just(Why::Special(Special::Device)),
        (text(), number()).prop_map(|(what, size)| Why::Binary { what, size }),
        (number(), number()).prop_map(|(size, limit)| Why::TooLarge { size, limit }),
        (any::<usize>(), near()).prop_map(|(edit, near)| Why::NoMatch { edit, near }),
        (prop::collection::vec(number(), 0..12), number()).prop_map(|(lines, count)| Why::Ambiguous {
            edit: usize::MAX,
            lines,
            count,
        }),
        (any::<usize>(), near()).prop_map(|(hunk, near)| Why::Hunk { hunk, near }),
        text().prop_map(Why::Malformed),
        any::<i32>().prop_map(Why::System),
    ]
    .boxed()
}

fn view() -> BoxedStrategy<View> {
    prop_oneof![
        text().prop_map(View::Diff),
        text().prop_map(View::Content),
        (text(), number()).prop_map(|(what, size)| View::Binary { what, size }),
        prop::collection::vec(path(), 0..4).prop_map(View::Names),
        prop::collection::vec(path(), 0..4).prop_map(|paths| View::Removed(Removed::Tree(paths))),
        path().prop_map(|target| View::Removed(Removed::Symlink(target))),
        (text(), number(), number()).prop_map(|(begins, lines, size)| View::Removed(Removed::Text {
            begins,
            lines,
            size,
        })),
    ]
    .boxed()
}

fn reply() -> BoxedStrategy<FileReply> {
    let kind = prop_oneof![
        Just(Kind::File),
        Just(Kind::Directory),
        Just(Kind::Symlink),
        Just(Kind::Other)
    ];
    let entry = (path(), kind, number()).prop_map(|(path, kind, size)| Entry { path, kind, size });
    let lines = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..4);
    let found = (path(), number(), number(), lines).prop_map(|(path, first, line, lines)| Match {
        path,
        first,
        line,
        lines,
    });
    prop_oneof![
        1 => (path(), state(), path()).prop_map(|(path, state, existing)| FileReply::Found(Found { path, state, existing, is_of_process: false })),
        1 => (
            prop::collection::vec(any::<u8>(), 0..60),
            number(),
            number(),
            prop::option::of(number()),
            number(),
            end()
        )
            .prop_map(|(bytes, first, lines, total_lines, total_bytes, end)| FileReply::Text(Text {
                bytes,
                first,
                lines,
                total_lines,
                total_bytes,
                cut: total_lines,
                end
            })),
        4 => prop::collection::vec(entry, 0..4).prop_map(FileReply::Entries),
        4 => prop::collection::vec(found, 0..4).prop_map(FileReply::Matches),
        4 => (number(), number(), number(), end()).prop_map(|(total, files, unreadable, end)| FileReply::Done(Done {
            total,
            files,
            unreadable,
            end
        })),
        1 => prop::collection::vec(measured(), 0..3).prop_map(FileReply::Prepared),
        1 => prop::collection::vec((measured(), view()).prop_map(|(prepared, view)| Shown { prepared, view }), 0..3)
            .prop_map(FileReply::Shown),
        1 => Just(FileReply::Applied),
        2 => (path(), why()).prop_map(|(path, why)| FileReply::Failed(Failure { path, why })),
    ]
    .boxed()
}

/// Frames, the last of them perhaps cut short, or bytes that are none.
fn stream() -> BoxedStrategy<Vec<u8>> {
    let frames = prop::collection::vec(reply(), 0..6)
        .prop_map(|replies| {
            let frames: Vec<Vec<u8>> = replies.iter().map(|reply| wire::encode(reply).unwrap()).collect();
            frames.concat()
        })
        .boxed();
    prop_oneof![
        6 => frames.clone(),
        1 => (frames, any::<prop::sample::Index>()).prop_map(|(mut bytes, at)| {
            let length = bytes.len();
            bytes.truncate(if length == 0 { 0 } else { at.index(length) });
            bytes
        }),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ]
    .boxed()
}

/// Nothing that is told moves a cursor or turns a line around.
fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|letter| letter == '\n' || !(letter.is_control() || letter == '\u{202e}'))
}

/// What must hold whatever was said.
fn check(made: Made) -> Result<(), TestCaseError> {
    let Made { told, led, question } = made;
    match &told {
        Ok(output) => {
            for path in paths(output) {
                prop_assert!(path.starts_with(START), "{path:?}");
            }
            if output.data.get("content").is_none() {
                prop_assert!(is_plain(&output.text), "{:?}", output.text);
            }
        }
        Err(error) => prop_assert!(is_plain(&error.to_string()), "{error}"),
    }
    match &led {
        Ok(path) => prop_assert!(is_plain(path), "{path:?}"),
        Err(error) => prop_assert!(is_plain(&error.to_string()), "{error}"),
    }
    if let Ok(question) = question {
        prop_assert_eq!(question.answer, AnswerOf::Anyone);
        prop_assert!(question.required);
        for mode in [Mode::Strict, Mode::Interactive] {
            let (approver, _) = saying(false, Remember::Session);
            let verdict = Controller::new(mode, approver).decide(&question);
            prop_assert!(!verdict.decision.approved);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_server_says_nothing_falls_over_and_nothing_is_approved(bytes in stream()) {
        if let Ok(made) = parent().hears(&bytes) {
            check(made)?;
        }
    }

    #[test]
    fn what_is_shown_is_what_was_prepared_or_nobody_is_asked(
        prepared in measured(),
        shown in measured(),
        same: bool,
        view in view(),
        more in stream(),
    ) {
        let shown = if same { prepared.clone() } else { shown };
        let is_same = is_as_prepared(&shown, &prepared);
        let first = wire::encode(&FileReply::Prepared(vec![prepared])).unwrap();
        let second = wire::encode(&FileReply::Shown(vec![Shown { prepared: shown, view }])).unwrap();
        let (lazy, _theirs) = parent().shows(&first, &[second, more].concat()).unwrap();
        let (approver, asked) = saying(true, Remember::None);
        let request = ApprovalRequest {
            presentation: lazy,
            ..tool_question::by_name(&context("write_file"), "write".to_owned(), Value::Null)
        };
        let verdict = Controller::new(Mode::Interactive, approver).decide(&request);
        prop_assert_eq!(asked.lock().unwrap().len(), usize::from(is_same));
        prop_assert_eq!(verdict.decision.approved, is_same);
        prop_assert_eq!(matches!(verdict.by, DecidedBy::Failure(_)), !is_same);
    }
}

#[test]
fn numbers_at_the_end_of_all_numbers_are_told() {
    let found = Match {
        path: "/w/f".into(),
        first: u64::MAX,
        line: u64::MAX,
        lines: vec![b"a".to_vec(), b"b".to_vec()],
    };
    let done = Done {
        total: u64::MAX,
        files: u64::MAX,
        unreadable: u64::MAX,
        end: End::Limit,
    };
    let bytes = [
        wire::encode(&FileReply::Matches(vec![found])).unwrap(),
        wire::encode(&FileReply::Done(done)).unwrap(),
    ];
    let told = parent().hears(&bytes.concat()).unwrap().told.unwrap();
    assert!(told.text.contains("18446744073709551615: b"), "{}", told.text);
}

#[test]
fn a_place_outside_what_was_looked_at_is_no_answer() {
    for path in ["/etc/shadow", "/w/../etc/shadow", "/wx", "relative", ""] {
        let entry = Entry {
            path: path.into(),
            kind: Kind::File,
            size: 1,
        };
        let done = Done {
            total: 1,
            files: 0,
            unreadable: 0,
            end: End::Complete,
        };
        let bytes = [
            wire::encode(&FileReply::Entries(vec![entry])).unwrap(),
            wire::encode(&FileReply::Done(done)).unwrap(),
        ];
        let told = parent().hears(&bytes.concat()).unwrap().told;
        assert!(matches!(told, Err(ToolError::Confine(_))), "{path}: {told:?}");
    }
}

#[test]
fn one_long_path_before_many_lines_is_more_than_is_told() {
    let found = |lines| Match {
        path: format!("/w/{}", "x".repeat(60_000)).into(),
        first: 1,
        line: 1,
        lines: vec![Vec::new(); lines],
    };
    let done = Done {
        total: 1,
        files: 1,
        unreadable: 0,
        end: End::Complete,
    };
    let said = |lines| {
        let matches = FileReply::Matches(vec![found(lines)]);
        [
            wire::encode(&matches).unwrap(),
            wire::encode(&FileReply::Done(done)).unwrap(),
        ]
        .concat()
    };
    assert!(parent().hears(&said(10)).unwrap().told.is_ok());
    assert!(parent().hears(&said(4000)).is_err());
}
