//! What holds between the workers of one executor.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use stockade::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation, Remember};
use stockade::backend::MadeBy;
use stockade::backend::host::{Host, Maker, program};
use stockade::backend::namespaces::NetworkNamespace;
use stockade::backend::seccomp::Attempts;
use stockade::config::{self, Context};
use stockade::confine::io::InputKind;
use stockade::confine::protect::Person;
use stockade::confine::wire::protocol::{Counting, Work};
use stockade::confine::{
    CommandLimits, ConfineError, Confinement, End, ForkerFor, ForkerLocation, Launch, SessionName, Setup, Step,
    SupervisorHandle,
};
use stockade::policy::{AbsPath, BackendChoice, DenyFallback, Mode, Policy, Residuals};
use stockade::profile::{ApprovedRoots, Call, derive};
use stockade::tools::plan::{self, BackendOptions, Mechanism, Surroundings};
use stockade::tools::{
    Caches, Executor, GitFiles, Narrowing, Outcome, OutputMode, ShellCall, ShellCommand, Status, Stdin,
    TerminalApprover, ToolError, UserPaths,
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::libtest::Trial;

/// The trials in one regime, under its name.
macro_rules! under {
    ($name:literal, $backend:expr) => {
        [
            (
                concat!(
                    "workers::",
                    $name,
                    "::a_profile_keeps_its_home_and_shares_it_with_no_other"
                ),
                |_| a_home(Fixture::new($backend)),
            ),
            (
                concat!("workers::", $name, "::each_profile_reaches_what_it_grants_and_no_more"),
                |_| {
                    reach(Fixture::new($backend));
                },
            ),
            (
                concat!("workers::", $name, "::what_one_profile_s_command_did_rightfully_stays"),
                |_| {
                    rightful(Fixture::new($backend));
                },
            ),
            (
                concat!(
                    "workers::",
                    $name,
                    "::what_one_profile_s_command_did_wrongly_is_put_back_once"
                ),
                |_| wrongful(Fixture::new($backend)),
            ),
            (
                concat!(
                    "workers::",
                    $name,
                    "::the_worker_that_was_not_used_for_longest_is_ended"
                ),
                |_| ended(Fixture::new($backend)),
            ),
            (
                concat!("workers::", $name, "::a_command_whose_call_was_given_up_is_killed"),
                |_| given_up(Fixture::new($backend)),
            ),
            (
                concat!(
                    "workers::",
                    $name,
                    "::what_was_undone_is_kept_until_the_executor_is_finished"
                ),
                |_| left_with_offers(Fixture::new($backend)),
            ),
        ]
    };
}

const LANDLOCK: [Trial; 7] = under!("landlock", BackendChoice::Landlock);
const NAMESPACES: [Trial; 7] = under!("namespaces", BackendChoice::Namespaces);
const BWRAP: [Trial; 7] = under!("bwrap", BackendChoice::Bwrap);

const ANNOUNCED: [Trial; 1] = [(
    "workers::namespaces::other_ones_than_were_announced_are_refused",
    |_| {
        announced_otherwise();
    },
)];

const ASKED: [Trial; 2] = [
    (
        "workers::landlock::what_a_person_changes_while_a_question_is_open_stays",
        |_| {
            changed_meanwhile(BackendChoice::Landlock);
        },
    ),
    (
        "workers::namespaces::what_a_person_changes_while_a_question_is_open_stays",
        |_| changed_meanwhile(BackendChoice::Namespaces),
    ),
];

const STOPPED: [Trial; 1] = [("workers::a_stop_that_comes_before_the_command_starts_nothing", |_| {
    stopped_before();
})];

const UNCONFINED: [Trial; 1] = [(
    "workers::a_limit_that_the_kernel_would_not_count_starts_nothing",
    |_| {
        uncounted();
    },
)];

const AUTO: [Trial; 3] = [
    ("workers::auto::namespaces_are_tried_out_once_and_remembered", |_| {
        remembered();
    }),
    (
        "workers::auto::where_they_cannot_be_made_any_more_the_call_falls_to_landlock_and_says_why",
        |_| on_a_thread(|| remembered_wrongly("none")),
    ),
    (
        "workers::auto::a_call_that_somebody_is_asked_about_falls_before_the_question",
        |_| on_a_thread(|| remembered_wrongly("required")),
    ),
];

/// The trials in every regime, those with bwrap where there is one or it is required.
pub(crate) fn all() -> Vec<Trial> {
    let mut trials = [
        LANDLOCK.as_slice(),
        &NAMESPACES,
        &ANNOUNCED,
        &ASKED,
        &STOPPED,
        &UNCONFINED,
        &AUTO,
    ]
    .concat();
    if Host::with_bwrap().bwrap.is_some() {
        trials.extend(BWRAP);
    } else {
        let required = std::env::var("STOCKADE_TEST_REQUIRE")
            .map_or(true, |list| list.split(',').any(|word| word.trim() == "bwrap"));
        assert!(!required, "there is no bwrap; see STOCKADE_TEST_REQUIRE");
    }
    trials
}

/// How many roots a rule can narrow writes to; more than workers live at once.
const ROOTS: usize = 10;

/// A workspace, a config whose rules narrow `sh` to the root in which its script lies, and an executor that asks nobody.
struct Fixture {
    runtime: Runtime,
    base: TempDir,
    policy: Policy,
    places: UserPaths,
    executor: Option<Executor>,
}

impl Fixture {
    fn new(backend: BackendChoice) -> Self {
        Self::asking(backend, "none")
    }

    /// The same, where the approval of a command is `approval`.
    fn asking(backend: BackendChoice, approval: &str) -> Self {
        let base = tempfile::Builder::new().prefix("stockade-test-").tempdir().unwrap();
        let path = base.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["workspace", "home", "state"] {
            fs::create_dir(path.join(folder)).unwrap();
        }
        let mut roots = String::new();
        let mut rules = String::new();
        for number in 0..ROOTS {
            let root = path.join(format!("root-{number}"));
            fs::create_dir(&root).unwrap();
            let _infallible = writeln!(
                roots,
                "    r{number}: {{root: {}, mode: rw, execute: true, write_approval: false}}",
                root.display()
            );
            let _infallible = writeln!(
                rules,
                "    - {{pattern: sh, approval: none, sandbox_paths: [r{number}]}}"
            );
        }
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, execute: true, \
             write_approval: false}}\n{roots}shell:\n  default: {{allowed: true, approval: {approval}}}\n  rules:\n{rules}",
            path.join("workspace").display()
        );
        let file = path.join("stockade.yaml");
        fs::write(&file, text).unwrap();
        let context = Context::host();
        let mut loaded = config::load(&file, &context).unwrap_or_else(|error| panic!("{error}"));
        loaded.policy.backend = backend;
        let places = UserPaths {
            state: path.join("state"),
            git: GitFiles::default(),
            person: Person::default(),
            caches: Caches::default(),
        };
        let mut world = Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            base,
            policy: loaded.policy,
            places,
            executor: None,
        };
        world.executor = Some(world.executor());
        world
    }

    /// One more executor for the same policy.
    fn executor(&self) -> Executor {
        let approver = Box::new(TerminalApprover::new());
        let (policy, places) = (self.policy.clone(), self.places.clone());
        Executor::new(policy, Narrowing::default(), Mode::ApproveAll, approver, places).unwrap()
    }

    /// What the regime line says.
    fn regime(&self) -> String {
        self.executor.as_ref().unwrap().regime_line().unwrap().to_string()
    }

    /// What is remembered of namespaces.
    fn memory(&self) -> PathBuf {
        self.places.state.join("namespaces.json")
    }

    fn workspace(&self) -> PathBuf {
        self.base.path().join("workspace")
    }

    fn root(&self, number: usize) -> PathBuf {
        self.base.path().join(format!("root-{number}"))
    }

    /// Runs a line under the profile of the whole config.
    fn wide(&mut self, line: &str) -> Outcome {
        let call = call(&self.workspace(), ShellCommand::Line(line.into()));
        self.outcome(call)
    }

    /// Runs a line under the profile that may write to this root alone.
    fn narrow(&mut self, number: usize, line: &str) -> Outcome {
        let script = self.root(number).join("script");
        fs::write(&script, line).unwrap();
        let argv = vec!["sh".into(), script.into()];
        let call = call(&self.workspace(), ShellCommand::Argv(argv));
        self.outcome(call)
    }

    #[track_caller]
    fn outcome(&mut self, call: ShellCall) -> Outcome {
        let executor = self.executor.as_mut().unwrap();
        self.runtime.block_on(executor.shell(call)).unwrap()
    }

    /// Ends the executor; nothing of it may be left.
    fn finish(&mut self) {
        let executor = self.executor.take().unwrap();
        self.runtime.block_on(executor.finish()).unwrap();
    }
}

fn call(directory: &Path, command: ShellCommand) -> ShellCall {
    let (_, stops) = tokio::sync::mpsc::channel(1);
    ShellCall {
        command,
        directory: directory.to_owned(),
        environment: Vec::new(),
        timeout: Some(PATIENCE),
        stdin: Stdin::Null,
        output: OutputMode::Capture,
        kept: None,
        stops,
    }
}

/// What a command that ended well printed.
#[track_caller]
fn said(outcome: Outcome) -> String {
    assert_eq!(outcome.status, Status::Exited { code: 0 }, "{outcome:?}");
    assert_eq!(
        (outcome.changed.restored.as_slice(), &outcome.unsettled),
        (&[][..], &None)
    );
    outcome.stdout
}

/// The children of this process.
fn children() -> BTreeSet<i32> {
    children_of(std::process::id().cast_signed())
}

/// The children of a process; none of one that is gone.
fn children_of(process: i32) -> BTreeSet<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let each = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default());
    each.flat_map(|list| {
        list.split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect::<Vec<i32>>()
    })
    .collect()
}

/// How long a trial waits for what must come: it ends a hang, and says nothing of speed.
const PATIENCE: Duration = Duration::from_mins(4);

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn a_home(mut world: Fixture) {
    let places = "printf '%s %s ' $HOME $TMPDIR; ls $HOME $TMPDIR; touch $HOME/mark $TMPDIR/mark";
    let first = said(world.wide(places));
    assert!(!first.contains("mark"), "{first}");
    let other = said(world.narrow(0, places));
    assert!(!other.contains("mark"), "{other}");
    let [homes, temporary] = [0, 1].map(|at| [&first, &other].map(|said| said.split(' ').nth(at).unwrap().to_owned()));
    assert_ne!(homes[0], homes[1]);
    assert_ne!(temporary[0], temporary[1]);
    for home in [&homes[0], &temporary[0]] {
        said(world.wide(&format!("cat {home}/mark")));
        assert!(Path::new(home).join("mark").exists());
        let closed = world.narrow(0, &format!("cat {home}/mark"));
        assert_ne!(closed.status, Status::Exited { code: 0 }, "{closed:?}");
    }
    assert_eq!(said(world.wide("ls $HOME/mark")).trim(), format!("{}/mark", homes[0]));
    assert_eq!(
        said(world.narrow(0, "ls $HOME/mark")).trim(),
        format!("{}/mark", homes[1])
    );
    world.finish();
    for home in homes {
        assert!(!Path::new(&home).parent().unwrap().exists(), "{home} is left");
    }
}

fn reach(mut world: Fixture) {
    for round in 0..2 {
        let (one, two) = (world.root(1), world.root(2));
        let both = format!("touch {}/{round}; touch {}/{round}; true", one.display(), two.display());
        said(world.narrow(1, &both));
        assert!(one.join(round.to_string()).exists() && !two.join(round.to_string()).exists());
        said(world.wide(&both));
        assert!(two.join(round.to_string()).exists());
    }
    world.finish();
}

fn rightful(mut world: Fixture) {
    let commit = |name: &str| {
        format!(
            "set -e; git init -q {name}; cd {name}; git config user.name n; git config user.email e@example.org; \
             echo x > file; git add file; git commit -qm one; git branch two"
        )
    };
    let (workspace, root) = (world.workspace(), world.root(3));
    // Both have a worker, idle, before either does anything.
    said(world.wide("true"));
    said(world.narrow(3, "true"));
    said(world.wide(&commit("repository")));
    said(world.narrow(3, &commit(&root.join("repository").display().to_string())));
    said(world.wide("git -C repository checkout -q two"));
    said(world.narrow(3, "true"));
    world.finish();
    for repository in [workspace.join("repository"), root.join("repository")] {
        assert!(
            repository.join(".git/refs/heads/two").exists(),
            "{}",
            repository.display()
        );
    }
    assert!(
        fs::read_to_string(workspace.join("repository/.git/HEAD"))
            .unwrap()
            .contains("two")
    );
}

fn wrongful(mut world: Fixture) {
    let intruder = world.root(4).join(".envrc");
    let plant = format!("echo evil > {}", intruder.display());
    said(world.wide("true"));
    for _ in 0..2 {
        let outcome = world.narrow(4, &plant);
        assert_eq!(outcome.changed.restored.len(), 1, "{outcome:?}");
        assert!(!intruder.exists());
        said(world.wide("true"));
        said(world.narrow(4, "true"));
    }
    // What a person puts there between two calls is no command's doing.
    fs::write(&intruder, "mine").unwrap();
    said(world.wide("true"));
    said(world.narrow(4, "true"));
    world.finish();
    assert_eq!(fs::read_to_string(&intruder).unwrap(), "mine");
}

fn ended(mut world: Fixture) {
    let mark = "touch $HOME/mark; echo $HOME";
    let homes: Vec<PathBuf> = (0..ROOTS)
        .map(|number| {
            // The first is used again and again.
            said(world.narrow(0, "true"));
            PathBuf::from(said(world.narrow(number, mark)).trim())
        })
        .collect();
    assert!(!homes[1].exists() && !homes[2].exists());
    assert!(homes[0].exists() && homes[3].exists() && homes[ROOTS - 1].exists());
    // Its profile gets another worker when it is needed.
    let again = said(world.narrow(1, "ls $HOME; echo $HOME"));
    assert!(
        !again.contains("mark") && !again.contains(homes[1].to_str().unwrap()),
        "{again}"
    );
    world.finish();
    assert!(homes.iter().all(|home| !home.exists()));
}

/// Whether a process has this on its command line.
fn runs(mark: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    // One that ended meanwhile has nothing to say.
    let mut lines = all.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes()))
}

fn given_up(mut world: Fixture) {
    let workspace = world.workspace();
    let mark = format!("given-up-{}", std::process::id());
    let alive = format!("trap '' TERM; while :; do date +%s%N > beat; sleep 0.02; done; : {mark}");
    let executor = world.executor.as_mut().unwrap();
    world.runtime.block_on(async {
        let running = executor.shell(call(&workspace, ShellCommand::Line(alive.into())));
        let started = async {
            while !workspace.join("beat").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(runs(&mark));
        };
        tokio::select! {
            outcome = running => panic!("{outcome:?}"),
            () = started => {}
        }
    });
    // The same profile has another worker now.
    said(world.wide("true"));
    wait_for(|| !runs(&mark));
    world.finish();
}

fn left_with_offers(mut world: Fixture) {
    let outcome = world.wide("echo evil > .envrc; echo $HOME");
    assert_eq!(outcome.changed.restored.len(), 1, "{outcome:?}");
    let home = PathBuf::from(outcome.stdout.trim_end());
    std::thread::sleep(Duration::from_millis(300));
    assert!(home.exists());
    world.finish();
    assert!(!home.exists());
}

/// A worker that stands in no user namespace of its own is told that the kernel counts there.
fn uncounted() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let ends = |counting| {
        runtime.block_on(async {
            let named = SessionName::choose(|_| true).unwrap();
            let mut stage = SupervisorHandle::spawn(&named, None, ForkerLocation::Host)
                .await
                .unwrap();
            stage.recovered().await.unwrap();
            let setup = Setup {
                plan: None,
                forker_for: ForkerFor::Others,
                session: named.create().unwrap(),
            };
            let mut confinement = Confinement::start(stage, setup).await.unwrap();
            let null = || {
                fs::File::options()
                    .read(true)
                    .write(true)
                    .open("/dev/null")
                    .unwrap()
                    .into()
            };
            let launch = Launch {
                work: Work::Command(vec!["/bin/true".into()]),
                environment: Vec::new(),
                directory: "/".into(),
                limits: CommandLimits {
                    processes: Some(100),
                    counting,
                    ..CommandLimits::default()
                },
                streams: [null(), null(), null()],
                input: InputKind::Null,
            };
            let ended = confinement.launch(launch).await.unwrap().ended().await;
            confinement.finish().await;
            ended.unwrap().end
        })
    };
    match ends(Counting::Namespace) {
        End::NotStarted(failure) => assert_eq!(failure.step, Step::SelfTest, "{failure}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(ends(Counting::Sampled), End::Exited(0));
}

fn stopped_before() {
    let mut world = Fixture::new(BackendChoice::Landlock);
    let mark = world.workspace().join("mark");
    let (sender, stops) = tokio::sync::mpsc::channel(1);
    sender.try_send(Signal::SIGINT).unwrap();
    let line = ShellCommand::Line("touch mark".into());
    let stopped = ShellCall {
        stops,
        ..call(&world.workspace(), line)
    };
    let executor = world.executor.as_mut().unwrap();
    let outcome = world.runtime.block_on(executor.shell(stopped));
    assert!(
        matches!(outcome, Err(ToolError::Stopped(Signal::SIGINT))),
        "{outcome:?}"
    );
    assert!(!mark.exists());
    assert_eq!(said(world.wide("touch mark")), "");
    assert!(mark.exists());
    world.finish();
}

/// A person who changes a protected name before each answer, which is yes.
struct Changing(PathBuf);

impl Approver for Changing {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        fs::write(&self.0, "theirs\n").unwrap();
        Ok(ApprovalDecision {
            approved: true,
            note: None,
            remember: Remember::None,
        })
    }
}

fn changed_meanwhile(backend: BackendChoice) {
    let mut world = Fixture::asking(backend, "required");
    let name = world.workspace().join(".envrc");
    let (policy, places) = (world.policy.clone(), world.places.clone());
    let approver = Box::new(Changing(name.clone()));
    world.executor = Some(Executor::new(policy, Narrowing::default(), Mode::Interactive, approver, places).unwrap());
    // A worker was started before the question: it looked at the file that the first line names.
    for line in ["cat .envrc", "true; cat .envrc", "cat .envrc"] {
        fs::write(&name, "before\n").unwrap();
        let outcome = world.wide(line);
        assert_eq!(outcome.changed.restored, [], "{line}");
        assert_eq!(fs::read_to_string(&name).unwrap(), "theirs\n", "{line}");
        assert_eq!(said(outcome), "theirs\n", "{line}");
    }
    // What a command changes, and nobody wants, is undone, or was never to be had.
    let other = world.executor();
    let asking = world.executor.replace(other).unwrap();
    world.runtime.block_on(asking.finish()).unwrap();
    world.wide("echo changed >.envrc; true");
    assert_eq!(fs::read_to_string(&name).unwrap(), "theirs\n");
    world.finish();
}

/// What comes of a worker that is told a plan for what was announced, once that was changed.
fn told_a_plan(change: fn(&mut stockade::backend::NamespacePlan)) -> Result<(), ConfineError> {
    let world = Fixture::new(BackendChoice::Namespaces);
    let before = children();
    let profile = derive(&world.policy, &Call::of(ApprovedRoots::None));
    let ground = BackendOptions {
        mechanism: Mechanism::Namespaces(Maker::Stockade),
        landlock_abi: 6,
        deny_fallback: DenyFallback::Refuse,
        residuals: Residuals::Report,
        attempts: Attempts::Unseen,
    };
    let ready = world.runtime.block_on(async {
        let named = SessionName::choose(|path| !path.as_path().starts_with("/tmp")).unwrap();
        let mut stage = SupervisorHandle::spawn(&named, None, ground.mechanism.place(&profile.network))
            .await
            .unwrap();
        stage.present().await.unwrap();
        let session = named.create().unwrap();
        let needs = program::needs().unwrap().into_iter().chain([session.closed()]);
        let around = Surroundings {
            shown: needs.map(|path| AbsPath::new(path).unwrap()).collect(),
            ..Surroundings::default()
        };
        let mut plan = plan::lower(&profile, ground, &around).unwrap().plan;
        change(plan.namespaces.as_mut().unwrap());
        let setup = Setup {
            plan: Some(plan),
            forker_for: ForkerFor::Others,
            session,
        };
        let mut confinement = Confinement::start(stage, setup).await.unwrap();
        let ready = confinement.ready().await;
        confinement.finish().await;
        ready
    });
    assert_eq!(children(), before);
    ready
}

fn announced_otherwise() {
    let changes: [fn(&mut stockade::backend::NamespacePlan); 2] = [
        |world| world.mounts.network = NetworkNamespace::Host,
        |world| world.made_by = MadeBy::Bwrap("/usr/bin/bwrap".into()),
    ];
    for change in changes {
        match told_a_plan(change) {
            Err(ConfineError::Step(failure)) => assert_eq!(failure.step, Step::Setup, "{failure}"),
            other => panic!("{other:?}"),
        }
    }
    // What was announced is carried out; this profile only grants no canary.
    if let Err(ConfineError::Step(failure)) = told_a_plan(|_| ()) {
        panic!("{failure}");
    }
}

fn remembered() {
    let mut world = Fixture::new(BackendChoice::Auto);
    let memory = world.memory();
    assert!(world.regime().starts_with("namespaces (native"), "{}", world.regime());
    let made = fs::metadata(&memory).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    said(world.wide("test ! -e /root && test ! -e /var/log"));
    world.finish();
    // Another start believes it, and leaves it alone.
    world.executor = Some(world.executor());
    assert!(world.regime().starts_with("namespaces (native"));
    assert_eq!(
        fs::metadata(&memory).unwrap().modified().unwrap(),
        made.modified().unwrap()
    );
    world.finish();
    // What is no memory is made anew.
    fs::write(&memory, "{}").unwrap();
    world.executor = Some(world.executor());
    assert!(fs::read_to_string(&memory).unwrap().contains("boot"));
    world.finish();
}

/// A filter binds a thread and what is started from it, and cannot be taken off.
fn on_a_thread(trial: fn()) {
    let outcome = std::thread::spawn(trial).join();
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// From here on no user namespace is made, neither by this thread nor by what it starts.
fn refuse_namespaces() {
    let user = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::CLONE_NEWUSER as u64),
        libc::CLONE_NEWUSER as u64,
    )
    .unwrap();
    let rule = || vec![SeccompRule::new(vec![user.clone()]).unwrap()];
    let filter = |rules, errno: i32| {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            action,
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
    };
    let calls = [libc::SYS_clone, libc::SYS_unshare].map(|call| (call, rule()));
    filter(calls.into_iter().collect(), libc::EPERM);
    // Its flags lie in memory; libc falls back to clone.
    filter([(libc::SYS_clone3, Vec::new())].into_iter().collect(), libc::ENOSYS);
}

/// A memory that holds in circumstances in which namespaces do not work.
fn remembered_wrongly(approval: &str) {
    let mut world = Fixture::asking(BackendChoice::Auto, approval);
    world.finish();
    let text = fs::read_to_string(world.memory()).unwrap();
    refuse_namespaces();

    // As it is, it does not count here: they are tried out.
    world.executor = Some(world.executor());
    let regime = world.regime();
    assert!(
        regime.starts_with("landlock (") && regime.contains("namespaces unavailable: entering namespaces: "),
        "{regime}"
    );
    world.finish();

    let mut memory: serde_json::Value = serde_json::from_str(&text).unwrap();
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let told = ["NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapBnd:"];
    let lines = status
        .lines()
        .filter(|line| told.iter().any(|name| line.starts_with(name)));
    memory["circumstances"]["status"] = lines.collect::<Vec<_>>().into();
    fs::write(world.memory(), memory.to_string()).unwrap();
    world.executor = Some(world.executor());
    assert!(world.regime().starts_with("namespaces (native"), "{}", world.regime());
    let workspace = world.workspace();
    let echo = || call(&workspace, ShellCommand::Line("echo ran; cat /etc/shadow; true".into()));
    let first = world.outcome(echo());
    assert_eq!(first.stdout, "ran\n", "{first:?}");
    assert!(first.regime.starts_with("landlock ("), "{first:?}");
    assert!(!world.memory().exists());
    let outcome = world.outcome(echo());
    assert_eq!(outcome.stdout, "ran\n", "{outcome:?}");
    assert!(
        outcome.regime.starts_with("landlock (") && outcome.regime.contains("namespaces unavailable: "),
        "{outcome:?}"
    );
    world.finish();
}
