//! Denied operations beside permitted twins, under `workspace-write`: what lies outside is granted by nothing, the system
//! read-only.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;

use crate::common::{Actor, Fixture, in_both_regimes};
use crate::explain::tried::{Told, Trial, escaped};
use crate::explain::twins::Twins;

in_both_regimes! {
    content_and_names_are_told ["cc"];
    changes_of_the_tree_are_told ["cc"];
    changes_of_the_system_are_told_with_its_clause ["cc"];
    programs_and_their_interpreters_are_told ["cc"];
    attributes_are_told ["cc"];
    set_uid_modes_are_told_to_be_for_nobody ["cc"];
    device_nodes_are_told_to_be_for_nobody ["cc"];
    calls_and_sockets_are_told ["cc"];
    what_fails_everywhere_is_not_told ["cc"];
}

const NOTHING: &str = "";

fn content_and_names_are_told(world: &Fixture) {
    let mut twins = Twins::new(world);
    twins.both('r', "a", &["read"]);
    twins.both('w', "b", &["write"]);
    twins.both('b', "c", &["read", "write"]);
    twins.both('a', "d", &["write"]);
    twins.both('T', "e", &["write"]);
    let hidden = twins.out.join("f");
    twins.hidden_first('t', "f", &["write"], &hidden);
    twins.both('L', "g", &["write"]);
    twins.both('l', "sub", &["list"]);
    let folder = twins.out.clone();
    twins.both(
        'Z',
        "h",
        if twins.trial.is_in_namespaces() {
            &["make"]
        } else {
            &["read"]
        },
    );
    twins.hidden_first('h', "j", &["read"], &folder);
    twins.trial.try_all(&[]);
}

fn changes_of_the_tree_are_told(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    twins.both('c', "new-1", &["make"]);
    let folder = out.clone();
    twins.hidden_first('C', "new-2", &["make"], &folder);
    twins.both('d', "new-3", &["make"]);
    twins.both('f', "new-4", &["make"]);
    twins.both('s', "new-5", &["make"]);
    twins.both('u', "a", &["remove"]);
    let trial = &mut twins.trial;
    let told = trial.told("remove", out.join("empty"));
    trial.denied('D', out.join("empty/"), NOTHING, &[told]);
    trial.permitted('D', inside.join("empty/"), NOTHING);
    // Out, in, and outside altogether.
    let told = trial.told("make", out.join("moved"));
    trial.denied('m', inside.join("b"), out.join("moved"), &[told]);
    let told = trial.told("remove", out.join("c"));
    trial.denied('m', out.join("c"), inside.join("moved-in"), &[told]);
    trial.permitted('m', inside.join("c"), inside.join("moved"));
    // Onto a folder, and a folder.
    let told = trial.told("remove", out.join("sub"));
    trial.denied('m', out.join("sub"), inside.join("sub-in"), &[told]);
    trial.permitted('m', inside.join("sub"), inside.join("sub-moved"));
    // A second name.
    let told = trial.told("make", out.join("linked"));
    trial.denied('k', inside.join("d"), out.join("linked"), &[told]);
    let wanted = if trial.is_in_namespaces() { "look" } else { "link" };
    let told = trial.told(wanted, out.join("e"));
    trial.denied('k', out.join("e"), inside.join("linked-in"), &[told]);
    trial.permitted('k', inside.join("d"), inside.join("linked"));
    let told = trial.told("remove", out.join("f"));
    trial.denied('e', inside.join("f"), out.join("f"), &[told]);
    trial.permitted('e', inside.join("f"), inside.join("g"));
    // Of two places that are both denied, both are told; where one is not there it fails whoever asks.
    let both = ["h", "j"].map(|name| trial.told("remove", out.join(name)));
    trial.denied('e', out.join("h"), out.join("j"), &both);
    trial.fails('e', out.join("missing"), out.join("k"));
    trial.fails('e', out.join("k"), out.join("missing"));
    // A file without a name, to be given one.
    let told = trial.told("write", &out);
    // Where it is hidden this is the folder that was looked for above.
    let told = if trial.is_in_namespaces() { vec![] } else { vec![told] };
    trial.denied('z', out.join("unnamed"), NOTHING, &told);
    twins.trial.try_all(&[]);
}

fn changes_of_the_system_are_told_with_its_clause(world: &Fixture) {
    let mut trial = Trial::new(world);
    trial.clause = "grant read+execute /usr";
    trial.origin = "preset system:".to_owned();
    // An ordinary user may not, with or without Stockade.
    let is_root = world.actor.switch_to().is_none() && nix::unistd::geteuid().is_root();
    for (letter, path, wanted) in [
        ('c', "/usr/new-by-a-test", "make"),
        ('d', "/usr/lib/new-by-a-test", "make"),
        ('w', "/usr/bin/env", "write"),
        ('u', "/usr/bin/env", "remove"),
        ('m', "/usr/bin/id", "remove"),
        ('s', "/usr/new-link-by-a-test", "make"),
    ] {
        let twin = format!("moved-{letter}");
        let told: Vec<Told> = if is_root {
            vec![trial.told(wanted, leads(path))]
        } else {
            Vec::new()
        };
        trial.denied(letter, path, &twin, &told);
    }
    trial.permitted('r', "/usr/bin/env", NOTHING);
    trial.permitted('l', "/usr/lib", NOTHING);
    trial.permitted('c', world.workspace().join("new"), NOTHING);
    trial.try_all(&[]);
}

/// Where a path leads but for its last name.
fn leads(path: &str) -> PathBuf {
    let path = Path::new(path);
    fs::canonicalize(path.parent().unwrap())
        .unwrap()
        .join(path.file_name().unwrap())
}

fn programs_and_their_interpreters_are_told(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let program = |path: PathBuf, text: &[u8]| {
        let path = world.write(path, text);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path
    };
    let binary = fs::read("/usr/bin/true").unwrap();
    let foreign = program(out.join("true"), &binary);
    program(inside.join("true"), &binary);
    twins.both('x', "true", &["execute"]);
    let trial = &mut twins.trial;
    let script = |name: &str, interpreter: &Path| {
        let text = format!("#!{} -x\n", interpreter.display());
        program(inside.join(name), text.as_bytes())
    };
    let denied = script("denied.sh", &foreign);
    let nested = script("nested.sh", &denied);
    let permitted = script("permitted.sh", &inside.join("true"));
    let told = trial.told("execute", &foreign);
    // The one denial is told once, however it was come by.
    trial.either('x', &denied, NOTHING, &[]);
    trial.either('x', &nested, NOTHING, &[]);
    trial.permitted('x', &permitted, NOTHING);
    let other = program(out.join("other"), &binary);
    let told_other = Told {
        what: crate::explain::tried::escaped(&other),
        ..told
    };
    let through = script("through.sh", &other);
    trial.denied('x', &through, NOTHING, &[told_other]);
    // What nobody may execute is not denied by Stockade.
    trial.fails('x', out.join("a"), NOTHING);
    trial.fails('x', inside.join("a"), NOTHING);
    twins.trial.try_all(&[]);
}

fn attributes_are_told(world: &Fixture) {
    let mut twins = Twins::new(world);
    for (letter, name) in [('o', "a"), ('O', "b"), ('i', "c"), ('g', "d")] {
        let path = twins.out.join(name);
        let mut told = twins.trial.told("attributes", &path);
        if !twins.trial.is_in_namespaces() {
            told.by = "broker".to_owned();
        }
        twins.trial.denied(letter, &path, NOTHING, &[told]);
        twins.trial.permitted(letter, twins.inside.join(name), NOTHING);
    }
    twins.trial.try_all(&[]);
}

fn set_uid_modes_are_told_to_be_for_nobody(world: &Fixture) {
    let mut twins = Twins::new(world);
    let project = "grant all ";
    for (letter, name) in [('+', "a"), ('=', "b")] {
        let path = twins.inside.join(name);
        let told = Told {
            by: "broker".to_owned(),
            clause: project.to_owned(),
            origin: "preset workspace-write:".to_owned(),
            ..twins.trial.told("attributes", &path)
        };
        twins.trial.denied(letter, &path, NOTHING, &[told]);
        twins.trial.permitted('o', &path, NOTHING);
    }
    let explained = twins.trial.try_all(&[]);
    assert!(explained.contains("no config permits this: set-uid"), "{explained}");
}

fn device_nodes_are_told_to_be_for_nobody(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let told = |trial: &Trial<'_>, what: &str, path: &Path, by: &str| Told {
        what: format!("{what} {}", escaped(path)),
        by: by.to_owned(),
        ..trial.told("make", path)
    };
    let wall = twins.trial.wall();
    for (folder, by) in [(&inside, "landlock"), (&out, wall)] {
        for (letter, name, number) in [('%', "null", "3"), ('@', "disk", "0")] {
            let path = folder.join(name);
            let told = told(&twins.trial, "device node", &path, by);
            match world.actor {
                Actor::Root => twins.trial.denied(letter, &path, number, &[told]),
                // It is no denial of Stockade's: without it this user makes none either.
                Actor::User => twins.trial.fails(letter, &path, number),
            }
        }
        let path = folder.join("hides");
        let told = told(&twins.trial, "whiteout", &path, by);
        twins.trial.denied('%', &path, "0", &[told]);
    }
    // A name that is there already is no denial, and other nodes are made.
    twins.trial.fails('%', inside.join("a"), "0");
    twins.trial.permitted('f', inside.join("null"), NOTHING);
    twins.trial.permitted('f', inside.join("hides"), NOTHING);
    let explained = twins.trial.try_all(&[]);
    assert!(explained.contains("no config permits it"), "{explained}");
}

fn calls_and_sockets_are_told(world: &Fixture) {
    let mut trial = Trial::new(world);
    let by = |layer: &str, wanted: &str, what: &str, clause: &str| Told {
        wanted: wanted.to_owned(),
        what: what.to_owned(),
        by: layer.to_owned(),
        clause: clause.to_owned(),
        origin: if clause == "-" { "-" } else { "preset workspace-write:" }.to_owned(),
    };
    let call = |name: &str| by("seccomp", "call", name, "-");
    let outsider = std::process::id().to_string();
    trial.denied('Y', &outsider, NOTHING, &[call("ptrace")]);
    trial.denied('V', &outsider, NOTHING, &[call("process_vm_readv")]);
    trial.denied('M', "/", NOTHING, &[call("mount")]);
    trial.denied('v', NOTHING, NOTHING, &[call("unshare")]);
    trial.denied('y', NOTHING, NOTHING, &[call("keyctl")]);
    trial.permitted('j', NOTHING, NOTHING);
    let unix = by("seccomp", "socket", "Unix", "unix_sockets none");
    trial.denied('N', NOTHING, NOTHING, &[unix]);
    trial.denied('F', "17", NOTHING, &[by("seccomp", "socket", "family 17", "-")]);
    trial.denied('F', "40", NOTHING, &[by("seccomp", "socket", "family 40", "-")]);
    // Where there are sockets of this family, it hangs on the protocol: 9 is that of the kernel's audit.
    trial.denied('F', "16", "9", &[by("seccomp", "socket", "family 16, protocol 9", "-")]);
    if trial.is_in_namespaces() {
        let reach = |what: &str| by("network_namespace", "connect", what, "network off");
        trial.denied('I', "192.0.2.1", "80", &[reach("192.0.2.1:80")]);
        trial.denied('I', "2001:db8::1", "443", &[reach("[2001:db8::1]:443")]);
        trial.denied('G', "192.0.2.2", "53", &[reach("192.0.2.2:53")]);
        trial.denied('G', "2001:db8::2", "123", &[reach("[2001:db8::2]:123")]);
        // Its own loopback: nobody listens, and nothing is denied.
        trial.either('I', "127.0.0.1", "9", &[]);
        trial.permitted('G', "127.0.0.1", "9");
    } else {
        let ip = by("seccomp", "socket", "IP", "network off");
        trial.denied('I', "192.0.2.1", "80", &[ip]);
        // That of interfaces and routes, which programs have with the network.
        trial.denied(
            '1',
            "16",
            NOTHING,
            &[by("seccomp", "socket", "family 16", "network off")],
        );
        // Raw packets are for nobody, with the network or without.
        trial.denied(
            'F',
            "2",
            "255",
            &[by("seccomp", "socket", "family 2, protocol 255", "-")],
        );
    }
    trial.try_all(&[]);
}

fn what_fails_everywhere_is_not_told(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    nix::unistd::mkfifo(&inside.join("fifo"), Mode::from_bits_truncate(0o644)).unwrap();
    symlink("nowhere", inside.join("dangling")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    let trial = &mut twins.trial;
    for missing in [out.join("missing"), inside.join("missing"), "/missing/at/all".into()] {
        for letter in ['r', 'w', 'u', 'D', 'l', 'x', 'L', 'q', 'o', 'Q'] {
            trial.fails(letter, &missing, NOTHING);
        }
        trial.fails('m', &missing, inside.join("from-nothing"));
        trial.fails('k', &missing, inside.join("from-nothing"));
    }
    // No directories.
    for folder in [&out, &inside] {
        for (letter, path) in [
            ('r', "a/"),
            ('w', "a/"),
            ('u', "a/"),
            ('Z', "a/"),
            ('q', "a/"),
            ('Z', "new/"),
        ] {
            trial.fails(letter, folder.join(path), NOTHING);
        }
        for letter in ['r', 'w', 'u', 'c', 'd', 's'] {
            trial.fails(letter, folder.join("a/x"), NOTHING);
        }
    }
    // There already.
    for letter in ['c', 'd', 's', 'f'] {
        trial.fails(letter, inside.join("a"), NOTHING);
        trial.fails(letter, "/usr/bin", NOTHING);
    }
    trial.fails('w', "/usr/bin", NOTHING);
    trial.fails('Z', "/usr/bin", NOTHING);
    trial.permitted('Z', inside.join("a"), NOTHING);
    trial.permitted('Z', "/usr/bin/env", NOTHING);
    trial.fails('r', inside.join("dangling"), NOTHING);
    trial.fails('r', inside.join("loop"), NOTHING);
    trial.fails('2', inside.join("a"), NOTHING);
    trial.fails('9', "192.0.2.1", NOTHING);
    if trial.is_in_namespaces() {
        // Where there are no sockets but pairs, no address can be connected to, whatever that is asked of.
        trial.fails('0', "192.0.2.1", NOTHING);
    }
    trial.permitted('q', "/usr", NOTHING);
    trial.either('Q', "/usr/bin/env", NOTHING, &[]);
    twins.trial.try_all(&[]);
}
