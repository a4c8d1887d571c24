//! `POST /v1/embeddings`: converts texts to vectors, with the embedding model of the catalogue. The first request
//! loads it; no request fetches it.

use super::super::commands::CancelOnDrop;
use super::super::{Problem, Server};
use super::answer::problem;
use super::fields::{Body, Fields, invalid, unsupported};
use super::model_not_found;
use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caro_model::embed::{EMBEDDING_MODEL, Embedder};
use caro_model::{Cancel, ModelError};
use serde_json::{Value, json};
use std::sync::Arc;

/// Most texts of a request. Source: the protocol's reference.
const MAX_TEXTS: usize = 2048;
/// Texts computed between two checks for cancellation.
const BATCH: usize = 32;

/// Computes vectors.
///
/// # Errors
/// Names the field that is invalid or not supported; also if the model is not on this machine.
pub async fn embeddings(State(server): State<Arc<Server>>, body: Body) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    let fields = body.fields();
    if let Some(name) = fields.text("model")?
        && name.rsplit('/').next().is_none_or(|name| !name.eq_ignore_ascii_case(EMBEDDING_MODEL))
    {
        return Err(model_not_found(name, &format!("vectors are made by {EMBEDDING_MODEL}")));
    }
    let is_base64 = match fields.text("encoding_format")? {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(invalid("encoding_format", "float or base64")),
    };
    let dimensions = fields.count("dimensions", 1..=u64::MAX)?;
    let texts = texts(&fields)?;
    let cancel = CancelOnDrop::default();
    let stop = cancel.0.clone();
    let result = tokio::task::spawn_blocking(move || {
        let Some(model) = engine.embedding.model() else { return Ok(None) };
        embed(&*model, &texts, &stop).map(|(vectors, tokens)| Some((model.id().to_owned(), vectors, tokens)))
    });
    let result = result.await.map_err(Problem::internal)?.map_err(problem)?;
    let Some((id, vectors, tokens)) = result else {
        return Err(Problem::not_found(format!("{EMBEDDING_MODEL} has not been fetched to this machine"))
            .detail(format!("`caro model pull {EMBEDDING_MODEL}` fetches it; then ask again"))
            .param("model")
            .code("model_not_found"));
    };
    let size = vectors.first().map_or(0, Vec::len);
    if dimensions.is_some_and(|wanted| wanted != size) {
        return Err(unsupported("dimensions", &format!("vectors of this model have {size} numbers")));
    }
    let item = |(index, vector): (usize, &Vec<f32>)| {
        let vector = if is_base64 { base64(vector).into() } else { json!(vector) };
        json!({"object": "embedding", "index": index, "embedding": vector})
    };
    let data: Vec<Value> = vectors.iter().enumerate().map(item).collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(Json(json!({"object": "list", "model": id, "data": data, "usage": usage})))
}

/// Reads the texts of a request.
fn texts(fields: &Fields<'_>) -> Result<Vec<String>, Problem> {
    let texts: Vec<String> = match fields.get("input") {
        None => return Err(fields.missing("input")),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) if many.iter().any(|one| one.is_number() || one.is_array()) => {
            return Err(unsupported(
                "input",
                "send texts, not numbers of tokens: they mean another thing to each model",
            ));
        }
        Some(Value::Array(many)) => {
            let texts: Option<Vec<String>> = many.iter().map(|one| one.as_str().map(str::to_owned)).collect();
            texts.ok_or_else(|| invalid("input", "a string or a list of strings"))?
        }
        Some(_) => return Err(invalid("input", "a string or a list of strings")),
    };
    if texts.is_empty() || texts.len() > MAX_TEXTS || texts.iter().any(String::is_empty) {
        return Err(invalid("input", &format!("a text or up to {MAX_TEXTS} texts, none of them empty")));
    }
    Ok(texts)
}

/// Computes the vectors of texts, and the number of their tokens. Stops early if it is cancelled.
fn embed(model: &dyn Embedder, texts: &[String], cancel: &Cancel) -> Result<(Vec<Vec<f32>>, usize), ModelError> {
    let (mut vectors, mut tokens) = (Vec::with_capacity(texts.len()), 0);
    for batch in texts.chunks(BATCH) {
        if cancel.is_cancelled() {
            break;
        }
        let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
        vectors.extend(model.embed(&batch)?);
        tokens += model.count(&batch)?;
    }
    Ok((vectors, tokens))
}

/// Encodes a vector as base64, each number as 4 bytes in little-endian order.
fn base64(vector: &[f32]) -> String {
    STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::super::super::embedding::Embedding;
    use super::*;
    use caro_model::embed::Hashed;

    #[test]
    fn a_vector_is_encoded_in_little_endian_order() {
        assert_eq!(base64(&[f32::from_le_bytes(*b"Man ")]), "TWFuIA==");
        assert_eq!(base64(&[1.0, -2.0]), "AACAPwAAAMA=");
    }

    #[test]
    fn each_text_has_its_vector_and_a_cancelled_request_costs_nothing() {
        let texts: Vec<String> = (0..70).map(|i| format!("word{i}")).collect();
        let (vectors, tokens) = embed(&Hashed, &texts, &Cancel::new()).unwrap();
        assert_eq!((vectors.len(), vectors[69] == Hashed.embed(&["word69"]).unwrap()[0]), (70, true));
        assert!(tokens >= 70, "{tokens}");
        let cancelled = Cancel::new();
        cancelled.cancel();
        assert_eq!(embed(&Hashed, &texts, &cancelled).unwrap().0.len(), 0);
    }

    #[test]
    fn the_model_is_searched_for_until_it_is_found() {
        let searches = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = searches.clone();
        let embedding = Embedding::new(Box::new(move || {
            let earlier = counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            (earlier > 0).then(|| Arc::new(Hashed) as Arc<dyn Embedder>)
        }));
        assert!(embedding.model().is_none());
        assert!(embedding.model().is_some() && embedding.model().is_some());
        assert_eq!(searches.load(std::sync::atomic::Ordering::SeqCst), 2);
    }
}
