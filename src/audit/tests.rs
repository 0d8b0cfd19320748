//! What a log holds against those who change it, and against being killed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::chain::{Envelope, Hash, Link, parse_line as opened, seal_record};
use super::event::{CallEnd, SessionEnd};
use super::{AuditError, AuditLog, Durability, Event, Keeping, LogPaths, Report, Tail, Wrong, records, verify};
use crate::policy::AbsPath;

const ALL: Keeping = Keeping {
    max_bytes: 64 << 20,
    keep: None,
};

fn paths(folder: &TempDir) -> LogPaths {
    LogPaths::at(&folder.path().join("audit.jsonl"))
}

fn open(paths: &LogPaths, keeping: Keeping) -> AuditLog {
    AuditLog::open(paths, keeping, &|_| None, "s").unwrap()
}

fn event(text: &str) -> Event {
    Event::Outcome(CallEnd {
        call: "1".to_owned(),
        outcome: "done",
        error: Some(super::Text::of(text)),
        duration: 0.5,
        bytes: None,
    })
}

/// A log of these texts, of which the first `durable` are certainly written.
fn written(folder: &TempDir, keeping: Keeping, texts: &[String], durable: usize) -> LogPaths {
    let paths = paths(folder);
    let log = open(&paths, keeping);
    for (index, text) in texts.iter().enumerate() {
        let durability = if index + 1 == durable {
            Durability::Now
        } else {
            Durability::Later
        };
        log.append("s", &[event(text)], durability).unwrap();
    }
    paths
}

fn checked(paths: &LogPaths) -> Report {
    verify(paths, None).unwrap()
}

#[track_caller]
fn is_whole(paths: &LogPaths) -> Report {
    let report = checked(paths);
    assert_eq!(report.fault, None);
    assert_eq!(report.tail, Tail::Complete);
    report
}

fn wrong(paths: &LogPaths) -> Option<Wrong> {
    checked(paths).fault.map(|fault| fault.wrong)
}

/// The files of a log in which records stand.
fn files(folder: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    files
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    lines_of(&fs::read(path).unwrap())
}

fn lines_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(".{0,60}", 1..12)
}

/// Files of a few records each, or one file of all.
fn keeping() -> impl Strategy<Value = Keeping> {
    prop_oneof![Just(600), Just(1500), Just(64 << 20)].prop_map(|max_bytes| Keeping { max_bytes, keep: None })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_byte_can_be_changed_unseen(
        texts in texts(), keeping in keeping(), which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), xor in 1..=255_u8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let paths = written(&folder, keeping, &texts, texts.len());
        is_whole(&paths);
        let files = files(&folder);
        let file = &files[which.index(files.len())];
        let mut bytes = fs::read(file).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= xor;
        fs::write(file, bytes).unwrap();
        prop_assert!(checked(&paths).fault.is_some());
    }

    #[test]
    fn no_line_can_be_deleted_repeated_or_moved_unseen(
        texts in texts(), keeping in keeping(), which in any::<prop::sample::Index>(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(),
        how in 0..3,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let paths = written(&folder, keeping, &texts, texts.len());
        let files = files(&folder);
        let file = &files[which.index(files.len())];
        let mut lines = lines(file);
        let (a, b) = (a.index(lines.len()), b.index(lines.len()));
        prop_assume!(how != 2 || a != b);
        match how {
            0 => drop(lines.remove(a)),
            1 => lines.insert(b, lines[a].clone()),
            _ => lines.swap(a, b),
        }
        fs::write(file, lines.concat()).unwrap();
        prop_assert!(checked(&paths).fault.is_some());
    }

    #[test]
    fn nothing_that_was_certainly_written_can_be_cut_off_unseen(
        texts in texts(), keeping in keeping(), cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let paths = written(&folder, keeping, &texts, texts.len());
        let log = fs::OpenOptions::new().write(true).open(paths.log()).unwrap();
        let size = log.metadata().unwrap().len();
        log.set_len(cut.index(usize::try_from(size).unwrap()) as u64).unwrap();
        prop_assert!(checked(&paths).fault.is_some());
        prop_assert!(AuditLog::open(&paths, keeping, &|_| None, "s").is_err(), "it was written on");
    }

    #[test]
    fn a_log_that_was_cut_behind_its_head_is_told_from_an_edited_one_and_written_on(
        texts in texts(), durable in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let durable = durable.index(texts.len() + 1);
        let paths = written(&folder, ALL, &texts, durable);
        let bytes = fs::read(paths.log()).unwrap();
        let lines = lines(paths.log());
        // The first line of all is certainly written when anything else is.
        let durable: usize = lines[..=durable].iter().map(Vec::len).sum();
        let cut = durable + cut.index(bytes.len() - durable + 1);
        fs::write(paths.log(), &bytes[..cut]).unwrap();
        let whole = lines_of(&bytes[..cut]).iter().filter(|line| line.ends_with(b"\n")).count();
        let report = checked(&paths);
        prop_assert_eq!(&report.fault, &None);
        prop_assert_eq!(report.records, whole as u64);
        prop_assert_eq!(report.tail == Tail::Complete, bytes[..cut].ends_with(b"\n"));
        let log = open(&paths, ALL);
        log.append("t", &[event("on")], Durability::Now).unwrap();
        let mended = u64::from(report.tail != Tail::Complete);
        prop_assert_eq!(is_whole(&paths).records, whole as u64 + mended + 1);
    }

    #[test]
    fn a_hash_that_was_noted_down_is_found_again_and_another_is_not(texts in texts(), which in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let paths = written(&folder, ALL, &texts, texts.len());
        let lines = lines(paths.log());
        let line = String::from_utf8(lines[which.index(lines.len())].clone()).unwrap();
        let hash = &line[line.len() - 67..line.len() - 3];
        prop_assert_eq!(verify(&paths, Some(hash)).unwrap().fault, None);
        for other in ["", "00", &"a".repeat(64)] {
            let fault = verify(&paths, Some(other)).unwrap().fault;
            prop_assert_eq!(fault.map(|fault| fault.wrong), Some(Wrong::NotWhatWasExpected));
        }
    }
}

#[test]
fn the_fault_names_the_record_and_what_was_done_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..6).map(|number| format!("text {number}")).collect();
    let paths = written(&folder, ALL, &texts, 6);
    let whole = lines(paths.log());
    let with = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        fs::write(paths.log(), lines.concat()).unwrap();
        let fault = checked(&paths).fault.unwrap();
        (fault.line, fault.seq, fault.wrong)
    };
    let edit = |lines: &mut Vec<Vec<u8>>| {
        lines[3] = String::from_utf8(lines[3].clone())
            .unwrap()
            .replace("text 2", "text x")
            .into();
    };
    assert_eq!(with(&edit), (Some(4), Some(3), Wrong::Edited));
    let deleted = |lines: &mut Vec<Vec<u8>>| drop(lines.drain(2..4));
    assert_eq!(with(&deleted), (Some(3), Some(2), Wrong::Missing { from: 2, to: 3 }));
    let swapped = |lines: &mut Vec<Vec<u8>>| lines.swap(2, 3);
    assert_eq!(
        with(&swapped),
        (Some(3), Some(2), Wrong::OutOfPlace { expected: 2, found: 3 })
    );
    let put_last = |lines: &mut Vec<Vec<u8>>| {
        let moved = lines.drain(2..4).collect::<Vec<_>>();
        lines.extend(moved);
    };
    assert_eq!(
        with(&put_last),
        (Some(3), Some(2), Wrong::OutOfPlace { expected: 2, found: 4 })
    );
    let repeated = |lines: &mut Vec<Vec<u8>>| lines.insert(3, lines[2].clone());
    assert_eq!(
        with(&repeated),
        (Some(4), Some(3), Wrong::OutOfPlace { expected: 3, found: 2 })
    );
    let cut = |lines: &mut Vec<Vec<u8>>| drop(lines.pop());
    assert_eq!(with(&cut), (None, Some(6), Wrong::Truncated { written: 6 }));
    // Somebody who knows how hashes are made.
    let forged = |lines: &mut Vec<Vec<u8>>| {
        let text = String::from_utf8(lines[3].clone()).unwrap().replace("text 2", "text x");
        let body = &text[..text.len() - 76];
        lines[3] = format!("{body},\"hash\":\"{}\"}}\n", super::bounded::sha256(body.as_bytes())).into();
    };
    assert_eq!(with(&forged), (Some(5), Some(4), Wrong::DoesNotFollow));
    fs::write(paths.log(), whole.concat()).unwrap();
    is_whole(&paths);
}

#[test]
fn a_log_without_its_head_or_with_another_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let paths = written(&folder, ALL, &["a".to_owned(), "b".to_owned()], 2);
    let head = fs::read_to_string(paths.head()).unwrap();
    fs::remove_file(paths.head()).unwrap();
    assert_eq!(wrong(&paths), Some(Wrong::NoHead));
    assert!(matches!(
        AuditLog::open(&paths, ALL, &|_| None, "s"),
        Err(AuditError::Broken(fault)) if fault.wrong == Wrong::NoHead
    ));
    fs::write(paths.head(), "{}").unwrap();
    assert_eq!(wrong(&paths), Some(Wrong::HeadUnreadable));
    let other = head.replace("\"hash\":\"", "\"hash\":\"0000").replacen("0000", "", 0);
    let at = other.find("0000").unwrap();
    let other = format!("{}{}", &other[..at + 64], "\"}\n");
    fs::write(paths.head(), other).unwrap();
    assert_eq!(wrong(&paths), Some(Wrong::Rewritten));
    fs::write(paths.head(), head).unwrap();
    is_whole(&paths);
}

/// The head of a log with one of its numbers changed.
fn with_number(head: &str, key: &str, change: impl Fn(u64) -> u64) -> String {
    let mut stored: serde_json::Value = serde_json::from_str(head).unwrap();
    stored[key] = change(stored[key].as_u64().unwrap()).into();
    stored.to_string()
}

#[test]
fn whoever_checks_a_head_says_what_whoever_writes_on_says() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..6).map(|number| format!("text {number}")).collect();
    for max_bytes in [600, 64 << 20] {
        let keeping = Keeping { max_bytes, keep: None };
        let folder = tempfile::tempdir_in(folder.path()).unwrap();
        let paths = written(&folder, keeping, &texts, 6);
        is_whole(&paths);
        let head = fs::read_to_string(paths.head()).unwrap();
        let both = |key: &str| with_number(&with_number(&head, "start", |at| at + 7), key, |at| at + 7);
        let heads = [
            both("end"),
            both("start"),
            with_number(&head, "start", |_| 0),
            with_number(&head, "end", |at| at - 1),
            with_number(&head, "end", |_| 0),
            with_number(&head, "end", |_| u64::MAX),
            with_number(&head, "file", |_| 99),
            with_number(&head, "file", |_| 0),
            with_number(&head, "file", |_| u64::MAX),
        ];
        for head in heads {
            fs::write(paths.head(), &head).unwrap();
            let refused = match AuditLog::open(&paths, keeping, &|_| None, "s") {
                Err(AuditError::Broken(fault)) => fault.wrong,
                other => panic!("{head}: {other:?}"),
            };
            assert_eq!(wrong(&paths), Some(refused), "{head}");
        }
        fs::write(paths.head(), head).unwrap();
        is_whole(&paths);
        open(&paths, keeping);
    }
}

#[test]
fn a_head_of_a_file_long_before_the_last_is_no_head_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let small = Keeping {
        max_bytes: 600,
        keep: None,
    };
    let paths = written(&folder, small, &["a".to_owned()], 1);
    let old = fs::read(paths.head()).unwrap();
    let log = open(&paths, small);
    for _ in 0..8 {
        log.append("s", &[event("b")], Durability::Now).unwrap();
    }
    drop(log);
    assert!(is_whole(&paths).files > 2);
    fs::write(paths.head(), old).unwrap();
    let refused = match AuditLog::open(&paths, small, &|_| None, "s") {
        Err(AuditError::Broken(fault)) => fault.wrong,
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(&paths), Some(refused));
}

#[test]
fn what_the_head_does_not_speak_of_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..6).map(|number| format!("text {number}")).collect();
    let paths = written(&folder, ALL, &texts, 4);
    assert_eq!(is_whole(&paths).behind, Some(2));
    // A head that was put back: what it no longer speaks of can be cut off, and is counted as long as it is there.
    let folder = tempfile::tempdir().unwrap();
    let paths = written(&folder, ALL, &texts, 6);
    assert_eq!(is_whole(&paths).behind, Some(0));
    let folder = tempfile::tempdir().unwrap();
    let paths = self::paths(&folder);
    drop(open(&paths, ALL));
    fs::remove_file(paths.head()).unwrap();
    assert_eq!(is_whole(&paths).behind, None);
}

#[test]
fn several_writers_of_one_log_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let paths = paths(&folder);
    let small = Keeping {
        max_bytes: 20_000,
        keep: None,
    };
    let threads: Vec<_> = (0..4)
        .map(|writer| {
            let paths = paths.clone();
            std::thread::spawn(move || {
                let log = open(&paths, small);
                for number in 0..50 {
                    let durability = if number % 10 == 0 {
                        Durability::Now
                    } else {
                        Durability::Later
                    };
                    log.append(&format!("s{writer}"), &[event("a"), event("b")], durability)
                        .unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let report = is_whole(&paths);
    assert!(report.files > 3, "{report:?}");
    assert_eq!(report.records, 400 + report.files);
}

#[test]
fn what_rotation_removes_is_told_from_what_somebody_removes() {
    let folder = tempfile::tempdir().unwrap();
    let keeping = Keeping {
        max_bytes: 900,
        keep: Some(3),
    };
    let texts: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let paths = written(&folder, keeping, &texts, 20);
    let report = is_whole(&paths);
    let numbers = paths.rotated_files().unwrap().numbers;
    assert_eq!(numbers.len(), 3);
    assert_eq!(report.removed, Some(numbers[0] - 1));
    let keep = |path: &Path| (path.to_owned(), fs::read(path).unwrap());
    for number in numbers.clone() {
        let (path, bytes) = keep(&paths.rotated(number));
        fs::remove_file(&path).unwrap();
        let fault = checked(&paths).fault.unwrap();
        assert!(
            matches!(fault.wrong, Wrong::FileMissing { .. } | Wrong::Missing { .. }),
            "{fault}"
        );
        fs::write(path, bytes).unwrap();
    }
    is_whole(&paths);
    let (log, bytes) = keep(paths.log());
    fs::remove_file(&log).unwrap();
    assert!(matches!(wrong(&paths), Some(Wrong::Truncated { .. })));
    fs::write(&log, bytes).unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    // It goes on from there.
    open(&paths, keeping)
        .append("s", &[event("on")], Durability::Now)
        .unwrap();
    is_whole(&paths);
}

#[test]
fn no_file_is_kept_where_none_is_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let keeping = Keeping {
        max_bytes: 900,
        keep: Some(0),
    };
    let texts: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let paths = written(&folder, keeping, &texts, 20);
    assert_eq!(files(&folder), [paths.log()]);
    assert!(is_whole(&paths).removed.is_some());
}

#[test]
fn a_kill_while_a_file_is_begun_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let paths = written(&folder, ALL, &["a".to_owned(), "b".to_owned()], 2);
    fs::rename(paths.log(), paths.rotated(1)).unwrap();
    // Put aside, and the next is not there, or empty, or begun.
    for read_header in [None, Some(""), Some("{\"se"), Some("{\"seq\":3,\"time\":\"2026")] {
        if let Some(text) = read_header {
            fs::write(paths.log(), text).unwrap();
            fs::set_permissions(paths.log(), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let report = checked(&paths);
        assert_eq!((report.fault, report.records), (None, 3), "{read_header:?}");
        let log = open(&paths, ALL);
        log.append("s", &[event("c")], Durability::Later).unwrap();
        drop(log);
        is_whole(&paths);
        // The head still names the file before.
        let log = open(&paths, ALL);
        log.append("s", &[event("d")], Durability::Now).unwrap();
        is_whole(&paths);
        fs::remove_file(paths.log()).unwrap();
        let head = lines(&paths.rotated(1));
        let (start, end) = (head[..2].concat().len(), head.concat().len());
        let last = String::from_utf8(head[2].clone()).unwrap();
        let hash = &last[last.len() - 67..last.len() - 3];
        let text =
            format!("{{\"format\":1,\"file\":1,\"start\":{start},\"end\":{end},\"seq\":2,\"hash\":\"{hash}\"}}\n");
        fs::write(paths.head(), text).unwrap();
    }
}

#[test]
fn a_kill_while_a_log_is_begun_is_no_fault() {
    for read_header in ["", "{", "{\"seq\":0,\"time\":\"20"] {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(&folder);
        fs::write(paths.log(), read_header).unwrap();
        fs::set_permissions(paths.log(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(checked(&paths).fault, None, "{read_header}");
        let log = open(&paths, ALL);
        log.append("s", &[Event::SessionEnd(SessionEnd { calls: 0 })], Durability::Now)
            .unwrap();
        assert_eq!(
            is_whole(&paths).records,
            2 + u64::from(!read_header.is_empty()),
            "{read_header}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = paths(&folder);
    drop(open(&paths, ALL));
    fs::remove_file(paths.head()).unwrap();
    is_whole(&paths);
    open(&paths, ALL).append("s", &[event("a")], Durability::Later).unwrap();
    is_whole(&paths);
}

#[test]
fn what_is_no_log_is_left_as_it_is() {
    for text in ["somebody's notes", "somebody's notes\n", "{\"seq\":7}\n"] {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(&folder);
        fs::write(paths.log(), text).unwrap();
        fs::set_permissions(paths.log(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(AuditLog::open(&paths, ALL, &|_| None, "s").is_err());
        assert_eq!(fs::read_to_string(paths.log()).unwrap(), text);
    }
}

#[test]
fn a_log_is_kept_only_where_it_is_ours_and_out_of_reach() {
    let refused = |prepare: &dyn Fn(&LogPaths)| {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(&folder);
        prepare(&paths);
        AuditLog::open(&paths, ALL, &|_| None, "s").is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|paths| {
        fs::write(paths.directory().join("other"), "").unwrap();
        std::os::unix::fs::symlink("other", paths.log()).unwrap();
    }));
    assert!(refused(&|paths| nix::unistd::mkfifo(
        paths.log(),
        nix::sys::stat::Mode::S_IRWXU
    )
    .unwrap()));
    assert!(refused(&|paths| fs::create_dir(paths.log()).unwrap()));
    for file in ["audit.jsonl", "audit.lock", "audit.head"] {
        assert!(refused(&|paths| {
            let path = paths.directory().join(file);
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o620)).unwrap();
        }));
    }
    assert!(refused(&|paths| {
        fs::set_permissions(paths.directory(), fs::Permissions::from_mode(0o777)).unwrap();
    }));
    let folder = tempfile::tempdir().unwrap();
    let inside = AbsPath::new(folder.path()).unwrap();
    let reached = |path: &AbsPath| path.is_within(&inside).then(|| "it is inside".to_owned());
    let error = AuditLog::open(&paths(&folder), ALL, &reached, "s").unwrap_err();
    assert!(error.to_string().contains("it is inside"), "{error}");
    // Nor where a link leads there.
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.path(), elsewhere.path().join("link")).unwrap();
    let linked = LogPaths::at(&elsewhere.path().join("link/audit.jsonl"));
    assert!(AuditLog::open(&linked, ALL, &reached, "s").is_err());
}

#[test]
fn a_log_that_is_cut_or_replaced_under_a_writer_is_not_written_on() {
    for replace in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(&folder);
        let log = open(&paths, ALL);
        log.append("s", &[event("a")], Durability::Now).unwrap();
        log.append("s", &[event("b")], Durability::Later).unwrap();
        let bytes = fs::read(paths.log()).unwrap();
        if replace {
            fs::remove_file(paths.log()).unwrap();
        }
        // The head is content with it; this writer knows better.
        let cut = lines_of(&bytes)[..2].concat();
        fs::write(paths.log(), cut).unwrap();
        fs::set_permissions(paths.log(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(checked(&paths).fault, None);
        let error = log.append("s", &[event("c")], Durability::Now).unwrap_err();
        assert!(error.to_string().contains("truncated"), "{error}");
        assert!(log.append("s", &[event("c")], Durability::Now).is_err());
    }
}

#[test]
fn a_longer_log_in_the_place_of_ones_own_is_not_written_on() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let longer: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    written(&other, ALL, &longer, longer.len());
    let paths = paths(&own);
    let log = open(&paths, ALL);
    log.append("s", &[event("mine")], Durability::Now).unwrap();
    for name in ["audit.jsonl", "audit.head"] {
        fs::rename(other.path().join(name), own.path().join(name)).unwrap();
    }
    let error = log.append("s", &[event("mine too")], Durability::Now).unwrap_err();
    assert!(matches!(error, AuditError::Broken(_)), "{error}");
    assert_eq!(is_whole(&paths).records, 31);
}

#[test]
fn every_earlier_file_must_be_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..12).map(|number| "x".repeat(300) + &number.to_string()).collect();
    let keeping = Keeping {
        max_bytes: 600,
        keep: None,
    };
    let paths = written(&folder, keeping, &texts, texts.len());
    assert!(folder.path().join("audit.3.jsonl").exists());
    let third = AbsPath::new(fs::canonicalize(folder.path().join("audit.3.jsonl")).unwrap()).unwrap();
    let reached = |path: &AbsPath| (*path == third).then(|| "a root".to_owned());
    assert!(AuditLog::open(&paths, keeping, &reached, "s").is_err());
    AuditLog::open(&paths, keeping, &|_| None, "s").unwrap();
}

#[test]
fn a_log_with_another_name_or_for_another_purpose_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".bash_profile", "audit.json", "jsonl", ".jsonl/.."] {
        let paths = LogPaths::at(&folder.path().join(name));
        assert!(AuditLog::open(&paths, ALL, &|_| None, "s").is_err(), "{name}");
    }
    let paths = written(&folder, ALL, &["a".to_owned()], 1);
    fs::hard_link(paths.log(), folder.path().join("other")).unwrap();
    assert!(AuditLog::open(&paths, ALL, &|_| None, "s").is_err());
    fs::remove_file(folder.path().join("other")).unwrap();
    open(&paths, ALL);
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "quotes \" newline \n \u{1b}[2J \u{202e}";
    let paths = written(&folder, ALL, &[hostile.to_owned()], 1);
    let read: Vec<_> = records(&paths).unwrap().map(Result::unwrap).collect();
    let [_, super::Entry::Record(record)] = read.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!(record["error.message"], hostile);
    assert_eq!((&record["session"], &record["event"]), (&"s".into(), &"outcome".into()));
}

/// A record that bears its own hash, as somebody makes one who knows how.
fn forged(seq: u64, prev: Hash) -> (Vec<u8>, Hash) {
    let envelope = Envelope {
        seq,
        time: "2026-11-23T07:12:24.123Z".to_owned(),
        session: "s",
        event: event("forged"),
        prev: Some(crate::policy::hex::hex(&prev)),
    };
    let (mut bytes, link) = seal_record(&envelope).unwrap();
    bytes.push(b'\n');
    (bytes, link.hash)
}

/// A log of three records, all certainly written, and its last one.
fn of_three(folder: &TempDir) -> (LogPaths, Vec<u8>, Link) {
    let texts: Vec<String> = (0..3).map(|number| format!("text {number}")).collect();
    let paths = written(folder, ALL, &texts, 3);
    let bytes = fs::read(paths.log()).unwrap();
    let lines = lines_of(&bytes);
    let last = opened(lines[3].strip_suffix(b"\n").unwrap()).unwrap().link;
    assert_eq!(last.seq, 3);
    (paths, bytes, last)
}

fn behind(paths: &LogPaths, bytes: &[u8], garbage: &[u8]) {
    fs::write(paths.log(), [bytes, garbage].concat()).unwrap();
}

/// What a power cut may leave behind the head.
fn left_by_a_power_cut(last: Link) -> Vec<(&'static str, Vec<u8>)> {
    let (next, hash) = forged(last.seq + 1, last.hash);
    let (after, hash) = forged(last.seq + 2, hash);
    let (third, _) = forged(last.seq + 3, hash);
    let holed = |line: &[u8], from: usize, to: usize| {
        let mut line = line.to_vec();
        line[from..to].fill(0);
        line
    };
    let half = next.len() / 2;
    vec![
        ("zeros", vec![0; 5000]),
        ("zeros and a newline", b"\0\0\0\n".to_vec()),
        ("lines of zeros", b"\0\0\n\0\n\0".to_vec()),
        (
            "more zeros than a record has bytes",
            [vec![0; 3 << 20], b"\n".to_vec()].concat(),
        ),
        (
            "part of a record, then zeros",
            [&next[..half], &[0; 4096], b"\n"].concat(),
        ),
        ("a record without its beginning", holed(&next, 0, half)),
        ("a record without its middle", holed(&next, half, half + 20)),
        (
            "zeros for one record, the next ones whole",
            [holed(&next, 0, next.len() - 1), after.clone(), third.clone()].concat(),
        ),
        (
            "zeros for one record and its newline",
            [holed(&next, 0, next.len()), after, third].concat(),
        ),
        (
            "what stood in the block before",
            b"#!/bin/sh\nexit 0\n\xff\xfe".to_vec(),
        ),
    ]
}

#[test]
fn what_a_power_cut_left_behind_the_head_is_no_fault_and_removed_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, bytes, last) = of_three(&folder);
    let head = fs::read(paths.head()).unwrap();
    for (what, garbage) in left_by_a_power_cut(last) {
        behind(&paths, &bytes, &garbage);
        fs::write(paths.head(), &head).unwrap();
        let report = checked(&paths);
        assert_eq!((report.fault, report.records), (None, 4), "{what}");
        assert_eq!(report.tail, Tail::Partial(garbage.len() as u64), "{what}");
        open(&paths, ALL).append("s", &[event("on")], Durability::Now).unwrap();
        assert_eq!(is_whole(&paths).records, 6, "{what}");
        let read: Vec<_> = records(&paths).unwrap().map(Result::unwrap).collect();
        let super::Entry::Record(mended) = &read[4] else {
            panic!("{what}: {read:?}");
        };
        assert_eq!(mended["event"], "mended", "{what}");
        assert_eq!(mended["bytes"], garbage.len(), "{what}");
        assert_eq!(mended["sha256"], super::bounded::sha256(&garbage), "{what}");
    }
}

#[test]
fn the_same_in_front_of_the_head_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, bytes, _) = of_three(&folder);
    let lines = lines_of(&bytes);
    for garbage in [vec![0; 4096], b"\0\0\n".to_vec(), b"what stood there\n".to_vec()] {
        let mut changed = lines[..3].concat();
        changed.extend_from_slice(&garbage);
        changed.resize(bytes.len().max(changed.len()), 0);
        fs::write(paths.log(), changed).unwrap();
        assert!(checked(&paths).fault.is_some());
        assert!(AuditLog::open(&paths, ALL, &|_| None, "s").is_err());
    }
}

#[test]
fn a_hole_longer_than_any_crash_leaves_is_a_fault_and_not_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, bytes, _) = of_three(&folder);
    behind(&paths, &bytes, &[]);
    // To read all of it would take hours.
    let file = fs::File::options().write(true).open(paths.log()).unwrap();
    file.set_len(1 << 42).unwrap();
    let fault = checked(&paths).fault.unwrap();
    assert_eq!((fault.wrong, fault.line), (Wrong::TooLong, Some(5)));
    assert!(AuditLog::open(&paths, ALL, &|_| None, "s").is_err());
}

#[test]
fn a_record_behind_the_head_that_no_crash_makes_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, bytes, last) = of_three(&folder);
    let (next, hash) = forged(4, last.hash);
    let (elsewhere, _) = forged(4, [7; 32]);
    let (old, _) = forged(2, [7; 32]);
    let (late, _) = forged(9, [7; 32]);
    let (after, _) = forged(6, [7; 32]);
    let mut edited = next.clone();
    let at = edited.len() / 2;
    edited[at] ^= 1;
    let cases = [
        ("another chain", elsewhere.clone(), Wrong::DoesNotFollow),
        (
            "an old number",
            old.clone(),
            Wrong::OutOfPlace { expected: 4, found: 2 },
        ),
        ("a number too far", late, Wrong::Missing { from: 4, to: 8 }),
        ("edited", edited, Wrong::Edited),
        (
            "behind a line that is none",
            [&b"notes\n"[..], &next].concat(),
            Wrong::NoRecord,
        ),
        (
            "behind zeros, with an old number",
            [&b"\0\0\n"[..], &old].concat(),
            Wrong::OutOfPlace { expected: 5, found: 2 },
        ),
        (
            "behind zeros, with the number of the record that is missing",
            [&b"\0\0\n"[..], &elsewhere].concat(),
            Wrong::OutOfPlace { expected: 5, found: 4 },
        ),
        (
            "behind zeros, and no chain among themselves",
            [&b"\0\0\n"[..], &forged(5, hash).0, &after].concat(),
            Wrong::DoesNotFollow,
        ),
    ];
    for (what, garbage, wrong) in cases {
        behind(&paths, &bytes, &garbage);
        let fault = checked(&paths).fault.unwrap_or_else(|| panic!("{what} passed"));
        assert_eq!((fault.wrong, fault.line), (wrong.clone(), Some(5)), "{what}");
        let error = AuditLog::open(&paths, ALL, &|_| None, "s").unwrap_err();
        assert!(
            matches!(&error, AuditError::Broken(fault) if fault.wrong == wrong),
            "{what}: {error}"
        );
        assert_eq!(
            fs::read(paths.log()).unwrap(),
            [&bytes[..], &garbage].concat(),
            "{what}: it was touched"
        );
    }
    // The twin that must pass: the same records, one after the other.
    behind(&paths, &bytes, &[next, forged(5, hash).0].concat());
    assert_eq!(is_whole(&paths).records, 6);
    open(&paths, ALL);
}

#[test]
fn zeros_in_the_place_of_the_first_line_of_a_new_file_are_removed() {
    for zeros in [&b"\0"[..], &[0; 4096], b"\0\0\n"] {
        let folder = tempfile::tempdir().unwrap();
        let paths = written(&folder, ALL, &["a".to_owned(), "b".to_owned()], 2);
        fs::rename(paths.log(), paths.rotated(1)).unwrap();
        fs::write(paths.log(), zeros).unwrap();
        fs::set_permissions(paths.log(), fs::Permissions::from_mode(0o600)).unwrap();
        let report = checked(&paths);
        assert_eq!((report.fault, report.records), (None, 3));
        assert_eq!(report.tail, Tail::Partial(zeros.len() as u64));
        open(&paths, ALL).append("s", &[event("c")], Durability::Now).unwrap();
        assert_eq!(is_whole(&paths).records, 6);
    }
}

#[test]
fn a_first_line_without_a_head_has_nothing_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let paths = paths(&folder);
    drop(open(&paths, ALL));
    fs::remove_file(paths.head()).unwrap();
    let bytes = fs::read(paths.log()).unwrap();
    is_whole(&paths);
    behind(&paths, &bytes, b"{\"seq\":1");
    assert_eq!(wrong(&paths), Some(Wrong::NoHead));
    assert!(AuditLog::open(&paths, ALL, &|_| None, "s").is_err());
    behind(&paths, &bytes, b"");
    open(&paths, ALL);
}

#[test]
fn a_file_that_only_bears_the_name_of_an_earlier_one_is_named_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let keeping = Keeping {
        max_bytes: 900,
        keep: None,
    };
    let texts: Vec<String> = (0..6).map(|number| number.to_string()).collect();
    let paths = written(&folder, keeping, &texts, 6);
    let before = is_whole(&paths);
    let written_now = before.files;
    assert!(written_now > 2, "{before:?}");
    let log = open(&paths, ALL);
    for name in [
        format!("audit.{written_now}.jsonl"),
        "audit.99.jsonl".to_owned(),
        "audit.0.jsonl".to_owned(),
        "audit.007.jsonl".to_owned(),
        "audit.99999999999999999999.jsonl".to_owned(),
    ] {
        let stray = folder.path().join(&name);
        fs::copy(paths.rotated(1), &stray).unwrap();
        let report = checked(&paths);
        let fault = report.fault.unwrap_or_else(|| panic!("{name} passed"));
        assert_eq!((&fault.file, &fault.wrong), (&stray, &Wrong::Stray));
        assert_eq!((report.records, report.files), (before.records, before.files), "{name}");
        let error = AuditLog::open(&paths, ALL, &|_| None, "s").unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("move it"), "{error}");
        assert_eq!(records(&paths).unwrap().count() as u64, before.records, "{name}");
        fs::remove_file(stray).unwrap();
    }
    // What is no number is somebody else's.
    for name in ["audit.x.jsonl", "audit.1.jsonl.gz", "audit..jsonl", "audit.-1.jsonl"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    log.append("s", &[event("on")], Durability::Now).unwrap();
    open(&paths, ALL);
    assert_eq!(is_whole(&paths).records, before.records + 1);
}

#[test]
fn a_named_log_makes_its_own_directory_and_none_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let own = LogPaths::at(&folder.path().join("own/audit.jsonl"));
    open(&own, ALL);
    let mode = fs::metadata(folder.path().join("own")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let slip = folder.path().join("slip");
    let below = LogPaths::at(&slip.join("own/audit.jsonl"));
    let error = AuditLog::open(&below, ALL, &|_| None, "s").unwrap_err().to_string();
    assert!(
        error.contains("slip is not there") && error.contains("make it"),
        "{error}"
    );
    assert!(!slip.exists());
    // Stockade's own state directory is made with all above it.
    open(&LogPaths::default_in(&folder.path().join("home/state/stockade")), ALL);
}

#[test]
fn what_stands_in_the_place_of_a_file_and_is_none_is_named_as_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let keeping = Keeping {
        max_bytes: 900,
        keep: Some(4),
    };
    let texts: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let paths = written(&folder, keeping, &texts, 20);
    is_whole(&paths);
    let numbers = paths.rotated_files().unwrap().numbers;
    let aside = folder.path().join("aside");
    let rotated = numbers.iter().map(|number| paths.rotated(*number));
    for file in rotated.chain([paths.log().to_owned(), paths.head()]) {
        for is in ["a directory", "a FIFO", "a symbolic link", "a socket"] {
            fs::rename(&file, &aside).unwrap();
            match is {
                "a directory" => fs::create_dir(&file).unwrap(),
                "a FIFO" => nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap(),
                "a symbolic link" => std::os::unix::fs::symlink(&aside, &file).unwrap(),
                _ => drop(std::os::unix::net::UnixListener::bind(&file).unwrap()),
            }
            let fault = checked(&paths).fault.unwrap();
            assert_eq!(fault.file, file, "{fault}");
            if file == paths.head() {
                assert_eq!(fault.wrong, Wrong::HeadUnreadable, "{is}");
            } else {
                assert_eq!(fault.wrong, Wrong::NoFile { is });
                assert!(fault.to_string().contains(is), "{fault}");
            }
            fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
            fs::rename(&aside, &file).unwrap();
        }
    }
    is_whole(&paths);
}
