//! Two network namespaces: the machine that Stockade runs on, and everything else there is.
//!
//! ```text
//!  machine                                        internet
//!    lo   127.0.0.1 ::1      services of its own    wire  every address there is is local here, private
//!    wan  93.184.215.2   ───────── veth ─────────         ones too: DNS, HTTP, HTTPS, a banner, an echo
//!         2606:2800:220:2::2                              and every packet that comes is written down
//! ```
//!
//! The machine has a mount namespace too, in which `/etc/resolv.conf` names the internet's DNS. Nothing outlives the
//! test: both namespaces end with the servers in them, and the servers with their standard input.

use std::collections::BTreeSet;
use std::env::VarError;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Mutex;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use serde_json::{Value, json};

use crate::common::{Actor, Backend, Fixture, Invocation, Run, eventually, find_program, required, world_with};

/// The machine's own address in the internet.
pub(crate) const OWN: &str = "93.184.215.2";
/// Where clients look for the authorities that they trust.
const AUTHORITY_VARIABLES: [&str; 6] = [
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
];
/// The host of `www.example.org`, and its address of six.
pub(crate) const WWW: &str = "93.184.216.34";
pub(crate) const WWW6: &str = "2606:2800:220:1::34";
/// The host of every name that ends in `.net`.
pub(crate) const OTHER: &str = "93.184.216.66";

/// What the test of root and the test of the user need: somebody who may make network namespaces, and programs.
pub(crate) fn lab_with(actor: Actor, programs: &[&str]) -> Option<Lab> {
    if !Actor::Root.is_possible() {
        assert!(
            !required("root"),
            "only root makes network namespaces with addresses in them"
        );
        return None;
    }
    let own = ["ip", "openssl", "python3"];
    if let Some(missing) = own.iter().find(|program| tool(program).is_none()) {
        assert!(!required(missing), "root has no {missing}; see STOCKADE_TEST_REQUIRE");
        return None;
    }
    world_with(actor, Backend::Namespaces, programs).map(Lab::new)
}

/// Where root finds a program of the system's.
fn tool(program: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let mut places = folders.iter().map(|folder| Path::new(folder).join(program));
    places
        .find(|place| place.exists())
        .or_else(|| find_program(Actor::Root, program))
}

/// Declares one test per actor for each function that takes a lab: `as_root::name` and `as_user::name`.
macro_rules! in_the_lab {
    ($($name:ident [$($program:literal),*];)*) => {
        mod as_root {
            $(#[test] fn $name() {
                if let Some(lab) = crate::lab::lab_with(crate::common::Actor::Root, &[$($program),*]) {
                    super::$name(&lab);
                }
            })*
        }
        mod as_user {
            $(#[test] fn $name() {
                if let Some(lab) = crate::lab::lab_with(crate::common::Actor::User, &[$($program),*]) {
                    super::$name(&lab);
                }
            })*
        }
    };
}
pub(crate) use in_the_lab;

/// Both namespaces, and a fixture whose Stockade runs on the machine.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) world: Fixture,
    internet: Servers,
    machine: Servers,
}

impl Lab {
    fn new(world: Fixture) -> Self {
        let folder = world.base().join("lab");
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("www")).unwrap();
        certify(&folder);
        world.write("ca.pem", fs::read(folder.join("ca.pem")).unwrap());
        let etc = resolver_files(&folder);

        let internet = elsewhere(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            Servers::start("internet", &folder)
        });
        let machine = elsewhere(|| {
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none).unwrap();
            for (file, place) in &etc {
                mount(Some(file), *place, none, MsFlags::MS_BIND, none).unwrap();
            }
            Servers::start("machine", &folder)
        });
        let lab = Self {
            world,
            internet,
            machine,
        };
        lab.join();
        lab.internet.serve();
        lab.machine.serve();
        lab
    }

    /// Lays the wire, gives both sides their addresses, and routes everything to the internet.
    fn join(&self) {
        let (machine, internet) = (self.machine.child.id(), self.internet.child.id());
        ip(
            &self.world,
            &format!("link add wan netns {machine} type veth peer name wire netns {internet}\n"),
        );
        self.internet.within(|| {
            ip(
                &self.world,
                "link set lo up
                 address add 93.184.216.53/32 dev lo
                 address add 93.184.215.1/30 dev wire
                 link set wire up
                 rule add iif wire lookup 100 pref 10
                 route add local default dev lo table 100\n",
            );
            ip6(
                &self.world,
                "address add 2606:2800:220:1::53/128 dev lo nodad
                 address add 2606:2800:220:2::1/64 dev wire nodad
                 rule add iif wire lookup 100 pref 10
                 route add local default dev lo table 100\n",
            );
        });
        self.machine.within(|| {
            ip(
                &self.world,
                "link set lo up
                 address add 93.184.215.2/30 dev wan
                 link set wan up
                 route add default via 93.184.215.1\n",
            );
            ip6(
                &self.world,
                "address add 2606:2800:220:2::2/64 dev wan nodad
                 route add default via 2606:2800:220:2::1\n",
            );
            // A ping without rights, which many machines allow.
            fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").unwrap();
        });
    }

    /// Does something on the machine.
    pub(crate) fn on_the_machine<T: Send>(&self, does: impl FnOnce() -> T + Send) -> T {
        self.machine.within(does)
    }

    /// A line of shell on the machine, as the actor, with nothing confined.
    pub(crate) fn bare(&self, line: &str) -> Run {
        let mut shell = self.world.bare("/bin/sh").args(["-c", line]);
        for variable in AUTHORITY_VARIABLES {
            shell = shell.env(variable, self.authority());
        }
        // The toolchain of whoever runs the tests lies in their own home.
        let rustup = std::env::var("RUSTUP_HOME").or_else(|_| Ok(std::env::var("HOME")? + "/.rustup"));
        if let (Ok(rustup), None) = (rustup as Result<_, VarError>, self.world.actor.switch_to()) {
            shell = shell.env("RUSTUP_HOME", rustup);
        }
        self.on_the_machine(|| shell.output())
    }

    /// The same confined, with these hosts and nothing else.
    pub(crate) fn run(&self, allow: &[&str], line: &str) -> Run {
        self.run_with(&format!("{{allow: {}}}", json!(allow)), &[], line)
    }

    /// The same, with this network of a config, and flags.
    pub(crate) fn run_with(&self, network: &str, flags: &[&str], line: &str) -> Run {
        let stockade = self.confined(network, flags, line);
        self.on_the_machine(|| stockade.output())
    }

    /// Stockade with a line of shell, to be started on the machine.
    pub(crate) fn confined(&self, network: &str, flags: &[&str], line: &str) -> Invocation {
        let config = self.config(network);
        let named = ["run", "--config", config.to_str().unwrap()];
        self.world.stockade(&[&named, flags, &["-c", line]].concat())
    }

    /// A config with this network; the workspace is writable, and nobody is asked about a command.
    pub(crate) fn config(&self, network: &str) -> PathBuf {
        self.config_of(&format!(
            "  network: {network}\n  default: {{allowed: true, approval: none}}\n"
        ))
    }

    /// A config with these lines of `shell`, and whatever follows it.
    pub(crate) fn config_of(&self, shell: &str) -> PathBuf {
        let authority = self.authority();
        let set: Vec<_> = AUTHORITY_VARIABLES
            .iter()
            .map(|variable| format!("{variable}: {}", authority.display()))
            .collect();
        let text = format!(
            "extends: [system, git, rust, python, node]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {}, mode: rw, execute: true, write_approval: false}}
shell:
  env: {{set: {{{}}}}}
{shell}",
            self.world.workspace().display(),
            set.join(", ")
        );
        self.world.write(self.world.base().join("agent.yaml"), text)
    }

    /// The folder that the servers serve from.
    pub(crate) fn folder(&self) -> PathBuf {
        self.world.base().join("lab")
    }

    /// The certificate of the authority that certified the servers.
    pub(crate) fn authority(&self) -> PathBuf {
        self.world.workspace().join("ca.pem")
    }

    /// Forgets what was seen so far.
    pub(crate) fn forget(&self) {
        for servers in [&self.internet, &self.machine] {
            servers.ask(&json!({"do": "mark"}));
        }
    }

    /// Waits until nothing is sent any more: what was in the air when somebody ended may still arrive.
    #[track_caller]
    pub(crate) fn falls_silent(&self) {
        eventually("silence", || {
            self.forget();
            std::thread::sleep(Duration::from_millis(400));
            let seen = self.seen();
            let is_sent = seen.internet.iter().any(|event| event["kind"] == "bytes");
            !is_sent && seen.wire.is_empty() && seen.machine.is_empty()
        });
    }

    /// What was seen since it last forgot; waits a moment for what is in the air.
    pub(crate) fn seen(&self) -> Seen {
        let asks = json!({"do": "tell", "after": 0.01});
        let (internet, machine) = (self.internet.ask(&asks), self.machine.ask(&asks));
        assert_eq!(internet["lost"], 0, "packets went by unseen");
        let flow = |flow: &Value| {
            let (protocol, address) = (flow[0].as_str().unwrap(), flow[1].as_str().unwrap());
            let port = flow[2].as_u64().unwrap();
            if address.contains(':') {
                format!("{protocol} [{address}]:{port}")
            } else {
                format!("{protocol} {address}:{port}")
            }
        };
        Seen {
            wire: internet["flows"].as_array().unwrap().iter().map(flow).collect(),
            internet: internet["events"].as_array().unwrap().clone(),
            machine: machine["events"].as_array().unwrap().clone(),
        }
    }
}

/// What happened outside the sandbox.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Every flow that left the machine: `tcp 93.184.216.34:80`.
    pub(crate) wire: BTreeSet<String>,
    /// What the internet's servers saw.
    pub(crate) internet: Vec<Value>,
    /// What the machine's own services saw.
    pub(crate) machine: Vec<Value>,
}

impl Seen {
    /// What the wire saw beside questions to DNS, and that nobody waits for the answer any more.
    pub(crate) fn beyond_names(&self) -> BTreeSet<&str> {
        let names = ["udp 93.184.216.53:53", "tcp 93.184.216.53:53", "icmp 93.184.216.53:0"];
        let wire = self.wire.iter().map(String::as_str);
        wire.filter(|flow| !names.contains(flow)).collect()
    }

    fn of<'a>(&'a self, kind: &'a str, field: &'a str) -> impl Iterator<Item = &'a str> {
        let events = self.internet.iter().filter(move |event| event["kind"] == kind);
        events.filter_map(move |event| event[field].as_str())
    }

    /// The names that were looked up.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.of("dns", "name").collect()
    }

    /// The names that TLS servers were greeted with.
    pub(crate) fn hellos(&self) -> impl Iterator<Item = &str> {
        self.of("hello", "name")
    }

    /// The requests that servers got: address, `Host`, first line.
    pub(crate) fn requests(&self) -> Vec<String> {
        let asked = self.internet.iter().filter(|event| event["kind"] == "request");
        let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
        asked
            .map(|event| {
                format!(
                    "{} {} {}",
                    text(event, "place"),
                    text(event, "host"),
                    text(event, "line")
                )
            })
            .collect()
    }

    /// Fails unless nothing left the machine but what is named, and none of its own services was spoken to.
    #[track_caller]
    pub(crate) fn only(&self, allowed: &[&str]) -> &Self {
        assert_eq!(self.beyond_names(), allowed.iter().copied().collect(), "{self:?}");
        assert!(self.machine.is_empty(), "{:?}", self.machine);
        self
    }

    /// Fails if anything left the machine, the question for a name included.
    #[track_caller]
    pub(crate) fn nothing(&self) {
        assert!(self.wire.is_empty() && self.machine.is_empty(), "{self:?}");
    }
}

/// The servers of one namespace, which lives as long as they do.
#[derive(Debug)]
struct Servers {
    child: Child,
    streams: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _dying = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Servers {
    /// Starts them in the namespaces of this thread; they wait for their addresses.
    fn start(role: &str, folder: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network/internet.py");
        let mut child = Invocation::new(&tool("python3").unwrap(), None, folder)
            .env("PATH", Actor::Root.path())
            .args([script.as_os_str(), role.as_ref(), folder.as_os_str()])
            .converse();
        let streams = Mutex::new((
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        ));
        let mut errors = child.stderr.take().unwrap();
        // What it complains of belongs to the test's own output.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::stderr()));
        Self { child, streams }
    }

    /// Lets them bind, and waits until they have.
    fn serve(&self) {
        let ready = self.ask(&json!({"do": "serve"}));
        assert_eq!(ready["ready"], true, "{ready}");
    }

    fn ask(&self, question: &Value) -> Value {
        let mut streams = self.streams.lock().unwrap();
        writeln!(streams.0, "{question}").unwrap();
        let mut line = String::new();
        streams.1.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the servers have ended: {line:?}"))
    }

    /// Does something in their namespaces.
    fn within<T: Send>(&self, does: impl FnOnce() -> T + Send) -> T {
        let space = |name: &str| File::open(format!("/proc/{}/ns/{name}", self.child.id())).unwrap();
        let (net, mnt) = (space("net"), space("mnt"));
        elsewhere(move || {
            // A thread that shares its root with others cannot change it.
            unshare(CloneFlags::CLONE_FS).unwrap();
            setns(net, CloneFlags::CLONE_NEWNET).unwrap();
            setns(mnt, CloneFlags::CLONE_NEWNS).unwrap();
            does()
        })
    }
}

/// Does something on a thread of its own, whose namespaces it may change.
fn elsewhere<T: Send>(does: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(does).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// `ip -batch` in the namespaces of this thread.
fn ip(world: &Fixture, lines: &str) {
    ip_batch(world, "-4", lines);
}

fn ip6(world: &Fixture, lines: &str) {
    ip_batch(world, "-6", lines);
}

fn ip_batch(world: &Fixture, family: &str, lines: &str) {
    Invocation::new(&tool("ip").unwrap(), None, world.base())
        .args([family, "-batch", "-"])
        .stdin(lines)
        .output()
        .ok();
}

/// Makes an authority, and one certificate for every server.
fn certify(folder: &Path) {
    let made = |args: &str, extensions: &[&str]| {
        let key = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        let mut openssl = Invocation::new(&tool("openssl").unwrap(), None, folder)
            .args(key.split(' '))
            .args(args.split(' '));
        for extension in extensions {
            openssl = openssl.args(["-addext", extension]);
        }
        openssl.output().ok();
    };
    made(
        "-subj /CN=lab-authority -keyout ca.key -out ca.pem",
        &["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"],
    );
    let names = format!(
        "subjectAltName=DNS:*.example.org,DNS:*.sub.example.org,DNS:*.example.net,IP:{WWW},IP:{WWW6},IP:{OTHER}"
    );
    made(
        "-subj /CN=lab -CA ca.pem -CAkey ca.key -keyout server.key -out server.pem",
        &["basicConstraints=CA:FALSE", &names],
    );
}

/// What the machine's resolver reads, and where.
fn resolver_files(folder: &Path) -> [(PathBuf, &'static str); 3] {
    let files = [
        (
            "resolv.conf",
            "nameserver 93.184.216.53\noptions timeout:2 attempts:5\n",
            "/etc/resolv.conf",
        ),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n",
            "/etc/nsswitch.conf",
        ),
        (
            "hosts",
            "127.0.0.1 localhost\n::1 localhost ip6-localhost\n93.184.215.2 machine.example.org\n10.0.0.80 hosts-private.example.org\n",
            "/etc/hosts",
        ),
    ];
    files.map(|(name, text, place)| {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        (file, place)
    })
}
