//! Tests `caro model adapter` and `--adapter` end to end, on small files written here.

use crate::machine::Machine;
use serde_json::json;

/// Builds a GGUF file with these strings and this alpha in its header, and tensors of f16 zeros.
fn gguf(texts: &[(&str, &str)], alpha: Option<f32>, tensors: &[(&str, [u64; 2])]) -> Vec<u8> {
    let text = |into: &mut Vec<u8>, text: &str| {
        into.extend((text.len() as u64).to_le_bytes());
        into.extend(text.as_bytes());
    };
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((texts.len() as u64 + u64::from(alpha.is_some())).to_le_bytes());
    for (key, value) in texts {
        text(&mut file, key);
        file.extend(8u32.to_le_bytes());
        text(&mut file, value);
    }
    if let Some(alpha) = alpha {
        text(&mut file, "adapter.lora.alpha");
        file.extend(6u32.to_le_bytes());
        file.extend(alpha.to_le_bytes());
    }
    let mut end = 0u64;
    for (name, dims) in tensors {
        text(&mut file, name);
        file.extend(2u32.to_le_bytes());
        dims.iter().for_each(|dim| file.extend(dim.to_le_bytes()));
        file.extend(1u32.to_le_bytes());
        file.extend(end.to_le_bytes());
        end += (dims[0] * dims[1] * 2).next_multiple_of(32);
    }
    file.resize(file.len().next_multiple_of(32) + end as usize, 0);
    file
}

fn adapter(base: &str) -> Vec<u8> {
    let texts = [
        ("general.architecture", "qwen2"),
        ("general.type", "adapter"),
        ("adapter.type", "lora"),
        ("caro.adapter.prompt", "3"),
        ("caro.adapter.base_sha256", base),
    ];
    let tensors = [("blk.0.ffn_up.weight.lora_a", [1536, 4]), ("blk.0.ffn_up.weight.lora_b", [4, 8960])];
    gguf(&texts, Some(8.0), &tensors)
}

/// The SHA-256 of the default model's file, which this machine does not have.
const BASE: &str = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046";

#[test]
fn an_adapter_is_added_listed_verified_and_removed() {
    let machine = Machine::new();
    machine.write("work/terse.gguf", adapter(BASE));
    let listed = |machine: &Machine| machine.run(&["model", "adapter", "list", "--json"]).json();
    let before = listed(&machine).as_array().unwrap().len();
    let added = machine.run(&["model", "adapter", "add", "terse.gguf"]);
    assert_eq!((added.code, added.out.as_str()), (Some(0), "terse\n"), "{added:#?}");
    assert!(added.err.contains("for qwen2.5-coder-1.5b, which is not here"), "{added:#?}");
    let all = listed(&machine);
    let ours = all.as_array().unwrap().iter().find(|a| a["name"] == "terse").unwrap();
    assert_eq!(
        (&ours["rank"], &ours["prompt"], &ours["model"]),
        (&json!(4), &json!("3"), &json!("qwen2.5-coder-1.5b"))
    );
    assert_eq!((ours["base_sha256"].as_str(), &ours["is_checked"]), (Some(BASE), &json!(false)));
    let lines = machine.run(&["model", "adapter", "list"]).out;
    assert!(lines.lines().any(|line| line.starts_with("terse ") && line.contains("rank 4")), "{lines}");
    let verified = machine.run(&["model", "adapter", "verify", "terse"]);
    assert_eq!(verified.code, Some(0), "{verified:#?}");
    assert!(verified.out.contains("terse.gguf") && verified.out.find("  ") == Some(64), "{verified:#?}");
    let removed = machine.run(&["model", "adapter", "rm", "terse"]);
    assert!(removed.code == Some(0) && removed.out.ends_with("terse.gguf\n"), "{removed:#?}");
    assert_eq!(listed(&machine).as_array().unwrap().len(), before);
}

#[test]
fn invalid_adapters_and_unknown_names_are_rejected() {
    let machine = Machine::new();
    machine.write("work/text.gguf", "no GGUF");
    machine.write("work/model.gguf", gguf(&[("general.architecture", "qwen2"), ("general.type", "model")], None, &[]));
    machine.write("work/other.gguf", adapter(&"a".repeat(64)));
    let run = |args: &[&str]| machine.run(&[&["model", "adapter"], args].concat());
    run(&["add", "nowhere.gguf"]).fails(2, &["no file"]);
    run(&["add", "text.gguf"]).fails(2, &["text.gguf", "GGUF"]);
    run(&["add", "model.gguf"]).fails(2, &["it is a model and no adapter"]);
    run(&["rm", "terse"]).fails(2, &["no adapter is called `terse`"]);
    run(&["verify", "terse"]).fails(2, &["no adapter is called `terse`"]);
    assert_eq!(run(&["add", "other.gguf"]).code, Some(0), "an adapter for a model that is not listed");
    run(&["rm", "terse"]).fails(2, &["other"]);
}

#[test]
fn a_scripted_model_answers_without_an_adapter() {
    let machine = Machine::new();
    machine.write("work/terse.gguf", adapter(BASE));
    for adapter in ["auto", "off", "terse.gguf", "unheard-of"] {
        let ran = machine.ask(json!([{ "reply": "ls -a" }]), &["--adapter", adapter, "--json", "list all files"]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!((&ran.json()["cmd"], ran.json().get("adapter")), (&json!("ls -a"), None), "{adapter}");
    }
}

#[test]
fn a_project_may_not_choose_an_adapter() {
    let machine = Machine::new();
    machine.write("work/.caro.toml", "adapter = \"terse\"\n");
    let ran = machine.run(&["config"]);
    assert!(ran.err.contains("a project may not set `adapter`; it is passed over"), "{ran:#?}");
    assert!(ran.out.lines().any(|line| line.starts_with("adapter = \"auto\"")), "{ran:#?}");
}
