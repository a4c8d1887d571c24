//! Tests the parser of GGUF files, with damaged files too.

use super::super::gguf_writer::Writer;
use super::*;
use proptest::prelude::*;

fn sample() -> Vec<u8> {
    Writer::default()
        .text("general.architecture", "qwen2")
        .u32("qwen2.block_count", 28)
        .f32("qwen2.rope.freq_base", 1e6)
        .bool("tokenizer.ggml.add_bos_token", false)
        .raw("small", 1, &[0xFE])
        .texts("tokenizer.ggml.tokens", &["!".as_bytes(), b"\xC4\xA0", b""])
        .i32s("tokenizer.ggml.token_type", &[1, -3, 3])
        .floats("norm", &[4], &[1.0, -2.0, 0.5, 3.0])
        .tensor("w", Kind::Q8_0, &[32, 2], &[7; 68])
        .foreign_tensor("odd", 23, &[256], &[0; 16])
        .finish()
}

fn parse(bytes: Vec<u8>) -> Result<Gguf, ModelError> {
    Gguf::parse("test.gguf", Bytes::from(bytes))
}

/// Returns the reason of the `BadFile` that parsing these bytes must return.
fn reason(bytes: Vec<u8>) -> String {
    match parse(bytes).map(|_| ()) {
        Err(ModelError::BadFile { file, reason }) => {
            assert_eq!(file, "test.gguf");
            reason
        }
        other => panic!("not refused as damaged: {other:?}"),
    }
}

#[test]
fn every_type_is_read() {
    let file = parse(sample()).unwrap();
    assert_eq!(file.file(), "test.gguf");
    assert_eq!(file.text("general.architecture"), Some("qwen2"));
    assert_eq!(file.u32("qwen2.block_count"), Some(28));
    assert_eq!(file.f32("qwen2.rope.freq_base"), Some(1e6));
    assert_eq!(file.u32("small"), None, "-2 is not a u32");
    assert_eq!(file.u32("general.architecture"), None);
    assert_eq!(file.text("absent"), None);
    let tokens = file.array("tokenizer.ggml.tokens").unwrap();
    assert_eq!(tokens.len(), 3);
    assert_eq!(tokens.strings().unwrap().collect::<Vec<_>>(), [b"!".as_slice(), b"\xC4\xA0", b""]);
    assert!(tokens.integers().is_none());
    let types = file.array("tokenizer.ggml.token_type").unwrap();
    assert_eq!(types.integers().unwrap().collect::<Vec<_>>(), [1, -3, 3]);
    assert!(types.strings().is_none());
}

#[test]
fn tensors_are_read_in_place() {
    let file = parse(sample()).unwrap();
    assert_eq!(file.tensor_names().collect::<Vec<_>>(), ["norm", "w", "odd"]);
    let norm = file.tensor("norm").unwrap();
    assert_eq!(norm.to_f32(), [1.0, -2.0, 0.5, 3.0]);
    let w = file.tensor("w").unwrap();
    assert_eq!((w.kind, w.dims.as_slice(), &*w.bytes), (Kind::Q8_0, [32, 2].as_slice(), [7; 68].as_slice()));
    assert!(matches!(file.tensor("absent"), Err(ModelError::BadFile { .. })));
    assert!(file.has_tensor("odd"));
    let unknown = file.tensor("odd").unwrap_err();
    assert!(matches!(unknown, ModelError::Unsupported { what: "quantization", .. }), "{unknown}");
}

#[test]
fn every_truncation_is_refused() {
    let whole = sample();
    // after the last known tensor there are only bytes of the unknown one, whose size is unknown
    let end = whole.len() - 16 - 28;
    for length in 0..end {
        reason(whole[..length].to_vec());
    }
}

#[test]
fn foreign_files_are_refused() {
    assert!(reason(b"PK\x03\x04 a zip".to_vec()).contains("GGUF"));
    assert!(reason(Vec::new()).contains("GGUF"));
    for version in [1u32, 4, 3u32.swap_bytes()] {
        let mut file = sample();
        file[4..8].copy_from_slice(&version.to_le_bytes());
        assert!(matches!(parse(file), Err(ModelError::Unsupported { .. })), "{version}");
    }
    assert!(matches!(Gguf::open(Path::new("no/such/file.gguf")), Err(ModelError::BadFile { .. })));
}

#[test]
fn contradictions_are_refused() {
    let absurd = Writer::default().floats("t", &[u64::MAX, u64::MAX], &[]).finish();
    assert!(reason(absurd).contains("absurd"));
    let overflow = Writer::default().floats("t", &[1 << 62], &[]).finish();
    assert!(reason(overflow).contains("outside"));
    let beyond = Writer::default().floats("t", &[1 << 40], &[]).finish();
    assert!(reason(beyond).contains("truncated"));
    let empty = Writer::default().floats("t", &[0], &[]).finish();
    assert!(reason(empty).contains("empty"));
    let broken = Writer::default().tensor("t", Kind::Q4K, &[100], &[0; 144]).finish();
    assert!(reason(broken).contains("Q4_K blocks"));
    let flat = Writer::default().floats("t", &[], &[]).finish();
    assert!(reason(flat).contains("0 dimensions"));
    let twice = Writer::default().u32("a", 1).u32("a", 2).finish();
    assert!(reason(twice).contains("twice"));
    let twice = Writer::default().floats("t", &[1], &[1.0]).floats("t", &[1], &[1.0]).finish();
    assert!(reason(twice).contains("twice"));
    let odd = Writer::default().u32("general.alignment", 24).finish();
    assert!(reason(odd).contains("power of two"));
    let nested = Writer::default().raw("a", 9, &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).finish();
    assert!(reason(nested).contains("array of type 9"));
    let unknown = Writer::default().raw("a", 77, &[]).finish();
    assert!(reason(unknown).contains("unknown type 77"));
    for (at, what) in [(8, "tensor"), (16, "metadata")] {
        let mut many = sample();
        many[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let reason = reason(many);
        assert!(!reason.is_empty(), "{what}");
    }
}

proptest! {
    /// Whatever bytes of the header change, parsing does not panic, and all readable tensors are inside the file.
    #[test]
    fn mutations_never_panic(changes in prop::collection::vec((0usize..600, any::<u8>()), 1..8), cut in 0usize..2000) {
        let mut bytes = sample();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(cut.max(8));
        if let Ok(file) = parse(bytes) {
            for name in file.tensor_names() {
                if let Ok(tensor) = file.tensor(name) {
                    prop_assert_eq!(tensor.bytes.len(), tensor.kind.row_bytes(tensor.elements()));
                    prop_assert_eq!(tensor.to_f32().len(), tensor.elements());
                }
            }
            for key in ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type"] {
                if let Some(array) = file.array(key) {
                    let strings = array.strings().map(|s| s.count());
                    let integers = array.integers().map(|s| s.count());
                    prop_assert!(strings.or(integers).is_none_or(|count| count == array.len()));
                }
            }
        }
    }

    #[test]
    fn noise_never_panics(mut noise in prop::collection::vec(any::<u8>(), 24..400)) {
        noise[..8].copy_from_slice(b"GGUF\x03\0\0\0");
        let _ = parse(noise);
    }
}
