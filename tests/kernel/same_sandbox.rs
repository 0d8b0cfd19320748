//! One plan, two that carry it out: what a command finds where Stockade makes namespaces and mounts itself is what it
//! finds where bwrap does, as root and as an ordinary user.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use nix::sys::signal::Signal;
    use serde_json::Value;

    use crate::common::{
        Actor, Backend, Fixture, SECRET, descendants, eventually, marker, wait_for_processes, wait_until_gone,
    };

    crate::common::declare! { root_in_both Root Bwrap;
        a_command_finds_the_same ["python3", "git"];
        the_forker_and_who_waits_for_it_hold_nothing_of_the_host ["python3"];
        everything_dies_with_whoever_waits_for_the_namespaces [];
        a_mount_that_the_host_makes_later_does_not_show ["mount", "unshare"];
        mounts_below_a_read_only_root_are_read_only_as_well ["mount", "unshare"];
    }
    crate::common::declare! { user_in_both User Bwrap;
        a_command_finds_the_same ["python3", "git"];
        the_forker_and_who_waits_for_it_hold_nothing_of_the_host ["python3"];
        everything_dies_with_whoever_waits_for_the_namespaces [];
    }

    const BOTH: [Backend; 2] = [Backend::Namespaces, Backend::Bwrap];

    /// What a command can find out about where it is, as JSON.
    const LOOK: &str = r"
import ctypes, json, os, re, resource, signal, socket, stat, subprocess, sys
def text(path):
    try: return open(path).read()
    except OSError as error: return error.strerror
def mounts():
    for line in re.sub('/s-[0-9a-f]+/', '/s-N/', text('/proc/self/mountinfo')).splitlines():
        before, after = line.split(' - ')
        before, after = before.split(' '), after.split(' ')
        # bwrap binds a directory of its first tmpfs; which memory is whose has no name.
        root = '/' if before[3] == '/newroot' else before[3]
        yield [root, before[4], sorted(before[5].split(',')), before[6:], after[0], after[1],
               sorted(o for o in after[2].split(',') if not re.match('(uid|gid)=', o) and (before[4] != '/' or o != 'mode=755'))]
def tree():
    for top, folders, files in os.walk('/', topdown=True, onerror=None):
        folders[:] = [f for f in folders if top != '/' or f not in ('proc', 'usr')]
        for name in folders + files:
            path = os.path.join(top, name)
            try: found = os.lstat(path)
            except OSError: continue
            path = re.sub('/s-[0-9a-f]+(/|$)', '/s-N/', path)
            target = os.readlink(path) if stat.S_ISLNK(found.st_mode) else ''
            yield [path, stat.filemode(found.st_mode), found.st_uid, found.st_gid, target]
def tried(work):
    try: work(); return 'works'
    except OSError as error: return error.strerror
def served():
    server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname(), 2)
def served6():
    server = socket.create_server(('::1', 0), family=socket.AF_INET6); socket.create_connection(server.getsockname()[:2], 2)
libc = ctypes.CDLL(None, use_errno=True)
def called(name, *arguments):
    return 0 if getattr(libc, name)(*arguments) == 0 else ctypes.get_errno()
status = dict(line.split(':\t', 1) for line in text('/proc/self/status').splitlines())
keep = ['Uid', 'Gid', 'Groups', 'NSpid', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp',
        'Seccomp_filters', 'SigBlk', 'SigIgn', 'ShdPnd', 'Umask', 'Speculation_Store_Bypass', 'THP_enabled']
workspace = os.getcwd()
print(json.dumps({
    'mounts': sorted(mounts(), key=str),
    'tree': sorted(tree()),
    'status': {name: status.get(name, '').split('\t')[-1 if name == 'NSpid' else 0:] for name in keep if name != 'NSpid'},
    'maps': [text('/proc/self/' + name) for name in ('uid_map', 'gid_map', 'setgroups')],
    'namespaces': sorted(os.listdir('/proc/self/ns')),
    'shared': sorted(n for n in os.listdir('/proc/self/ns') if os.readlink('/proc/self/ns/' + n) in sys.argv[1].split()),
    'proc': sorted(n for n in os.listdir('/proc') if not n.isdigit()),
    'processes': len([n for n in os.listdir('/proc') if n.isdigit()]),
    'first': [text('/proc/1/environ'), text('/proc/1/maps'), tried(lambda: os.listdir('/proc/1/fd')), tried(lambda: os.readlink('/proc/1/root'))],
    'forker': [text('/proc/2/environ'), text('/proc/2/maps'), tried(lambda: os.listdir('/proc/2/fd')), tried(lambda: os.readlink('/proc/2/root'))],
    'fds': sorted(fd + ' ' + re.sub('[0-9]+', 'N', os.readlink('/proc/self/fd/' + fd)) for fd in ('0', '1', '2', '3', '4', '5', '6', '7', '8') if os.path.islink('/proc/self/fd/' + fd)),
    'environment': {k: re.sub(r's-[0-9A-Za-z_-]+', 's-N', v) for k, v in os.environ.items()},
    'session': [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), tried(lambda: os.open('/dev/tty', os.O_RDWR))],
    'dumpable': libc.prctl(3, 0, 0, 0, 0),
    'securebits': libc.prctl(27, 0, 0, 0, 0),
    'deathsig': tried(lambda: libc.prctl(2, ctypes.byref(ctypes.c_int()), 0, 0, 0)),
    'limits': {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith('RLIMIT_')},
    'priority': os.getpriority(os.PRIO_PROCESS, 0),
    'host': os.uname().nodename,
    'interfaces': sorted(line.split(':')[0].strip() for line in text('/proc/net/dev').splitlines()[2:]),
    'loopback': [tried(served), tried(served6), tried(lambda: socket.create_connection(('1.1.1.1', 9), 2))],
    'attempts': {
        'umount a mask': called('umount2', (workspace + '/.env').encode(), 2),
        'umount /proc': called('umount2', b'/proc', 2),
        'remount /': called('mount', None, b'/', None, 32 | 4096, None),
        'remount /usr': called('mount', None, b'/usr', None, 32 | 4096, None),
        'mount a tmpfs': called('mount', b'none', b'/tmp', b'tmpfs', 0, None),
        'a user namespace': called('unshare', 0x10000000),
        'leave the root': called('chroot', b'/tmp'),
        'a host name': called('sethostname', b'x', 1),
        'become root': called('setuid', 0) if os.getuid() else 'is',
        'a device': called('mknod', (workspace + '/node').encode(), 0o020666, 0x103),
        'trace the first': called('ptrace', 16, 1, None, None),
        'kill the first': tried(lambda: os.kill(1, 9)),
        'write /': tried(lambda: open('/new', 'w')),
        'write /dev': tried(lambda: open('/dev/new', 'w')),
        'write /tmp': tried(lambda: open('/tmp/new', 'w')),
        'write /usr': tried(lambda: open('/usr/new', 'w')),
        'write the workspace': tried(lambda: open('new', 'w')),
        'write a protected name': tried(lambda: open('.git/config', 'a')),
        'rename above it': tried(lambda: os.rename('.git', 'git')),
        'read a mask': tried(lambda: open('.env')),
        'list a mask': tried(lambda: os.listdir('keys')),
        'write /proc/sys': tried(lambda: open('/proc/sys/kernel/core_pattern', 'w')),
        'write a sysctl of the network': tried(lambda: open('/proc/sys/net/ipv4/ip_forward', 'w')),
        'write sysrq': tried(lambda: open('/proc/sysrq-trigger', 'w')),
        'read what lies outside': tried(lambda: open(sys.argv[2])),
        'a setuid program': subprocess.run(['/bin/su', '--version'], capture_output=True).returncode if os.path.exists('/bin/su') else 0,
    },
}))
";

    fn config(world: &Fixture) -> PathBuf {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    \
             w: {{root: {}, mode: rw, deny: [./.env, ./keys], approval: {{write: none}}}}\n    \
             o: {{root: {}/ro, mode: ro}}\nshell:\n  limits: {{memory: 1GiB, processes: 64, open_files: 100}}\n  \
             default: {{allowed: true, approval: none}}\n",
            world.workspace().display(),
            world.outside().display()
        );
        world.write(world.outside().join("config.yaml"), text)
    }

    fn grow(world: &Fixture) {
        world.write(".env", SECRET);
        world.write("keys/id", SECRET);
        world.write("a/b/plain", "plain");
        world.write(world.outside().join("ro/file"), "file");
        world.bare("/usr/bin/git").args(["init", "-q", "."]).output().exits(0);
    }

    fn run(world: &Fixture, backend: Backend, config: &Path, command: &[&str]) -> crate::common::Invocation {
        let config = config.to_str().unwrap();
        let args = ["run", "-q", "--backend", backend.name(), "--config", config, "--"];
        world.bare(world.binary()).args(args).args(command)
    }

    /// What of one finding is not the same.
    fn difference(name: &str, native: &Value, bwrap: &Value) -> Option<String> {
        let (one, other) = (&native[name], &bwrap[name]);
        if one == other || ["first", "securebits"].contains(&name) {
            return None;
        }
        // Each session has copies of its own.
        let plain = |item: &Value| {
            let text = item.to_string();
            match text
                .split_once("/copies/")
                .and_then(|(before, rest)| Some((before, rest.split_once('/')?.1)))
            {
                Some((before, number)) => format!("{before}/copies/{number}"),
                None => text,
            }
        };
        // Stockade's devices are read-only, so that their modes stay. Its whole /proc is; bwrap covers what its owner could write.
        let plain = |item: &Value| {
            let fields = item.as_array().filter(|_| name == "mounts");
            match fields.and_then(|fields| fields.get(1)).and_then(Value::as_str) {
                Some("/proc/bus" | "/proc/irq" | "/proc/sys" | "/proc/sysrq-trigger") => None,
                Some(point) if point.starts_with("/dev/") => Some(plain(item).replace("\"ro\"]", "\"rw\"]")),
                Some(_) | None => Some(plain(item)),
            }
        };
        let lines = |value: &Value| -> BTreeSet<String> {
            match value {
                Value::Array(items) => items.iter().filter_map(plain).collect(),
                Value::Object(fields) => fields.iter().map(|(key, value)| format!("{key}: {value}")).collect(),
                single => [single.to_string()].into(),
            }
        };
        let (one, other) = (lines(one), lines(other));
        if one == other {
            return None;
        }
        let gone = one.difference(&other).map(|line| format!("  - {line}"));
        let fresh = other.difference(&one).map(|line| format!("  + {line}"));
        Some(format!("{name}:\n{}", gone.chain(fresh).collect::<Vec<_>>().join("\n")))
    }

    fn a_command_finds_the_same(world: &Fixture) {
        grow(world);
        let config = config(world);
        let own = fs::read_dir("/proc/self/ns").unwrap().flatten();
        let own: Vec<String> = own
            .map(|entry| fs::read_link(entry.path()).unwrap().to_str().unwrap().to_owned())
            .collect();
        let secret = world.outside().join("secret");
        let [native, bwrap] = BOTH.map(|backend| {
            let argv = ["/usr/bin/python3", "-c", LOOK, &own.join(" "), secret.to_str().unwrap()];
            let said = run(world, backend, &config, &argv).output().exits(0);
            let _made = fs::remove_file(world.workspace().join("new"));
            serde_json::from_str::<Value>(&said.out()).unwrap()
        });
        let names = |found: &Value| found.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(&native), names(&bwrap));
        let differences: Vec<String> = names(&native)
            .iter()
            .filter_map(|name| difference(name, &native, &bwrap))
            .collect();
        assert!(
            differences.is_empty(),
            "- is Stockade's, + is bwrap's\n{}",
            differences.join("\n")
        );
        // Stricter than bwrap: no capability comes with uid 0, and nobody but root can count what the first process holds.
        assert_eq!(native["securebits"], 0xef);
        let first = native["first"].as_array().unwrap();
        assert!(first.iter().any(|tried| tried == "Permission denied"), "{first:?}");
        if world.actor == Actor::User {
            assert!(first.iter().all(|tried| tried == "Permission denied"), "{first:?}");
        }
        // What both say is not that nothing is held.
        let is = |path: &str, wanted: Value| assert_eq!(native.pointer(path), Some(&wanted), "{path}");
        for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            is(
                &format!("/status/{capabilities}"),
                serde_json::json!(["0000000000000000"]),
            );
        }
        is("/status/NoNewPrivs", serde_json::json!(["1"]));
        is("/shared", serde_json::json!(["time", "time_for_children"]));
        is("/interfaces", serde_json::json!(["lo"]));
        is("/loopback/0", "works".into());
        is("/attempts/write the workspace", "works".into());
        let attempts = &native["attempts"];
        assert_eq!(attempts["write /usr"], "Read-only file system", "{attempts}");
        // It is a copy.
        assert_eq!(attempts["write a protected name"], "works", "{attempts}");
        let config = fs::read_to_string(world.workspace().join(".git/config")).unwrap();
        assert!(config.starts_with("[core]"), "{config}");
        assert_eq!(attempts["read a mask"], "Permission denied", "{attempts}");
        assert_eq!(
            attempts["read what lies outside"], "No such file or directory",
            "{attempts}"
        );
        let mounts = native["mounts"].as_array().unwrap();
        assert!(mounts.len() > 20, "{mounts:?}");
        for mount in mounts {
            let flags: Vec<&str> = mount[2].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let (point, has) = (mount[1].as_str().unwrap(), |flag| flags.contains(&flag));
            let writable = ["/tmp", "/proc"].contains(&point)
                || point.starts_with("/dev/")
                || point.starts_with(world.workspace().to_str().unwrap())
                || point.starts_with("/var/tmp/stockade-");
            assert!(has("nosuid") && (has("ro") || writable), "{mount}");
            assert!(has("nodev") || point.starts_with("/dev/"), "{mount}");
        }
    }

    /// The processes of a run by their numbers in the sandbox; 0 stands for who waits outside.
    fn inside(top: i32) -> Vec<(i32, i32)> {
        let status = |pid: i32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = |pid: i32| -> Vec<i32> {
            let status = status(pid);
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("NSpid:"))
                .unwrap_or_default();
            line.split_whitespace().map(|number| number.parse().unwrap()).collect()
        };
        let parent = |pid: i32| -> i32 {
            let status = status(pid);
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("PPid:"))
                .unwrap_or_default();
            line.trim().parse().unwrap_or_default()
        };
        let all = descendants(top);
        let mut found: Vec<(i32, i32)> = all
            .iter()
            .filter_map(|pid| numbers(*pid).get(1).map(|number| (*number, *pid)))
            .collect();
        let first = found.iter().find(|(number, _)| *number == 1).unwrap().1;
        found.push((0, parent(first)));
        found.sort_unstable();
        found
    }

    /// What a process has open once nothing of its start is: it is the same twice, a while apart.
    fn held_open(pid: i32) -> Vec<String> {
        let open = || -> Option<Vec<String>> {
            let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
            // One that was closed meanwhile leads nowhere.
            fds.map(|fd| Some(fs::read_link(fd.ok()?.path()).ok()?.to_str()?.to_owned()))
                .collect()
        };
        let mut last = None;
        eventually("a process opens and closes nothing", || {
            let now = open();
            let is_settled = now.is_some() && now == last;
            last = now;
            std::thread::sleep(Duration::from_millis(100));
            is_settled
        });
        last.unwrap()
    }

    fn the_forker_and_who_waits_for_it_hold_nothing_of_the_host(world: &Fixture) {
        if Actor::invoker() == Actor::User {
            // Who is not root cannot look.
            return;
        }
        grow(world);
        let config = config(world);
        let held = BOTH.map(|backend| {
            let marker = marker();
            let running = run(world, backend, &config, &["/bin/sleep", &marker]).spawn();
            wait_for_processes(&marker, 1);
            let processes = inside(running.pid());
            let of = |wanted: i32| processes.iter().find(|(number, _)| *number == wanted).unwrap().1;
            let mut kinds = Vec::new();
            for number in [0, 1] {
                let pid = of(number);
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                let has = |line: &str| assert!(status.contains(line), "{backend:?} {number}: {status}");
                has("NoNewPrivs:\t1");
                for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                    has(&format!("{set}:\t0000000000000000"));
                }
                if number > 0 {
                    has("CapBnd:\t0000000000000000");
                    for link in ["root", "cwd"] {
                        let seen = fs::metadata(format!("/proc/{pid}/{link}/etc/shadow"));
                        assert!(seen.is_err(), "{backend:?} {number} sees the host through its {link}");
                    }
                }
                let mut fds = Vec::new();
                for target in held_open(pid) {
                    let kind = target.split([':', '[']).next().unwrap();
                    if !(target.starts_with("anon_inode") || ["socket", "pipe", "/dev/null"].contains(&kind)) {
                        assert!(
                            number == 1 && target.ends_with("/mountinfo"),
                            "{backend:?} {number}: {target}"
                        );
                    }
                    fds.push(
                        if kind.starts_with('/') {
                            kind.split('/').next_back().unwrap()
                        } else {
                            kind
                        }
                        .to_owned(),
                    );
                }
                fds.sort_unstable();
                kinds.push(fds);
            }
            running.signal(Signal::SIGKILL);
            running.wait();
            wait_until_gone(&marker);
            kinds
        });
        let [native, bwrap] = held;
        assert_eq!(native[0], ["null", "null", "null", "pipe"], "who waits");
        // Beside its own streams: what commands without input read, which must be the device in there.
        let mut more = bwrap[1].clone();
        more.push("null".to_owned());
        more.sort_unstable();
        assert_eq!(native[1], more, "the forker");
    }

    fn everything_dies_with_whoever_waits_for_the_namespaces(world: &Fixture) {
        for number in [0, 1, 2] {
            let marker = marker();
            let line = format!(
                "sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exit' &); sleep {marker}"
            );
            let running = world
                .bare(world.binary())
                .args(["run", "-q", "--backend", "namespaces", "-c", &line])
                .spawn();
            wait_for_processes(&marker, 4);
            let victim = inside(running.pid())
                .iter()
                .find(|(known, _)| *known == number)
                .unwrap()
                .1;
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(victim), Signal::SIGKILL).unwrap();
            wait_until_gone(&marker);
            let ended = running.wait();
            assert_eq!(ended.code(), 125, "{number}: {}", ended.err());
        }
    }

    /// Runs a line of shell in a mount namespace of its own, whose mounts are shared with what it starts.
    fn among_own_mounts(world: &Fixture, line: &str, backend: Backend, config: &Path) -> crate::common::Run {
        world
            .bare("/usr/bin/unshare")
            .args(["-m", "--propagation", "shared", "sh", "-c", line])
            .args([world.binary()])
            .args([backend.name(), config.to_str().unwrap()])
            .args([world.outside().join("ro")])
            .output()
    }

    fn a_mount_that_the_host_makes_later_does_not_show(world: &Fixture) {
        grow(world);
        let config = config(world);
        let inside = "echo > ready; until [ -e go ]; do sleep 0.05; done; cat \"$0/file\"";
        let line = format!(
            "\"$0\" run -q --backend \"$1\" --config \"$2\" -- sh -c '{inside}' \"$3\" & \
             until [ -e ready ]; do sleep 0.05; done; mount -t tmpfs none \"$3\" && [ ! -e \"$3/file\" ] || echo shown; echo > go; wait $!"
        );
        let run = among_own_mounts(world, &line, Backend::Namespaces, &config).exits(0);
        assert_eq!(run.out(), "file", "{}", run.err());
    }

    fn mounts_below_a_read_only_root_are_read_only_as_well(world: &Fixture) {
        grow(world);
        let config = config(world);
        for backend in BOTH {
            let inside = "cat \"$0/sub/deep/file\"; echo x > \"$0/sub/deep/new\"; grep -c \" $0/sub/deep ro,nosuid,nodev\" /proc/self/mountinfo";
            let line = format!(
                "mkdir -p \"$3/sub\" && mount -t tmpfs none \"$3/sub\" && mkdir \"$3/sub/deep\" && \
                 mount -t tmpfs none \"$3/sub/deep\" && printf below > \"$3/sub/deep/file\" && echo x > \"$3/sub/deep/twin\" && \
                 \"$0\" run -q --backend \"$1\" --config \"$2\" -- sh -c '{inside}' \"$3\""
            );
            let run = among_own_mounts(world, &line, backend, &config).exits(0);
            assert_eq!(run.out(), "below1\n", "{backend:?}: {}", run.err());
            assert!(
                run.err().contains("Read-only file system"),
                "{backend:?}: {}",
                run.err()
            );
        }
    }
}
