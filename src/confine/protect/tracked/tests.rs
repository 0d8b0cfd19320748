//! Objects that somebody damaged: whatever is read from them, it ends, and what is given out is what it is called.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::id::{Algorithm, Id};
use super::kind::Kind;
use super::objects::Objects;
use super::pack::apply;
use super::reach::{Current, Query, answer};

#[expect(clippy::disallowed_methods, reason = "makes what is read")]
fn git(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with some commits in one pack, with differences in it; and its last commit.
fn packed(folder: &Path) -> Id {
    git(folder, &["init", "-q"]);
    for number in 0..40 {
        fs::create_dir_all(folder.join(".vscode")).unwrap();
        for file in 0..20 {
            let text = if file == number % 20 { number } else { 0 };
            fs::write(folder.join(format!("{file}")), format!("{text}")).unwrap();
        }
        fs::write(folder.join(".vscode/tasks.json"), format!("{}", number / 10)).unwrap();
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-qm", "work"]);
    }
    git(folder, &["gc", "-q", "--aggressive", "--prune=now"]);
    Id::from_hex(git(folder, &["rev-parse", "HEAD"]).trim().as_bytes()).unwrap()
}

fn objects(folder: &Path) -> Objects {
    Objects::new(OwnedFd::from(File::open(folder.join(".git/objects")).unwrap()))
}

fn query(content: &str) -> Query {
    Query {
        path: vec![b".vscode".to_vec(), b"tasks.json".to_vec()],
        now: Current::File {
            blob: Algorithm::Sha1.name("blob", content.as_bytes()).unwrap(),
            is_executable: false,
        },
        before: None,
        is_file: true,
    }
}

fn file(folder: &Path, ending: &str) -> PathBuf {
    let packs = fs::read_dir(folder.join(".git/objects/pack")).unwrap();
    let mut paths = packs.map(|entry| entry.unwrap().path());
    paths
        .find(|path| path.extension().is_some_and(|found| found == ending))
        .unwrap()
}

/// Numbers that look like chance, and are the same each time.
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below.max(1)
    }
}

#[test]
fn a_damaged_pack_or_index_is_read_to_an_end_and_proves_nothing_false() {
    let folder = tempfile::tempdir().unwrap();
    let tip = packed(folder.path());
    let ask = || {
        let queries = [query("0"), query("3"), query("evil")];
        let answers = answer(&mut objects(folder.path()), &[tip], Some(tip), &queries);
        answers.iter().map(|one| one.may_stay).collect::<Vec<_>>()
    };
    assert_eq!(ask(), [true, true, false]);
    let mut next = numbers(7);
    for ending in ["idx", "pack"] {
        let path = file(folder.path(), ending);
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for round in 0..60 {
            let mut bad = good.clone();
            match round % 3 {
                0 => bad.truncate(next(good.len())),
                1 => {
                    for _ in 0..8 {
                        let at = next(bad.len());
                        bad[at] = u8::try_from(next(256)).unwrap();
                    }
                }
                _ => {
                    // Many at once, where most is decided.
                    let at = next(bad.len());
                    let end = bad.len().min(at + 64);
                    bad[at..end].fill(if round % 2 == 0 { 0xff } else { 0 });
                }
            }
            fs::write(&path, &bad).unwrap();
            assert!(!ask()[2]);
        }
        fs::write(&path, &good).unwrap();
        assert_eq!(ask(), [true, true, false]);
    }
}

#[test]
fn a_difference_makes_what_it_says_or_nothing() {
    let base = b"0123456789";
    for (difference, made) in [
        (&b"\x0a\x04\x91\x02\x04"[..], Some(&b"2345"[..])),
        (b"\x0a\x05\x02ab\x91\x07\x03", Some(b"ab789")),
        // Of another base, too short, too long, beyond the base, cut off, and kept for later.
        (b"\x0b\x04\x91\x02\x04", None),
        (b"\x0a\x05\x91\x02\x04", None),
        (b"\x0a\x03\x91\x02\x04", None),
        (b"\x0a\x04\x91\x08\x04", None),
        (b"\x0a\x04\x9f\xff\xff\xff\xff\x04", None),
        (b"\x0a\x04\x05ab", None),
        (b"\x0a\x04\x91\x02", None),
        (b"\x0a\x00\x00", None),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\x7f", None),
        (b"", None),
    ] {
        assert_eq!(apply(base, difference).as_deref(), made, "{difference:?}");
    }
    let mut next = numbers(11);
    for _ in 0..5000 {
        let length = next(24);
        let mut difference: Vec<u8> = (0..length).map(|_| u8::try_from(next(256)).unwrap()).collect();
        difference.splice(0..0, [10, 64]);
        let _ends = apply(base, &difference);
    }
}

/// A pack of one object, with an index that names it so.
fn plant(folder: &Path, name: Id, object: &[u8]) {
    let pack = folder.join(".git/objects/pack");
    fs::create_dir_all(&pack).unwrap();
    let mut data = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    data.extend_from_slice(object);
    data.extend_from_slice(&[0; 20]);
    fs::write(pack.join("pack-1.pack"), data).unwrap();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=255_u8 {
        index.extend_from_slice(&u32::from(first >= name.bytes()[0]).to_be_bytes());
    }
    index.extend_from_slice(name.bytes());
    index.extend_from_slice(&[0; 4]);
    index.extend_from_slice(&12_u32.to_be_bytes());
    fs::write(pack.join("pack-1.idx"), index).unwrap();
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut made = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    made.write_all(content).unwrap();
    made.finish().unwrap()
}

#[test]
fn what_leads_to_itself_is_too_long_or_is_another_is_no_object() {
    let folder = tempfile::tempdir().unwrap();
    let name = Algorithm::Sha1.name("tree", b"").unwrap();
    let read = |object: &[u8]| {
        plant(folder.path(), name, object);
        objects(folder.path())
            .read(name)
            .map(|(kind, content)| (kind, content.len()))
    };
    let with = |head: &[u8], content: &[u8]| [head, &deflated(content)].concat();
    assert_eq!(read(&with(b"\x20", b"")), Some((Kind::Tree, 0)));
    // Another kind, and another content.
    assert_eq!(read(&with(b"\x30", b"")), None);
    assert_eq!(read(&with(b"\x21", b"a")), None);
    // More than its length says, and a length beyond all bounds.
    assert_eq!(read(&with(b"\x20", &vec![0; 64 << 20])), None);
    assert_eq!(read(&with(b"\xaf\xff\xff\xff\xff\x7f", b"")), None);
    assert_eq!(read(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
    // A difference to itself: by its place, by its name, and to what lies before the file.
    assert_eq!(read(&with(b"\x60\x00", b"")), None);
    assert_eq!(read(&with(&[b"\x70", name.bytes()].concat(), b"")), None);
    assert_eq!(read(&with(b"\x60\x7f", b"")), None);
    assert_eq!(
        read(&with(b"\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"")),
        None
    );
}

#[test]
fn a_file_made_to_collide_has_no_name() {
    // Not a collision, but the way that one would take.
    assert!(Algorithm::Sha1.name("blob", b"text").is_some());
    let empty = Id::from_hex(b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_eq!(Algorithm::Sha1.name("blob", b""), empty);
}
