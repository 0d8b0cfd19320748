//! Parses the presets: YAML in `profiles/` → raw mirror → the compact form that `config::presets` builds in; and says how
//! the program is linked.
//!
//! The mirror and the parser's options are the crate's own files, so the two readings cannot differ.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "src/config/keywords.rs"]
mod keywords;
#[path = "src/config/options.rs"]
mod options;
#[path = "src/config/raw.rs"]
mod raw;
#[path = "src/config/scalar.rs"]
#[expect(dead_code, reason = "the crate needs more of it than this script")]
mod scalar;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=profiles");
    for module in ["options", "raw", "scalar", "keywords"] {
        println!("cargo:rerun-if-changed=src/config/{module}.rs");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    for entry in fs::read_dir("profiles")? {
        let path = entry?.path();
        // What Seatbelt profiles begin with lies there too; `backend::seatbelt::base` reads it.
        if path.extension().is_some_and(|extension| extension == "sbpl") {
            continue;
        }
        if path.ends_with("protected.yaml") {
            let table =
                protected(&fs::read_to_string(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
            fs::write(out.join("protected.rs"), table)?;
            continue;
        }
        let name = path.file_stem().ok_or("a preset has a name")?;
        let told = |error: &dyn Error| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path)?;
        let read: raw::RawConfig =
            serde_yaml::from_str_with_options(&text, options::options()).map_err(|error| told(&error))?;
        let compact = postcard::to_stdvec(&read).map_err(|error| told(&error))?;
        fs::write(out.join(name).with_extension("preset"), compact)?;
    }
    link_the_unwinder_in(&out)
}

/// A tool of the list of protected names; `confine::protect::names` has the same.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "printed as the table that is built in")]
struct Tool {
    #[serde(rename = "tool")]
    name: String,
    runs: String,
    reads: Slice<String>,
    #[serde(default)]
    leads: Slice<Lead>,
}

/// A file whose content names others.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "printed as the table that is built in")]
struct Lead {
    file: String,
    #[serde(default)]
    keys: Slice<String>,
    #[serde(default)]
    words: Slice<String>,
    from: Start,
}

/// Where relative paths start.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Start {
    Here,
    Above,
}

/// A list that is printed as a slice.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Slice<T>(Vec<T>);

impl<T> Default for Slice<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Slice<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "&{:?}", self.0)
    }
}

/// The list of protected names as a Rust expression, which needs nothing read when the program starts.
fn protected(text: &str) -> Result<String, serde_yaml::Error> {
    let tools: Slice<Tool> = serde_yaml::from_str(text)?;
    // A tool is printed as it would be written, but for its keys, which are Rust's own here.
    Ok(format!("{tools:?}"))
}

/// Has the program bring what prints a backtrace along, as C programs do with `-static-libgcc`, for which rustc has no word.
///
/// The program starts itself once more at each start, and loading the shared library takes a fifteenth of that both times.
/// The linker finds a library of that name that stands for the static one. Where there is none, nothing changes. That of gcc 12 and
/// later asks for glibc 2.35 where the program runs.
#[expect(
    clippy::disallowed_methods,
    reason = "the compiler is asked where its library is, while building"
)]
fn link_the_unwinder_in(out: &Path) -> Result<(), Box<dyn Error>> {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    let is_native = std::env::var_os("HOST").is_some_and(|host| Some(host) == std::env::var_os("TARGET"));
    let is_known = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // With another linker nobody knows what it finds where.
    if !is_native || !is_known || std::env::var_os("RUSTC_LINKER").is_some() {
        return Ok(());
    }
    let told = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Some(place) = told.ok().and_then(|told| String::from_utf8(told.stdout).ok()) else {
        return Ok(());
    };
    let place = Path::new(place.trim_end());
    // What it has not, it calls by the bare name.
    if place.is_absolute() {
        println!("cargo:rerun-if-changed={}", place.display());
        let directory = out.join("linked");
        fs::create_dir_all(&directory)?;
        fs::write(
            directory.join("libgcc_s.so"),
            format!("GROUP ( \"{}\" -lgcc )\n", place.display()),
        )?;
        println!("cargo:rustc-link-arg-bins=-L{}", directory.display());
    }
    Ok(())
}
