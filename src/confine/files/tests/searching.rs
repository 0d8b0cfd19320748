//! Lines that match.

use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::protocol::{Case, Done, End, Include, MAX_PART, Match, Search, Select, Special};
use super::*;

fn ask(path: OsString, pattern: &str) -> Search {
    Search {
        path,
        pattern: pattern.to_owned(),
        case: Case::Exact,
        select: Select {
            glob: None,
            hidden: Include::No,
            ignored: Include::No,
        },
        context: 0,
        limit: 100_000,
    }
}

fn top(world: &Fixture) -> OsString {
    fs::canonicalize(world.path("")).unwrap().into_os_string()
}

/// Milliseconds: longer than anything here takes.
const TIME: u64 = 3_600_000;

fn search_within(world: &Fixture, request: Search, deadline_ms: u64) -> Result<(Vec<Match>, Done), Why> {
    world.send(FileOperation::Search(request), deadline_ms);
    let mut found = Vec::new();
    loop {
        match world.reply() {
            FileReply::Matches(part) => {
                assert!(!part.is_empty() && part.len() <= MAX_PART);
                found.extend(part);
            }
            FileReply::Done(done) => return Ok((found, done)),
            FileReply::Failed(failed) => return Err(failed.why),
            other => panic!("{other:?}"),
        }
    }
}

fn search(world: &Fixture, request: Search) -> (Vec<Match>, Done) {
    search_within(world, request, TIME).unwrap()
}

fn lines(found: &[Match]) -> Vec<(u64, &[u8])> {
    let matched = |found: &'_ Match| usize::try_from(found.line - found.first).unwrap();
    found
        .iter()
        .map(|found| (found.line, found.lines[matched(found)].as_slice()))
        .collect()
}

#[test]
fn lines_that_match_are_found_in_every_file() {
    let world = Fixture::new();
    let first = world.file("a", "no\nyes 1\n");
    let second = world.file("d/b", "yes 2");
    let (found, done) = search(&world, ask(top(&world), "^yes \\d$"));
    assert_eq!(lines(&found), [(2, &b"yes 1"[..]), (1, b"yes 2")]);
    assert_eq!(
        found.iter().map(|found| &found.path).collect::<Vec<_>>(),
        [&first, &second]
    );
    assert_eq!(
        (done.total, done.files, done.unreadable, done.end),
        (2, 2, 0, End::Complete)
    );
}

#[test]
fn one_file_is_searched_alone() {
    let world = Fixture::new();
    world.file("a", "x");
    let path = world.file(".b", "x");
    let (found, done) = search(&world, ask(path.clone(), "x"));
    assert_eq!((found.len(), done.files, &found[0].path), (1, 1, &path));
}

#[test]
fn letters_match_in_either_case_where_that_is_meant() {
    let world = Fixture::new();
    world.file("a", "ÄPFEL\näpfel\n");
    assert_eq!(search(&world, ask(top(&world), "äpfel")).0.len(), 1);
    let either = Search {
        case: Case::Either,
        ..ask(top(&world), "äpfel")
    };
    assert_eq!(search(&world, either).0.len(), 2);
}

#[test]
fn a_carriage_return_is_no_part_of_a_line() {
    let world = Fixture::new();
    world.file("a", "one\r\ntwo\r\n");
    assert_eq!(lines(&search(&world, ask(top(&world), "^one$")).0), [(1, &b"one"[..])]);
}

#[test]
fn the_lines_around_a_match_come_with_it() {
    let world = Fixture::new();
    world.file("a", "1\n2\n3\nhit\n5\nhit\n7\n8\n9\n");
    let (found, _) = search(
        &world,
        Search {
            context: 2,
            ..ask(top(&world), "hit")
        },
    );
    let around: Vec<(u64, u64, String)> = found
        .iter()
        .map(|found| {
            (
                found.first,
                found.line,
                String::from_utf8(found.lines.join(&b' ')).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        around,
        [(2, 4, "2 3 hit 5 hit".to_owned()), (4, 6, "hit 5 hit 7 8".to_owned())]
    );
    let edges = search(
        &world,
        Search {
            context: u32::MAX,
            ..ask(top(&world), "[19]")
        },
    )
    .0;
    assert_eq!(
        edges
            .iter()
            .map(|found| (found.first, found.lines.len()))
            .collect::<Vec<_>>(),
        [(1, 9), (1, 9)]
    );
}

#[test]
fn a_long_line_is_cut_around_the_match() {
    let world = Fixture::new();
    world.file("a", format!("{}needle{}", "a".repeat(100_000), "b".repeat(100_000)));
    let (found, _) = search(&world, ask(top(&world), "needle"));
    let line = &found[0].lines[0];
    assert!(line.len() <= 4096 && String::from_utf8_lossy(line).contains("needle"));
}

#[test]
fn of_a_long_line_both_ends_of_the_match_are_given_and_what_is_left_out_is_marked() {
    let world = Fixture::new();
    for around in [100_000, 1_000_000] {
        let line = format!(
            "{}needle{}pin{}",
            "a".repeat(around),
            "b".repeat(50_000),
            "c".repeat(around)
        );
        world.file("a", format!("{line}\nshort needle\n"));
        for (pattern, shown) in [
            ("needle", "needle"),
            ("pin", "pin"),
            ("needle.*pin", "needle"),
            ("needleb*pin", "pin"),
            (".*needle", "needle"),
            ("needle.*", "needle"),
            ("n.*c", "needle"),
            (".*pin", "pin"),
        ] {
            let (found, _) = search(&world, ask(top(&world), pattern));
            let line = String::from_utf8_lossy(&found[0].lines[0]).into_owned();
            assert!(line.len() <= 4096 && line.contains('…'), "{pattern}: {}", line.len());
            assert!(line.contains(shown), "{pattern} in {around}: {}", &line[..100]);
        }
        let (found, _) = search(&world, ask(top(&world), "needle"));
        let line = String::from_utf8_lossy(&found[0].lines[0]).into_owned();
        assert!(line.starts_with("…a") && line.ends_with("b…"));
        assert_eq!(found[1].lines[0], b"short needle");
    }
}

#[test]
fn what_is_beyond_the_limit_is_counted() {
    let world = Fixture::new();
    world.file("a", "x\n".repeat(1000));
    let (found, done) = search(
        &world,
        Search {
            limit: 300,
            ..ask(top(&world), "x")
        },
    );
    assert_eq!((found.len(), done.total, done.end), (300, 1000, End::Limit));
}

#[test]
fn what_is_no_text_is_passed_by() {
    let world = Fixture::new();
    world.file("binary", b"needle\0needle\n");
    world.file("text", "needle\n");
    let (found, done) = search(&world, ask(top(&world), "needle"));
    assert_eq!((found.len(), done.files), (1, 1));
}

#[test]
fn pipes_devices_and_symlinks_are_passed_by() {
    let world = Fixture::new();
    mkfifo(&world.path("pipe"), Mode::S_IRWXU).unwrap();
    world.file("f", "needle");
    symlink("f", world.path("link")).unwrap();
    symlink("/dev/zero", world.path("zero")).unwrap();
    let (found, done) = search(&world, ask(top(&world), "needle"));
    assert_eq!((found.len(), done.files, done.unreadable), (1, 1, 0));
    let why = search_within(&world, ask("/dev/zero".into(), "x"), TIME).map(drop);
    assert_eq!(why, Err(Why::Special(Special::Device)));
}

#[test]
fn files_that_a_glob_or_an_ignore_file_leaves_out_are_not_searched() {
    let world = Fixture::new();
    for name in ["a.rs", "b.md", "c.rs"] {
        world.file(name, "needle");
    }
    world.file(".gitignore", "c.rs\n");
    let mut asked = ask(top(&world), "needle");
    asked.select.glob = Some("*.rs".to_owned());
    let (found, _) = search(&world, asked);
    assert_eq!(
        found.into_iter().map(|found| found.path).collect::<Vec<_>>(),
        [world.os("a.rs")]
    );
}

#[test]
fn a_pattern_that_cannot_be_read_or_grows_too_large_is_malformed() {
    let world = Fixture::new();
    for pattern in [
        "(",
        "a{1000}{1000}{1000}",
        &"(".repeat(1000),
        &"a".repeat(100_000),
        "(?<=a)b",
    ] {
        let why = search_within(&world, ask(top(&world), pattern), TIME).map(drop);
        assert!(matches!(why, Err(Why::Malformed(_))), "{why:?}");
    }
}

#[test]
fn a_line_too_long_to_hold_is_searched_to_its_end() {
    let world = Fixture::new();
    for at in [256 * 1024 - 3, 256 * 1024, 5_000_000] {
        let line = format!("{}needle{}", "a".repeat(at), "b".repeat(1_000_000));
        let path = world.file("f", format!("first\n{line}\nlast\n"));
        let count = |pattern: &str| {
            let (found, _) = search(&world, ask(path.clone(), pattern));
            assert!(
                found
                    .iter()
                    .all(|found| found.line == 2 && found.lines[0].len() <= 4096)
            );
            found.len()
        };
        assert_eq!(count("needle"), 1, "{at}");
        assert_eq!(count("^needle|needle$|a$"), 0, "{at}");
        assert_eq!(count("b$"), 1, "{at}");
        assert_eq!(count("^aaa"), 1, "{at}");
    }
}

#[test]
fn time_that_is_over_is_said() {
    let world = Fixture::new();
    world.file("f", "x\n".repeat(500_000));
    let (_, done) = search_within(&world, ask(world.os("f"), "x"), 0).unwrap();
    assert_eq!(done.end, End::Time);
}

#[test]
fn a_search_of_what_is_missing_fails() {
    let world = Fixture::new();
    assert_eq!(
        search_within(&world, ask(world.os("missing"), "x"), TIME).map(drop),
        Err(Why::Missing)
    );
}
