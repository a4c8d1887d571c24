//! The interface of embedding models, which turn texts into vectors, so that texts of similar meaning are found even if
//! they share no word. [`engine`](super::engine) implements it.

use super::{ModelError, estimated};

/// The id of the catalog's embedding model.
pub const EMBEDDING_MODEL: &str = "all-minilm-l6-v2";

/// An embedding model. Calls take turns.
pub trait Embedder: Send + Sync {
    /// Returns its id: vectors of different embedders cannot be compared.
    fn id(&self) -> &str;

    /// Does the set-up of the first call in advance, such as loading weights.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    fn prepare(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// Returns one vector of length 1 for each text, in order. All have the same number of components, so that the dot
    /// product of two is their cosine. Of a long text only the beginning may count.
    ///
    /// # Errors
    /// See [`ModelError`]; an empty text is no error.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError>;

    /// Returns the number of tokens that [`Embedder::embed`] uses of all texts together.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    fn count(&self, texts: &[&str]) -> Result<usize, ModelError> {
        Ok(texts.iter().map(|text| estimated(text)).sum())
    }
}

/// Scales a vector to length 1; a zero vector stays as it is.
pub(crate) fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

/// An embedder without a model: each word adds 1 to the component that its hash selects, so that texts are the closer
/// the more words they share.
#[derive(Debug)]
pub struct Hashed;

impl Embedder for Hashed {
    fn id(&self) -> &str {
        "hashed"
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        let embed_one = |text: &&str| {
            let mut vector = vec![0.0; 64];
            for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
                let hash = word.bytes().fold(2_166_136_261_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(16_777_619));
                vector[hash as usize % 64] += 1.0;
            }
            normalize(&mut vector);
            vector
        };
        Ok(texts.iter().map(embed_one).collect())
    }
}
