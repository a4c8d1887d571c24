//! Builds the parts of an engine from a GGUF file.

use super::adapter::Adapter;
use super::backend::Backend;
use super::candle::Candle;
use super::config::Architecture;
use super::forward::Forward;
use super::gguf::Gguf;
use super::kernels::{Kernels, Tier};
use super::template::Template;
use super::threads::Pool;
use super::tokenizer::{Source, Tokenizer};
use super::{AdapterOptions, Device, EngineKind, Options};
use crate::ModelError;
use std::path::Path;
use std::sync::Arc;

/// Builds the tokenizer that the file describes.
///
/// # Errors
/// [`ModelError::Unsupported`] for an unsupported tokenizer, [`ModelError::BadFile`] for a damaged one.
pub(super) fn tokenizer(gguf: &Gguf) -> Result<Tokenizer, ModelError> {
    let text = |key: &str| gguf.text(key).ok_or_else(|| gguf.bad(format!("it has no `{key}`")));
    let strings = |key: &str| {
        let array = gguf.array(key).and_then(|array| array.strings());
        array.ok_or_else(|| gguf.bad(format!("it has no list `{key}`")))
    };
    let model = text("tokenizer.ggml.model")?;
    let unsupported = |name: &str| ModelError::Unsupported { what: "tokenizer", name: name.into() };
    if model != "gpt2" {
        return Err(unsupported(model));
    }
    // a file without this key does not say how it splits text
    let pre = gguf.text("tokenizer.ggml.pre").ok_or_else(|| unsupported("gpt2 without `tokenizer.ggml.pre`"))?;
    let mut kinds: Box<dyn Iterator<Item = i32>> = match gguf.array("tokenizer.ggml.token_type") {
        None => Box::new(std::iter::empty()),
        Some(array) => match array.integers() {
            Some(kinds) => Box::new(kinds.map(|kind| kind as i32)),
            None => return Err(gguf.bad("its `tokenizer.ggml.token_type` are no numbers")),
        },
    };
    let (mut tokens, mut merges) = (strings("tokenizer.ggml.tokens")?, strings("tokenizer.ggml.merges")?);
    let source = Source { model, pre, tokens: &mut tokens, kinds: &mut kinds, merges: &mut merges };
    Tokenizer::build(source, &|reason| gguf.bad(reason))
}

/// Returns the chat template, and the tokens that end the model's turn.
///
/// # Errors
/// [`ModelError::Unsupported`] for a template of another family, [`ModelError::BadFile`] for an end token without a
/// logit.
pub(super) fn template(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<(Template, Vec<u32>), ModelError> {
    let template = Template::detect(gguf.text("tokenizer.chat_template").unwrap_or_default(), tokenizer)?;
    let declared =
        ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"].into_iter().filter_map(|key| gguf.u32(key));
    let ends = template.ends(declared, tokenizer);
    let vocab = gguf.tensor("token_embd.weight")?.dims.get(1).copied().unwrap_or(0);
    match ends.iter().find(|&&id| id as usize >= vocab) {
        Some(id) => Err(gguf.bad(format!("its end token {id} is none of its {vocab} tokens"))),
        None => Ok((template, ends)),
    }
}

/// Returns the backend that computes this model on the requested device.
///
/// # Errors
/// See [`super::Engine::open`].
pub(super) fn backend(gguf: &Gguf, path: &Path, options: &Options) -> Result<Box<dyn Backend>, ModelError> {
    let architecture = gguf.text("general.architecture").unwrap_or_default();
    let trained = gguf.u32(&format!("{architecture}.context_length")).unwrap_or(u32::MAX) as usize;
    let context = options.context.min(trained).max(1);
    let fits_own = fits_own_engine(architecture, options.device);
    let is_own = match options.engine {
        EngineKind::Auto => fits_own,
        EngineKind::Candle => false,
        EngineKind::Own if fits_own => true,
        EngineKind::Own => {
            let known = Architecture::ALL.map(|(name, _)| name).join(", ");
            let name = format!("own, which computes {known} on the CPU only");
            return Err(ModelError::Unsupported { what: "engine", name });
        }
    };
    if is_own {
        return cpu(gguf, options, context);
    }
    if let Some(AdapterOptions { file, is_required: true, .. }) = &options.adapter {
        return Err(ModelError::Unsupported {
            what: "adapter",
            name: format!("{} where candle computes", file.file()),
        });
    }
    Ok(Box::new(Candle::open(gguf, path, options.device, context)?))
}

/// True if the own engine computes this architecture on this device.
fn fits_own_engine(architecture: &str, device: Device) -> bool {
    let is_on_cpu = match device {
        Device::Cpu => true,
        Device::Auto => !Candle::has_accelerator(),
        Device::Cuda | Device::Metal => false,
    };
    is_on_cpu && Architecture::from_name(architecture).is_some()
}

fn cpu(gguf: &Gguf, options: &Options, context: usize) -> Result<Box<dyn Backend>, ModelError> {
    let pool = match options.threads {
        Some(threads) => Pool::new(threads.max(1)),
        None => Pool::for_this_machine(),
    };
    let tier = match options.tier {
        None => Tier::detect(),
        Some(tier) if tier.is_available() => tier,
        Some(tier) => return Err(ModelError::Unsupported { what: "instruction set", name: tier.to_string() }),
    };
    let forward = Forward::new(gguf, Kernels::new(Arc::new(pool), tier), context)?;
    let read = |adapter: &AdapterOptions| Adapter::read(adapter.file.clone(), gguf, adapter.base_sha256.as_deref());
    Ok(Box::new(forward.with_adapter(options.adapter.as_ref().map(read).transpose()?)))
}
