//! `stockade trust`: a person says that they have read a config.

use super::args::TrustArgs;
use super::complain::{Complaint, print};
use super::exit::Exit;
use super::{check, policy, reach};
use crate::config::{NamedFile, trust};
use crate::policy::path::display;

/// Records path, content, resolved roots and base paths of the config, and shows what it comes to.
pub(super) fn trust(args: &TrustArgs) -> Result<Exit, Complaint> {
    let file = check::target(args.file.as_ref())?;
    let context = policy::context();
    let (loaded, _) = trust::review(&file, &context).map_err(policy::complain)?;
    trust::record(&loaded, &context).map_err(policy::complain)?;
    let shown = reach::of(&loaded);
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let sha256 = loaded.files.first().map(NamedFile::hex).unwrap_or_default();
    if args.json {
        let mut object = reach::object(&shown);
        object.insert("trusted".to_owned(), display(&file).into());
        object.insert("sha256".to_owned(), sha256.into());
        object.insert("warnings".to_owned(), warnings.into());
        print(&format!("{}\n", serde_json::Value::Object(object)))?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    for warning in warnings {
        text.extend([warning.as_str(), "\n"]);
    }
    text.extend(["trusted ", &display(&file), "; a later change must be trusted again\n"]);
    text.extend(["  sha256: ", &sha256, "\n", &reach::text(&shown)]);
    print(&text)?;
    Ok(Exit::Success)
}
