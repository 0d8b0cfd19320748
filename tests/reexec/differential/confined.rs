//! One real session under one profile, or under two, one layer after the other, and what came of each operation.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stockade::backend::host::{Host, program};
use stockade::backend::landlock::LandlockPlan;
use stockade::backend::landlock::rights::{RESOLVE_UNIX_ABI, handled};
use stockade::backend::seccomp::Attempts;
use stockade::backend::status::{ClauseStatus, Status};
use stockade::backend::{Plan, Regime};
use stockade::confine::io::InputKind;
use stockade::confine::wire::protocol::Work;
use stockade::confine::{CommandLimits, Confinement, End, ForkerFor, Launch, SessionName, Setup, SupervisorHandle};
use stockade::policy::{AbsPath, DenyFallback, Grant, Identity, Origin, Residuals, Rights, Scope};
use stockade::profile::Profile;
use stockade::tools::plan::{self, BackendOptions, Lowered, Mechanism, PlanError, Surroundings};
use tokio::runtime::{Builder, Runtime};

use super::mounted::Mounted;
use super::operations::{Attempt, Beyond};
use super::tools::Tools;
use super::tree::{abs, identity};

/// What came of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationResult {
    pub(crate) errno: i32,
    /// The errno of reading by its new name what was moved; `None` where nothing was.
    pub(crate) afterwards: Option<i32>,
}

/// What a session gave.
#[derive(Debug)]
pub(crate) struct Performed {
    pub(crate) outcomes: Vec<OperationResult>,
    /// What is stricter than its clause, in the product's own words.
    pub(crate) stricter: Vec<String>,
    /// What was mounted for the first layer, where namespaces were made.
    pub(crate) mounted: Option<Mounted>,
}

/// What confines, and how profiles are lowered for it.
#[derive(Debug)]
pub(crate) struct Machine {
    runtime: Runtime,
    mechanism: Mechanism,
    landlock_abi: u32,
}

impl Machine {
    pub(crate) fn new(regime: Regime) -> Self {
        let host = Host::with_acting_namespaces(None);
        let (mechanism, lacks) = match regime {
            Regime::None | Regime::Seatbelt => panic!("nothing confines so on this machine"),
            Regime::Landlock => (Some(Mechanism::Landlock), host.landlock_lacks()),
            Regime::Namespaces => (host.maker().map(Mechanism::Namespaces), host.namespaces_lacks()),
        };
        assert!(lacks.is_empty(), "{lacks:?}");
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            mechanism: mechanism.unwrap(),
            landlock_abi: host.landlock_abi.expect("Landlock").min(RESOLVE_UNIX_ABI),
        }
    }

    /// What is there beside files.
    pub(crate) fn beyond(&self, tools: &Tools) -> Beyond {
        Beyond {
            port: tools.port,
            processes: match self.mechanism {
                Mechanism::Landlock => vec![std::process::id()],
                // The first process in there runs nothing of the agent's.
                Mechanism::Namespaces(_) => vec![std::process::id(), 1],
            },
        }
    }

    /// How profiles are lowered here: the first layer for the regime, every other one as a Landlock layer inside it.
    fn grounds(&self, deny_fallback: DenyFallback) -> [BackendOptions; 2] {
        [self.mechanism, Mechanism::Landlock].map(|mechanism| BackendOptions {
            mechanism,
            landlock_abi: self.landlock_abi,
            deny_fallback,
            residuals: Residuals::Report,
            attempts: Attempts::Unseen,
        })
    }

    /// Performs the attempts under each of the layers, one inside the other; `Err` says why the product refuses to
    /// start. A weaker plan panics.
    pub(crate) fn perform(
        &self,
        layers: &[&Profile],
        fallback: DenyFallback,
        tools: &Tools,
        attempts: &[Attempt],
    ) -> Result<Performed, String> {
        let [outer, inner] = self.grounds(fallback);
        let grounds = std::iter::once(outer).chain(std::iter::repeat(inner));
        let layers: Vec<(&Profile, BackendOptions)> = layers.iter().copied().zip(grounds).collect();
        // Before there is a session, so that a refusal leaves none behind.
        let mut stricter = Vec::new();
        for (profile, ground) in &layers {
            stricter.extend(said(lower(profile, *ground, &Surroundings::default())?));
        }
        let (outcomes, mounted) = self.runtime.block_on(session(&layers, tools, attempts));
        Ok(Performed {
            outcomes,
            stricter,
            mounted,
        })
    }
}

fn lower(profile: &Profile, ground: BackendOptions, around: &Surroundings) -> Result<Lowered, String> {
    plan::lower(profile, ground, around).map_err(|error| match error {
        PlanError::Refused(refusal) => refusal.to_string(),
        // A deny on a path that leads through a symlink cannot be looked at; that refuses as well.
        PlanError::Survey(error) => error.to_string(),
        error => panic!("{error}\n{profile:#?}"),
    })
}

fn said(lowered: Lowered) -> Vec<String> {
    let stricter = |clause: ClauseStatus| match clause.status {
        Status::Stricter(what) => Some(what),
        Status::Enforced | Status::Undone | Status::Residual(_) => None,
    };
    lowered.statuses.into_iter().filter_map(stricter).collect()
}

async fn session(
    layers: &[(&Profile, BackendOptions)],
    tools: &Tools,
    attempts: &[Attempt],
) -> (Vec<OperationResult>, Option<Mounted>) {
    let (profile, ground) = layers[0];
    let place = ground.mechanism.place(&profile.network);
    // Namespaces have a /tmp of their own.
    let named =
        SessionName::choose(|path| !place.is_behind_mounts() || !path.is_within(&abs(Path::new("/tmp")))).unwrap();
    let mut stage = SupervisorHandle::spawn(&named, None, place).await.unwrap();
    let session = named.create().unwrap();
    let (canary, private) = (session.readable(), session.private());
    let mut around = Surroundings::default();
    if place.is_behind_mounts() {
        assert_eq!(stage.present().await.unwrap().len(), 0, "nothing is protected");
        let needs = program::needs().unwrap().into_iter().chain([session.closed()]);
        around.shown = needs.map(|path| abs(&path)).collect();
    }
    stage.recovered().await.unwrap();
    let lowered = layers.iter().map(|(profile, ground)| {
        let profile = of_session(profile, &[&private.home, &private.tmp], &canary);
        lower(&profile, *ground, &around).unwrap().plan
    });
    let mut lowered: Vec<Plan> = lowered.collect();
    let mounted = lowered[0]
        .namespaces
        .as_ref()
        .map(|namespace_plan| Mounted::of(&namespace_plan.mounts));
    // The worker applies the first; the command itself enters the others, its filters joined to the first one's.
    let mut plan = lowered.remove(0);
    for inner in &lowered {
        let programs = [&inner.filters.forker, &inner.filters.command].map(|plan| plan.programs.iter().cloned());
        plan.filters.command.programs.extend(programs.into_iter().flatten());
    }
    let setup = Setup {
        plan: Some(plan),
        forker_for: ForkerFor::Others,
        session,
    };
    let mut confinement = Confinement::start(stage, setup).await.unwrap();

    let entering: Vec<Vec<u8>> = lowered.iter().flat_map(|plan| entering(&plan.landlock)).collect();
    let mut input = tempfile::tempfile().unwrap();
    for step in &entering {
        input.write_all(step).unwrap();
    }
    for attempt in attempts {
        input.write_all(&attempt.encoded()).unwrap();
    }
    input.rewind().unwrap();
    let mut output = tempfile::tempfile().unwrap();
    let launch = Launch {
        work: Work::Command(vec![tools.operate.clone().into_os_string()]),
        environment: Vec::new(),
        directory: "/".into(),
        limits: CommandLimits {
            timeout_ms: Some(240_000),
            ..CommandLimits::default()
        },
        streams: [input.into(), duplicate(&output), duplicate(&output)],
        input: InputKind::File,
    };
    let ended = confinement.launch(launch).await.unwrap().ended().await;
    confinement.finish().await;
    let mut text = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(ended.unwrap().end, End::Exited(0), "{text}");
    let mut outcomes: Vec<OperationResult> = text.lines().map(outcome).collect();
    assert_eq!(outcomes.len(), entering.len() + attempts.len(), "{text}");
    let performed = outcomes.split_off(entering.len());
    let entered = |(step, outcome): (&Vec<u8>, &OperationResult)| match outcome.errno {
        0 => true,
        // What is not there in namespaces, or is masked, needs no rule.
        libc::ENOENT | libc::EACCES => mounted.is_some() && step.starts_with(b"R"),
        _ => false,
    };
    assert!(entering.iter().zip(&outcomes).all(entered), "{text}");
    (performed, mounted)
}

/// What tells `operate` to enter a layer: its handled rights, its rules, and to restrict itself.
fn entering(layer: &LandlockPlan) -> Vec<Vec<u8>> {
    let step = |letter: u8, a: &[u8], b: &[u8]| [&[letter], b"\0".as_slice(), a, b"\0", b, b"\0"].concat();
    let number = |number: u64| number.to_string().into_bytes();
    let tcp = if layer.handle_tcp { 3 } else { 0 };
    let begin = step(b'B', &number(handled(layer.abi)), &number(tcp));
    let rules = layer
        .rules
        .iter()
        .map(|rule| step(b'R', rule.path.as_bytes(), &number(rule.access)));
    std::iter::once(begin)
        .chain(rules)
        .chain([step(b'E', b"", b"")])
        .collect()
}

fn duplicate(file: &File) -> OwnedFd {
    file.try_clone().unwrap().into()
}

fn outcome(line: &str) -> OperationResult {
    let (errno, afterwards) = line.split_once(' ').unwrap();
    let afterwards: i32 = afterwards.parse().unwrap();
    OperationResult {
        errno: errno.parse().unwrap(),
        afterwards: (afterwards >= 0).then_some(afterwards),
    }
}

/// The profile with what every session adds to it.
fn of_session(profile: &Profile, private: &[&Path], canary: &Path) -> Profile {
    let place = |path: &Path| -> (AbsPath, Identity) { (abs(path), identity(path)) };
    let mut profile = profile.clone().with_private(private.iter().map(|path| place(path)));
    let (path, identity) = place(canary);
    profile.grants.push(Grant {
        scope: Scope::File,
        ..Grant::tree(path.clone(), Rights::READ, Origin::Builtin("self-test"))
    });
    profile.identities.insert(path, identity);
    profile
}
