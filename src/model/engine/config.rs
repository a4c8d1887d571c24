//! Reads the sizes and constants of a model from its metadata, and checks them before anything is computed with them.

use super::gguf::Gguf;
use crate::ModelError;

/// Architectures with a forward pass here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    /// Qwen 2, 2.5 and their Coder models: biases on q, k and v.
    Qwen2,
    /// Llama 3.x, SmolLM2: rotary pairs are neighbours.
    Llama,
    /// Qwen 3, dense: norms on each head of q and k.
    Qwen3,
}

impl Architecture {
    /// All of them, with their names in model files.
    pub const ALL: [(&str, Self); 3] = [("qwen2", Self::Qwen2), ("qwen3", Self::Qwen3), ("llama", Self::Llama)];

    /// Returns the architecture with this name in model files; `None` if it has no forward pass here.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, architecture)| *architecture)
    }

    /// True if q, k and v must have biases. With any architecture they may have them.
    pub fn requires_biases(self) -> bool {
        match self {
            Self::Qwen2 => true,
            Self::Llama | Self::Qwen3 => false,
        }
    }

    /// True if each head of q and k has a norm.
    pub fn has_head_norms(self) -> bool {
        match self {
            Self::Qwen3 => true,
            Self::Qwen2 | Self::Llama => false,
        }
    }

    /// True if a rotary pair is `(i, i + half)`, false if it is `(2i, 2i + 1)`. The GGUF converter permutes the weights
    /// of Llama models for the latter.
    fn rotates_halves(self) -> bool {
        match self {
            Self::Qwen2 | Self::Qwen3 => true,
            Self::Llama => false,
        }
    }
}

/// The parameters of rotary positions (Su et al. 2021).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rope {
    /// Angle per position of each pair.
    pub frequencies: Vec<f32>,
    /// True if a pair is `(i, i + half)`, false if it is `(2i, 2i + 1)`.
    pub halves: bool,
}

/// Sizes and constants of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Config {
    /// The architecture.
    pub architecture: Architecture,
    /// Number of blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width inside the feed-forward part.
    pub hidden: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; each serves `heads / kv_heads` heads of queries.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Term that keeps the norms from dividing by zero.
    pub eps: f32,
    /// Rotary positions.
    pub rope: Rope,
}

impl Config {
    /// Reads and checks the metadata.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for an unsupported architecture or scaling of positions, [`ModelError::BadFile`] for
    /// values that are missing or invalid.
    pub fn read(gguf: &Gguf) -> Result<Self, ModelError> {
        let name = gguf.text("general.architecture").ok_or_else(|| gguf.bad("it names no architecture"))?;
        let unsupported = || ModelError::Unsupported { what: "architecture", name: name.into() };
        let architecture = Architecture::from_name(name).ok_or_else(unsupported)?;
        let optional = |key: &str| gguf.u32(&format!("{name}.{key}")).map(|n| n as usize);
        let number = |key: &str, most: usize| {
            let found = gguf.number(&format!("{name}.{key}"), most)?;
            found.ok_or_else(|| gguf.bad(format!("it has no `{name}.{key}`")))
        };
        let width = number("embedding_length", 1 << 16)?;
        let heads = number("attention.head_count", 1 << 10)?;
        let kv_heads = match optional("attention.head_count_kv") {
            None => heads,
            Some(_) => number("attention.head_count_kv", heads)?,
        };
        let head_dim = match optional("attention.key_length") {
            None => width / heads,
            Some(_) => number("attention.key_length", 1 << 10)?,
        };
        if !heads.is_multiple_of(kv_heads) || head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(gguf.bad(format!("{heads} heads of {head_dim} over {kv_heads} make no attention")));
        }
        if optional("attention.value_length").is_some_and(|n| n != head_dim) {
            return Err(ModelError::Unsupported { what: "attention", name: "values wider than keys".into() });
        }
        let eps = gguf
            .f32(&format!("{name}.attention.layer_norm_rms_epsilon"))
            .filter(|eps| (0.0..1.0).contains(eps))
            .ok_or_else(|| gguf.bad("it has no sound `layer_norm_rms_epsilon`"))?;
        let embedding = gguf.tensor("token_embd.weight")?;
        let vocab = embedding.dims.get(1).copied().unwrap_or(0);
        if embedding.dims[0] != width || vocab == 0 {
            return Err(gguf.bad(format!("its embedding is {:?}, not {width} wide", embedding.dims)));
        }
        Ok(Self {
            architecture,
            layers: number("block_count", 1 << 10)?,
            width,
            hidden: number("feed_forward_length", 1 << 18)?,
            heads,
            kv_heads,
            head_dim,
            vocab,
            eps,
            rope: Rope::read(gguf, name, architecture, head_dim)?,
        })
    }

    /// Returns the number of query heads that share a head of keys and values.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}

impl Rope {
    fn read(gguf: &Gguf, name: &str, architecture: Architecture, head_dim: usize) -> Result<Self, ModelError> {
        let base = gguf.f32(&format!("{name}.rope.freq_base")).unwrap_or(10_000.0);
        if !(base.is_finite() && base >= 1.0) {
            return Err(gguf.bad(format!("its `{name}.rope.freq_base` is {base}")));
        }
        let dims = gguf.u32(&format!("{name}.rope.dimension_count")).map_or(head_dim, |n| n as usize);
        if dims == 0 || dims > head_dim || !dims.is_multiple_of(2) {
            return Err(gguf.bad(format!("it turns {dims} of {head_dim} dimensions")));
        }
        let stretch = match gguf.text(&format!("{name}.rope.scaling.type")) {
            None | Some("none") => 1.0,
            Some("linear") => gguf.f32(&format!("{name}.rope.scaling.factor")).filter(|f| *f > 0.0).unwrap_or(1.0),
            Some(other) => return Err(ModelError::Unsupported { what: "rope scaling", name: other.into() }),
        };
        let half = dims / 2;
        // Llama 3.1 and later divide the frequency of each pair by a factor
        let factors = if gguf.has_tensor("rope_freqs.weight") {
            let view = gguf.tensor("rope_freqs.weight")?;
            // the size is checked first: a hostile file may have a tensor that is huge when unpacked
            let factors = (view.elements() == half).then(|| view.to_f32());
            let factors = factors.filter(|all| all.iter().all(|f| f.is_finite() && *f != 0.0));
            factors.ok_or_else(|| gguf.bad("its `rope_freqs.weight` does not fit"))?
        } else {
            vec![1.0; half]
        };
        let frequencies = factors
            .iter()
            .enumerate()
            .map(|(i, factor)| 1.0 / base.powf(2.0 * i as f32 / dims as f32) / factor / stretch)
            .collect();
        Ok(Self { frequencies, halves: architecture.rotates_halves() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Field, Tiny};
    use super::*;

    fn read(tiny: &Tiny) -> Result<Config, ModelError> {
        Config::read(&testing::parse(&tiny.bytes()))
    }

    #[test]
    fn the_configs_of_the_tiny_models_are_read() {
        for (name, architecture, halves) in [
            ("qwen2", Architecture::Qwen2, true),
            ("llama", Architecture::Llama, false),
            ("qwen3", Architecture::Qwen3, true),
        ] {
            let config = read(&Tiny::new(name)).unwrap();
            assert_eq!(config.architecture, architecture);
            assert_eq!((config.layers, config.width, config.heads, config.kv_heads), (2, 64, 4, 2));
            assert_eq!((config.head_dim, config.group(), config.rope.halves), (16, 2, halves));
            assert_eq!(config.rope.frequencies.len(), 8);
            assert_eq!(config.rope.frequencies[0], 1.0);
        }
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_key() {
        let with = |key: &str, value| {
            let mut tiny = Tiny::new("qwen2");
            tiny.set(key, value);
            read(&tiny).unwrap_err().to_string()
        };
        assert!(with("qwen2.block_count", Field::U32(0)).contains("block_count"));
        assert!(with("qwen2.block_count", Field::U32(u32::MAX)).contains("block_count"));
        assert!(with("qwen2.embedding_length", Field::U32(32)).contains("not 32 wide"));
        assert!(with("qwen2.attention.head_count_kv", Field::U32(3)).contains("no attention"));
        assert!(with("qwen2.attention.layer_norm_rms_epsilon", Field::F32(f32::NAN)).contains("epsilon"));
        assert!(with("qwen2.rope.freq_base", Field::F32(0.0)).contains("freq_base"));
        assert!(with("qwen2.rope.scaling.type", Field::Text("yarn".into())).contains("yarn"));
        assert!(with("general.architecture", Field::Text("mamba".into())).contains("mamba"));
        let mut tiny = Tiny::new("qwen2");
        // the context length is optional
        tiny.remove("qwen2.context_length");
        assert!(read(&tiny).is_ok());
        tiny.remove("qwen2.feed_forward_length");
        assert!(read(&tiny).unwrap_err().to_string().contains("feed_forward_length"));
    }
}
