//! Reads the description of a model from the header of its GGUF file.

use crate::ModelError;
use crate::engine::gguf::Gguf;
use std::path::Path;

/// The description of a model in its GGUF header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Architecture.
    pub(super) arch: String,
    /// Name for people, if given.
    pub(super) name: Option<String>,
    /// Licence, if given.
    pub(super) licence: Option<String>,
    /// Usual name of its quantization, if it has one.
    pub(super) quant: Option<&'static str>,
    /// Context length in tokens, if given.
    pub(super) ctx: Option<usize>,
    /// True if every matrix's inner dimension divides by 256.
    pub(super) k_aligned: bool,
}

/// Reads the header of a GGUF and checks its tensor table against the file's size.
///
/// # Errors
/// In words, if it is no valid GGUF.
pub(super) fn read(path: &Path) -> Result<Header, String> {
    let file = Gguf::open(path).map_err(|error| match error {
        ModelError::BadFile { reason, .. } => reason,
        other => other.to_string(),
    })?;
    let text = |key: &str| file.text(key).filter(|t| !t.is_empty()).map(str::to_string);
    let arch = text("general.architecture").ok_or("it names no architecture")?;
    let is_aligned = |name: &str| {
        let dims = file.tensor(name).map(|tensor| tensor.dims);
        // the engine refuses a matrix of an unknown kind
        dims.is_ok_and(|dims| dims.len() != 2 || dims[0].is_multiple_of(256))
    };
    Ok(Header {
        name: text("general.name"),
        licence: text("general.license"),
        quant: file.u32("general.file_type").and_then(quant_name),
        ctx: file.u32(&format!("{arch}.context_length")).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0),
        k_aligned: file.tensor_names().all(is_aligned),
        arch,
    })
}

/// Returns the usual name of a `general.file_type` (the enumeration `llama_ftype` of llama.cpp).
fn quant_name(file_type: u32) -> Option<&'static str> {
    const NAMES: [(u32, &str); 17] = [
        (0, "F32"),
        (1, "F16"),
        (2, "Q4_0"),
        (3, "Q4_1"),
        (7, "Q8_0"),
        (8, "Q5_0"),
        (9, "Q5_1"),
        (10, "Q2_K"),
        (11, "Q3_K_S"),
        (12, "Q3_K_M"),
        (13, "Q3_K_L"),
        (14, "Q4_K_S"),
        (15, "Q4_K_M"),
        (16, "Q5_K_S"),
        (17, "Q5_K_M"),
        (18, "Q6_K"),
        (32, "BF16"),
    ];
    NAMES.iter().find(|(number, _)| *number == file_type).map(|(_, name)| *name)
}
