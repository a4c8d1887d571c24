//! Reads an adapter file: low-rank additions to a model's matrices, in llama.cpp's format.
//!
//! It is a GGUF file with `general.type` `adapter`, `adapter.type` `lora`, the architecture of its model,
//! `adapter.lora.alpha`, and for each matrix that it adds to, the two tensors `NAME.lora_a` and `NAME.lora_b`. Two
//! keys are this program's own: `caro.adapter.base_sha256` is the SHA-256 of the model file that it was trained on,
//! `caro.adapter.prompt` its prompt format.

use super::checksum;
use super::config::Config;
use super::gguf::{Gguf, TensorView};
use super::kernels::{LowRank, MAX_RANK, Weight};
use crate::ModelError;
use crate::adapter::AdapterInfo;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

/// The additions to the matrices of one layer.
#[derive(Debug, Default)]
pub(super) struct Additions {
    pub query: Option<LowRank>,
    pub key: Option<LowRank>,
    pub value: Option<LowRank>,
    pub output: Option<LowRank>,
    pub gate: Option<LowRank>,
    pub up: Option<LowRank>,
    pub down: Option<LowRank>,
}

impl Additions {
    /// No additions, as without an adapter.
    pub const NONE: Self = Self { query: None, key: None, value: None, output: None, gate: None, up: None, down: None };
}

/// An adapter that fits its model. Its weights stay in the file until they are used.
pub(super) struct Adapter {
    layers: Vec<Additions>,
    file: Gguf,
    info: AdapterInfo,
    identity: OnceLock<String>,
}

/// The suffixes of the two tensors of an addition.
const HALVES: [&str; 2] = [".lora_a", ".lora_b"];

impl Adapter {
    /// Finds and checks all additions to the model; `base` is the SHA-256 of its file, if known.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for a file that is no adapter, is damaged, lacks a tensor or does not fit the model's
    /// shape; [`ModelError::Unsupported`] for an adapter of another kind or with additions to other parts;
    /// [`ModelError::Foreign`] for an adapter of another model.
    pub fn read(file: Gguf, model: &Gguf, base: Option<&str>) -> Result<Self, ModelError> {
        let mut info = info(&file)?;
        let alpha = alpha(&file)?;
        let (wanted, got) = (model.text("general.architecture"), file.text("general.architecture"));
        if wanted != got {
            let name = |name: Option<&str>| name.unwrap_or("no architecture").to_owned();
            return Err(file.bad(format!("it is for {}, and the model is {}", name(got), name(wanted))));
        }
        if let (Some(wanted), Some(base)) = (&info.base_sha256, base)
            && wanted != base
        {
            return Err(ModelError::Foreign { adapter: file.file().into(), wanted: wanted.clone(), base: base.into() });
        }
        let config = Config::read(model)?;
        let mut layers: Vec<Additions> = (0..config.layers).map(|_| Additions::default()).collect();
        for name in matrices(&file)? {
            let (place, shape) = place(&mut layers, &config, name)
                .ok_or_else(|| ModelError::Unsupported { what: "addition", name: name.into() })?;
            let low = addition(&file, name, shape, alpha)?;
            info.rank = info.rank.max(low.rank());
            *place = Some(low);
        }
        if info.rank == 0 {
            return Err(file.bad("it adds to nothing"));
        }
        Ok(Self { layers, file, info, identity: OnceLock::new() })
    }

    /// Returns the additions to a layer.
    pub fn layer(&self, index: usize) -> &Additions {
        self.layers.get(index).unwrap_or(&Additions::NONE)
    }

    /// Returns its description.
    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// Returns a string that distinguishes it from other adapters, computed from all its bytes at the first call.
    pub fn identity(&self) -> &str {
        self.identity.get_or_init(|| {
            let bytes = self.file.bytes();
            format!("adapter {:x} {:x}\n", bytes.len(), checksum::sum(bytes))
        })
    }
}

/// Reads the description of an adapter file; the rank is that of its first addition, 0 if it has none.
///
/// # Errors
/// [`ModelError::BadFile`] for a file that is no adapter, [`ModelError::Unsupported`] for another kind of adapter.
pub(super) fn info(file: &Gguf) -> Result<AdapterInfo, ModelError> {
    match file.text("general.type") {
        Some("adapter") => {}
        Some(other) => return Err(file.bad(format!("it is a {other} and no adapter"))),
        None => return Err(file.bad("it is not an adapter: it has no `general.type`")),
    }
    match file.text("adapter.type") {
        Some("lora") => {}
        Some(other) => return Err(ModelError::Unsupported { what: "type of adapter", name: other.into() }),
        None => return Err(file.bad("it has no `adapter.type`")),
    }
    let first = file.tensor_names().find(|name| name.ends_with(HALVES[0]));
    let rank = first.map_or(Ok(0), |name| file.tensor(name).map(|half| half.dims.get(1).copied().unwrap_or(0)))?;
    let base_sha256 = file.text("caro.adapter.base_sha256").map(str::to_ascii_lowercase);
    if let Some(sum) = &base_sha256
        && !(sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(file.bad("its `caro.adapter.base_sha256` is not a SHA-256"));
    }
    let name = Path::new(file.file()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(AdapterInfo { name, rank, prompt: file.text("caro.adapter.prompt").map(str::to_owned), base_sha256 })
}

/// Reads the numerator of the scale.
fn alpha(file: &Gguf) -> Result<f32, ModelError> {
    let alpha = file.f32("adapter.lora.alpha").ok_or_else(|| file.bad("it has no `adapter.lora.alpha`"))?;
    if !alpha.is_finite() || alpha < 0.0 {
        return Err(file.bad(format!("its `adapter.lora.alpha` is {alpha}")));
    }
    Ok(alpha)
}

/// Returns the names of the matrices that it adds to.
fn matrices(file: &Gguf) -> Result<BTreeSet<&str>, ModelError> {
    let mut names = BTreeSet::new();
    for tensor in file.tensor_names() {
        let matrix = HALVES.iter().find_map(|half| tensor.strip_suffix(half));
        names.insert(matrix.ok_or_else(|| file.bad(format!("its tensor `{tensor}` is not half of an addition")))?);
    }
    Ok(names)
}

/// Returns the place of an addition to a matrix, and the matrix's rows and columns; `None` for an unsupported matrix.
fn place<'a>(
    layers: &'a mut [Additions],
    config: &Config,
    name: &str,
) -> Option<(&'a mut Option<LowRank>, (usize, usize))> {
    let (index, part) = name.strip_prefix("blk.")?.split_once('.')?;
    // only the spelling of the model's file, so that no layer occurs twice
    let number: usize = index.parse().ok().filter(|n: &usize| n.to_string() == index)?;
    let layer = layers.get_mut(number)?;
    let (width, hidden) = (config.width, config.hidden);
    let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    Some(match part {
        "attn_q.weight" => (&mut layer.query, (queries, width)),
        "attn_k.weight" => (&mut layer.key, (keys, width)),
        "attn_v.weight" => (&mut layer.value, (keys, width)),
        "attn_output.weight" => (&mut layer.output, (width, queries)),
        "ffn_gate.weight" => (&mut layer.gate, (hidden, width)),
        "ffn_up.weight" => (&mut layer.up, (hidden, width)),
        "ffn_down.weight" => (&mut layer.down, (width, hidden)),
        _ => return None,
    })
}

/// Reads and checks both tensors of the addition to a matrix of this shape.
fn addition(file: &Gguf, name: &str, (rows, cols): (usize, usize), alpha: f32) -> Result<LowRank, ModelError> {
    let [a, b] = HALVES.map(|half| format!("{name}{half}"));
    if let Some(missing) = [&a, &b].into_iter().find(|half| !file.has_tensor(half)) {
        return Err(file.bad(format!("it has no tensor `{missing}`, the other half of an addition")));
    }
    let (down, up) = (file.tensor(&a)?, file.tensor(&b)?);
    let rank = down.dims.get(1).copied().unwrap_or(0);
    if rank > MAX_RANK {
        return Err(file.bad(format!("the rank of `{a}` is {rank}, and {MAX_RANK} is the most")));
    }
    let check = |name: &str, half: &TensorView, dims: [usize; 2]| {
        if half.dims == dims { Ok(()) } else { Err(file.bad(format!("its `{name}` is {:?}, not {dims:?}", half.dims))) }
    };
    check(&a, &down, [cols, rank])?;
    check(&b, &up, [rank, rows])?;
    // as in llama.cpp: an alpha of 0 means no scaling
    let scale = if alpha == 0.0 { 1.0 } else { alpha / rank as f32 };
    LowRank::new(Weight::from_tensor(&down)?, Weight::from_tensor(&up)?, scale)
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;
