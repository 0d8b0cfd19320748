//! Other launchers of sandboxes, where the PATH has them, beside Stockade: each shown the system, given the directory it starts in to
//! write, and no network where it can take that away.

use std::env;
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
#[expect(clippy::print_stdout, reason = "a measuring program")]
pub(crate) fn start(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("One command beside the launchers of others");
    let root = workshop.root();
    let run = |command: &mut Command| {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.current_dir(root).status().is_ok_and(|status| status.success())
    };
    let mut ways = vec![
        Way::new("bare", || assert!(run(&mut Command::new(PROGRAM)))),
        Way::new("stockade run, landlock", || {
            assert!(run(workshop.stockade("landlock").arg("--").arg(PROGRAM)));
        }),
        Way::new("stockade run, namespaces", || {
            assert!(run(workshop.stockade("namespaces").arg("--").arg(PROGRAM)));
        }),
    ];
    let here = root.to_str().unwrap();
    for (name, words) in PEERS {
        let Some(program) = found(name) else { continue };
        let words: Vec<String> = words.split_whitespace().map(|word| word.replace(HERE, here)).collect();
        let start = move || run(Command::new(&program).args(&words).arg(PROGRAM));
        if start() {
            ways.push(Way::new(name, move || assert!(start())));
        } else {
            println!("    {name} does not work here");
        }
    }
    sheet.compare("true", rounds, ways);
}

/// Where the PATH has it; a directory that is not absolute is passed over.
fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).filter(|directory| directory.is_absolute());
    let mut candidates = directories.map(|directory| directory.join(name));
    candidates.find(|candidate| candidate.is_file())
}
