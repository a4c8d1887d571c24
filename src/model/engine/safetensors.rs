//! Reads the safetensors format, as far as an encoder's file needs it: a length, a JSON header, then the tensors'
//! bytes. Source: the format's own description, <https://github.com/huggingface/safetensors>.

use super::bytes::Bytes;
use super::quant::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most bytes of a header; the format's own limit.
const MAX_HEADER: usize = 100_000_000;

/// A file's tensors by name.
pub(super) struct SafeTensors {
    tensors: BTreeMap<String, Entry>,
    data: Bytes,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// A tensor's bytes: row-major, the last dimension the fastest.
pub(super) struct Tensor {
    /// The format of its numbers; not quantised.
    pub kind: Kind,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl SafeTensors {
    /// Reads the header of a file. The error says, in words, what is wrong with it.
    pub fn new(file: &Bytes) -> Result<Self, String> {
        let short = || "it is cut off".to_owned();
        let length = file.first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|n| *n <= MAX_HEADER);
        let end = 8 + length.ok_or("its header is too long")?;
        let header = file.slice(8..end).ok_or_else(short)?;
        let mut header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&header).map_err(|e| format!("its header is not JSON: {e}"))?;
        header.remove("__metadata__");
        let tensors = header
            .into_iter()
            .map(|(name, entry)| Ok((name, serde_json::from_value(entry)?)))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(|e| format!("its header: {e}"))?;
        let data = file.slice(end..file.len()).ok_or_else(short)?;
        Ok(Self { tensors, data })
    }

    /// True if there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns the tensor of this name, which must have this shape. The error says, in words, what is wrong.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, String> {
        let entry = self.tensors.get(name).ok_or_else(|| format!("there is no tensor {name}"))?;
        let kind = match entry.dtype.as_str() {
            "F32" => Kind::F32,
            "F16" => Kind::F16,
            "BF16" => Kind::BF16,
            other => return Err(format!("tensor {name} has numbers of type {other}")),
        };
        if entry.shape != shape {
            return Err(format!("tensor {name} has the shape {:?} and not {shape:?}", entry.shape));
        }
        let count = shape.iter().try_fold(1usize, |count, n| count.checked_mul(*n));
        let bytes = self.data.slice(entry.data_offsets[0]..entry.data_offsets[1]);
        match (bytes, count.map(|count| kind.row_bytes(count))) {
            (Some(bytes), Some(size)) if bytes.len() == size => Ok(Tensor { kind, shape: entry.shape.clone(), bytes }),
            _ => Err(format!("tensor {name} does not lie in the file as its shape says")),
        }
    }
}

impl Tensor {
    /// Converts its numbers to `f32`.
    pub fn numbers(&self) -> Vec<f32> {
        let mut numbers = vec![0.0; self.shape.iter().product()];
        self.kind.dequantize(&self.bytes, &mut numbers);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Bytes {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes.into()
    }

    #[test]
    fn tensors_are_found_by_name_and_shape() {
        let header = r#"{"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
                         "b": {"dtype": "F16", "shape": [1], "data_offsets": [8, 10]}}"#;
        let data: Vec<u8> = [1f32, -2.5].iter().flat_map(|x| x.to_le_bytes()).chain([0x00, 0x3c]).collect();
        let file = SafeTensors::new(&file(header, &data)).unwrap();
        assert_eq!(file.tensor("a", &[1, 2]).unwrap().numbers(), [1.0, -2.5]);
        assert_eq!(file.tensor("b", &[1]).unwrap().numbers(), [1.0]);
        assert!(file.has("a") && !file.has("__metadata__"));
        assert!(file.tensor("c", &[1]).is_err() && file.tensor("a", &[2, 1]).is_err());
    }

    #[test]
    fn invalid_files_are_errors() {
        let one =
            |entry: &str| SafeTensors::new(&file(&format!("{{\"a\": {entry}}}"), &[0; 8])).map(|f| f.tensor("a", &[2]));
        for entry in [
            r#"{"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}"#,
            r#"{"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}"#,
            r#"{"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}"#,
            r#"{"dtype": "I64", "shape": [2], "data_offsets": [0, 8]}"#,
        ] {
            assert!(one(entry).unwrap().is_err(), "{entry}");
        }
        assert!(one("3").is_err());
        for bytes in
            [&b""[..], &[1, 2, 3], &[0xff; 8], &[9, 0, 0, 0, 0, 0, 0, 0, b'{'], &[1, 0, 0, 0, 0, 0, 0, 0, b'x']]
        {
            assert!(SafeTensors::new(&Bytes::from(bytes.to_vec())).is_err(), "{bytes:?}");
        }
    }
}
