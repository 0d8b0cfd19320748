//! `stockade mcp`: serves agents.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::approver::{self, ApproverChoice, Nobody};
use super::audit::AuditFlag;
use super::error::{CliError, print_notice, print_regime};
use super::exit::Exit;
use super::flags::{ApproverFlags, PolicyFlags};
use super::mcp_http::HttpFlags;
use super::policy::{self, Chosen};
use super::signals::{StopScope, stop_signals};
use super::start::{self, ConfigWarnings, Start};
use super::tool_error::{session_failure, tool_failure};
use crate::policy::{Channel, Channels, OsSandbox};
use crate::tools::serving::{
    ApproverChain, ApproverSource, Serve, ServeEnd, ServedTools, Serving, Transport, Upstream,
};
use crate::tools::{Lanes, Session, check_runs};

/// The default number of concurrent calls of one kind.
const WIDTH: usize = 4;

/// `stockade mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Which policy holds.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Who answers.
    #[command(flatten)]
    pub approver: ApproverFlags,
    /// Whether it is recorded.
    #[command(flatten)]
    pub audit: AuditFlag,
    /// How agents reach it, where not over standard input and output.
    #[command(flatten)]
    pub http: HttpFlags,
    /// What relative paths are relative to, and where commands start.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// How many commands and changes are under way at once, and as many reads; the others wait for their turn.
    #[arg(long, value_name = "N", default_value_t = WIDTH, value_parser = width)]
    pub at_once: usize,
    /// Offer the tools of a third party's MCP server, which is started in the sandbox, in place of Stockade's own.
    #[arg(long, requires = "command", conflicts_with = "at_once")]
    pub upstream: bool,
    /// What starts that server: it speaks MCP on its standard input and output.
    #[arg(last = true, value_name = "COMMAND", requires = "upstream")]
    pub command: Vec<OsString>,
    /// Do not print the regime line, unless it says that nothing confines the tools.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Serves until the client is gone, or a signal comes.
pub(super) fn mcp(args: McpArgs, serve: Serve) -> Result<Exit, CliError> {
    start::block_on(serve_in(args, serve))
}

async fn serve_in(args: McpArgs, serve: Serve) -> Result<Exit, CliError> {
    let is_http = args.http.http.is_some();
    if !is_http && std::io::stdin().is_terminal() {
        return Err(CliError::failed("standard input is a terminal, and no MCP client").remedy(
            "have a client start it, as in `claude mcp add files -- stockade mcp --config agent.yaml`, or serve several with --http; docs/mcp.md has more",
        ));
    }
    let Start {
        context,
        chosen: Chosen { loaded, narrowing },
        directory,
    } = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &[],
        (ConfigWarnings::Shown, args.quiet),
    )?;
    let places = policy::places(&context)?;
    let choice = ApproverChoice::of(&args.approver, &loaded.policy, &places)?;
    let asking = asking(&args.approver, &loaded.policy.channels, choice, is_http);
    let allowed = loaded.policy.clone();
    // Changes to protected names are not offered here: every question belongs to a call.
    let session = Session::open(loaded, narrowing, &directory, Box::new(Nobody), &context).map_err(session_failure)?;
    let runs = match check_runs(&session).await {
        // Its server says at its start what is refused.
        Err(_) if args.upstream => Ok(()),
        Err(error) if allowed.os_sandbox != OsSandbox::RefuseTools => return Err(tool_failure(error)),
        runs => runs,
    };
    let unconfined = session.is_unconfined().await;
    approver::refuse_unconfined_socket(&args.approver, unconfined)?;
    let first = session.clone();
    let regime = match runs {
        Err(error) => Err(error),
        Ok(()) if args.upstream => session.served_regime_line(&args.command).await,
        Ok(()) => session.regime_line().await,
    };
    session.begin_record().await.map_err(tool_failure)?;
    let is_ready = regime.is_ok();
    match regime {
        Ok(line) if unconfined || !args.quiet => print_regime(&line),
        Ok(_) => {}
        // It is served nevertheless: each call reports this error.
        Err(error) => print_notice(format_args!("every call will be refused: {error}")),
    }
    let transport = match args.http.into_transport(&allowed, Box::new(move || is_ready)) {
        None => Transport::Stdio,
        Some(http) => Transport::Http(http),
    };
    let stops = stop_signals(if is_http {
        // Calls under way may finish within `--drain`.
        StopScope::Call
    } else {
        StopScope::Program
    })?;
    let offered = if args.upstream {
        ServedTools::Upstream(Box::new(Upstream {
            session,
            command: args.command,
            directory,
            state: places.state,
        }))
    } else {
        ServedTools::Own(Arc::new(Lanes::new(session, args.at_once)))
    };
    let serving = Serving {
        offered,
        asking,
        transport,
        stops,
        say: |line| print_notice(line),
    };
    let served = serve(serving).await;
    for line in first.restored_elsewhere() {
        print_notice(line);
    }
    match served {
        Ok(ServeEnd::Closed | ServeEnd::Stopped(_)) => Ok(Exit::Success),
        Ok(ServeEnd::Cut(signal)) => Ok(Exit::Signaled(signal as i32)),
        Err(error) => Err(CliError::failed(error)),
    }
}

/// The approval channels, in the order in which they are tried.
fn asking(flags: &ApproverFlags, channels: &Channels, named: ApproverChoice, is_http: bool) -> ApproverChain {
    let here = named.channel();
    let named = Arc::new(named);
    let mut order = Vec::new();
    for channel in channels.order() {
        let available = match channel {
            Channel::Program | Channel::Socket => here == Some(channel),
            // Over stdio the terminal belongs to the client, unless the config names this channel.
            Channel::Terminal => here == Some(channel) && (channels.name(channel) || (is_http && has_terminal())),
            Channel::Elicitation => {
                order.push(ApproverSource::Elicitation);
                continue;
            }
        };
        if available {
            let named = Arc::clone(&named);
            order.push(ApproverSource::Here(Arc::new(move || named.next())));
        }
    }
    ApproverChain {
        order,
        patience: approver::patience(flags),
    }
}

/// Whether there is a controlling terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

fn width(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(width @ 1..=64) => Ok(width),
        Ok(_) | Err(_) => Err("a number from 1 to 64".to_owned()),
    }
}
