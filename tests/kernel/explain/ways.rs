//! However a file is named and whoever names it, what is told is where it leads.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::common::{Fixture, in_both_regimes};
use crate::explain::tried::{Trial, named};
use crate::explain::twins::Twins;

in_both_regimes! {
    ways_to_a_file_are_told_by_where_they_lead ["cc"];
    descriptors_and_what_proc_says_of_the_caller_are_told_by_where_they_lead ["cc"];
    what_lies_below_a_descriptor_is_told_by_where_it_leads ["cc"];
    what_would_be_made_through_a_link_is_told_by_where_it_leads ["cc"];
    places_beyond_the_private_tmp_are_told ["cc"];
    names_of_any_bytes_are_told ["cc"];
    threads_children_and_other_programs_are_looked_at_as_well ["cc"];
}

const NOTHING: &str = "";

/// A denied way outside, told by where it leads, and a permitted one inside.
fn way(trial: &mut Trial<'_>, letter: char, path: PathBuf, twin: PathBuf, wanted: &str, leads: &Path) {
    let told = trial.told(wanted, leads);
    trial.denied(letter, path, NOTHING, &[told]);
    trial.permitted(letter, twin, NOTHING);
}

fn ways_to_a_file_are_told_by_where_they_lead(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let links = world.workspace().join("links");
    world.write(links.join("kept"), "");
    symlink(out.join("a"), links.join("absolute")).unwrap();
    symlink(inside.join("a"), links.join("absolute-in")).unwrap();
    symlink("../../outside/o/b", links.join("relative")).unwrap();
    symlink("../i/b", links.join("relative-in")).unwrap();
    symlink("chain-2", links.join("chain-1")).unwrap();
    symlink("chain-3", links.join("chain-2")).unwrap();
    symlink(out.join("c"), links.join("chain-3")).unwrap();
    symlink(&out, links.join("folder")).unwrap();
    symlink(&inside, links.join("folder-in")).unwrap();
    let trial = &mut twins.trial;
    way(
        trial,
        'r',
        links.join("absolute"),
        links.join("absolute-in"),
        "read",
        &out.join("a"),
    );
    way(
        trial,
        'w',
        links.join("relative"),
        links.join("relative-in"),
        "write",
        &out.join("b"),
    );
    way(
        trial,
        'r',
        links.join("chain-1"),
        links.join("relative-in"),
        "read",
        &out.join("c"),
    );
    way(
        trial,
        'r',
        links.join("folder/d"),
        links.join("folder-in/d"),
        "read",
        &out.join("d"),
    );
    way(trial, 'l', links.join("folder"), links.join("folder-in"), "list", &out);
    // Up and down again, doubled slashes and dots.
    let up = world.workspace().join("i/../../outside/./o//e");
    way(
        trial,
        'r',
        up,
        world.workspace().join("links/.././i//e"),
        "read",
        &out.join("e"),
    );
    // Relative to where the command starts.
    way(
        trial,
        'r',
        "../outside/o/f".into(),
        "i/f".into(),
        "read",
        &out.join("f"),
    );
    // A link that is made by the command itself.
    let told = trial.told("write", out.join("sub/file"));
    trial.denied('S', links.join("new"), out.join("sub/file"), &[told]);
    trial.permitted('S', links.join("new-in"), inside.join("sub/file"));
    twins.trial.try_all(&[]);
}

fn descriptors_and_what_proc_says_of_the_caller_are_told_by_where_they_lead(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let trial = &mut twins.trial;
    // Through what /proc says of the caller.
    let root = |path: &Path| PathBuf::from(format!("/proc/self/root{}", path.display()));
    let cwd = |path: &str| PathBuf::from(format!("/proc/self/cwd/{path}"));
    if trial.is_in_namespaces() {
        way(
            trial,
            'r',
            root(&out.join("g")),
            root(&inside.join("g")),
            "read",
            &out.join("g"),
        );
        way(trial, 'r', cwd("../outside/o/h"), cwd("i/h"), "read", &out.join("h"));
    } else {
        // A link of /proc is followed by nobody who may not look into the process; Landlock sees where it leads.
        way(
            trial,
            'r',
            root(&out.join("g")),
            inside.join("g"),
            "read",
            &out.join("g"),
        );
        way(
            trial,
            'r',
            cwd("../outside/o/h"),
            inside.join("h"),
            "read",
            &out.join("h"),
        );
    }
    // A descriptor of the place, opened anew.
    let (wanted, leads) = if trial.is_in_namespaces() {
        ("look", "j")
    } else {
        ("read", "j")
    };
    way(trial, 'p', out.join("j"), inside.join("j"), wanted, &out.join(leads));
    let (wanted, leads) = if trial.is_in_namespaces() {
        ("look", "k")
    } else {
        ("write", "k")
    };
    way(trial, 'P', out.join("k"), inside.join("k"), wanted, &out.join(leads));
    twins.trial.try_all(&[]);
}

fn what_lies_below_a_descriptor_is_told_by_where_it_leads(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let trial = &mut twins.trial;
    let beside = |name: &str| PathBuf::from(format!("../../outside/o/{name}"));
    for (letter, name, wanted) in [
        ('5', "a", "read"),
        ('5', ".././o/sub//file", "read"),
        ('6', "new-1", "make"),
        ('7', "b", "read"),
        ('8', "c", "read"),
    ] {
        let told = trial.told(wanted, out.join(name.trim_start_matches(".././o/").replace("//", "/")));
        trial.denied(letter, &inside, beside(name), &[told]);
        trial.permitted(letter, &inside, format!("../i/{}", name.trim_start_matches(".././o/")));
    }
    if !trial.is_in_namespaces() {
        let told = trial.told("make", out.join("new-2"));
        trial.denied('6', &out, "new-2", &[told]);
    }
    trial.fails('5', &inside, beside("missing"));
    trial.fails('5', &inside, beside("a/"));
    trial.fails('8', &inside, beside("missing"));
    twins.trial.try_all(&[]);
}

fn what_would_be_made_through_a_link_is_told_by_where_it_leads(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let links = world.workspace().join("links");
    world.write(links.join("kept"), "");
    symlink(out.join("new-1"), links.join("absolute")).unwrap();
    symlink(inside.join("new-1"), links.join("absolute-in")).unwrap();
    symlink("../../outside/o/new-2", links.join("relative")).unwrap();
    symlink("../i/new-2", links.join("relative-in")).unwrap();
    symlink("chain-2", links.join("chain")).unwrap();
    symlink("folder/new-3", links.join("chain-2")).unwrap();
    symlink(&out, links.join("folder")).unwrap();
    symlink("chain-in-2", links.join("chain-in")).unwrap();
    symlink("folder-in/new-3", links.join("chain-in-2")).unwrap();
    symlink(&inside, links.join("folder-in")).unwrap();
    symlink(links.join("round"), links.join("round")).unwrap();
    symlink(out.join("new-4/"), links.join("folder-to-be")).unwrap();
    symlink(out.join("missing/new"), links.join("nowhere")).unwrap();
    let trial = &mut twins.trial;
    for (link, name) in [("absolute", "new-1"), ("relative", "new-2"), ("chain", "new-3")] {
        way(
            trial,
            'Z',
            links.join(link),
            links.join(format!("{link}-in")),
            "make",
            &out.join(name),
        );
    }
    for link in ["round", "folder-to-be", "nowhere"] {
        trial.fails('Z', links.join(link), NOTHING);
        trial.fails('r', links.join(link), NOTHING);
        // The link is there.
        trial.fails('c', links.join(link), NOTHING);
        trial.fails('d', links.join(link), NOTHING);
    }
    twins.trial.try_all(&[]);
}

fn places_beyond_the_private_tmp_are_told(world: &Fixture) {
    // In namespaces /tmp is a place of their own, and nothing is at all where this is.
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let out = elsewhere.path();
    fs::set_permissions(out, fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["a", "b", "c"] {
        world.write(out.join(name), "\x7fx");
    }
    let mut twins = Twins::new(world);
    let inside = twins.inside.clone();
    let trial = &mut twins.trial;
    for (letter, name, wanted) in [
        ('r', "a", "read"),
        ('w', "b", "write"),
        ('l', "", "list"),
        ('c', "new", "make"),
        ('u', "c", "remove"),
        ('d', "folder", "make"),
    ] {
        let path = if name.is_empty() {
            out.to_owned()
        } else {
            out.join(name)
        };
        let told = trial.told(wanted, &path);
        trial.denied(letter, &path, NOTHING, &[told]);
        trial.permitted(letter, inside.join(name), NOTHING);
    }
    // Landlock lets everything be looked at.
    if trial.is_in_namespaces() {
        let told = trial.told("look", out.join("a"));
        trial.denied('q', out.join("a"), NOTHING, &[told]);
    } else {
        trial.permitted('q', out.join("a"), NOTHING);
    }
    twins.trial.try_all(&[]);
}

fn names_of_any_bytes_are_told(world: &Fixture) {
    let mut twins = Twins::new(world);
    for bytes in [
        b"new\nline".as_slice(),
        b"new\\nline",
        b"quote'\"`$(x)",
        b"back\\slash",
        b"not\xff\xfeutf8",
        b"control\x07\x1b[31m",
        b" space ",
        b"(deleted)",
        b"x (deleted)",
    ] {
        let name = named(bytes);
        let (path, twin) = (twins.out.join(&name), twins.inside.join(&name));
        world.write(&path, "\x7fx");
        world.write(&twin, "\x7fx");
        let told = twins.trial.told("read", &path);
        twins.trial.denied('r', &path, NOTHING, &[told]);
        twins.trial.permitted('r', &twin, NOTHING);
    }
    twins.trial.try_all(&[]);
}

fn threads_children_and_other_programs_are_looked_at_as_well(world: &Fixture) {
    let mut twins = Twins::new(world);
    let (out, inside) = (twins.out.clone(), twins.inside.clone());
    let trial = &mut twins.trial;
    let of = |letter: char, path: &Path| PathBuf::from(format!("{letter}{}", path.display()));
    for (by, name) in [('A', "a"), ('J', "b"), ('X', "c")] {
        for (letter, wanted, name) in [('r', "read", name.to_owned()), ('d', "make", format!("new-{name}"))] {
            let path = out.join(name);
            let told = trial.told(wanted, &path);
            trial.denied(by, of(letter, &path), NOTHING, &[told]);
            trial.permitted(by, of(letter, &inside.join(path.file_name().unwrap())), NOTHING);
        }
    }
    twins.trial.try_all(&[]);
}
