//! Limits of a whole tree that the kernel holds, in control groups (cgroup v2).
//!
//! Each test has root make a group and hand it over. A machine lets root do so where `memory` and `pids` belong to
//! the hierarchy of cgroup v2; where `STOCKADE_TEST_REQUIRE` lists `cgroups` it must, and where it does not, a machine
//! that does not is passed over: many a container's is of the first version.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::chown;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use nix::sys::signal::Signal;

    use crate::common::{
        Actor, Fixture, Invocation, Run, assert_no_process_left, eventually, in_both_regimes, marker,
        wait_for_processes, wait_until_gone,
    };
    use crate::own_mounts;

    in_both_regimes! {
        one_process_too_many_is_refused ["python3"];
        the_allowed_number_of_processes_can_be_started ["python3"];
        a_command_neither_leaves_its_group_nor_widens_it ["python3"];
        memory_in_many_processes_ends_the_tree ["python3"];
        memory_that_is_shared_counts_once ["python3"];
        a_fork_bomb_ends_and_leaves_nothing ["bash"];
        nothing_is_left_of_a_group ["python3"];
        a_group_of_a_parent_that_was_killed_is_removed_by_the_next ["python3"];
        no_config_lets_a_command_write_to_control_groups [];
        a_command_whose_bounds_are_taken_away_is_killed ["python3"];
        the_bound_of_somebody_else_is_not_told_as_a_limit_of_the_command ["python3"];
        as_many_processes_as_the_kernel_can_have_are_no_bound ["python3"];
        a_unit_is_not_taken_where_systemd_cannot_be_seen [];
        a_mark_that_users_set_themselves_hands_nothing_over [];
        a_group_that_cannot_be_written_to_or_divided_is_told_as_that [];
        doctor_says_that_limits_hold_exactly [];
        a_group_that_was_not_handed_over_is_left_alone [];
        the_name_of_a_group_hands_nothing_over [];
        a_group_with_others_in_it_is_left_alone [];
    }

    /// A group that was handed to an actor.
    struct Handed {
        path: PathBuf,
    }

    impl Handed {
        /// One, if this machine lets root make it.
        fn to(actor: Actor) -> Option<Self> {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let is_listed = std::env::var("STOCKADE_TEST_REQUIRE")
                .is_ok_and(|list| list.split(',').any(|word| word.trim() == "cgroups"));
            let hierarchy = Path::new("/sys/fs/cgroup");
            let has = |list: &str| {
                let list = fs::read_to_string(hierarchy.join(list)).unwrap_or_default();
                ["memory", "pids"]
                    .iter()
                    .all(|wanted| list.split_whitespace().any(|there| there == *wanted))
            };
            if !nix::unistd::geteuid().is_root() || !has("cgroup.controllers") {
                assert!(
                    !is_listed,
                    "root has no cgroups to hand over; see STOCKADE_TEST_REQUIRE"
                );
                return None;
            }
            if !has("cgroup.subtree_control") {
                fs::write(hierarchy.join("cgroup.subtree_control"), "+memory +pids").unwrap();
            }
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = hierarchy.join(format!("handed-{}-{count}", std::process::id()));
            fs::create_dir(&path).unwrap();
            for name in [".", "cgroup.procs", "cgroup.subtree_control"] {
                chown(path.join(name), Some(actor.uid()), Some(actor.uid())).unwrap();
            }
            // What systemd marks a group with that it hands over.
            xattr::set(&path, "trusted.delegate", b"1").unwrap();
            xattr::set(&path, "user.delegate", b"1").unwrap();
            Some(Self { path })
        }

        /// A group inside it that belongs to the same one, and that nobody marked.
        fn below(&self, actor: Actor, name: &str) -> Self {
            let path = self.path.join(name);
            fs::create_dir(&path).unwrap();
            for name in [".", "cgroup.procs", "cgroup.subtree_control"] {
                chown(path.join(name), Some(actor.uid()), Some(actor.uid())).unwrap();
            }
            Self { path }
        }

        /// The program, started in it.
        fn inside(&self, world: &Fixture, invocation: Invocation) -> Invocation {
            let command = invocation.into_command();
            // Whoever was in it before has made it one that holds groups and no processes.
            let enter = "echo -memory -pids > \"$1/cgroup.subtree_control\" && \
                 echo 0 > \"$1/cgroup.procs\" && shift && exec \"$@\"";
            let uid = world.actor.uid().to_string();
            let mut inside = Invocation::new(Path::new("/bin/sh"), None, command.get_current_dir().unwrap());
            for (name, value) in command.get_envs() {
                inside = inside.env(name.to_str().unwrap(), value.unwrap());
            }
            let words = ["-c", enter, "sh", self.path.to_str().unwrap(), "/usr/bin/setpriv"];
            inside
                .args(words)
                .args(["--reuid", &uid, "--regid", &uid, "--clear-groups"])
                .args([command.get_program()])
                .args(command.get_args())
        }

        /// The groups inside it.
        fn groups(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.path).unwrap().flatten();
            let groups = entries.filter(|entry| entry.file_type().unwrap().is_dir());
            groups.map(|entry| entry.file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Handed {
        fn drop(&mut self) {
            let _killed = fs::write(self.path.join("cgroup.kill"), "1");
            let until = Instant::now() + Duration::from_mins(1);
            while self.path.exists() && Instant::now() < until {
                for group in self.groups() {
                    let _removed = fs::remove_dir(self.path.join(group));
                }
                let _removed = fs::remove_dir(&self.path);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn config(world: &Fixture, more: &str, limits: &str) -> PathBuf {
        let text = format!("extends: [workspace-write]\n{more}shell:\n  limits: {{{limits}}}\n");
        world.write(world.workspace().join("stockade-limits.yaml"), text)
    }

    /// A program in Python under these limits, to be run in the group.
    fn python(world: &Fixture, handed: &Handed, limits: &str, program: &str) -> Invocation {
        let config = config(world, "", limits);
        let program = world.write(world.workspace().join("program.py"), program);
        let words = [
            "run",
            "--config",
            config.to_str().unwrap(),
            "--",
            "/usr/bin/python3",
            program.to_str().unwrap(),
        ];
        handed.inside(world, world.stockade(&words))
    }

    /// Starts children until one cannot be, or there are 60; prints how many there are, itself counted.
    const GROW: &str = "import os, time\n\
        count = 1\n\
        try:\n\
        \x20   while count < 60:\n\
        \x20       if os.fork() == 0: time.sleep(600)\n\
        \x20       count += 1\n\
        except OSError: pass\n\
        print(count)\n";

    fn counted(run: &Run) -> (i32, String) {
        (run.code(), run.out().trim().to_owned())
    }

    fn one_process_too_many_is_refused(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        for limit in [2, 20, 59] {
            let run = python(world, &handed, &format!("processes: {limit}"), GROW).output();
            assert_eq!(counted(&run), (0, limit.to_string()), "{}", run.err());
        }
    }

    fn the_allowed_number_of_processes_can_be_started(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let run = python(world, &handed, "processes: 60", GROW).output();
        assert_eq!(counted(&run), (0, "60".to_owned()), "{}", run.err());
    }

    fn a_command_neither_leaves_its_group_nor_widens_it(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let leave = format!(
            "import os\n\
             handed = '{}'\n\
             numbers = range(max(os.getpid() - 200, 1), os.getpid())\n\
             groups = [f'{{handed}}/stockade-{{n}}-0' for n in numbers] + [f'{{handed}}/stockade-own-{{n}}' for n in numbers]\n\
             for group in [handed] + groups:\n\
             \x20   for name, value in (('cgroup.procs', '0'), ('pids.max', 'max')):\n\
             \x20       try: open(f'{{group}}/{{name}}', 'w').write(value)\n\
             \x20       except OSError: pass\n\
             \x20   try: os.mkdir(f'{{group}}/of-its-own')\n\
             \x20   except OSError: pass\n",
            handed.path.to_str().unwrap()
        );
        let run = python(world, &handed, "processes: 20", &format!("{leave}{GROW}")).output();
        assert_eq!(counted(&run), (0, "20".to_owned()), "{}", run.err());
    }

    /// Eight children that fill 24 MiB each, one after the other.
    const FILL: &str = "import os, time\n\
        for child in range(8):\n\
        \x20   if os.fork() == 0:\n\
        \x20       memory = bytearray(b'x') * (24 << 20)\n\
        \x20       time.sleep(600)\n\
        time.sleep(600)\n\
        print('all of it')\n";

    fn memory_in_many_processes_ends_the_tree(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let run = python(world, &handed, "memory: 100MiB", FILL).output();
        assert_eq!(counted(&run), (137, String::new()), "{}", run.err());
        assert!(run.err().contains("over the limit `memory`"), "{}", run.err());
    }

    fn memory_that_is_shared_counts_once(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let share = "import mmap, os, time\n\
            memory = mmap.mmap(-1, 24 << 20)\n\
            memory.write(b'x' * (24 << 20))\n\
            for child in range(8):\n\
            \x20   if os.fork() == 0:\n\
            \x20       memory[:]\n\
            \x20       time.sleep(600)\n\
            time.sleep(1)\n\
            print('all of it')\n";
        let run = python(world, &handed, "memory: 300MiB", share).output();
        assert_eq!(counted(&run), (0, "all of it".to_owned()), "{}", run.err());
    }

    fn a_fork_bomb_ends_and_leaves_nothing(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let mark = marker();
        let bomb = format!("b() {{ sleep {mark} & b | b & }}; b; wait");
        let config = config(world, "", "processes: 40, timeout: 3s");
        let words = ["run", "--config", config.to_str().unwrap(), "--", "bash", "-c", &bomb];
        handed.inside(world, world.stockade(&words)).output();
        assert_no_process_left(&mark);
        assert!(
            handed.groups().iter().all(|group| group.contains("own")),
            "{:?}",
            handed.groups()
        );
    }

    fn nothing_is_left_of_a_group(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        for program in [GROW, FILL] {
            python(world, &handed, "processes: 20, memory: 100MiB", program).output();
            let left = handed.groups();
            assert!(left.iter().all(|group| group.starts_with("stockade-own-")), "{left:?}");
        }
        // Of those that have gone, the next to come removes what it was in itself.
        assert!(handed.groups().len() <= 2, "{:?}", handed.groups());
    }

    fn a_group_of_a_parent_that_was_killed_is_removed_by_the_next(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let mark = marker();
        let sleep = format!("import os; os.execvp('sleep', ['sleep', '{mark}'])");
        let running = python(world, &handed, "processes: 20", &sleep).spawn();
        wait_for_processes(&mark, 1);
        let bounded = |handed: &Handed| {
            let groups = handed.groups();
            groups
                .into_iter()
                .filter(|group| !group.contains("own"))
                .collect::<Vec<_>>()
        };
        let before = bounded(&handed);
        assert_eq!(before.len(), 1, "{before:?}");
        running.signal(Signal::SIGKILL);
        running.wait();
        wait_until_gone(&mark);
        let run = python(world, &handed, "processes: 20", GROW).output();
        assert_eq!(counted(&run), (0, "20".to_owned()), "{}", run.err());
        assert!(bounded(&handed).is_empty(), "{:?}", handed.groups());
    }

    fn no_config_lets_a_command_write_to_control_groups(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        for (path, is_refused) in [(handed.path.clone(), true), (world.outside(), false)] {
            let more = format!(
                "sandbox:\n  paths:\n    groups: {{root: '{}', mode: rw}}\n",
                path.to_str().unwrap()
            );
            let config = config(world, &more, "processes: 20");
            let words = ["run", "--config", config.to_str().unwrap(), "--", "/bin/true"];
            let run = handed.inside(world, world.stockade(&words)).output();
            assert_eq!(run.code(), if is_refused { 125 } else { 0 }, "{}", run.err());
            assert_eq!(run.err().contains("cgroup2"), is_refused, "{}", run.err());
        }
    }

    fn a_command_whose_bounds_are_taken_away_is_killed(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let mark = marker();
        let sleep = format!("import os; os.execvp('sleep', ['sleep', '{mark}'])");
        let running = python(world, &handed, "processes: 20, memory: 100MiB", &sleep).spawn();
        wait_for_processes(&mark, 1);
        // What systemd does to a unit that it did not hand over, whenever it looks at it.
        fs::write(handed.path.join("cgroup.subtree_control"), "-memory -pids").unwrap();
        let run = running.wait();
        assert_eq!(run.code(), 125, "{}", run.err());
        assert!(run.err().contains("control group were taken away"), "{}", run.err());
        assert_no_process_left(&mark);
    }

    fn the_bound_of_somebody_else_is_not_told_as_a_limit_of_the_command(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        fs::write(handed.path.join("memory.max"), (120 << 20).to_string()).unwrap();
        for limits in ["processes: 30", "processes: 30, memory: 2GiB"] {
            let run = python(world, &handed, limits, FILL).output();
            assert!(!run.out().contains("all of it"), "{}", run.out());
            assert!(!run.err().contains("over the limit"), "{}", run.err());
        }
    }

    fn as_many_processes_as_the_kernel_can_have_are_no_bound(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        for limit in [4_194_303_u64, 4_194_304, u64::MAX] {
            let run = python(world, &handed, &format!("processes: {limit}"), GROW).output();
            assert_eq!(counted(&run), (0, "60".to_owned()), "{}", run.err());
        }
    }

    fn doctor_says_that_limits_hold_exactly(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let said = handed
            .inside(world, world.bare(world.binary()).args(["doctor"]))
            .output();
        for limit in ["processes", "memory"] {
            let line = format!("holds exactly: limits.{limit} of the whole tree");
            assert_eq!(said.out().matches(&line).count(), 2, "{}", said.out());
        }
    }

    fn a_group_that_was_not_handed_over_is_left_alone(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        for mark in ["trusted.delegate", "user.delegate"] {
            xattr::remove(&handed.path, mark).unwrap();
        }
        // Where no systemd runs, what the user owns is the user's.
        if Path::new("/run/systemd/system").exists() {
            let said = handed
                .inside(world, world.bare(world.binary()).args(["doctor"]))
                .output();
            assert!(!said.out().contains("control group of its own"), "{}", said.out());
            assert!(handed.groups().is_empty(), "{:?}", handed.groups());
        }
    }

    fn the_name_of_a_group_hands_nothing_over(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        // Its parent is handed over, and has bounds for what is in it; but to whom, nobody says.
        let unit = Handed {
            path: handed.path.join("stockade-agent.scope"),
        };
        fs::create_dir(&unit.path).unwrap();
        let said = unit.inside(world, world.bare(world.binary()).args(["doctor"])).output();
        assert!(!said.out().contains("control group of its own"), "{}", said.out());
    }

    /// What `doctor` says where nothing below /run can be seen.
    fn doctor_without_run(world: &Fixture, handed: &Handed) -> String {
        let doctor = handed
            .inside(world, world.bare(own_mounts::PROGRAM).args(["doctor"]))
            .into_command();
        let hidden = own_mounts::among(world, "mount -t tmpfs none /run && exec \"$@\"");
        let hidden = hidden.args([doctor.get_program()]).args(doctor.get_args());
        hidden.output().out()
    }

    fn a_unit_is_not_taken_where_systemd_cannot_be_seen(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        for mark in ["trusted.delegate", "user.delegate"] {
            xattr::remove(&handed.path, mark).unwrap();
        }
        assert!(doctor_without_run(world, &handed).contains("holds exactly: limits.memory"));
        for name in ["a.scope", "b.service", "c.slice"] {
            fs::write(handed.path.join("cgroup.subtree_control"), "+memory +pids").unwrap();
            let unit = handed.below(world.actor, name);
            let said = doctor_without_run(world, &unit);
            assert!(!said.contains("holds exactly: limits.memory"), "{name}: {said}");
        }
    }

    fn a_mark_that_users_set_themselves_hands_nothing_over(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        fs::write(handed.path.join("cgroup.subtree_control"), "+memory +pids").unwrap();
        let below = handed.below(world.actor, "below.scope");
        xattr::set(&below.path, "user.delegate", b"1").unwrap();
        let said = below
            .inside(world, world.bare(world.binary()).args(["doctor"]))
            .output();
        // Root may mark whatever it likes, and it is root that hands groups over.
        let is_taken = said.out().contains("holds exactly: limits.memory");
        assert_eq!(is_taken, world.actor == Actor::Root, "{}", said.out());
    }

    fn a_group_that_cannot_be_written_to_or_divided_is_told_as_that(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let doctor = || {
            let doctor = handed.inside(world, world.bare(world.binary()).args(["doctor"]));
            doctor.output().out()
        };
        let full = "no group may be made in the control group";
        fs::write(handed.path.join("cgroup.max.descendants"), "0").unwrap();
        assert!(doctor().contains(full), "{}", doctor());
        fs::write(handed.path.join("cgroup.max.descendants"), "max").unwrap();
        assert!(!doctor().contains(full), "{}", doctor());
        if world.actor != Actor::Root {
            chown(handed.path.join("cgroup.procs"), Some(0), Some(0)).unwrap();
            assert!(doctor().contains("cannot be written to"), "{}", doctor());
        }
    }

    fn a_group_with_others_in_it_is_left_alone(world: &Fixture) {
        let Some(handed) = Handed::to(world.actor) else { return };
        let _other = handed.inside(world, world.bare("/bin/sleep").args(["86400"])).spawn();
        let procs = handed.path.join("cgroup.procs");
        eventually("somebody is in the group", || {
            !fs::read_to_string(&procs).unwrap().is_empty()
        });
        let said = handed
            .inside(world, world.bare(world.binary()).args(["doctor"]))
            .output();
        assert!(
            said.out().contains("other processes are in the control group"),
            "{}",
            said.out()
        );
        assert!(handed.groups().is_empty(), "{:?}", handed.groups());
    }
}
