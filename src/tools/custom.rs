//! Tools that a config defines: a program with typed arguments, never a shell line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::signal::Signal;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::approval_authority::ApprovalAuthority;
use super::assessor::{Facts, names};
use super::call::{ShellCommand, ToolError};
use super::deciding::Deciding;
use super::executor::Executor;
use super::files::{Operands, bare, operands};
use super::outcome::Outcome;
use super::output::Output;
use super::permit::{CommandRequest, Permit, approved};
use super::prepared::Prepared;
use super::programs::find_program;
use super::search::Search;
use super::session_shared::Shared;
use super::shell_tool::{self, Work};
use super::tool::{ApprovalContext, Assessed, Assessment, Boxed, Effect, OverrideByConfig, Tool, ready};
use crate::config::{ArgKind, CustomArg, CustomTool};
use crate::policy::path::{display, escape};
use crate::policy::{AbsPath, Demand};
use crate::profile::{ApprovedRoots, Call, InAdvance};

/// A program with typed arguments.
pub struct CommandTool {
    tool: CustomTool,
    session: Arc<Shared>,
    authority: ApprovalAuthority,
    /// Who decides what comes up while a command runs; nobody for a tool without a guard.
    deciding: Option<Deciding>,
    /// The file that its first word stands for, once it was found, and where its programs are searched.
    program: Option<(PathBuf, Search)>,
}

impl CommandTool {
    pub(super) const fn new(
        tool: CustomTool,
        session: Arc<Shared>,
        authority: ApprovalAuthority,
        deciding: Option<Deciding>,
    ) -> Self {
        Self {
            tool,
            session,
            authority,
            deciding,
            program: None,
        }
    }

    fn in_reach(&self, path: &Path) -> String {
        let name = escape(self.tool.command.first().map_or("", String::as_str).as_bytes());
        let path = display(path);
        format!(
            "`{name}` of the tool {} is {path}, which this session may write; `command: [{path}, …]` at {} would name that file",
            self.tool.name, self.tool.origin
        )
    }

    fn arguments(&self, why: String) -> ToolError {
        ToolError::Arguments {
            tool: self.tool.name.clone(),
            why,
        }
    }

    /// The command's arguments, with placeholders filled.
    async fn argv(
        &self,
        executor: &mut Executor,
        args: &Value,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<OsString>, ToolError> {
        let empty = Map::new();
        let given = match args {
            Value::Object(given) => given,
            Value::Null => &empty,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(self.arguments("they must be an object".to_owned()));
            }
        };
        if let Some(unknown) = given
            .keys()
            .find(|name| !self.tool.args.iter().any(|arg| arg.name == **name))
        {
            return Err(self.arguments(format!("unknown argument `{}`", escape(unknown.as_bytes()))));
        }
        let mut values = Vec::new();
        for arg in &self.tool.args {
            let value = given
                .get(&arg.name)
                .ok_or_else(|| self.arguments(format!("the argument `{}` is missing", arg.name)))?;
            values.push((arg, self.value(executor, arg, value, stops).await?));
        }
        let mut options_are_over = false;
        let mut words = Vec::new();
        for word in &self.tool.command {
            let filled = filled(word, &values);
            let begins_as_option = filled.as_encoded_bytes().starts_with(b"-");
            if begins_as_option && word.starts_with('{') && !options_are_over {
                return Err(self.arguments(
                    "an argument may not begin with `-` where the program would take it for an option".to_owned(),
                ));
            }
            options_are_over |= word == "--";
            words.push(filled);
        }
        Ok(words)
    }

    async fn value(
        &self,
        executor: &mut Executor,
        arg: &CustomArg,
        value: &Value,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<OsString, ToolError> {
        let wrong = |what: &str| Err(self.arguments(format!("`{}` must be {what}", arg.name)));
        match (&arg.kind, value) {
            (ArgKind::Path(root), Value::String(written)) => {
                let (path, lies_in) = executor.files(stops).path_at(&self.session.directory, written).await?;
                match root {
                    Some(root) if lies_in != *root => Err(ToolError::Blocked(format!(
                        "{path} lies in the root `{lies_in}`; `{}` of {} takes only paths in `{root}` ({})",
                        arg.name, self.tool.name, self.tool.origin
                    ))),
                    _ => Ok(path.as_path().as_os_str().to_owned()),
                }
            }
            (ArgKind::Text, Value::String(text)) if text.contains('\0') => wrong("without NUL bytes"),
            (ArgKind::Text, Value::String(text)) => Ok(text.into()),
            (ArgKind::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(number.to_string().into())
            }
            (ArgKind::Boolean, Value::Bool(yes)) => Ok(yes.to_string().into()),
            (ArgKind::Choice(choices), Value::String(text)) if choices.contains(text) => Ok(text.into()),
            (ArgKind::Choice(choices), _) => wrong(&format!("one of {}", choices.join(", "))),
            (ArgKind::Path(_), _) => wrong("a path"),
            (ArgKind::Text, _) => wrong("text"),
            (ArgKind::Integer, _) => wrong("a whole number"),
            (ArgKind::Boolean, _) => wrong("true or false"),
        }
    }
}

/// A word with each `{name}` replaced by the argument of that name. What is put in is not looked at again.
pub(super) fn filled(word: &str, values: &[(&CustomArg, OsString)]) -> OsString {
    let mut filled = OsString::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push(before);
        let value = after
            .split_once('}')
            .and_then(|(name, tail)| Some((values.iter().find(|(arg, _)| arg.name == name)?, tail)));
        if let Some(((_, value), tail)) = value {
            filled.push(value);
            rest = tail;
        } else {
            filled.push("{");
            rest = after;
        }
    }
    filled.push(rest);
    filled
}

impl Tool for CommandTool {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn description(&self) -> String {
        self.tool.description.clone()
    }

    fn output_schema(&self) -> Option<Value> {
        Some(bare(schemars::schema_for!(Outcome)))
    }

    fn effect(&self) -> Effect {
        Effect::Destroys(self.session.reach)
    }

    fn input_schema(&self) -> Value {
        let mut properties = Map::new();
        for arg in &self.tool.args {
            let mut schema = match &arg.kind {
                ArgKind::Path(_) | ArgKind::Text => json!({"type": "string"}),
                ArgKind::Integer => json!({"type": "integer"}),
                ArgKind::Boolean => json!({"type": "boolean"}),
                ArgKind::Choice(choices) => json!({"type": "string", "enum": choices}),
            };
            let told = arg.description.clone().or_else(|| match &arg.kind {
                ArgKind::Path(Some(root)) => Some(format!("A path in the root `{root}`.")),
                ArgKind::Path(None) | ArgKind::Text | ArgKind::Integer | ArgKind::Boolean | ArgKind::Choice(_) => None,
            });
            if let (Some(told), Value::Object(members)) = (told, &mut schema) {
                members.insert("description".to_owned(), json!(told));
            }
            properties.insert(arg.name.clone(), schema);
        }
        let required: Vec<&str> = self.tool.args.iter().map(|arg| arg.name.as_str()).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            let mut executor = self.session.executor.lock().await;
            let mut stops = self.session.stops.lock().await;
            let argv = match self.argv(&mut executor, &context.args, &mut stops).await {
                Ok(argv) => argv,
                Err(ToolError::Blocked(why)) => return Ok(Assessment::Blocked(why).into()),
                Err(error) => return Err(error),
            };
            let directory = start_of(&executor, &self.tool, &self.session.directory)?;
            let mut argv = argv;
            // The config takes no argument for the program.
            if self.program.is_none() {
                self.program = match find_program(&mut executor.files(&mut stops), &argv, &directory).await? {
                    Ok(program) => program,
                    Err(why) => return Ok(Assessment::Blocked(self.in_reach(&why)).into()),
                };
            }
            let search = match (&self.program, argv.first_mut()) {
                (Some((path, search)), Some(word)) => {
                    *word = path.clone().into_os_string();
                    search.clone()
                }
                (None, _) | (_, None) => Search::outside(BTreeSet::new()),
            };
            let command = ShellCommand::Argv(argv);
            let wanted = CommandRequest {
                command: &command,
                directory: &directory,
                start: &directory,
                environment: &[],
                caller: context.caller.as_deref(),
                authority: self.authority,
            };
            let (assessment, permit) = assess_custom(&mut executor, &self.tool, wanted, search, &mut stops).await?;
            let prepared = Prepared::of(Work {
                command,
                directory,
                timeout: None,
                permit,
            });
            Ok(Assessed {
                assessment,
                prepared,
                override_by_config: OverrideByConfig::Possible,
            })
        })
    }

    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let prepared = ready(self, context, prepared).await?;
            shell_tool::run(&self.session, self.deciding.as_ref(), context, prepared).await
        })
    }
}

/// The only roots that the writes of a tool reach: its `sandbox_paths`, or those that its paths are bound to.
pub(crate) fn written_roots(tool: &CustomTool) -> Vec<String> {
    if let Some(names) = &tool.sandbox_paths {
        return names.clone();
    }
    let roots = tool.args.iter().filter_map(|arg| match &arg.kind {
        ArgKind::Path(root) => root.clone(),
        ArgKind::Text | ArgKind::Integer | ArgKind::Boolean | ArgKind::Choice(_) => None,
    });
    let roots: BTreeSet<String> = roots.collect();
    roots.into_iter().collect()
}

/// Where a custom tool starts: in the working directory, or, where that cannot be read, in a root that it names.
fn start_of(executor: &Executor, tool: &CustomTool, directory: &Path) -> Result<AbsPath, ToolError> {
    let here = AbsPath::new(directory).map_err(|_| ToolError::Directory(directory.to_owned()))?;
    if executor.pool.check_directory(&here).is_ok() {
        return Ok(here);
    }
    let names = written_roots(tool);
    let root = executor
        .session()
        .policy
        .roots
        .iter()
        .find(|root| names.contains(&root.name));
    Ok(root.map_or(here, |root| root.path.clone()))
}

async fn assess_custom(
    executor: &mut Executor,
    tool: &CustomTool,
    wanted: CommandRequest<'_>,
    search: Search,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<(Assessment, Permit), ToolError> {
    let narrow = Some(written_roots(tool));
    executor.pool.check_directory(wanted.directory)?;
    let names = names(wanted.command);
    let operands = match tool.approval {
        // What runs unasked is bound to nothing.
        Demand::None if !wanted.authority.may_ask(&executor.session().policy, &tool.name) => Operands::default(),
        Demand::None | Demand::OncePerSession | Demand::Required | Demand::Deny => {
            operands(&mut executor.files(stops), &[], &names, wanted.directory).await?
        }
    };
    let policy = &executor.session().policy;
    let own = policy.tool_networks.get(&tool.name);
    let demand = policy
        .tools
        .get(&tool.name)
        .map_or(tool.approval, |entry| entry.approval);
    let call = Call {
        approved_roots: match demand {
            Demand::None => ApprovedRoots::InAdvance(InAdvance::by(tool.sandbox_paths.as_deref())),
            Demand::OncePerSession | Demand::Required | Demand::Deny => ApprovedRoots::None,
        },
        narrow,
        network: own.map(|own| own.network.clone()),
    };
    let facts = Facts {
        derived: executor.profiles.of(&approved(&call))?,
        regime: executor.regime_line()?,
    };
    let bound = (call.narrow.as_deref(), names.why_not_remembered());
    let assessment = executor.assessor().assess_custom(tool, wanted, bound, &operands, facts);
    let permit = Permit {
        call,
        operands,
        search,
        override_by_config: OverrideByConfig::Possible,
    };
    Ok((assessment, permit))
}

impl fmt::Debug for CommandTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandTool")
            .field("name", &self.tool.name)
            .finish_non_exhaustive()
    }
}
