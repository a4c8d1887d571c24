//! Runs the fuzz targets of `tests/fuzz` over their corpora without a fuzzer: they compile, and fixed bugs stay fixed.

use std::path::{Path, PathBuf};

#[path = "fuzz/targets.rs"]
mod targets;

/// The files of the corpus of a target.
fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).collect()
}

#[test]
fn every_target_accepts_its_corpus_and_variations_of_it() {
    for (name, target) in targets::ALL {
        let files = corpus(name);
        assert!(!files.is_empty(), "{name} has no corpus");
        for file in files {
            let data = std::fs::read(&file).unwrap();
            assert!(data.len() <= 4096, "{} is large for a seed", file.display());
            // a panic then shows its file
            println!("{}", file.display());
            target(&data);
            // truncated files, and files with a changed byte
            for at in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1)] {
                target(&data[..at]);
                let mut changed = data.clone();
                changed[at] ^= 0x80;
                target(&changed);
            }
        }
        target(&[]);
    }
}

/// Each target has its program and its corpus, and there are no others.
#[test]
fn the_fuzz_package_has_the_targets_of_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let package = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in targets::ALL {
        let program = std::fs::read_to_string(folder.join(format!("bins/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("targets::{name}(data)")), "{program}");
        assert!(package.contains(&format!("name = \"{name}\"\npath = \"bins/{name}.rs\"")), "{name}");
    }
    for inside in ["bins", "corpus"] {
        let count = std::fs::read_dir(folder.join(inside)).unwrap().count();
        assert_eq!(count, targets::ALL.len(), "{inside}");
    }
}

/// Seeds must be valid files: from files that are refused at once a fuzzer finds nothing.
#[test]
fn the_seeds_of_model_files_are_valid() {
    use caro::model::engine::{check_adapter, gguf::Gguf};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let model = folder.join("gguf/qwen2.gguf");
    let adapter = Gguf::open(&folder.join("adapter/lora.gguf")).unwrap();
    assert_eq!(check_adapter(&adapter, &model, None).unwrap().rank, 2);
    assert!(check_adapter(&Gguf::open(&folder.join("adapter/half.gguf")).unwrap(), &model, None).is_err());
}
