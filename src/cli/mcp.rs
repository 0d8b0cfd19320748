//! `stockade mcp`: serves agents.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::approver::{self, Answerer, Nobody};
use super::audit::AuditFlag;
use super::complain::{Complaint, say};
use super::exit::Exit;
use super::flags::{ApproverFlags, PolicyFlags};
use super::mcp_http::HttpFlags;
use super::policy::{self, Chosen};
use super::start::{self, Start, Told};
use super::stops::{Ends, stops};
use super::tool_error::{session_complaint, tool_complaint};
use crate::policy::{Channel, Channels};
use crate::tools::serving::{
    ApproverChain, ApproverSource, Serve, ServeEnd, ServedTools, Serving, Transport, Upstream,
};
use crate::tools::{Lanes, Session};

/// How many calls of one kind are under way at once, where nothing else is said.
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
pub(super) fn mcp(args: McpArgs, serve: Serve) -> Result<Exit, Complaint> {
    let runtime = start::runtime()?;
    let done = runtime.block_on(serve_in(args, serve));
    // A read of standard input that is under way is not waited for.
    runtime.shutdown_background();
    done
}

async fn serve_in(args: McpArgs, serve: Serve) -> Result<Exit, Complaint> {
    let over = match args.http.http {
        None => Over::Stdio,
        Some(_) => Over::Http,
    };
    if over == Over::Stdio && std::io::stdin().is_terminal() {
        return Err(Complaint::failed("standard input is a terminal, and no MCP client").remedy(
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
        Told::unless(args.quiet),
    )?;
    let places = policy::places(&context)?;
    let answerer = Answerer::of(&args.approver, &loaded.policy, &places)?;
    let asking = asking(&args.approver, &loaded.policy.channels, answerer, over);
    let allowed = loaded.policy.clone();
    // What a command left behind of protected names is offered to nobody: there is no question without a call.
    let session =
        Session::open(loaded, narrowing, &directory, Box::new(Nobody), &context).map_err(session_complaint)?;
    let unconfined = session.is_unconfined().await;
    approver::hold_apart(&args.approver, unconfined)?;
    let regime = if args.upstream {
        session.served_regime_line(&args.command).await
    } else {
        session.regime_line().await
    };
    session.begin_record().await.map_err(tool_complaint)?;
    let is_ready = regime.is_ok();
    match regime {
        Ok(line) if unconfined || !args.quiet => say(&format!("stockade: {line}\n")),
        Ok(_) => {}
        // A config may want to be served all the same: each call is told the same.
        Err(error) => say(&format!("stockade: every call will be refused: {error}\n")),
    }
    let transport = match args.http.asked(&allowed, Box::new(move || is_ready)) {
        None => Transport::Stdio,
        Some(http) => Transport::Http(http),
    };
    let stops = stops(match over {
        Over::Stdio => Ends::Program,
        // Calls under way are finished first, for as long as `--drain` says.
        Over::Http => Ends::Call,
    })?;
    let offered = if args.upstream {
        ServedTools::Upstream(Upstream {
            session,
            command: args.command,
            directory,
            state: places.state,
        })
    } else {
        ServedTools::Own(Arc::new(Lanes::new(session, args.at_once)))
    };
    let serving = Serving {
        offered,
        asking,
        transport,
        stops,
        say: |line| say(&format!("stockade: {line}\n")),
    };
    match serve(serving).await {
        Ok(ServeEnd::Closed | ServeEnd::Stopped(_)) => Ok(Exit::Success),
        Ok(ServeEnd::Cut(signal)) => Ok(Exit::Signaled(signal as i32)),
        Err(error) => Err(Complaint::failed(error)),
    }
}

/// Who is asked, in which order.
fn asking(flags: &ApproverFlags, channels: &Channels, named: Answerer, over: Over) -> ApproverChain {
    let here = named.channel();
    let named = Arc::new(named);
    let mut order = Vec::new();
    for channel in channels.order() {
        let available = match channel {
            Channel::Program | Channel::Socket => here == Some(channel),
            // What started Stockade has the terminal, unless the config knows better.
            Channel::Terminal => {
                here == Some(channel) && (channels.name(channel) || (over == Over::Http && has_terminal()))
            }
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

/// Whether anybody could be asked on a terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// How a client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Stdio,
    Http,
}

fn width(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(width @ 1..=64) => Ok(width),
        Ok(_) | Err(_) => Err("a number from 1 to 64".to_owned()),
    }
}
