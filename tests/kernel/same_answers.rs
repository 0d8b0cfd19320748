//! The same operations, by the same configs, put to `--backend landlock` and to `--backend namespaces` of the real binary, as
//! root and as an ordinary user: the answers are the same, or the difference is declared.
//!
//! Declared is a difference where `stockade profile check` says so: a clause that is `stricter` in the backend that refuses,
//! or `undone` or `residual` in the one that permits. All differences there are stand in a list, each with its reason.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
#[path = "../reexec/differential/tools.rs"]
mod tools;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    use serde::Deserialize;
    use serde_json::Value;

    use super::tools::Tools;
    use crate::common::{Backend, Fixture, in_namespaces, marker};

    in_namespaces! {
        roots_that_are_written_and_one_that_is_only_read [];
        a_read_only_root_inside_a_writable_one [];
        denies_inside_a_writable_root [];
        files_that_match_a_suffix [];
        files_up_to_a_size [];
        protected_names ["git"];
        an_open_network_and_all_sockets [];
    }

    /// The keys below `sandbox`, and those below `shell`.
    struct Config {
        sandbox: &'static str,
        shell: &'static str,
    }

    fn roots_that_are_written_and_one_that_is_only_read(world: &Fixture) {
        let config = Config {
            sandbox: "
  protect: none
  paths:
    a: {root: W/a, mode: rw, execute: true, approval: {write: none}}
    b: {root: W/b, mode: rw, approval: {write: none}}
    c: {root: W/c, mode: ro}",
            shell: "",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to make a socket of family 16: stricter, no socket of the internet or of netlink can be made
        landlock refuses to make a socket of family 2: stricter, no socket of the internet or of netlink can be made
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        namespaces refuses to link a/away-0 as b/link-0: stricter, a mount of its own
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        namespaces refuses to rename a/away-0 as b/away-0-of-another: stricter, a mount of its own
        "); }
    }

    fn a_read_only_root_inside_a_writable_one(world: &Fixture) {
        let config = Config {
            sandbox: "
  protect: none
  deny_fallback: decompose
  paths:
    a: {root: W/a, mode: rw, execute: true, approval: {write: none}}
    inner: {root: W/a/inner, mode: ro, execute: true}",
            shell: "",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to create /tmp/MARKER: stricter, what is not granted of the host's cannot be used
        landlock refuses to create a/.envrc: stricter, none can be created or removed
        landlock refuses to create a/new.md: stricter, none can be created or removed
        landlock refuses to create a/new: stricter, none can be created or removed
        landlock refuses to link a/linked as a/linked-2: stricter, none can be created or removed
        landlock refuses to make a folder a/newdir: stricter, none can be created or removed
        landlock refuses to make a link a/newlink: stricter, none can be created or removed
        landlock refuses to make a socket of family 16: stricter, no socket of the internet or of netlink can be made
        landlock refuses to make a socket of family 2: stricter, no socket of the internet or of netlink can be made
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        landlock refuses to remove a folder a/empty: stricter, none can be created or removed
        landlock refuses to rename a/moved as a/moved-2: stricter, none can be created or removed
        landlock refuses to unlink a/gone: stricter, none can be created or removed
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        namespaces refuses to look up b/file: residual where it is permitted
        namespaces refuses to look up c/file: residual where it is permitted
        "); }
    }

    fn denies_inside_a_writable_root(world: &Fixture) {
        let config = Config {
            sandbox: "
  protect: none
  deny_fallback: decompose
  paths:
    a: {root: W/a, mode: rw, execute: true, approval: {write: none}, deny: [inner/file, inner/run]}
    b: {root: W/b, mode: rw, approval: {write: none}, deny: ['*.md']}
    c: {root: W/c, mode: ro, deny: ['*.md', absent]}",
            shell: "",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to create a/.envrc: stricter, none can be created or removed
        landlock refuses to create a/inner/new.md: stricter, none can be created or removed
        landlock refuses to create a/inner/new: stricter, none can be created or removed
        landlock refuses to create a/new.md: stricter, none can be created or removed
        landlock refuses to create a/new: stricter, none can be created or removed
        landlock refuses to link a/inner/linked as a/inner/linked-2: stricter, none can be created or removed
        landlock refuses to link a/linked as a/linked-2: stricter, none can be created or removed
        landlock refuses to list a/inner: stricter, some directories are ruled entry by entry
        landlock refuses to list a: stricter, some directories are ruled entry by entry
        landlock refuses to list c: stricter, some directories are ruled entry by entry
        landlock refuses to make a folder a/inner/newdir: stricter, none can be created or removed
        landlock refuses to make a folder a/newdir: stricter, none can be created or removed
        landlock refuses to make a link a/inner/newlink: stricter, none can be created or removed
        landlock refuses to make a link a/newlink: stricter, none can be created or removed
        landlock refuses to make a socket of family 16: stricter, no socket of the internet or of netlink can be made
        landlock refuses to make a socket of family 2: stricter, no socket of the internet or of netlink can be made
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        landlock refuses to remove a folder a/empty: stricter, none can be created or removed
        landlock refuses to remove a folder a/inner/empty: stricter, none can be created or removed
        landlock refuses to rename a/inner/moved as a/inner/moved-2: stricter, none can be created or removed
        landlock refuses to rename a/moved as a/moved-2: stricter, none can be created or removed
        landlock refuses to unlink a/gone: stricter, none can be created or removed
        landlock refuses to unlink a/inner/gone: stricter, none can be created or removed
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        "); }
    }

    fn files_that_match_a_suffix(world: &Fixture) {
        let config = Config {
            sandbox: "
  protect: none
  paths:
    a: {root: W/a, mode: rw, suffixes: [.md], approval: {write: none}}",
            shell: "",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to make a socket of family 16: stricter, no socket of the internet or of netlink can be made
        landlock refuses to make a socket of family 2: stricter, no socket of the internet or of netlink can be made
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        namespaces refuses to look up b/file: residual where it is permitted
        namespaces refuses to look up c/file: residual where it is permitted
        "); }
    }

    fn files_up_to_a_size(world: &Fixture) {
        let config = Config {
            sandbox: "
  protect: none
  paths:
    a: {root: W/a, mode: rw, max_file_bytes: 1KiB, approval: {write: none}}",
            shell: "",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to make a socket of family 16: stricter, no socket of the internet or of netlink can be made
        landlock refuses to make a socket of family 2: stricter, no socket of the internet or of netlink can be made
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        namespaces refuses to look up b/file: residual where it is permitted
        namespaces refuses to look up c/file: residual where it is permitted
        "); }
    }

    fn protected_names(world: &Fixture) {
        let a = world.workspace().join("a");
        fs::create_dir(&a).unwrap();
        std::os::unix::fs::chown(&a, Some(world.actor.uid()), Some(world.actor.uid())).unwrap();
        let git = world.bare("/usr/bin/git").args(["init", "-q", "a"]);
        git.output().exits(0);
        let config = Config {
            sandbox: "
  protect: default
  protect_fallback: undo
  paths:
    a: {root: W/a, mode: rw, approval: {write: none}}",
            shell: "",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to make a socket of family 16: stricter, no socket of the internet or of netlink can be made
        landlock refuses to make a socket of family 2: stricter, no socket of the internet or of netlink can be made
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        namespaces refuses to look up b/file: residual where it is permitted
        namespaces refuses to look up c/file: residual where it is permitted
        "); }
    }

    fn an_open_network_and_all_sockets(world: &Fixture) {
        let config = Config {
            sandbox: "
  protect: none
  paths:
    a: {root: W/a, mode: rw, approval: {write: none}}",
            shell: "
  network: true
  unix_sockets: all",
        };
        insta::allow_duplicates! { insta::assert_snapshot!(differences(world, &config), @r"
        landlock refuses to read /proc/self/status: stricter, what is not granted of the host's cannot be read
        namespaces refuses to connect to a socket outside: stricter, sockets that are mounted
        namespaces refuses to look up ../outside/file: residual where it is permitted
        namespaces refuses to look up /etc/shadow: residual where it is permitted
        namespaces refuses to look up b/file: residual where it is permitted
        namespaces refuses to look up c/file: residual where it is permitted
        "); }
    }

    /// What kind of thing an operation does, as far as statuses tell them apart.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Content,
        Execute,
        List,
        Name,
        Move,
        Attributes,
        Metadata,
        Beyond,
        Socket,
    }

    /// One operation; its paths are relative to the workspace, or absolute.
    #[derive(Debug)]
    struct Probe {
        said: &'static str,
        letter: u8,
        kind: Kind,
        paths: [String; 2],
    }

    fn one(said: &'static str, letter: u8, kind: Kind, path: impl Into<String>) -> Probe {
        Probe {
            said,
            letter,
            kind,
            paths: [path.into(), String::new()],
        }
    }

    fn two(said: &'static str, letter: u8, from: impl Into<String>, to: impl Into<String>) -> Probe {
        Probe {
            said,
            letter,
            kind: Kind::Move,
            paths: [from.into(), to.into()],
        }
    }

    const FOLDERS: [&str; 5] = ["a", "a/inner", "b", "c", "../outside"];

    /// From where to where things are moved and linked.
    const ACROSS: [(&str, &str); 5] = [
        ("a", "b"),
        ("b", "a"),
        ("a", "a/inner"),
        ("a", "../outside"),
        ("c", "a"),
    ];

    /// Grows what the operations are about; each that changes something has a file of its own.
    fn grow(world: &Fixture, program: &[u8]) {
        for folder in FOLDERS {
            for name in ["file", "f.md", "gone", "moved", "linked"] {
                world.write(format!("{folder}/{name}"), "\x7fcontent");
            }
            for number in 0..ACROSS.len() {
                world.write(format!("{folder}/away-{number}"), "\x7fcontent");
            }
            for name in ["run", "run.md"] {
                let run = world.write(format!("{folder}/{name}"), program);
                fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
            }
            world.write(format!("{folder}/empty/x"), "");
            fs::remove_file(world.workspace().join(folder).join("empty/x")).unwrap();
        }
    }

    fn probes(beyond: &Beyond) -> Vec<Probe> {
        let mut all = Vec::new();
        for folder in FOLDERS {
            let at = |name: &str| format!("{folder}/{name}");
            for name in ["file", "f.md"] {
                all.extend([
                    one("read", b'r', Kind::Content, at(name)),
                    one("write", b'w', Kind::Content, at(name)),
                    one("append to", b'a', Kind::Content, at(name)),
                    one("truncate", b't', Kind::Content, at(name)),
                    one("set the mode of", b'o', Kind::Attributes, at(name)),
                    one("set the times of", b'i', Kind::Attributes, at(name)),
                ]);
            }
            all.extend([
                one("look up", b'q', Kind::Metadata, at("file")),
                one("execute", b'x', Kind::Execute, at("run")),
                one("execute", b'x', Kind::Execute, at("run.md")),
                one("list", b'l', Kind::List, folder),
                one("create", b'c', Kind::Name, at("new")),
                one("create", b'c', Kind::Name, at("new.md")),
                one("make a folder", b'd', Kind::Name, at("newdir")),
                one("make a link", b's', Kind::Name, at("newlink")),
                one("unlink", b'u', Kind::Name, at("gone")),
                one("remove a folder", b'D', Kind::Name, at("empty")),
                two("rename", b'm', at("moved"), at("moved-2")),
                two("link", b'k', at("linked"), at("linked-2")),
            ]);
        }
        for (number, (from, to)) in ACROSS.into_iter().enumerate() {
            let away = format!("{from}/away-{number}");
            all.push(two("link", b'k', &away, format!("{to}/link-{number}")));
            all.push(two("rename", b'm', &away, format!("{to}/away-{number}-of-another")));
        }
        for name in [".git/config", ".git/hooks/pre-commit.sample"] {
            all.push(one("read", b'r', Kind::Content, format!("a/{name}")));
            all.push(one("append to", b'a', Kind::Content, format!("a/{name}")));
        }
        all.extend([
            one("create", b'c', Kind::Name, "a/.git/hooks/pre-commit"),
            one("create", b'c', Kind::Name, "a/.envrc"),
            two("rename", b'm', "a/.git", "a/.git-2"),
            one("connect to", b'n', Kind::Beyond, beyond.port.to_string()),
            one("connect to", b'U', Kind::Beyond, beyond.socket.to_str().unwrap()),
            one("connect to", b'U', Kind::Beyond, "a/socket"),
            one("signal", b'K', Kind::Beyond, beyond.process.to_string()),
            one("trace", b'Y', Kind::Beyond, beyond.process.to_string()),
            one("read the memory of", b'V', Kind::Beyond, beyond.process.to_string()),
            one("end a child", b'j', Kind::Beyond, ""),
            one("make a socket of family", b'1', Kind::Socket, "2"),
            one("make a socket of family", b'F', Kind::Socket, "16"),
            one("read", b'r', Kind::Content, "/etc/passwd"),
            one("read", b'r', Kind::Content, "/etc/shadow"),
            one("look up", b'q', Kind::Metadata, "/etc/shadow"),
            one("list", b'l', Kind::List, "/etc"),
            one("list", b'l', Kind::List, "/usr/bin"),
            one("create", b'c', Kind::Name, "/usr/new"),
            one("write", b'w', Kind::Content, "/dev/null"),
            one("read", b'r', Kind::Content, "/proc/self/status"),
            one("read", b'r', Kind::Content, "/proc/1/environ"),
            one("create", b'c', Kind::Name, format!("/tmp/{}", beyond.marker)),
            one("create", b'c', Kind::Name, format!("/var/tmp/{}", beyond.marker)),
        ]);
        all
    }

    struct Beyond {
        port: u16,
        socket: PathBuf,
        process: u32,
        marker: String,
    }

    /// One line for each operation that the two backends answer differently, and what declares it.
    fn differences(world: &Fixture, config: &Config) -> String {
        let tools = Tools::ready();
        let beyond = Beyond {
            port: tools.port,
            socket: world.base().join("run/socket"),
            process: std::process::id(),
            marker: marker(),
        };
        let (mut answers, mut statuses, mut bases) = (Vec::new(), Vec::new(), Vec::new());
        for backend in [Backend::Landlock, Backend::Namespaces] {
            // The same world anew: what one run changes the other must not see.
            let fresh = Fixture::new(world.actor, backend);
            let given = fresh.workspace();
            copy(world, &fresh);
            grow(&fresh, &tools.nothing);
            let sockets = [fresh.base().join("run/socket"), given.join("a/socket")];
            let _listening = sockets.clone().map(|socket| UnixListener::bind(socket).unwrap());
            for socket in &sockets {
                fs::set_permissions(socket, fs::Permissions::from_mode(0o777)).unwrap();
            }
            let text = format!(
                "extends: [system]\nsandbox:{}\n    tools: {{root: {}, mode: ro, execute: true}}\nshell:{}\n  default: {{allowed: true, approval: none}}\n",
                config.sandbox.replace("W/", &format!("{}/", given.display())),
                tools.folder.display(),
                config.shell,
            );
            let file = fresh.write("../outside/config.yaml", text);
            let own = Beyond {
                socket: sockets[0].clone(),
                marker: beyond.marker.clone(),
                ..beyond
            };
            answers.push(ask(&fresh, &file, &tools, &probes(&own)));
            statuses.push(declared(&fresh, &file, backend));
            bases.push(given);
        }
        let [landlock, namespaces] = [0, 1].map(|side| (&answers[side], &statuses[side]));
        let (mut lines, mut undeclared) = (BTreeSet::new(), BTreeSet::new());
        let mut permitted = 0;
        for ((probe, one), other) in probes(&beyond).iter().zip(landlock.0).zip(namespaces.0) {
            permitted += usize::from(*one && *other);
            let (refuses, because) = match (one, other) {
                (true, true) | (false, false) => continue,
                (false, true) => ("landlock", reason(probe, &bases[0], landlock.1, namespaces.1)),
                (true, false) => ("namespaces", reason(probe, &bases[1], namespaces.1, landlock.1)),
            };
            match because {
                Some(because) => lines.insert(format!("{refuses} refuses to {}: {because}", probe.words(&beyond))),
                None => undeclared.insert(format!("{refuses} refuses to {}", probe.words(&beyond))),
            };
        }
        let told = |clause: &&Row| clause.status != "enforced";
        let told = statuses.iter().map(|all| all.iter().filter(told).collect::<Vec<_>>());
        assert!(
            undeclared.is_empty(),
            "not declared: {undeclared:#?}\n{:#?}",
            told.collect::<Vec<_>>()
        );
        assert!(permitted > 8, "next to nothing is permitted by both: {answers:?}");
        lines.into_iter().collect::<Vec<_>>().join("\n")
    }

    impl Probe {
        fn words(&self, beyond: &Beyond) -> String {
            let [from, to] = &self.paths;
            let to = if to.is_empty() {
                String::new()
            } else {
                format!(" as {to}")
            };
            format!("{} {from}{to}", self.said)
                .replace(&beyond.marker, "MARKER")
                .replace(beyond.socket.to_str().unwrap(), "a socket outside")
        }
    }

    /// What a fixture was prepared with.
    fn copy(from: &Fixture, to: &Fixture) {
        let line = format!("cp -a {}/. {}", from.workspace().display(), to.workspace().display());
        to.bare("/bin/sh").args(["-c", &line]).output().exits(0);
    }

    /// Whether each operation was permitted.
    fn ask(world: &Fixture, config: &Path, tools: &Tools, probes: &[Probe]) -> Vec<bool> {
        let workspace = world.workspace();
        let mut input = Vec::new();
        for probe in probes {
            input.extend([probe.letter, 0]);
            for path in &probe.paths {
                let relative = !matches!(probe.kind, Kind::Beyond | Kind::Socket) || path.starts_with("a/");
                if relative && !path.is_empty() {
                    // No `..`: where something is not there, nothing leads through it.
                    let whole = match path.strip_prefix("../") {
                        Some(beside) => world.base().join(beside),
                        None => workspace.join(path),
                    };
                    input.extend_from_slice(whole.as_os_str().as_bytes());
                } else {
                    input.extend_from_slice(path.as_bytes());
                }
                input.push(0);
            }
        }
        let backend = world.backend.name();
        let run = world
            .bare(world.binary())
            .args(["run", "--backend", backend, "--config"]);
        let run = run.args([config]).args(["--cwd", "/usr", "--"]).args([&tools.operate]);
        let said = run.stdin(input).output().exits(0).out();
        let answers: Vec<bool> = said.lines().map(|line| line.starts_with("0 ")).collect();
        assert_eq!(answers.len(), probes.len(), "{said}");
        answers
    }

    /// One row of a check.
    #[derive(Debug, Deserialize)]
    struct Row {
        clause: String,
        status: String,
        detail: Option<String>,
    }

    /// What the program itself declares of a backend under the config.
    fn declared(world: &Fixture, config: &Path, backend: Backend) -> Vec<Row> {
        let check = world
            .bare(world.binary())
            .args(["profile", "check", "--json", "--backend", backend.name()]);
        let mut said: Value = serde_json::from_str(&check.args([config]).output().exits(0).out()).unwrap();
        serde_json::from_value(said["backends"][0]["clauses"].take()).unwrap()
    }

    /// The status that declares that one side refuses what the other permits.
    fn reason(probe: &Probe, base: &Path, refuses: &[Row], permits: &[Row]) -> Option<String> {
        // A clause speaks of what lies below its path; one without a path speaks of all.
        let concerns = |clause: &&Row| {
            let paths = clause.clause.split(' ').filter(|word| word.starts_with('/'));
            let of_probe = probe.paths.iter().map(|path| base.join(path));
            let mut paths = paths.peekable();
            paths.peek().is_none() || paths.any(|path| of_probe.clone().any(|probe| probe.starts_with(path)))
        };
        let stricter = refuses
            .iter()
            .filter(concerns)
            .filter(|clause| clause.status == "stricter");
        let stricter = stricter.filter_map(|clause| clause.detail.as_ref()).find_map(|what| {
            let mut each = stands_for(probe.kind).iter();
            each.find(|words| what.contains(*words)).copied()
        });
        let left = permits.iter().find_map(|clause| match clause.status.as_str() {
            "undone" if is_protected(probe) => Some("undone"),
            "residual" if probe.kind == Kind::Metadata => Some("residual"),
            _ => None,
        });
        stricter
            .map(|words| format!("stricter, {words}"))
            .or_else(|| left.map(|word| format!("{word} where it is permitted")))
    }

    /// The words of a stricter status that speak of such operations.
    fn stands_for(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::Name => &[
                "none can be created or removed",
                "what is not granted of the host's cannot be used",
            ],
            Kind::Move => &["none can be created or removed", "a mount of its own"],
            Kind::List => &["some directories are ruled entry by entry"],
            Kind::Beyond => &["sockets that are mounted"],
            Kind::Socket => &["no socket of the internet or of netlink can be made"],
            Kind::Content => &["what is not granted of the host's cannot be read"],
            Kind::Execute | Kind::Attributes | Kind::Metadata => &[],
        }
    }

    fn is_protected(probe: &Probe) -> bool {
        let [path, _] = &probe.paths;
        path.starts_with("a/.git") || path == "a/.envrc"
    }
}
