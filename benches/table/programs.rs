//! Where the table is measured, and the programs that it starts there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use landlock::{
    ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, path_beneath_rules,
};
use stockade::backend::seccomp::{Instruction, SeccompPlan};
use stockade::confine::layers::filter;

/// Does Landlock, and nothing else, then becomes a program: `__landlock DIRECTORY PROGRAM…`.
const LAUNCH: &str = "__landlock";
/// The same with a filter: `__filtered DIRECTORY PROGRAM…`.
const FILTER: &str = "__filtered";
/// Makes system calls and says how many nanoseconds one took: `__loop NAME COUNT`.
const LOOP: &str = "__loop";

/// A workspace with what the table needs in it.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        // Below /tmp a sandbox has a directory of its own.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let workshop = Self { folder, root };
        fs::copy(std::env::current_exe().unwrap(), workshop.own()).unwrap();
        // An install copies it, too. As the linker left it, each of its pages lies by itself in memory, and loading takes a tenth longer.
        fs::copy(env!("CARGO_BIN_EXE_stockade"), workshop.installed()).unwrap();
        let source = workshop.folder.path().join("nothing.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let mut compile = Command::new("cc");
        compile
            .args(["-O2", "-static", "-o"])
            .arg(workshop.nothing())
            .arg(source);
        assert!(compile.status().unwrap().success());
        workshop
    }

    /// The workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A directory beside the workspace, which nothing inside reaches.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// This program, where commands can run it.
    fn own(&self) -> PathBuf {
        self.root.join("table")
    }

    /// Stockade, where nothing inside reaches it.
    pub(crate) fn installed(&self) -> PathBuf {
        self.beside("stockade")
    }

    /// A static program that does nothing.
    pub(crate) fn nothing(&self) -> PathBuf {
        self.root.join("nothing")
    }

    /// Where calls go on record.
    pub(crate) fn log(&self) -> PathBuf {
        self.beside("audit.jsonl")
    }

    /// `stockade run` of this backend, up to its own `--`.
    pub(crate) fn stockade(&self, backend: &str) -> Command {
        let mut command = Command::new(self.installed());
        command.args(["run", "-q", "--preset", "workspace-write", "--backend", backend]);
        command.current_dir(&self.root);
        command
    }

    /// What the fastest launchers of Landlock do: rules for the system and the workspace, one restriction, the program.
    pub(crate) fn launcher(&self) -> Command {
        self.launched(LAUNCH)
    }

    /// The same with the least that a filter costs which looks at one argument of a call that programs make often.
    pub(crate) fn filtering_launcher(&self) -> Command {
        self.launched(FILTER)
    }

    fn launched(&self, how: &str) -> Command {
        let mut command = Command::new(self.own());
        command.arg(how).arg(&self.root);
        command
    }

    /// The arguments for bwrap by itself.
    pub(crate) fn mounts(&self) -> Vec<OsString> {
        let mut export = Command::new(self.installed());
        export.args(["profile", "export", "--format", "bwrap", "--preset", "workspace-write"]);
        let output = export.current_dir(&self.root).output().unwrap();
        assert!(output.status.success());
        output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| OsString::from_vec(word.to_owned()))
            .collect()
    }

    /// What one system call takes inside `start`, as the loop in there says.
    pub(crate) fn per_call(&self, start: &mut Command, name: &str, count: u32) -> Duration {
        let looping = start.arg(self.own()).arg(LOOP).arg(name).arg(count.to_string());
        let output = looping.current_dir(&self.root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let nanoseconds = String::from_utf8(output.stdout).unwrap();
        Duration::from_nanos(nanoseconds.trim().parse().unwrap()) / count
    }
}

/// Whether the first argument says that the table started itself.
pub(crate) fn is_ours(first: &OsStr) -> bool {
    first == LAUNCH || first == FILTER || first == LOOP
}

/// Does what it was started for.
pub(crate) fn main() -> ! {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments[0] != LOOP {
        if arguments[0] == FILTER {
            filter::install(&sees_modes()).unwrap();
        }
        launch(Path::new(&arguments[1]), &arguments[2..])
    }
    call(
        arguments[1].to_str().unwrap(),
        arguments[2].to_str().unwrap().parse().unwrap(),
    );
    std::process::exit(0)
}

fn launch(workspace: &Path, program: &[OsString]) -> ! {
    let abi = ABI::V6;
    let readable = AccessFs::from_read(abi);
    let system = ["/usr", "/etc", "/bin", "/lib", "/lib64", "/proc", "/dev"];
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .unwrap()
        .create()
        .unwrap()
        .add_rules(path_beneath_rules(system, readable))
        .unwrap()
        .add_rules(path_beneath_rules(
            [workspace, Path::new("/dev/null")],
            AccessFs::from_all(abi),
        ))
        .unwrap()
        .restrict_self()
        .unwrap();
    assert_eq!(status.ruleset, RulesetStatus::FullyEnforced);
    panic!("{}", Command::new(&program[0]).args(&program[1..]).exec())
}

/// Lets everything through, but for an openat(2) whose mode has a set-id bit: one look of the many that keep a program from making
/// such files.
fn sees_modes() -> SeccompPlan {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_ANY_BIT: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let program = vec![
        step(LOAD, 0, 0, 0), // nr
        step(JUMP_EQUAL, 0, 2, u32::try_from(libc::SYS_openat).unwrap()),
        step(LOAD, 0, 0, 16 + 8 * 3), // the fourth argument
        step(JUMP_ANY_BIT, 1, 0, 0o6000),
        step(RETURN, 0, 0, 0x7fff_0000), // allow
        step(RETURN, 0, 0, 0x0005_0001), // EPERM
    ];
    SeccompPlan {
        programs: vec![program],
        notify: None,
    }
}

/// One kind of call, over and over.
#[expect(clippy::print_stdout, reason = "whoever started it reads it")]
fn call(name: &str, count: u32) {
    let begun = Instant::now();
    for _ in 0..count {
        match name {
            "getppid" => drop(nix::unistd::getppid()),
            "stat" => drop(fs::metadata("nothing").unwrap()),
            "open" => drop(fs::File::open("nothing").unwrap()),
            other => panic!("no loop is called {other}"),
        }
    }
    println!("{}", begun.elapsed().as_nanos());
}
