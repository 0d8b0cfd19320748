//! Calls of a session whose worker is there already, through the library, beside the same done bare.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stockade::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation, Remember};
use stockade::tools::{ApprovalContext, Session, ToolSet};
use tokio::runtime::Runtime;

use super::programs::Workshop;
use super::sheet::{Sheet, Wanted, Way};

/// What a call of a tool is measured over: one turn is so many calls.
const IN_A_ROW: u32 = 20;
/// A file that tools read in one piece, and one they do not.
const SMALL: usize = 1 << 10;
const LARGE: usize = 8 << 20;

/// Nobody is there to ask, and nothing here asks.
struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Ok(ApprovalDecision {
            approved: false,
            note: None,
            remember: Remember::None,
        })
    }
}

/// A session with a worker, and the tools of it.
pub(super) struct Warm {
    runtime: Runtime,
    session: Session,
    tools: ToolSet,
}

impl Warm {
    /// Under the preset that holds by itself, with this backend and, if so, a log.
    pub(super) fn new(workshop: &Workshop, backend: &str, log: Option<&Path>) -> Self {
        let mut text = format!("extends: [workspace-write]\nsandbox: {{backend: {backend}}}\n");
        if let Some(log) = log {
            writeln!(text, "audit: {{log: {}}}", json!(log)).unwrap();
        }
        let config = workshop.root().join(format!("{backend}.yaml"));
        fs::write(&config, text).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let session = runtime.block_on(async {
            let settings = Session::builder().config_file(&config).directory(workshop.root());
            settings.approver(Nobody).open().unwrap()
        });
        let tools = session.tools();
        Self {
            runtime,
            session,
            tools,
        }
    }

    /// One call, which must succeed.
    pub(super) fn call(&mut self, tool: &str, args: &Value) {
        let called = self.tools.call(tool, args.clone());
        self.runtime.block_on(called).unwrap();
    }

    /// Many calls, handed over at once.
    fn call_together(&mut self, tool: &str, args: &Value, count: usize) {
        let contexts: Vec<ApprovalContext> = (0..count).map(|_| ApprovalContext::new(tool, args.clone())).collect();
        for outcome in self.runtime.block_on(self.tools.call_together(&contexts)) {
            outcome.unwrap();
        }
    }

    pub(super) fn finish(self) {
        self.runtime.block_on(self.session.finish());
    }
}

/// The same thing done without a tool.
type Bare<'a> = Box<dyn Fn() + 'a>;

/// So many calls, and what one of them took.
fn each(mut work: impl FnMut()) -> Duration {
    let begun = Instant::now();
    for _ in 0..IN_A_ROW {
        work();
    }
    begun.elapsed() / IN_A_ROW
}

/// Commands.
pub(crate) fn shell(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("A command of a session whose worker is there");
    let nothing = workshop.nothing();
    let argv = json!({"argv": [nothing]});
    let line = json!({"command": "true"});
    let log = workshop.log();
    let mut landlock = Warm::new(workshop, "landlock", None);
    let mut namespaces = Warm::new(workshop, "namespaces", None);
    let mut recorded = Warm::new(workshop, "landlock", Some(&log));
    let bare = |program: &mut Command| {
        let status = program.stdin(Stdio::null()).stdout(Stdio::null()).status();
        assert!(status.unwrap().success());
    };
    let ways = vec![
        Way::told("bare", || each(|| bare(&mut Command::new(&nothing)))),
        Way::told("landlock", || each(|| landlock.call("shell", &argv))).wanted(Wanted::Ratio(1.5)),
        Way::told("namespaces", || each(|| namespaces.call("shell", &argv))),
        Way::told("landlock, on record", || each(|| recorded.call("shell", &argv))),
    ];
    sheet.compare("a static program", rounds, ways);
    let ways = vec![
        Way::told("bare", || each(|| bare(Command::new("bash").args(["-c", "true"])))),
        Way::told("landlock", || each(|| landlock.call("shell", &line))),
        Way::told("namespaces", || each(|| namespaces.call("shell", &line))),
    ];
    sheet.compare("the line `true`", rounds, ways);
    for warm in [landlock, namespaces, recorded] {
        warm.finish();
    }
}

/// File tools.
pub(crate) fn files(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("A file tool of a session whose worker is there");
    let root = workshop.root();
    let line = "All happy files are alike; each unhappy file is unhappy in its own way.\n";
    for (name, size) in [("small.txt", SMALL), ("large.txt", LARGE)] {
        fs::write(root.join(name), line.repeat(size / line.len())).unwrap();
    }
    let many = root.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..1_000 {
        fs::write(many.join(format!("file{number}.txt")), line).unwrap();
    }
    let log = workshop.log();
    let mut landlock = Warm::new(workshop, "landlock", None);
    let mut namespaces = Warm::new(workshop, "namespaces", None);
    let mut recorded = Warm::new(workshop, "landlock", Some(&log));
    let text = line.repeat(SMALL / line.len());
    fs::write(root.join("edited.txt"), format!("{text}the first\n")).unwrap();
    // There and back: every call finds what it looks for.
    let (there, back) = (
        json!({"old": "the first\n", "new": "the last\n"}),
        json!({"old": "the last\n", "new": "the first\n"}),
    );
    let edit = json!({"path": "edited.txt", "edits": [there, back]});
    let (small, large) = (root.join("small.txt"), root.join("large.txt"));
    // What the tool is told, what it takes without a tool, and what the tool may take.
    let tools: [(&str, &str, Value, Bare<'_>, Option<Duration>); 6] = [
        (
            "read a small file",
            "read_file",
            json!({"path": "small.txt"}),
            Box::new(|| drop(fs::read(&small).unwrap())),
            Some(Duration::from_micros(60)),
        ),
        (
            "read 100 lines of a large file",
            "read_file",
            json!({"path": "large.txt", "first_line": 50_000, "lines": 100}),
            Box::new(|| drop(fs::read(&large).unwrap())),
            None,
        ),
        (
            "write a small file",
            "write_file",
            json!({"path": "written.txt", "content": text}),
            Box::new(|| fs::write(root.join("bare.txt"), &text).unwrap()),
            None,
        ),
        (
            "edit a small file",
            "edit_file",
            edit,
            Box::new(|| fs::write(&small, fs::read(&small).unwrap()).unwrap()),
            None,
        ),
        (
            "list 1,000 files",
            "list_files",
            json!({"path": "many"}),
            Box::new(|| assert_eq!(fs::read_dir(&many).unwrap().count(), 1_000)),
            None,
        ),
        (
            "search 1,000 files",
            "search_files",
            json!({"path": "many", "pattern": "no_such_word"}),
            Box::new(|| {
                for entry in fs::read_dir(&many).unwrap() {
                    drop(fs::read(entry.unwrap().path()).unwrap());
                }
            }),
            None,
        ),
    ];
    for (what, tool, args, bare, wanted) in &tools {
        let mut ours = Way::told("landlock", || each(|| landlock.call(tool, args)));
        if let Some(most) = wanted {
            ours = ours.wanted(Wanted::Time(*most));
        }
        let ways = vec![
            Way::told("bare", || each(bare)),
            ours,
            Way::told("namespaces", || each(|| namespaces.call(tool, args))),
            Way::told("landlock, on record", || each(|| recorded.call(tool, args))),
        ];
        sheet.compare(what, rounds, ways);
    }
    together(sheet, &mut landlock);
    for warm in [landlock, namespaces, recorded] {
        warm.finish();
    }
}

/// Calls that are handed over at once.
fn together(sheet: &mut Sheet, warm: &mut Warm) {
    const COUNT: usize = 10_000;
    const WANTED: f64 = 20_000.0;
    let args = json!({"path": "small.txt"});
    let mut rates: Vec<f64> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            warm.call_together("read_file", &args, COUNT);
            f64::from(u32::try_from(COUNT).unwrap()) / begun.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let rate = rates[2];
    let verdict = (format!("{WANTED} a second"), rate >= WANTED);
    sheet.figure(
        "small files read, handed over together, landlock",
        rate,
        "calls/s",
        Some(verdict),
    );
}
