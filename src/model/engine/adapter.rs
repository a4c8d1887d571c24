//! Reads an adapter file: low-rank additions to a model's matrices, in the form that llama.cpp reads.
//!
//! A GGUF file with `general.type` `adapter`, `adapter.type` `lora`, the architecture of its model, `adapter.lora.alpha`, and for
//! each matrix that it adds to the two tensors `NAME.lora_a` and `NAME.lora_b`. Two keys are this program's own:
//! `caro.adapter.base_sha256` names the model file that it was trained on, `caro.adapter.prompt` its prompt format.

use super::checksum;
use super::config::Config;
use super::gguf::{Gguf, TensorView};
use super::kernels::{LowRank, MAX_RANK, Weight};
use crate::ModelError;
use crate::adapter::AdapterInfo;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

/// What an adapter adds to one layer.
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
    /// Nothing, as without an adapter.
    pub const NONE: Self = Self { query: None, key: None, value: None, output: None, gate: None, up: None, down: None };
}

/// An adapter that fits its model. Its weights stay where they are until they are used.
pub(super) struct Adapter {
    layers: Vec<Additions>,
    file: Gguf,
    info: AdapterInfo,
    identity: OnceLock<String>,
}

/// The two halves of an addition.
const HALVES: [&str; 2] = [".lora_a", ".lora_b"];

impl Adapter {
    /// Finds and checks all additions to the model of this file.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for a file that is no adapter, is damaged, lacks a half or fits no model of this shape;
    /// [`ModelError::Unsupported`] for one of another kind or with additions to other parts; [`ModelError::Foreign`] for one of
    /// another model, which is `base` here, as far as that is known.
    pub fn read(file: Gguf, model: &Gguf, base: Option<&str>) -> Result<Self, ModelError> {
        let mut info = info(&file)?;
        let alpha = alpha(&file)?;
        let (ours, its) = (model.text("general.architecture"), file.text("general.architecture"));
        if ours != its {
            let named = |name: Option<&str>| name.unwrap_or("no architecture").to_owned();
            return Err(file.bad(format!("it is for {}, and the model is {}", named(its), named(ours))));
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

    /// What it adds to a layer.
    pub fn layer(&self, index: usize) -> &Additions {
        self.layers.get(index).unwrap_or(&Additions::NONE)
    }

    /// What it says of itself.
    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// Tells it apart from any other: computed from all of its bytes, when it is asked for first.
    pub fn identity(&self) -> &str {
        self.identity.get_or_init(|| {
            let bytes = self.file.bytes();
            format!("adapter {:x} {:x}\n", bytes.len(), checksum::sum(bytes))
        })
    }
}

/// What an adapter file says of itself; the rank is that of its first addition, 0 if it has none.
///
/// # Errors
/// [`ModelError::BadFile`] for a file that is no adapter, [`ModelError::Unsupported`] for another kind of adapter.
pub(super) fn info(file: &Gguf) -> Result<AdapterInfo, ModelError> {
    match file.text("general.type") {
        Some("adapter") => {}
        Some(other) => return Err(file.bad(format!("it is a {other} and no adapter"))),
        None => return Err(file.bad("it is no adapter: it has no `general.type`")),
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
        return Err(file.bad("its `caro.adapter.base_sha256` is no SHA-256"));
    }
    let name = Path::new(file.file()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(AdapterInfo { name, rank, prompt: file.text("caro.adapter.prompt").map(str::to_owned), base_sha256 })
}

/// The numerator of the scale.
fn alpha(file: &Gguf) -> Result<f32, ModelError> {
    let alpha = file.f32("adapter.lora.alpha").ok_or_else(|| file.bad("it has no `adapter.lora.alpha`"))?;
    if !alpha.is_finite() || alpha < 0.0 {
        return Err(file.bad(format!("its `adapter.lora.alpha` is {alpha}")));
    }
    Ok(alpha)
}

/// The names of the matrices that it adds to.
fn matrices(file: &Gguf) -> Result<BTreeSet<&str>, ModelError> {
    let mut names = BTreeSet::new();
    for tensor in file.tensor_names() {
        let matrix = HALVES.iter().find_map(|half| tensor.strip_suffix(half));
        names.insert(matrix.ok_or_else(|| file.bad(format!("its tensor `{tensor}` is no half of an addition")))?);
    }
    Ok(names)
}

/// Where an addition to a matrix belongs, and the matrix's rows and columns; `None` if nothing is ever added to it.
fn place<'a>(
    layers: &'a mut [Additions],
    config: &Config,
    name: &str,
) -> Option<(&'a mut Option<LowRank>, (usize, usize))> {
    let (index, part) = name.strip_prefix("blk.")?.split_once('.')?;
    // written as the model's file writes it, so that no layer is there twice
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

/// Both halves of the addition to a matrix of this shape.
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
    // as llama.cpp has it: without an alpha nothing is scaled
    let scale = if alpha == 0.0 { 1.0 } else { alpha / rank as f32 };
    LowRank::new(Weight::from_tensor(&down)?, Weight::from_tensor(&up)?, scale)
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;
