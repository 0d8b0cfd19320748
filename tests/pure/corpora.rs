//! Every input that was kept of fuzzing still keeps the laws of its target.
//!
//! The fuzzer goes on from these inputs (`scripts/fuzz.sh`), with coverage, and with a bound on the heap that is not
//! measured here.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use crate::bounds::remove_workplaces;
    use crate::targets::TARGETS;

    fn corpora() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
    }

    fn inputs(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no inputs", folder.display());
        files
    }

    fn keeps_its_laws(name: &str) {
        let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
        let mut files = inputs(&corpora().join(name));
        // What people really write is as good a beginning as any.
        if name == "config" {
            files.extend(inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles")));
        }
        for file in files {
            println!("{}", file.display());
            target(&fs::read(&file).unwrap());
        }
        remove_workplaces();
    }

    macro_rules! targets {
        ($($name:ident)*) => {
            $(
                #[test]
                fn $name() {
                    keeps_its_laws(stringify!($name));
                }
            )*

            #[test]
            fn every_target_has_a_corpus_and_is_run_here() {
                let run = BTreeSet::from([$(stringify!($name).to_owned()),*]);
                let targets = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
                let kept = fs::read_dir(corpora()).unwrap();
                let kept = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
                assert_eq!([&run, &run], [&targets, &kept]);
            }
        };
    }

    targets! { audit config hosts proxy sbpl server shell trust wire }
}
