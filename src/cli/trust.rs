//! `stockade trust`: a person says that they have read a config.

use super::args::TrustArgs;
use super::complain::{Complaint, print};
use super::exit::Exit;
use super::{check, policy};
use crate::config::trust;
use crate::policy::path::display;

/// Records path, content and resolved roots of the config.
pub(super) fn trust(args: &TrustArgs) -> Result<Exit, Complaint> {
    let file = check::target(args.file.as_ref())?;
    let context = policy::context();
    let (loaded, _) = trust::review(&file, &context).map_err(policy::complain)?;
    trust::record(&loaded, &context).map_err(policy::complain)?;
    let roots: Vec<String> = loaded
        .policy
        .roots
        .iter()
        .map(|root| format!("{} may be {}", root.path, root.rights))
        .collect();
    if args.json {
        print(&format!(
            "{}\n",
            serde_json::json!({"trusted": display(&file), "roots": roots})
        ))?;
    } else {
        let mut text = format!("trusted {}; a later change must be trusted again\n", display(&file));
        for root in &roots {
            text.extend(["  ", root.as_str(), "\n"]);
        }
        print(&text)?;
    }
    Ok(Exit::Success)
}
