//! Texts as vectors, so that what means the same can be found without sharing a word. Who computes them is in
//! [`engine`](super::engine); who keeps and compares them knows only this trait.

use super::{ModelError, estimated};

/// The model of the catalog that makes vectors.
pub const EMBEDDING_MODEL: &str = "all-minilm-l6-v2";

/// Makes vectors of texts. Calls take turns.
pub trait Embedder: Send + Sync {
    /// Its id: vectors of different embedders cannot be compared.
    fn id(&self) -> &str;

    /// Does beforehand what the first call would have to: loads weights, say.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    fn prepare(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// One vector of length 1 for each text, in their order; all have the same number of components, so that the dot
    /// product of two is their cosine. Of a long text only the beginning may count.
    ///
    /// # Errors
    /// See [`ModelError`]; an empty text is no error.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError>;

    /// The tokens of all texts that count.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    fn count(&self, texts: &[&str]) -> Result<usize, ModelError> {
        Ok(texts.iter().map(|text| estimated(text)).sum())
    }
}

/// Scales a vector to length 1; one of length 0 stays.
pub(crate) fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

/// Stands in for a model where meaning does not matter: each word adds to the components that its hash says, so that texts
/// are the closer the more words they share.
#[derive(Debug)]
pub struct Hashed;

impl Embedder for Hashed {
    fn id(&self) -> &str {
        "hashed"
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        let one = |text: &&str| {
            let mut vector = vec![0.0; 64];
            for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
                let hash = word.bytes().fold(2_166_136_261_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(16_777_619));
                vector[hash as usize % 64] += 1.0;
            }
            normalize(&mut vector);
            vector
        };
        Ok(texts.iter().map(one).collect())
    }
}
