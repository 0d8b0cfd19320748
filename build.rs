//! Parses the presets: YAML in `profiles/` → raw mirror → the compact form that `config::presets` builds in.
//!
//! The mirror and the parser's options are the crate's own files, so the two readings cannot differ.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

#[path = "src/config/options.rs"]
mod options;
#[path = "src/config/raw.rs"]
mod raw;
#[path = "src/config/scalar.rs"]
#[expect(dead_code, reason = "the crate needs more of it than this script")]
mod scalar;
#[path = "src/config/words.rs"]
mod words;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=profiles");
    for module in ["options", "raw", "scalar", "words"] {
        println!("cargo:rerun-if-changed=src/config/{module}.rs");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    for entry in fs::read_dir("profiles")? {
        let path = entry?.path();
        // What Seatbelt profiles begin with lies there too; `backend::seatbelt::base` reads it.
        if path.extension().is_some_and(|extension| extension == "sbpl") {
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
    Ok(())
}
