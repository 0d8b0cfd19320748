//! Calls that are given up, approvers that break down, signals that come.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::super::guarded::Guarded;
use super::super::set::ToolSet;
use super::*;

/// A person who says when they were asked, and answers when they are told to.
fn slow() -> (Box<dyn Approver + Send>, Receiver<()>, Sender<bool>) {
    let (asked, was_asked) = channel();
    let (answer, answers) = channel();
    let (approver, _) = person(move |_| {
        asked.send(()).unwrap();
        let approved = answers.recv().map_err(|_| ApproverError::EndOfInput)?;
        Ok(decided(approved, Remember::None))
    });
    (approver, was_asked, answer)
}

/// How long anything may take. A busy machine must not reach it: it ends a hang.
const PATIENCE: Duration = Duration::from_mins(4);

/// Waits for a condition, and lets other tasks run meanwhile.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_asked(was_asked: &Receiver<()>) {
    until("the question", || was_asked.try_recv().is_ok()).await;
}

#[test]
fn a_yes_to_a_call_that_was_given_up_runs_nothing_and_the_next_call_is_answered() {
    let (approver, was_asked, answer) = slow();
    let guard = guard(Mode::Interactive, approver);
    let (fake, log) = Fake::new("fake", Says::Needs);
    let mut guarded = Guarded::new(Box::new(fake), guard.clone());
    run(async {
        let context = context("fake");
        tokio::select! {
            _ = guarded.call(&context, Prepared::nothing()) => panic!("nobody has answered"),
            () = until_asked(&was_asked) => {}
        }
        answer.send(true).unwrap();
        // The next question comes after the one that nobody waits for any more.
        let next = guarded.call(&context, Prepared::nothing());
        let answering = async {
            until_asked(&was_asked).await;
            answer.send(true).unwrap();
        };
        let (done, ()) = tokio::join!(next, answering);
        done.unwrap();
    });
    assert_eq!(log.lock().unwrap().called.len(), 1);
    assert_eq!(guard.deciding.controller.history().len(), 2);
}

#[test]
fn while_a_question_that_was_given_up_is_open_what_asks_nothing_runs() {
    let (approver, was_asked, answer) = slow();
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    set.add(Box::new(Fake::new("asked", Says::Needs).0));
    set.add(Box::new(Fake::new("free", Says::PreApproved).0));
    run(async {
        let context = context("asked");
        tokio::select! {
            _ = set.call_in(&context) => panic!("nobody has answered"),
            () = until_asked(&was_asked) => {}
        }
        set.call("free", Value::Null).await.unwrap();
        let free = [ApprovalContext::new("free", Value::Null)];
        let together = set.call_together(&free);
        let done = tokio::time::timeout(PATIENCE, together).await.unwrap();
        assert!(done[0].is_ok(), "{done:?}");
        answer.send(false).unwrap();
    });
}

#[test]
fn a_delegate_whose_call_was_given_up_while_it_was_asked_anew_is_still_named() {
    let (approver, was_asked, answer) = slow();
    let controller = guard(Mode::Interactive, approver);
    let guard = Guard {
        caller: Some("planner".to_owned()),
        ..controller
    };
    let (fake, _) = Fake::changing("fake", [Says::PreApproved, Says::Needs]);
    let fake = fake.failing([ToolError::Changed("/w/f".to_owned())]);
    let mut guarded = Guarded::new(Box::new(fake), guard.clone());
    run(async {
        let context = context("fake");
        tokio::select! {
            _ = guarded.call(&context, Prepared::nothing()) => panic!("nobody has answered"),
            () = until_asked(&was_asked) => {}
        }
        answer.send(false).unwrap();
        answer.send(true).unwrap();
        guarded.call(&context, Prepared::nothing()).await.unwrap();
    });
    let controller = &guard.deciding.controller;
    let history = controller.history();
    let callers: Vec<_> = history.iter().map(|record| record.caller.as_deref()).collect();
    assert_eq!(callers, [Some("planner"), Some("planner")]);
}

#[test]
fn a_caller_that_is_assessed_slowly_and_given_up_is_still_named_the_next_time() {
    /// Waits for ever when it is assessed for the second time.
    struct Slow(Fake, Arc<AtomicUsize>);
    impl Tool for Slow {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn description(&self) -> String {
            self.0.description()
        }
        fn input_schema(&self) -> Value {
            self.0.input_schema()
        }
        fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
            if self.1.fetch_add(1, Ordering::SeqCst) == 1 {
                return Box::pin(std::future::pending());
            }
            self.0.assess(context)
        }
        fn call<'a>(
            &'a mut self,
            context: &'a ApprovalContext,
            prepared: Prepared,
        ) -> Boxed<'a, Result<Output, ToolError>> {
            self.0.call(context, prepared)
        }
    }
    let (approver, asked) = saying(true, Remember::None);
    let guard = Guard {
        caller: Some("planner".to_owned()),
        ..guard(Mode::Interactive, approver)
    };
    let (fake, _) = Fake::new("fake", Says::Needs);
    let fake = fake.failing([ToolError::Changed("/w/f".to_owned())]);
    let assessed = Arc::new(AtomicUsize::new(0));
    let mut guarded = Guarded::new(Box::new(Slow(fake, Arc::clone(&assessed))), guard);
    run(async {
        let context = context("fake");
        tokio::select! {
            _ = guarded.call(&context, Prepared::nothing()) => panic!("it is still assessed"),
            () = until("the second time", || assessed.load(Ordering::SeqCst) == 2) => {}
        }
        guarded.call(&context, Prepared::nothing()).await.unwrap();
    });
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(
        asked.iter().all(|asked| asked.caller.as_deref() == Some("planner")),
        "{asked:?}"
    );
}

#[test]
fn an_approver_that_panics_denies_that_call_and_every_later_one_that_would_ask() {
    let (approver, _) = person(|_| panic!("an approver of the program's own"));
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    let (fake, log) = Fake::new("fake", Says::Needs);
    set.add(Box::new(fake));
    set.add(Box::new(Fake::new("free", Says::PreApproved).0));
    run(async {
        for _ in 0..3 {
            let done = set.call_in(&context("fake")).await;
            assert!(matches!(done, Err(ToolError::Denied(_))), "{done:?}");
        }
        set.call("free", Value::Null).await.unwrap();
    });
    assert!(log.lock().unwrap().called.is_empty());
}

#[test]
fn what_cannot_be_shown_is_denied_unasked() {
    struct Unshowable;
    impl Tool for Unshowable {
        fn name(&self) -> &'static str {
            "fake"
        }
        fn description(&self) -> String {
            String::new()
        }
        fn input_schema(&self) -> Value {
            json!({})
        }
        fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
            let question = ApprovalRequest {
                presentation: Lazy::new(|| Err("the file is gone".to_owned())),
                ..tool_question::by_name(context, "use it".to_owned(), Value::Null)
            };
            Box::pin(async move { Ok(Assessment::NeedsApproval(Box::new(question)).into()) })
        }
        fn call<'a>(&'a mut self, _: &'a ApprovalContext, _: Prepared) -> Boxed<'a, Result<Output, ToolError>> {
            panic!("nobody approved it")
        }
    }
    let (approver, asked) = saying(true, Remember::None);
    let mut guarded = Guarded::new(Box::new(Unshowable), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    assert!(
        matches!(&done, Err(ToolError::Denied(why)) if why.contains("the file is gone")),
        "{done:?}"
    );
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn a_signal_while_somebody_is_asked_counts_more_than_their_yes() {
    let (approver, was_asked, answer) = slow();
    let (stopper, stops) = mpsc::channel(8);
    let guard = Guard {
        stops: Arc::new(tokio::sync::Mutex::new(stops)),
        ..guard(Mode::Interactive, approver)
    };
    let (fake, log) = Fake::new("fake", Says::Needs);
    let mut guarded = Guarded::new(Box::new(fake), guard);
    run(async {
        let context = context("fake");
        let stopping = async {
            until_asked(&was_asked).await;
            stopper.send(Signal::SIGTERM).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            answer.send(true).unwrap();
        };
        let (done, ()) = tokio::join!(guarded.call(&context, Prepared::nothing()), stopping);
        assert!(matches!(done, Err(ToolError::Stopped(Signal::SIGTERM))), "{done:?}");
    });
    assert!(log.lock().unwrap().called.is_empty());
}
