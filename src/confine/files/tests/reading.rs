//! Lines of files.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::protocol::{End, MAX_TEXT, Read, Special, Text};
use super::*;

const GIB: u64 = 1024 * 1024 * 1024;

fn read_within(world: &Fixture, request: Read, deadline_ms: u64) -> Result<Text, Why> {
    world.send(FileOperation::Read(request), deadline_ms);
    match world.reply() {
        FileReply::Text(text) => Ok(text),
        FileReply::Failed(failed) => Err(failed.why),
        other => panic!("{other:?}"),
    }
}

fn ask(path: &OsStr, first: u64, lines: Option<u64>, max_bytes: u64) -> Read {
    Read {
        path: path.to_owned(),
        first,
        skip: 0,
        lines,
        max_bytes,
    }
}

fn read(world: &Fixture, path: &OsStr, first: u64, lines: Option<u64>, max_bytes: u64) -> Result<Text, Why> {
    read_within(world, ask(path, first, lines, max_bytes), 3_600_000)
}

#[test]
fn line_ends_are_given_as_they_are() {
    let world = Fixture::new();
    for content in ["a\r\nb\r\n", "a\nb", "", "\n", "\r", "a\n\n"] {
        let path = world.file("f", content);
        let text = read(&world, &path, 1, None, MAX_TEXT).unwrap();
        assert_eq!(text.bytes, content.as_bytes());
        let lines = content.split_inclusive('\n').count() as u64;
        assert_eq!(
            (text.lines, text.total_lines, text.end),
            (lines, Some(lines), End::Complete),
            "{content:?}"
        );
        assert_eq!(text.total_bytes, content.len() as u64);
    }
}

#[test]
fn the_lines_asked_for_are_given_and_the_rest_is_counted() {
    let world = Fixture::new();
    let path = world.file("f", "one\ntwo\nthree\nfour");
    let text = read(&world, &path, 2, Some(2), MAX_TEXT).unwrap();
    assert_eq!(text.bytes, b"two\nthree\n");
    assert_eq!(
        (text.first, text.lines, text.total_lines, text.end),
        (2, 2, Some(4), End::Complete)
    );
    let last = read(&world, &path, 4, Some(9), MAX_TEXT).unwrap();
    assert_eq!((last.bytes, last.lines), (b"four".to_vec(), 1));
}

#[test]
fn beyond_the_end_there_is_no_text_but_the_totals() {
    let world = Fixture::new();
    let path = world.file("f", "one\ntwo\n");
    let text = read(&world, &path, 3, None, MAX_TEXT).unwrap();
    assert_eq!((text.bytes, text.lines), (Vec::new(), 0));
    assert_eq!(
        (text.total_lines, text.total_bytes, text.end),
        (Some(2), 8, End::Complete)
    );
}

#[test]
fn too_much_text_is_cut_at_the_end_of_a_line() {
    let world = Fixture::new();
    let path = world.file("f", "one\ntwo\nthree\n");
    let text = read(&world, &path, 1, None, 9).unwrap();
    assert_eq!(
        (text.bytes, text.lines, text.end),
        (b"one\ntwo\n".to_vec(), 2, End::Limit)
    );
    assert_eq!(text.total_lines, Some(3));
    let exact = read(&world, &path, 1, Some(2), 8).unwrap();
    assert_eq!(exact.end, End::Complete);
}

#[test]
fn one_line_too_long_is_cut_between_characters() {
    let world = Fixture::new();
    let path = world.file("f", "ääää\nb\n");
    let text = read(&world, &path, 1, None, 5).unwrap();
    assert_eq!(
        (text.bytes, text.lines, text.end),
        ("ää".as_bytes().to_vec(), 1, End::Limit)
    );
    assert_eq!(text.total_lines, Some(2));
}

#[test]
fn a_line_too_long_for_one_answer_is_read_piece_by_piece() {
    let world = Fixture::new();
    let line: String = (0..1000)
        .flat_map(|number: u32| ["é".to_owned(), number.to_string()])
        .collect();
    let content = format!("first\n{line}\nlast\nend");
    let path = world.file("f", &content);
    let (mut got, mut first, mut skip, mut answers) = (Vec::new(), 1, 0, 0);
    loop {
        let request = Read {
            skip,
            ..ask(&path, first, None, 99)
        };
        let text = read_within(&world, request, 3_600_000).unwrap();
        got.extend(text.bytes);
        answers += 1;
        assert_eq!(text.total_lines, Some(4));
        (first, skip) = match (text.end, text.cut) {
            (End::Complete, None) => break,
            (End::Limit, Some(cut)) => (text.first, cut),
            (End::Limit, None) => (text.first + text.lines, 0),
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(String::from_utf8(got).unwrap(), content);
    assert!(answers > 50, "{answers}");
    // What is beyond the end of the line begins with the next.
    let beyond = Read {
        skip: 1_000_000,
        ..ask(&path, 2, Some(2), 99)
    };
    assert_eq!(read_within(&world, beyond, 3_600_000).unwrap().bytes, b"last\n");
}

#[test]
fn bytes_that_are_no_utf_8_are_given_as_they_are() {
    let world = Fixture::new();
    let path = world.file("f", b"caf\xe9\n");
    assert_eq!(read(&world, &path, 1, None, MAX_TEXT).unwrap().bytes, b"caf\xe9\n");
}

#[test]
fn what_is_no_text_is_named_and_not_given() {
    let world = Fixture::new();
    let png = world.file("p", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let what = "PNG image".to_owned();
    assert_eq!(
        read(&world, &png, 1, None, MAX_TEXT),
        Err(Why::Binary { what, size: 16 })
    );
    let late = world.file("late", [vec![b'\n'; 100_000], vec![0]].concat());
    let why = read(&world, &late, 1, None, MAX_TEXT);
    assert!(matches!(why, Err(Why::Binary { size: 100_001, .. })), "{why:?}");
    assert_eq!(read(&world, &late, 1, Some(3), MAX_TEXT).unwrap().bytes, b"\n\n\n");
}

/// A file that takes no room on the disk but for its beginning.
fn sparse(world: &Fixture, beginning: &[u8], size: u64) -> OsString {
    let path = world.file("sparse", beginning);
    File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
    path
}

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_gigabyte_in_one_line_is_counted_in_little_memory() {
    let world = Fixture::new();
    let path = sparse(&world, &b"line\n".repeat(10_000), GIB);
    let before = peak();
    let text = read(&world, &path, 20_000, None, MAX_TEXT).unwrap();
    assert_eq!(
        (text.bytes, text.total_lines, text.total_bytes),
        (Vec::new(), Some(10_001), GIB)
    );
    assert!(peak() - before < 256 * 1024, "{} KiB", peak() - before);
}

#[test]
fn the_lines_asked_for_do_not_wait_until_a_terabyte_is_counted() {
    const TIB: u64 = 1024 * GIB;
    let world = Fixture::new();
    let path = sparse(&world, &b"line\n".repeat(10_000), TIB);
    // On a busy machine the first may be over before the lines are found. None is enough to count it all.
    let mut texts = [200, 5_000, 50_000]
        .into_iter()
        .map(|time| read_within(&world, ask(&path, 2, Some(2), MAX_TEXT), time).unwrap());
    let text = texts.find(|text| text.end == End::Complete).unwrap();
    assert_eq!(text.bytes, b"line\nline\n");
    assert_eq!((text.total_lines, text.total_bytes), (None, TIB));
}

#[test]
fn time_that_is_over_before_the_lines_are_complete_is_said() {
    let world = Fixture::new();
    let path = world.file("f", "line\n".repeat(1_000_000));
    let text = read_within(&world, ask(&path, 1, None, MAX_TEXT), 0).unwrap();
    assert_eq!((text.end, text.total_lines), (End::Time, None));
    assert!(
        text.bytes.ends_with(b"line\n") && text.lines > 0 && text.lines < 1_000_000,
        "{}",
        text.lines
    );
    let whole = read(&world, &path, 999_999, None, MAX_TEXT).unwrap();
    assert_eq!((whole.end, whole.lines), (End::Complete, 2));
}

#[test]
fn a_pipe_a_device_a_directory_and_a_symlink_are_not_read() {
    let world = Fixture::new();
    mkfifo(&world.path("pipe"), Mode::S_IRWXU).unwrap();
    let path = world.file("f", "x");
    symlink("f", world.path("link")).unwrap();
    let why = |path: &OsStr| read(&world, path, 1, None, MAX_TEXT).map(|text| text.bytes);
    assert_eq!(why(&world.os("pipe")), Err(Why::Special(Special::Fifo)));
    assert_eq!(why(OsStr::new("/dev/zero")), Err(Why::Special(Special::Device)));
    assert_eq!(why(&world.os("")), Err(Why::IsDirectory));
    assert_eq!(why(&world.os("link")), Err(Why::Changed));
    assert_eq!(why(&world.os("missing")), Err(Why::Missing));
    assert_eq!(why(&path), Ok(b"x".to_vec()));
}

/// Ends what repeats something beside a test, also where the test fails: a scope waits for its threads.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_file_that_grows_or_shrinks_meanwhile_gives_whole_lines_and_matching_totals() {
    let world = Fixture::new();
    let path = world.file("f", "line\n".repeat(50_000));
    let over = AtomicBool::new(false);
    let mut given = 0;
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        scope.spawn(|| {
            let mut file = File::options().write(true).open(&path).unwrap();
            while !over.load(Ordering::Relaxed) {
                file.set_len(5 * 1000).unwrap();
                file.seek(SeekFrom::End(0)).unwrap();
                file.write_all(&b"line\n".repeat(50_000)).unwrap();
            }
        });
        for _ in 0..100 {
            let text = match read(&world, &path, 1, None, MAX_TEXT) {
                Ok(text) => text,
                // Whoever shortens a file blanks the rest of its last page, which a read that has begun may still copy.
                Err(Why::Binary { .. }) => continue,
                Err(why) => panic!("{why:?}"),
            };
            given += 1;
            assert_eq!(text.bytes.len() as u64, text.total_bytes);
            assert_eq!(Some(text.lines), text.total_lines);
            assert_eq!(
                text.lines,
                text.bytes.split_inclusive(|byte| *byte == b'\n').count() as u64
            );
        }
    });
    assert!(given >= 50, "{given} of 100");
}
