//! The trust store. A config is trusted only if the store names its path and its hash; what the store says survives
//! being written; what is forgotten is gone.
//!
//! The input is the store; `HASH` and `PATH` in it stand for those of the config, and `INODE` and `DEVICE` for its root.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use crate::bounds::{Bounds, bounded, workplace};
use serde_json::Value;
use stockade::config::trust::{Store, Trusted, forget, load_discovered};
use stockade::config::{ConfigError, Context, load};
use stockade::policy::AbsPath;

const BOUNDS: Bounds = Bounds {
    bytes: 4 << 20,
    per_byte: 1024,
    time: Duration::from_secs(1),
};

const CONFIG: &str = "sandbox: {protect: none, paths: {a: {root: ., mode: ro}}}\n";

struct Fixture {
    store: PathBuf,
    config: PathBuf,
    hash: String,
    inode: u64,
    device: u64,
    context: Context,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let place = workplace();
    let (home, project) = (place.join("home"), place.join("project"));
    let state = home.join(".local/state/stockade");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::create_dir(&project).unwrap();
    std::fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    let config = project.join("stockade.yaml");
    std::fs::write(&config, CONFIG).unwrap();
    let mut context = Context::host();
    context.variables.clear();
    context.home = Some(AbsPath::new(home).unwrap());
    let loaded = load(&config, &context).unwrap();
    let found = std::fs::metadata(&project).unwrap();
    Fixture {
        store: state.join("trust.json"),
        config,
        hash: loaded.files[0].hex(),
        inode: found.ino(),
        device: found.dev(),
        context,
    }
});

pub(crate) fn run(input: &[u8]) {
    let world = &*FIXTURE;
    let Ok(text) = std::str::from_utf8(input) else { return };
    let path = world.config.to_str().unwrap();
    let text = text
        .replace("HASH", &world.hash)
        .replace("PATH", path)
        .replace("INODE", &world.inode.to_string())
        .replace("DEVICE", &world.device.to_string());
    std::fs::write(&world.store, &text).unwrap();
    std::fs::set_permissions(&world.store, Permissions::from_mode(0o600)).unwrap();
    bounded(text.as_bytes(), BOUNDS, || holds(world, &text));
}

fn holds(world: &Fixture, text: &str) {
    let trusted = match load_discovered(&world.config, &world.context) {
        Ok(_) => true,
        Err(ConfigError::Untrusted { .. }) => false,
        Err(ConfigError::TrustStore { .. }) => {
            assert!(Store::open(&world.context).is_err(), "{text}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    assert!(!trusted || names_it(world, text), "trusted by {text}");

    let configs: Vec<Trusted> = Store::open(&world.context).unwrap().configs().collect();
    Store::change(&world.context, |_| ()).unwrap();
    let saved = std::fs::read(&world.store).unwrap();
    let again = Store::open(&world.context).unwrap();
    assert_eq!(again.configs().collect::<Vec<_>>(), configs);
    Store::change(&world.context, |_| ()).unwrap();
    assert_eq!(std::fs::read(&world.store).unwrap(), saved);
    assert_eq!(load_discovered(&world.config, &world.context).is_ok(), trusted);

    for config in configs.iter().filter(|config| is_absolute(config)) {
        forget(&config.path, &world.context).unwrap();
    }
    let left: Vec<Trusted> = Store::open(&world.context).unwrap().configs().collect();
    assert!(!left.iter().any(is_absolute), "{text}");
    assert!(load_discovered(&world.config, &world.context).is_err());
}

/// Whether its path is written as Stockade itself writes it; another one is never found in a working directory.
fn is_absolute(config: &Trusted) -> bool {
    std::path::absolute(&config.path).is_ok_and(|path| path.as_os_str() == config.path.as_os_str())
}

/// Whether some record of the store is of this path with this hash and of this root.
fn names_it(world: &Fixture, text: &str) -> bool {
    let store: Value = serde_json::from_str(text).unwrap();
    let records = store["configs"].as_array().unwrap();
    records.iter().any(|record| {
        let (file, root) = (&record["files"][0], &record["roots"]);
        let bytes = |path: &Value| serde_json::from_value::<Vec<u8>>(path.clone()).ok();
        let path = file["path"].as_str().map(|path| path.as_bytes().to_vec());
        let path = path.or_else(|| bytes(&file["path"]));
        let is_root = |root: &Value| root["name"] == "a" && root["inode"] == world.inode;
        path.as_deref() == world.config.to_str().map(str::as_bytes)
            && file["sha256"] == world.hash.as_str()
            && root.as_array().is_some_and(|roots| roots.iter().any(is_root))
    })
}
