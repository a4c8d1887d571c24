//! A small model file for tests.

/// Builds a small valid GGUF file with `data` bytes of tensors (a multiple of 8).
pub fn sample(data: usize) -> Vec<u8> {
    let text = |out: &mut Vec<u8>, t: &str| {
        out.extend((t.len() as u64).to_le_bytes());
        out.extend(t.as_bytes());
    };
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend(1u64.to_le_bytes());
    out.extend(3u64.to_le_bytes());
    text(&mut out, "general.architecture");
    out.extend(8u32.to_le_bytes());
    text(&mut out, "llama");
    text(&mut out, "llama.context_length");
    out.extend(4u32.to_le_bytes());
    out.extend(512u32.to_le_bytes());
    text(&mut out, "tokenizer.ggml.tokens");
    out.extend(9u32.to_le_bytes());
    out.extend(8u32.to_le_bytes());
    out.extend(2u64.to_le_bytes());
    text(&mut out, "a");
    text(&mut out, "b");
    text(&mut out, "w");
    out.extend(1u32.to_le_bytes());
    out.extend((data as u64 / 4).to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.resize(out.len().next_multiple_of(32), 0);
    // bytes that neither compress nor repeat (xorshift64), so that every truncation or shift shows
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..data / 8 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out.extend(x.to_le_bytes());
    }
    out
}
