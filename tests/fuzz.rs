//! The fuzz targets of `tests/fuzz`, run over their corpora without a fuzzer: each still compiles, and what was once found stays mended.

use std::path::{Path, PathBuf};

#[path = "fuzz/targets.rs"]
mod targets;

/// The files of a target's corpus.
fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).collect()
}

#[test]
fn every_target_goes_through_its_corpus_and_through_pieces_of_it() {
    for (name, target) in targets::ALL {
        let files = corpus(name);
        assert!(!files.is_empty(), "{name} has no corpus");
        for file in files {
            let data = std::fs::read(&file).unwrap();
            assert!(data.len() <= 4096, "{} is large for a seed", file.display());
            // told where it ends in a panic
            println!("{}", file.display());
            target(&data);
            // what a file is that was cut off, or in which a byte was changed
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

/// Each target has its program and its folder, and no folder is without a target.
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
        let there = std::fs::read_dir(folder.join(inside)).unwrap().count();
        assert_eq!(there, targets::ALL.len(), "{inside}");
    }
}

/// Seeds that are refused at their first byte lead no fuzzer anywhere.
#[test]
fn the_seeds_of_files_are_files_that_are_taken() {
    use caro::model::engine::{check_adapter, gguf::Gguf};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let model = folder.join("gguf/qwen2.gguf");
    let adapter = Gguf::open(&folder.join("adapter/lora.gguf")).unwrap();
    assert_eq!(check_adapter(&adapter, &model, None).unwrap().rank, 2);
    assert!(check_adapter(&Gguf::open(&folder.join("adapter/half.gguf")).unwrap(), &model, None).is_err());
}
