//! What a command needs before it may run: rules judged, files named, a question made.

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::allowing;
use super::approvals::{self, Asking, Planted};
use super::call::{ShellCommand, ToolError};
use super::executor::Executor;
use super::files::Operands;
use super::footing::Footing;
use super::programs::{Program, Programs};
use super::search::Search;
use super::shell::NAME;
use super::tool::Assessment;
use crate::approval::Remember;
use crate::policy::shell::{
    Directory, Judgement, Names, Part, Reach, RuleRef, judge_argv_in, judge_in, names_of_argv, names_of_line,
};
use crate::policy::{AbsPath, Access, Demand, Operation, Policy, Requirement, ShellRule};
use crate::profile::{Asked, Call, FileReach};

/// What a command may do when it runs.
#[derive(Debug)]
pub(super) struct Permit {
    /// What its profile is derived for.
    pub(super) call: Call,
    /// The writable files it names, as they were when it was assessed.
    pub(super) operands: Operands,
    /// Where its programs are searched.
    pub(super) search: Search,
}

impl Permit {
    /// The same after a yes.
    pub(super) fn approved(self) -> Self {
        Self {
            call: approved(&self.call),
            ..self
        }
    }
}

/// The same call after a yes.
pub(super) fn approved(call: &Call) -> Call {
    Call {
        asked: Asked::Everything,
        ..call.clone()
    }
}

/// Whether somebody may want to ask about what nobody need be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overruled {
    /// The config has the last word.
    ByConfig,
    /// A hook has.
    ByHook,
}

/// A command as far as a question is about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) command: &'a ShellCommand,
    pub(super) directory: &'a AbsPath,
    /// Where the session starts: relative paths in rules are meant from there.
    pub(super) start: &'a AbsPath,
    pub(super) environment: &'a [(std::ffi::OsString, std::ffi::OsString)],
    pub(super) caller: Option<&'a str>,
    pub(super) overruled: Overruled,
}

impl Executor {
    /// Says what a command needs, and what it may do with it.
    pub(super) async fn assess_shell(
        &mut self,
        wanted: Wanted<'_>,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<(Assessment, Permit), ToolError> {
        let judgement = judged(&self.policy, wanted.command, (wanted.directory, wanted.start));
        let asks = judgement.requirement != Requirement::PreApproved || self.may_be_asked(NAME, wanted.overruled);
        // Also where an entry of `tools:` or a hook has a person asked, and no rule.
        let is_answered = asks || needs_answer(&self.policy, &judgement);
        let names = if is_answered {
            names(wanted.command)
        } else {
            Names::default()
        };
        // Where nothing of PATH is in the session's reach, names are looked up for a question alone.
        let is_looked_up = is_answered && (asks || self.searches_in_reach(wanted.environment));
        let programs = if is_looked_up && judgement.requirement != Requirement::Blocked {
            self.hold_directory(wanted.directory)?;
            Box::pin(self.programs(&names, wanted.directory, wanted.environment, stops)).await?
        } else {
            Programs::default()
        };
        // A rule with a bare name speaks for a program outside what the session may write.
        let rules = outside(&self.policy.rules, &programs);
        let judgement = judged_by(&self.policy, &rules, wanted.command, (wanted.directory, wanted.start));
        let mut permit = Permit {
            call: Call {
                asked: Asked::Nobody,
                narrow: judgement.narrow.clone(),
                network: judgement.reach.in_place_of(&self.policy.network),
            },
            operands: Operands::default(),
            search: if is_answered {
                Search::Outside {
                    named: programs.named.clone(),
                    passed_over: programs.passed_over.clone(),
                }
            } else {
                Search::Everywhere
            },
        };
        let asks = match judgement.requirement {
            Requirement::Blocked => {
                let why = judgement.reason;
                let why = why.unwrap_or_else(|| "a rule of the config forbids it".to_owned());
                return Ok((Assessment::Blocked(why), permit));
            }
            // A question that is never asked is not made.
            Requirement::PreApproved => self.may_be_asked(NAME, wanted.overruled),
            Requirement::NeedsApproval => true,
        };
        if !asks {
            // What is put there before the command starts is another program.
            permit.operands = self
                .operands(&programs.candidates, &Names::default(), wanted.directory, stops)
                .await?;
            return Ok((Assessment::PreApproved(None), permit));
        }
        self.hold_directory(wanted.directory)?;
        permit.operands = self
            .operands(&programs.candidates, &names, wanted.directory, stops)
            .await?;
        // What changes the meaning of a name may change it for these.
        let shown: &[Program] = names.unresolved.as_ref().map_or(&programs.found, |_| &[]);
        let unresolved = unresolved(names.not_remembered(), &permit.operands);
        let derived = self.profile(&approved(&permit.call))?;
        let remember = match judgement.demand {
            Demand::OncePerSession => Remember::Session,
            Demand::None | Demand::Required | Demand::Deny => Remember::None,
        };
        let planted = Planted(&programs);
        let told = approvals::Told {
            tool_name: NAME,
            description: approvals::description(&self.policy, &judgement),
            allowed_by: planted.allowed_by(&judgement).unwrap_or_else(|| {
                allowing::allowed_by(&self.policy.rules, &self.policy.roots, &judgement, &|rules| {
                    judged_by(
                        &self.policy,
                        &outside(&rules, &programs),
                        wanted.command,
                        (wanted.directory, wanted.start),
                    )
                })
            }),
            why: approvals::why(&self.policy, &judgement, &planted),
            remember,
            unresolved,
        };
        let request = Box::new(approvals::request(
            told,
            Asking {
                policy: &self.policy,
                wanted,
                narrow: judgement.narrow.as_deref(),
                derived: &derived,
                operands: permit.operands.found(),
                programs: shown,
                regime: self.regime_line()?.to_string(),
            },
        ));
        Ok(match judgement.requirement {
            Requirement::PreApproved => (Assessment::PreApproved(Some(request)), permit),
            Requirement::NeedsApproval | Requirement::Blocked => (Assessment::NeedsApproval(request), permit),
        })
    }

    /// Whether the tool of this name may have to ask about what it would run unasked.
    pub(super) fn may_be_asked(&self, name: &str, overruled: Overruled) -> bool {
        match overruled {
            Overruled::ByConfig => self
                .policy
                .tools
                .get(name)
                .is_some_and(|rule| rule.approval != Demand::None),
            Overruled::ByHook => true,
        }
    }

    /// A command that cannot read where it starts fails in puzzling ways: better said at once.
    pub(super) fn hold_directory(&self, directory: &AbsPath) -> Result<(), ToolError> {
        let confined = matches!(self.chosen.footing, Footing::Confined(_));
        if confined && self.envelope.access(Operation::List, directory) == Access::Denied {
            return Err(ToolError::Directory(directory.as_path().to_owned()));
        }
        Ok(())
    }
}

/// What a command names.
pub(super) fn names(command: &ShellCommand) -> Names {
    match command {
        ShellCommand::Line(line) => match line.to_str() {
            Some(line) => names_of_line(line),
            None => names_of_argv(&[line]),
        },
        ShellCommand::Argv(argv) => names_of_argv(argv),
    }
}

/// Why a yes to a command with these files is not remembered, if it is not.
pub(super) fn unresolved(unresolved: Option<String>, operands: &Operands) -> Option<String> {
    unresolved.or_else(|| operands.doubt().map(str::to_owned))
}

/// Whether a command that was judged so runs because somebody answered for it: a rule, or whoever is asked.
pub(super) fn needs_answer(policy: &Policy, judgement: &Judgement) -> bool {
    let by_default = |part: &Part| match part.rule {
        RuleRef::Default => true,
        RuleRef::Rule(_) => part.demand == Demand::None && policy.default_rule.approval == Demand::None,
    };
    judgement.requirement != Requirement::PreApproved
        || judgement.reach != Reach::Unsaid
        || !policy.default_rule.allowed
        || !judgement.parts.iter().all(by_default)
}

/// The rules as they speak where these programs are what a command names: for the bare name of one in the session's reach, a rule
/// that asks nothing asks, and gives no network of its own.
fn outside(rules: &[ShellRule], programs: &Programs) -> Vec<ShellRule> {
    let asked = |rule: &ShellRule| {
        let is_planted = rule
            .pattern
            .first()
            .is_some_and(|name| programs.planted(name).is_some());
        let mut rule = rule.clone();
        if is_planted {
            if rule.approval == Demand::None {
                rule.approval = Demand::Required;
            }
            rule.network = None;
        }
        rule
    };
    rules.iter().map(asked).collect()
}

/// The judgement of a command by the rules of a policy: where it starts, and where the session does.
pub(super) fn judged(policy: &Policy, command: &ShellCommand, place: (&AbsPath, &AbsPath)) -> Judgement {
    judged_by(policy, &policy.rules, command, place)
}

/// The same, by these rules in place of its own.
fn judged_by(
    policy: &Policy,
    rules: &[ShellRule],
    command: &ShellCommand,
    (directory, start): (&AbsPath, &AbsPath),
) -> Judgement {
    let lies_in = |argument: &str, names: &[String]| {
        let Ok(path) = AbsPath::new(directory.as_path().join(argument)) else {
            return false;
        };
        policy.speaker(&path).is_some_and(|root| names.contains(&root.name))
    };
    let default = &policy.default_rule;
    // The same directory may be spelled otherwise.
    let is_start = directory == start || std::fs::canonicalize(start).is_ok_and(|start| start == directory.as_path());
    let from = if is_start { Directory::Start } else { Directory::Other };
    match command {
        ShellCommand::Line(line) => match line.to_str() {
            Some(line) => judge_in(from, line, rules, default, &lies_in),
            // A line that is not text is judged by what is shown of it, which no rule can understand.
            None => judge_argv_in(from, &[line], rules, default, &lies_in),
        },
        ShellCommand::Argv(argv) => judge_argv_in(from, argv, rules, default, &lies_in),
    }
}
