//! Attributes of files: what works inside as anywhere, and what stays as it is outside. In namespaces mounts keep it, elsewhere the broker.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    use nix::unistd::geteuid;

    use crate::common::{Fixture, Invocation, in_both_regimes, in_bwrap, started, without};

    in_both_regimes! {
        a_file_given_as_input_keeps_its_attributes ["python3"];
        the_device_that_stands_for_no_input_keeps_its_attributes ["python3"];
        devices_and_what_the_kernel_tells_keep_their_attributes ["python3"];
        a_file_gets_no_set_uid_or_set_gid_bit_by_any_call ["python3"];
        a_directory_hands_its_group_on_where_that_is_wanted ["python3", "git"];
        no_list_lets_other_users_in_to_what_is_protected ["python3"];
        a_list_that_is_there_is_copied_and_narrowed ["python3"];
        an_entry_that_keeps_somebody_out_stays ["python3"];
        a_group_that_is_not_the_commands_own_is_not_given ["python3", "setpriv"];
        what_is_moved_onto_a_protected_name_brings_no_list_and_no_group_along [];
        a_protected_file_that_is_made_anew_has_its_list_again [];
    }

    in_bwrap! {
        a_file_given_as_input_keeps_its_attributes ["python3"];
        the_device_that_stands_for_no_input_keeps_its_attributes ["python3"];
        devices_and_what_the_kernel_tells_keep_their_attributes ["python3"];
        a_file_gets_no_set_uid_or_set_gid_bit_by_any_call ["python3"];
        a_directory_hands_its_group_on_where_that_is_wanted ["python3", "git"];
        no_list_lets_other_users_in_to_what_is_protected ["python3"];
        a_list_that_is_there_is_copied_and_narrowed ["python3"];
        an_entry_that_keeps_somebody_out_stays ["python3"];
        a_group_that_is_not_the_commands_own_is_not_given ["python3", "setpriv"];
        what_is_moved_onto_a_protected_name_brings_no_list_and_no_group_along [];
        a_protected_file_that_is_made_anew_has_its_list_again [];
    }

    /// Only namespaces have a /tmp.
    mod in_tmp {
        use super::what_lies_in_tmp_has_its_attributes_changed;

        crate::common::in_all_namespaces! {
            what_lies_in_tmp_has_its_attributes_changed ["tar"];
        }
    }

    fn what_lies_in_tmp_has_its_attributes_changed(world: &Fixture) {
        let line = "set -e; cd /tmp; touch -d 2001-02-03 a; chmod 640 a; mkdir -m 1700 d; chmod 755 d; \
                    mkfifo p; chmod 600 p; ln -s a l; touch -h l; tar -cpf t.tar a d; mkdir o; tar -xpf t.tar -C o; \
                    stat -c '%a %y' o/a | cut -c1-14; stat -c %a d p; touch /tmp; chmod 1777 /tmp";
        let run = world.stockade(&["run", "-c", line]).output().exits(0);
        assert_eq!(run.out(), "640 2001-02-03\n755\n600\n");
        assert_eq!(run.err(), "");
    }

    /// Where mounts keep attributes, nobody needs to read it.
    mod unread {
        use super::attributes_are_changed_where_the_memory_of_a_command_cannot_be_read;

        crate::common::in_namespaces! {
            attributes_are_changed_where_the_memory_of_a_command_cannot_be_read [];
        }
    }

    fn attributes_are_changed_where_the_memory_of_a_command_cannot_be_read(world: &Fixture) {
        let line = "touch a && chmod 640 a && touch -d 2001-02-03 a && stat -c '%a %y' a | cut -c1-14; chmod u+s a";
        let run = without(world, "reading-memory", &["run", "--backend", "namespaces", "-c", line]);
        let run = run.output().exits(1);
        assert_eq!(run.out(), "640 2001-02-03\n");
    }

    /// Calls that change what descriptor 0 leads to; those that are not refused are printed.
    const CHANGES: &str = "\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) == -1: raise OSError(ctypes.get_errno(), '')
for name, change in {
    'fchmod': lambda: os.fchmod(0, 0o667),
    'futimens': lambda: os.utime(0, (1, 1)),
    'fchown': lambda: os.fchown(0, -1, os.getgid()),
    'fsetxattr': lambda: os.setxattr(0, 'user.evil', b'x'),
    'fchmodat2': lambda: call(452, 0, b'', 0o667, 0x1000),
    'chmod through /proc': lambda: os.chmod('/proc/self/fd/0', 0o667),
    'chmod through /dev': lambda: os.chmod('/dev/stdin', 0o667),
    'utime through /proc': lambda: os.utime('/proc/self/fd/0', (1, 1)),
    'setxattr through /proc': lambda: os.setxattr('/proc/self/fd/0', 'user.evil', b'x'),
}.items():
    try:
        change()
        print(name)
    except OSError:
        pass
";

    /// What a command with this input could change of it.
    fn changed(world: &Fixture, input: &Path) -> String {
        let mut command = world.stockade(&["run", "--", "python3", "-c", CHANGES]).into_command();
        command
            .stdin(File::open(input).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = started(&mut command).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn a_file_given_as_input_keeps_its_attributes(world: &Fixture) {
        let outside = world.outside().join("secret");
        let before = fs::metadata(&outside).unwrap();
        assert_eq!(changed(world, &outside), "");
        let after = fs::metadata(&outside).unwrap();
        assert_eq!(after.permissions(), before.permissions());
        assert_eq!(after.modified().unwrap(), before.modified().unwrap());
        // What it opens itself lies on a mount of its own.
        let inside = world.write("mine", "");
        world.write("changes.py", CHANGES);
        let run = world
            .stockade(&["run", "-c", "python3 changes.py < mine"])
            .output()
            .exits(0);
        assert!(run.out().contains("fchmod\nfutimens\n"), "{}", run.out());
        assert_eq!(fs::metadata(inside).unwrap().permissions().mode() & 0o7777, 0o667);
    }

    fn the_device_that_stands_for_no_input_keeps_its_attributes(world: &Fixture) {
        let mode = || fs::metadata("/dev/null").unwrap().permissions().mode();
        let before = mode();
        assert_eq!(changed(world, Path::new("/dev/null")), "");
        assert_eq!(mode(), before);
    }

    fn devices_and_what_the_kernel_tells_keep_their_attributes(world: &Fixture) {
        let kept = ["/dev/null", "/dev/zero", "/dev/tty", "/proc/version", "/proc/meminfo"];
        let state = || kept.map(|path| fs::metadata(path).unwrap().permissions().mode());
        let before = state();
        let code = format!(
            "import os\nfor path in {kept:?}:\n  for change in (lambda: os.chmod(path, 0o667), lambda: os.utime(path, (1, 1))):\n    \
             try:\n      change()\n      print(path)\n    except OSError:\n      pass\n\
             open('mine', 'w')\nos.chmod('mine', 0o667)\nopen('/dev/null', 'w').write('x')\n"
        );
        let run = world.stockade(&["run", "--", "python3", "-c", &code]).output().exits(0);
        assert_eq!(run.out(), "");
        assert_eq!(state(), before);
        let mine = fs::metadata(world.workspace().join("mine")).unwrap();
        assert_eq!(mine.permissions().mode() & 0o7777, 0o667);
    }

    fn a_file_gets_no_set_uid_or_set_gid_bit_by_any_call(world: &Fixture) {
        let code = "\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) == -1: raise OSError(ctypes.get_errno(), '')
def ways(mode):
    yield 'chmod', lambda: os.chmod('f', mode)
    yield 'fchmod', lambda: os.fchmod(fd, mode)
    yield 'fchmodat', lambda: os.chmod('f', mode, dir_fd=here)
    yield 'fchmodat2', lambda: call(452, here, b'f', mode, 0)
    yield 'fchmodat2 of a descriptor', lambda: call(452, fd, b'', mode, 0x1000)
    yield 'with high bits', lambda: call(452, here, b'f', mode | 0x10000, 0)
fd = os.open('f', os.O_CREAT | os.O_RDWR, 0o644)
here = os.open('.', os.O_RDONLY)
for bit in (0o4000, 0o2000, 0o6000):
    for name, change in ways(0o755 | bit):
        try:
            change()
            print(name)
        except OSError:
            pass
for name, change in ways(0o1711):
    change()
    assert os.stat('f').st_mode & 0o7777 == 0o1711, name
    os.chmod('f', 0o644)
";
        let run = world.stockade(&["run", "--", "python3", "-c", code]).output().exits(0);
        assert_eq!(run.out(), "");
        let mode = fs::metadata(world.workspace().join("f")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
    }

    fn a_directory_hands_its_group_on_where_that_is_wanted(world: &Fixture) {
        let line = "mkdir d && chmod 2775 d && mkdir d/below && chmod u+w d/below && stat -c %a d d/below && \
                    git init -q --shared shared && stat -c %A shared/.git/objects | cut -c7";
        let run = world.stockade(&["run", "-c", line]).output().exits(0);
        assert_eq!(run.out(), "2775\n2755\ns\n");
    }

    /// `acl(…)` is an access list as the kernel takes it, of (tag, rights, id); `tried(…)` says whether a change is refused.
    const LISTS: &str = "\
import os, struct
U, N, G, M, O = 1, 2, 4, 16, 32
def acl(*entries):
    whole = [(U, 7, -1), *entries]
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *entry) for entry in whole)
def tried(change, *arguments):
    try:
        change(*arguments)
        return 'done'
    except OSError as error:
        return os.strerror(error.errno)
ACCESS, DEFAULT = 'system.posix_acl_access', 'system.posix_acl_default'
";

    fn no_list_lets_other_users_in_to_what_is_protected(world: &Fixture) {
        world.write(".envrc", "true\n");
        world.write(".git/hooks/sample", "");
        let code = format!(
            "{LISTS}
mine = os.getuid()
for path in ('.envrc', '.git/hooks', '.git', '.', 'f'):
    if path == 'f': open(path, 'w')
    lets_in = acl((N, 7, mine), (G, 0, -1), (M, 7, -1), (O, 0, -1))
    assert tried(os.setxattr, path, ACCESS, lets_in) != 'done', path
    if os.path.isdir(path):
        assert tried(os.setxattr, path, DEFAULT, acl((G, 5, -1), (O, 7, -1))) != 'done', path
print(tried(os.setxattr, 'f', 'user.note', b'x'), tried(os.setxattr, 'f', ACCESS, acl((G, 4, -1), (O, 0, -1))))
print(oct(os.stat('f').st_mode))
"
        );
        let run = world.stockade(&["run", "--", "python3", "-c", &code]).output().exits(0);
        assert_eq!(run.out(), "done done\n0o100740\n");
        for path in [".envrc", ".git/hooks", ".git", ".", "f"] {
            for list in ["system.posix_acl_access", "system.posix_acl_default"] {
                let found = xattr::get(world.workspace().join(path), list).unwrap();
                assert_eq!(found, None, "{path}: {list}");
            }
        }
    }

    /// A list that gives a user everything, as the kernel keeps it.
    fn list_for(uid: u32) -> Vec<u8> {
        let entries = [
            (1_u16, u32::MAX),
            (2, uid),
            (4, u32::MAX),
            (16, u32::MAX),
            (32, u32::MAX),
        ];
        let entry = |(tag, id): (u16, u32)| {
            let rights = if tag == 32 { 0_u16 } else { 7 };
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat()
    }

    fn a_list_that_is_there_is_copied_and_narrowed(world: &Fixture) {
        world.write("team/a", "x");
        let list = list_for(world.actor.uid());
        for (name, path) in LISTS_OF.into_iter().zip(["team/a", "team"]) {
            xattr::set(world.workspace().join(path), name, &list).unwrap();
        }
        let code = format!(
            "{LISTS}\nlist = acl((N, 4, os.getuid()), (G, 7, -1), (M, 7, -1), (O, 0, -1))\nos.setxattr('team/b', ACCESS, list)"
        );
        world.write("narrow.py", &code);
        let line = "cp -p team/a team/b && mkdir team/d && cp -a team/d team/e && python3 narrow.py && echo copied";
        let run = world.stockade(&["run", "-c", line]).output().exits(0);
        assert_eq!(run.out(), "copied\n");
        let found = |path: &str, name| xattr::get(world.workspace().join(path), name).unwrap();
        assert_eq!(found("team/e", LISTS_OF[1]), Some(list.clone()));
        assert!(found("team/b", LISTS_OF[0]).is_some_and(|narrowed| narrowed != list));
    }

    /// A list of (tag, rights, id) under which its owner has everything.
    fn list_of(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let owner = (1, 7, u32::MAX);
        let entry = |(tag, rights, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let entries: Vec<u8> = [owner].iter().chain(entries).flat_map(entry).collect();
        [2_u32.to_le_bytes().to_vec(), entries].concat()
    }

    fn an_entry_that_keeps_somebody_out_stays(world: &Fixture) {
        let (somebody, none) = (world.actor.uid() + 7, u32::MAX);
        let rest = [(4, 4, none), (16, 4, none), (32, 4, none)];
        let kept_out = |tag: u16| list_of(&[&[(tag, 0, somebody)], &rest[..]].concat());
        let let_in = |tag: u16| list_of(&[&[(tag, 4, somebody)], &rest[..]].concat());
        // A list has its entries in the order of their tags.
        let group = |rights| list_of(&[rest[0], (8, rights, somebody), rest[1], rest[2]]);
        for (path, list, kind) in [
            ("user", kept_out(2), LISTS_OF[0]),
            ("group", group(0), LISTS_OF[0]),
            ("directory/default", kept_out(2), LISTS_OF[1]),
            ("free", let_in(2), LISTS_OF[0]),
            ("free-group", group(4), LISTS_OF[0]),
        ] {
            let path = world.write(path, "x");
            let path = if kind == LISTS_OF[1] {
                path.parent().unwrap().to_owned()
            } else {
                path
            };
            xattr::set(path, kind, &list).unwrap();
        }
        let code = format!(
            "{LISTS}
plain = acl((G, 4, -1), (O, 4, -1))
for path, kind in (('user', ACCESS), ('group', ACCESS), ('directory', DEFAULT)):
    assert tried(os.removexattr, path, kind) != 'done', path
    assert tried(os.setxattr, path, kind, plain) != 'done', path
    assert tried(os.setxattr, path, kind, b'') != 'done', path
print(tried(os.removexattr, 'free', ACCESS), tried(os.setxattr, 'free-group', ACCESS, plain))
"
        );
        let run = world.stockade(&["run", "--", "python3", "-c", &code]).output().exits(0);
        assert_eq!(run.out(), "done done\n");
        let found = |path: &str, kind| xattr::get(world.workspace().join(path), kind).unwrap();
        assert_eq!(found("user", LISTS_OF[0]), Some(kept_out(2)));
        assert_eq!(found("group", LISTS_OF[0]), Some(group(0)));
        assert_eq!(found("directory", LISTS_OF[1]), Some(kept_out(2)));
        assert_eq!(found("free", LISTS_OF[0]), None);
    }

    fn a_group_that_is_not_the_commands_own_is_not_given(world: &Fixture) {
        let code = "import os\nopen('f', 'w')\nos.chown('f', -1, os.getgid())\n\
                    try:\n  os.chown('f', -1, 4)\n  print('given')\nexcept OSError:\n  pass\n";
        let run = world.stockade(&["run", "--", "python3", "-c", code]).into_command();
        let uid = world.actor.uid().to_string();
        let mut member = Invocation::new(Path::new("/usr/bin/setpriv"), None, run.get_current_dir().unwrap());
        for (name, value) in run.get_envs() {
            member = member.env(name.to_str().unwrap(), value.unwrap());
        }
        if !geteuid().is_root() {
            // The groups of whoever runs the tests are as they are.
            assert_eq!(
                world
                    .stockade(&["run", "--", "python3", "-c", code])
                    .output()
                    .exits(0)
                    .out(),
                ""
            );
            return;
        }
        let ids = ["--reuid", &uid, "--regid", &uid, "--groups", &format!("{uid},4")];
        let member = member.args(ids).args([run.get_program()]).args(run.get_args());
        let run = member.output().exits(0);
        assert_eq!(run.out(), "");
    }

    const LISTS_OF: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

    fn lists(world: &Fixture, path: &str) -> [Option<Vec<u8>>; 2] {
        LISTS_OF.map(|list| xattr::get(world.workspace().join(path), list).unwrap())
    }

    fn with_mode(world: &Fixture, path: &str, mode: u32) -> PathBuf {
        let path = world.workspace().join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn what_is_moved_onto_a_protected_name_brings_no_list_and_no_group_along(world: &Fixture) {
        world.write(".envrc", "true\n");
        world.write(".vscode/tasks.json", "{}\n");
        let group = fs::metadata(with_mode(world, ".envrc", 0o660)).unwrap().gid();
        with_mode(world, ".vscode/tasks.json", 0o660);
        with_mode(world, ".vscode", 0o770);
        world.write("team/kept", "");
        // Somebody else gets all of what is made in there, and its group, where the tests may give that.
        xattr::set(
            world.workspace().join("team"),
            LISTS_OF[1],
            &list_for(world.actor.uid() + 7),
        )
        .unwrap();
        if geteuid().is_root() {
            chown(world.workspace().join("team"), None, Some(4)).unwrap();
        }
        with_mode(world, "team", 0o2770);
        let line = "umask 0; cp .envrc team/e && chmod 660 team/e && cp team/e team/twin && chmod 660 team/twin && mv team/e .envrc && \
                    cp -r .vscode team/v && chmod 770 team/v && chmod 660 team/v/* && rm -r .vscode && mv team/v .vscode && echo moved";
        let run = world.stockade(&["run", "-c", line]).output().exits(0);
        assert_eq!(run.out(), "moved\n");
        assert!(run.err().contains(".envrc"), "{}", run.err());
        assert_ne!(lists(world, "team/twin"), [None, None]);
        for path in [".envrc", ".vscode/tasks.json"] {
            assert_eq!(lists(world, path), [None, None], "{path}: {}", run.err());
            let now = fs::metadata(world.workspace().join(path)).unwrap();
            assert_eq!(now.gid(), group, "{path}");
            assert_eq!(now.mode() & 0o007, 0, "{path}");
        }
    }

    fn a_protected_file_that_is_made_anew_has_its_list_again(world: &Fixture) {
        let path = world.write(".envrc", "true\n");
        let list = list_for(world.actor.uid() + 7);
        xattr::set(&path, LISTS_OF[0], &list).unwrap();
        let mode = fs::metadata(&path).unwrap().mode();
        for line in [
            "rm .envrc",
            "echo evil > .envrc",
            "cp .envrc t; chmod 770 t; mv t .envrc",
        ] {
            world.stockade(&["run", "-c", line]).output().exits(0);
            assert_eq!(fs::read_to_string(&path).unwrap(), "true\n", "{line}");
            assert_eq!(lists(world, ".envrc"), [Some(list.clone()), None], "{line}");
            assert_eq!(fs::metadata(&path).unwrap().mode(), mode, "{line}");
        }
    }
}
