//! Attributes of files: what works inside as anywhere, and what stays as it is outside. In namespaces mounts keep it, elsewhere the broker.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Stdio;

    use crate::common::{Fixture, in_both_regimes, in_bwrap, started, without};

    in_both_regimes! {
        a_file_given_as_input_keeps_its_attributes ["python3"];
        the_device_that_stands_for_no_input_keeps_its_attributes ["python3"];
        devices_and_what_the_kernel_tells_keep_their_attributes ["python3"];
        a_file_gets_no_set_uid_or_set_gid_bit_by_any_call ["python3"];
        a_directory_hands_its_group_on_where_that_is_wanted ["python3", "git"];
    }

    in_bwrap! {
        a_file_given_as_input_keeps_its_attributes ["python3"];
        the_device_that_stands_for_no_input_keeps_its_attributes ["python3"];
        devices_and_what_the_kernel_tells_keep_their_attributes ["python3"];
        a_file_gets_no_set_uid_or_set_gid_bit_by_any_call ["python3"];
        a_directory_hands_its_group_on_where_that_is_wanted ["python3", "git"];
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
}
