//! Other launchers of sandboxes, where the PATH has them, beside Stockade: each shown the system, given the directory it starts in to
//! write, and no network where it can take that away.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::programs::Workshop;
use super::sheet::{Sheet, Way};

/// What runs `/bin/true` for everybody.
const PROGRAM: &str = "/bin/true";

/// Stands in an argument for the directory that may be written.
const HERE: &str = "{}";

/// The program of a launcher, and the words between that and the command. What they hold differs: `docs/performance.md` says how.
const PEERS: [(&str, &str); 6] = [
    (
        "landrun",
        "--rox /usr --rox /lib --rox /lib64 --rox /bin --ro /etc --rw {}",
    ),
    (
        "bwrap",
        "--ro-bind / / --bind {} {} --dev /dev --proc /proc --unshare-all --die-with-parent",
    ),
    ("hakoniwa", "run --unshare-all -w {} --"),
    (
        "firejail",
        "--quiet --noprofile --read-only=/ --read-write={} --private-dev --net=none --seccomp --caps.drop=all --nonewprivs",
    ),
    ("codex", "sandbox -P :workspace --"),
    ("srt", "--"),
];

/// One command from nothing to its end, by everybody.
pub(crate) fn start(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("One command beside the launchers of others");
    let root = workshop.root();
    let run = |command: &mut Command| {
        let ended = command
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(ended.status().unwrap().success(), "{command:?}");
    };
    let mut ways = vec![
        Way::new("bare", || run(&mut Command::new(PROGRAM))),
        Way::new("stockade run, landlock", || {
            run(workshop.stockade("landlock").arg("--").arg(PROGRAM));
        }),
        Way::new("stockade run, namespaces", || {
            run(workshop.stockade("namespaces").arg("--").arg(PROGRAM));
        }),
    ];
    let here = root.to_str().unwrap();
    for (name, words) in PEERS {
        if let Some(program) = found(name) {
            let words: Vec<String> = words.split_whitespace().map(|word| word.replace(HERE, here)).collect();
            ways.push(Way::new(name, move || {
                run(Command::new(&program).args(&words).arg(PROGRAM));
            }));
        }
    }
    sheet.compare("true", rounds, ways);
}

/// Where the PATH has it.
fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&path).map(|directory| directory.join(OsStr::new(name)));
    candidates.find(|candidate| candidate.is_file())
}
