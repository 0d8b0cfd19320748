//! With kernel audit switched on, `--explain` says what the kernel confirms, and adds what nobody noted.
//!
//! The switch is the whole machine's: it is root's, one test holds it at a time, and a helper puts it back even when the test is
//! killed. A machine that does not let it be switched lacks `audit`, in the words of `STOCKADE_TEST_REQUIRE`.

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, ChildStdin};

    use serde_json::{Value, json};

    use crate::common::{Actor, Backend, Fixture, eventually, required, world_with};

    /// The switch, held.
    struct Switch {
        child: Child,
        input: Option<ChildStdin>,
        records: PathBuf,
        is_on: bool,
    }

    impl Switch {
        /// Kernel audit as it is wanted; `None` where the machine does not let it be switched and need not.
        fn held(world: &Fixture, wanted: &str) -> Option<Self> {
            let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helpers/audit.py");
            // One for the whole machine, whoever tests what.
            let lock = Path::new("/run/stockade-test-audit.lock");
            let records = world.base().join("records");
            let mut child = world
                .bare("/usr/bin/python3")
                .args([
                    helper.as_os_str(),
                    lock.as_os_str(),
                    wanted.as_ref(),
                    records.as_os_str(),
                ])
                .converse();
            let mut line = String::new();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            output.read_line(&mut line).unwrap();
            let input = child.stdin.take();
            let switch = |is_on| Self {
                child,
                input,
                records,
                is_on,
            };
            match line.trim() {
                "ready on" => Some(switch(true)),
                "ready off" => Some(switch(false)),
                refused => {
                    assert!(!required("audit"), "kernel audit: {refused}; see STOCKADE_TEST_REQUIRE");
                    None
                }
            }
        }

        /// Lets go, and gives what Landlock recorded of the whole machine meanwhile.
        fn let_go(mut self) -> String {
            drop(self.input.take());
            self.child.wait().unwrap();
            String::from_utf8(fs::read(&self.records).unwrap()).unwrap()
        }
    }

    impl Drop for Switch {
        fn drop(&mut self) {
            drop(self.input.take());
            let mut said = String::new();
            if let Some(mut errors) = self.child.stderr.take() {
                let _read = errors.read_to_string(&mut said);
            }
            let _ended = self.child.wait();
            assert!(said.is_empty() || std::thread::panicking(), "{said}");
        }
    }

    /// A world of root's, and audit switched on.
    fn on(backend: Backend) -> Option<(Fixture, Switch)> {
        let world = world_with(Actor::Root, backend, &["python3"])?;
        let switch = Switch::held(&world, "on")?;
        let report: Value = serde_json::from_str(&world.stockade(&["doctor", "--json"]).output().out()).unwrap();
        let records = &report["kernel_records"];
        if records["readable"] != true {
            assert!(!required("audit"), "{records}; see STOCKADE_TEST_REQUIRE");
            return None;
        }
        Some((world, switch))
    }

    fn explained(world: &Fixture, argv: &[&str]) -> Value {
        let run = world
            .stockade(&["run", "--explain", "--json", "--"])
            .args(argv)
            .output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()));
        outcome["explained"].clone()
    }

    /// What was wanted, of what, and who saw it.
    fn seen(explained: &Value) -> Vec<(String, String, Value)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let blocked = explained["blocked"].as_array().unwrap();
        let one = |blocked: &Value| {
            (
                text(&blocked["wanted"]),
                text(&blocked["what"]),
                blocked["seen_by"].clone(),
            )
        };
        blocked.iter().map(one).collect()
    }

    fn path(path: &Path) -> String {
        stockade::policy::path::display(path.as_os_str())
    }

    #[test]
    fn a_denial_that_was_noted_is_confirmed_and_a_permitted_twin_has_no_record() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let (secret, twin) = (world.outside().join("secret"), world.write("twin", "x"));
        let denied = explained(&world, &["/bin/cat", secret.to_str().unwrap()]);
        let both = json!(["notification", "audit"]);
        assert_eq!(seen(&denied), [("read".to_owned(), path(&secret), both)], "{denied:#}");
        assert_eq!(denied["blocked"][0]["by"], "landlock");
        assert_eq!(denied["kernel_records"], "read");
        let permitted = explained(&world, &["/bin/cat", twin.to_str().unwrap()]);
        assert_eq!(seen(&permitted), [], "{permitted:#}");
        assert_eq!(permitted["kernel_records"], "read");
    }

    #[test]
    fn a_person_is_told_what_the_kernel_confirms() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let secret = world.outside().join("secret");
        let run = world
            .stockade(&["run", "--explain", "--", "/bin/cat", secret.to_str().unwrap()])
            .output();
        let line = format!("denied: read {} (by Landlock, confirmed by the kernel)", path(&secret));
        assert!(run.err().contains(&line), "{}", run.err());
    }

    #[test]
    fn a_name_that_is_made_is_confirmed_by_its_directory_and_a_hostile_one_by_itself() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let new = world.outside().join("new");
        let hostile = OsString::from_vec(b"x\" domain=1 blockers=ptrace\n\x1b[31m\xff (deleted) y".to_vec());
        let hostile = world.outside().join(hostile);
        fs::write(&hostile, "x").unwrap();
        let script = "import os,sys
for name, flags in ((sys.argv[1], os.O_WRONLY | os.O_CREAT), (sys.argv[2], os.O_RDONLY)):
    try:
        os.open(os.fsencode(name), flags)
    except PermissionError:
        pass
";
        let run = world
            .stockade(&["run", "--explain", "--json", "--", "/usr/bin/python3", "-c", script])
            .args([&new, &hostile])
            .output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        let both = json!(["notification", "audit"]);
        let of_ours: Vec<_> = seen(&outcome["explained"])
            .into_iter()
            .filter(|(_, what, _)| what.contains("/outside/"))
            .collect();
        let expected = [
            ("make".to_owned(), path(&new), both.clone()),
            ("read".to_owned(), path(&hostile), both),
        ];
        assert_eq!(of_ours, expected, "{outcome:#}");
    }

    #[test]
    fn a_signal_that_nobody_notes_is_told_by_the_kernel_alone() {
        for backend in [Backend::Landlock, Backend::Namespaces] {
            let Some((world, _switch)) = on(backend) else { return };
            let itself = std::process::id().to_string();
            let outside = match backend {
                Backend::Landlock => itself.as_str(),
                Backend::Namespaces | Backend::Bwrap => "1",
            };
            let denied = explained(&world, &["/bin/sh", "-c", &format!("kill -0 {outside}; true")]);
            let expected = (
                "signal".to_owned(),
                "a process outside of the command".to_owned(),
                json!(["audit"]),
            );
            assert_eq!(seen(&denied), [expected], "{backend:?} {denied:#}");
            let own = explained(&world, &["/bin/sh", "-c", "sleep 9 & kill -0 $! && kill $!; true"]);
            assert_eq!(seen(&own), [], "{backend:?} {own:#}");
        }
    }

    #[test]
    fn the_layer_of_a_command_at_a_terminal_is_known_for_its_own() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let secret = world.outside().join("secret");
        let steps = json!([]);
        let (_, shown) = world.play(
            &steps,
            &["run", "--explain", "--", "/bin/cat", secret.to_str().unwrap()],
        );
        let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("(by Landlock, confirmed by the kernel)"), "{shown}");
    }

    #[test]
    fn the_denials_of_another_sandbox_are_not_told() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let (ours, theirs) = (world.outside().join("secret"), world.home().join(".ssh/id_ed25519"));
        let line = |path: &Path| {
            let path = path.to_str().unwrap().to_owned();
            format!("for i in 1 2 3 4 5 6 7 8; do cat {path}; sleep 0.05; done 2>/dev/null; true")
        };
        let start = |path: &Path| {
            let line = line(path);
            world.stockade(&["run", "--explain", "--json", "-c", &line]).spawn()
        };
        let (first, second) = (start(&ours), start(&theirs));
        for (run, path) in [(first.wait(), &ours), (second.wait(), &theirs)] {
            let outcome: Value = serde_json::from_str(&run.out()).unwrap();
            let told = seen(&outcome["explained"]);
            let expected = ("read".to_owned(), self::path(path), json!(["notification", "audit"]));
            assert_eq!(told, [expected], "{outcome:#}");
            assert_eq!(outcome["explained"]["blocked"][0]["times"], 8);
        }
    }

    #[test]
    fn a_layer_that_a_command_puts_on_itself_is_not_told() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let twin = world.write("twin", "x");
        let script = "import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ruleset = libc.syscall(444, struct.pack('QQQ', 4, 0, 0), 24, 0)
assert ruleset >= 0 and libc.syscall(446, ruleset, 0) == 0
try:
    open(sys.argv[1])
except PermissionError:
    print('denied')
";
        let run = world
            .stockade(&["run", "--explain", "--json", "--", "/usr/bin/python3", "-c", script])
            .args([&twin])
            .output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert_eq!(outcome["stdout"], "denied\n", "{outcome:#}");
        let told = seen(&outcome["explained"]);
        assert!(told.iter().all(|(_, what, _)| !what.contains("twin")), "{outcome:#}");
        assert_eq!(outcome["explained"]["kernel_records"], "read", "{outcome:#}");
    }

    /// The program that is executed has the number of the process that put on Stockade's layer, and makes its own domain
    /// before anything else was denied to it. What that denies hangs on no clause, so no plan could tell it apart.
    #[test]
    fn a_layer_that_a_command_puts_on_itself_first_of_all_is_not_taken_for_stockades() {
        for backend in [Backend::Landlock, Backend::Namespaces] {
            let Some((world, _switch)) = on(backend) else { return };
            let script = "import ctypes, fcntl, os, struct, termios
libc = ctypes.CDLL(None, use_errno=True)
ruleset = libc.syscall(444, struct.pack('QQQ', 1 << 15, 0, 0), 24, 0)
assert ruleset >= 0 and libc.syscall(446, ruleset, 0) == 0
null = os.open('/dev/null', os.O_RDWR)
try:
    fcntl.ioctl(null, 0x5401, bytes(64))
except OSError as error:
    print(error.errno)
try:
    os.kill(os.getppid(), 0)
except OSError as error:
    print(error.errno)
";
            let denied = world
                .stockade(&["run", "--explain", "--json", "--", "/usr/bin/python3", "-c", script])
                .output();
            let outcome: Value = serde_json::from_str(&denied.out()).unwrap();
            assert_eq!(outcome["stdout"], "13\n1\n", "{backend:?} {outcome:#}");
            let told = seen(&outcome["explained"]);
            let is_of_the_device = |(_, what, _): &(String, String, Value)| what.contains("null");
            assert!(!told.iter().any(is_of_the_device), "{backend:?} {outcome:#}");
            let signals: Vec<_> = told.iter().filter(|(wanted, ..)| wanted == "signal").collect();
            assert_eq!(signals.len(), 1, "{backend:?} {outcome:#}");
            assert_eq!(
                outcome["explained"]["kernel_records"], "read",
                "{backend:?} {outcome:#}"
            );
        }
    }

    #[test]
    fn who_does_not_ask_has_nothing_recorded_of_a_command() {
        let Some((world, switch)) = on(Backend::Landlock) else {
            return;
        };
        let secret = world.outside().join("secret");
        let run = world.run(&["/bin/cat", secret.to_str().unwrap()]).output();
        assert_eq!(run.code(), 1, "{}", run.err());
        let recorded = switch.let_go();
        assert!(!recorded.contains(secret.to_str().unwrap()), "{recorded}");
        // Nor of what is tried at each start, and of the signals that end a tree.
        assert!(!recorded.contains("ocomm=\"stockade"), "{recorded}");
    }

    #[test]
    fn what_the_kernel_drops_is_said_to_be_missing() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let script = "import os
for _ in range(20000):
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        pass
";
        let denied = explained(&world, &["/usr/bin/python3", "-c", script]);
        let signals = denied["blocked"].as_array().unwrap().iter();
        let times: u64 = signals.map(|blocked| blocked["times"].as_u64().unwrap()).sum();
        let is_whole = times == 20_000 && denied["kernel_records"] == "read";
        assert!(is_whole || denied["kernel_records"] == "some_lost", "{denied:#}");
    }

    #[test]
    fn what_is_not_recorded_since_audit_was_switched_off_is_said_to_be_missing() {
        let Some((world, switch)) = on(Backend::Landlock) else {
            return;
        };
        let begun = world.workspace().join("begun");
        let secret = world.outside().join("secret");
        let line = format!(
            "touch begun; until [ -e go ]; do sleep 0.02; done; cat {}",
            secret.display()
        );
        let run = world.stockade(&["run", "--explain", "--json", "-c", &line]).spawn();
        eventually("the command runs", || begun.exists());
        switch.let_go();
        world.write("go", "");
        let outcome: Value = serde_json::from_str(&run.wait().out()).unwrap();
        let expected = ("read".to_owned(), path(&secret), json!(["notification"]));
        assert_eq!(seen(&outcome["explained"]), [expected], "{outcome:#}");
        assert_eq!(outcome["explained"]["kernel_records"], "some_lost");
    }

    #[test]
    fn the_refusals_of_another_sandbox_neither_delay_nor_spoil_what_is_told() {
        let Some((world, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let script = "import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
ruleset = libc.syscall(444, struct.pack('QQQ', 4, 0, 0), 24, 0)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.syscall(446, ruleset, 0) == 0
while not os.path.exists('enough'):
    try:
        open('/etc/passwd')
    except PermissionError:
        open('refused', 'w').close()
    time.sleep(0.02)
";
        let stranger = world.bare("/usr/bin/python3").args(["-c", script]).spawn();
        let refused = world.workspace().join("refused");
        eventually("the other sandbox refuses", || refused.exists());
        let secret = world.outside().join("secret");
        for _ in 0..3 {
            let denied = explained(&world, &["/bin/cat", secret.to_str().unwrap()]);
            let both = json!(["notification", "audit"]);
            assert_eq!(seen(&denied), [("read".to_owned(), path(&secret), both)], "{denied:#}");
            assert_eq!(denied["kernel_records"], "read");
        }
        world.write("enough", "");
        stranger.wait().exits(0);
    }

    #[test]
    fn an_ordinary_user_is_told_what_follows_from_the_plan_and_nothing_of_records() {
        let Some((root, _switch)) = on(Backend::Landlock) else {
            return;
        };
        let Some(world) = world_with(Actor::User, Backend::Landlock, &[]) else {
            return;
        };
        let secret = world.outside().join("secret");
        let denied = explained(&world, &["/bin/cat", secret.to_str().unwrap()]);
        assert_eq!(seen(&denied), [("read".to_owned(), path(&secret), Value::Null)]);
        assert_eq!(denied.get("kernel_records"), None);
        let doctor = |world: &Fixture| -> Value {
            serde_json::from_str(&world.stockade(&["doctor", "--json"]).output().out()).unwrap()
        };
        let records = &doctor(&world)["kernel_records"];
        assert_eq!(records["readable"], false);
        assert!(
            records["detail"].as_str().unwrap().contains("CAP_AUDIT_READ"),
            "{records}"
        );
        assert_eq!(doctor(&root)["kernel_records"]["readable"], true);
    }

    #[test]
    fn where_audit_is_off_root_is_told_so_and_explained_to_as_ever() {
        let Some(world) = world_with(Actor::Root, Backend::Landlock, &["python3"]) else {
            return;
        };
        let Some(switch) = Switch::held(&world, "off") else {
            return;
        };
        if switch.is_on {
            // Somebody wants it on here.
            return;
        }
        let secret = world.outside().join("secret");
        let denied = explained(&world, &["/bin/cat", secret.to_str().unwrap()]);
        assert_eq!(seen(&denied), [("read".to_owned(), path(&secret), Value::Null)]);
        assert_eq!(denied.get("kernel_records"), None);
        let doctor = world.stockade(&["doctor"]).output().out();
        let line = doctor
            .lines()
            .find(|line| line.contains("kernel audit records"))
            .unwrap();
        assert!(line.starts_with("absent") && line.contains("switched off"), "{line}");
    }
}
