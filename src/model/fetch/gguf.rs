//! Just enough of the GGUF header to tell a sound file from a damaged one, and what model it is. Reads the header only.
//!
//! Layout: the file format's specification, `docs/gguf.md` of the ggml project.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// What a GGUF says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// `general.architecture`.
    pub arch: String,
    /// `general.name`, where there is one.
    pub name: Option<String>,
    /// `general.license`, where there is one.
    pub licence: Option<String>,
    /// `general.file_type`, the number of its quantization.
    pub file_type: Option<u32>,
    /// `<architecture>.context_length`, where there is one.
    pub ctx: Option<u64>,
    /// True if every matrix's inner dimension divides by 256.
    pub k_aligned: bool,
}

/// Limits on a hostile header: far above any real one.
const MAX_ENTRIES: u64 = 1 << 20;
const MAX_STRING: u64 = 1 << 24;
const MAX_HEADER: u64 = 1 << 28;

/// Reads the header of a GGUF file and holds its tensor table against the file's size.
///
/// # Errors
/// In words, if the file cannot be read, is no GGUF, or is shorter than its own table says.
pub fn read(path: &Path) -> Result<Header, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    let mut input = Input { inner: BufReader::with_capacity(1 << 16, file).take(MAX_HEADER), at: 0 };
    header(&mut input, size)
}

fn header(input: &mut Input<impl Read>, size: u64) -> Result<Header, String> {
    if input.bytes::<4>().ok().as_ref() != Some(b"GGUF") {
        return Err("it does not begin with GGUF".into());
    }
    let version = input.u32()?;
    if !(2..=3).contains(&version) {
        return Err(format!("GGUF version {version} is not known"));
    }
    let tensors = input.count()?;
    let entries = input.count()?;
    let mut header = Header { k_aligned: true, ..Header::default() };
    let mut alignment = 32;
    for _ in 0..entries {
        let key = input.string()?;
        let value = input.value(0)?;
        match (key.as_str(), value) {
            ("general.architecture", Value::Text(text)) => header.arch = text,
            ("general.name", Value::Text(text)) => header.name = Some(text),
            ("general.license", Value::Text(text)) => header.licence = Some(text),
            ("general.file_type", Value::Number(n)) => header.file_type = u32::try_from(n).ok(),
            ("general.alignment", Value::Number(n)) if n > 0 => alignment = n,
            (key, Value::Number(n)) if key.ends_with(".context_length") => header.ctx = Some(n),
            _ => {}
        }
    }
    if header.arch.is_empty() {
        return Err("it names no architecture".into());
    }
    let mut end: u64 = 0;
    for _ in 0..tensors {
        let name = input.string()?;
        let dims = input.u32()?;
        if dims > 4 {
            return Err(format!("tensor {name} has {dims} dimensions"));
        }
        let dims = (0..dims).map(|_| input.u64()).collect::<Result<Vec<_>, _>>()?;
        let kind = input.u32()?;
        let offset = input.u64()?;
        if dims.len() == 2 && !dims[0].is_multiple_of(256) {
            header.k_aligned = false;
        }
        let bytes = tensor_bytes(kind, &dims).ok_or_else(|| format!("tensor {name} has impossible dimensions"))?;
        end = end.max(offset.checked_add(bytes).ok_or("a tensor lies beyond all bounds")?);
    }
    let data = input.at.next_multiple_of(alignment);
    match data.checked_add(end) {
        Some(needed) if needed <= size => Ok(header),
        Some(needed) => Err(format!("it is truncated: {size} bytes, and its tensors need {needed}")),
        None => Err("a tensor lies beyond all bounds".into()),
    }
}

/// Bytes of a tensor; 0 for a type not known here, which the engine will refuse by name.
fn tensor_bytes(kind: u32, dims: &[u64]) -> Option<u64> {
    // (elements, bytes) of one block, from ggml's type table.
    let (elements, bytes) = match kind {
        0 => (1, 4),      // F32
        1 | 30 => (1, 2), // F16, BF16
        2 => (32, 18),    // Q4_0
        3 => (32, 20),    // Q4_1
        6 => (32, 22),    // Q5_0
        7 => (32, 24),    // Q5_1
        8 => (32, 34),    // Q8_0
        9 => (32, 36),    // Q8_1
        10 => (256, 84),  // Q2_K
        11 => (256, 110), // Q3_K
        12 => (256, 144), // Q4_K
        13 => (256, 176), // Q5_K
        14 => (256, 210), // Q6_K
        15 => (256, 292), // Q8_K
        _ => return Some(0),
    };
    let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
    count.div_ceil(elements).checked_mul(bytes)
}

enum Value {
    Number(u64),
    Text(String),
    Other,
}

struct Input<R> {
    inner: R,
    at: u64,
}

impl<R: Read> Input<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(|_| "its header is truncated".to_string())?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn count(&mut self) -> Result<u64, String> {
        match self.u64()? {
            n if n <= MAX_ENTRIES => Ok(n),
            n => Err(format!("its header claims {n} entries")),
        }
    }

    fn skip(&mut self, n: u64) -> Result<(), String> {
        let skipped = std::io::copy(&mut self.inner.by_ref().take(n), &mut std::io::sink());
        self.at += n;
        if skipped.ok() == Some(n) { Ok(()) } else { Err("its header is truncated".into()) }
    }

    fn string(&mut self) -> Result<String, String> {
        let len = self.u64()?;
        if len > MAX_STRING {
            return Err(format!("its header claims a text of {len} bytes"));
        }
        let mut bytes = Vec::new();
        // Grows as bytes come, so that a claim alone reserves nothing.
        let read = self.inner.by_ref().take(len).read_to_end(&mut bytes);
        self.at += len;
        if read.ok() != usize::try_from(len).ok() {
            return Err("its header is truncated".into());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn value(&mut self, depth: u8) -> Result<Value, String> {
        let kind = self.u32()?;
        self.value_of(kind, depth)
    }

    fn value_of(&mut self, kind: u32, depth: u8) -> Result<Value, String> {
        Ok(match kind {
            0 => Value::Number(u64::from(self.bytes::<1>()?[0])),
            2 => Value::Number(u64::from(u16::from_le_bytes(self.bytes()?))),
            4 => Value::Number(u64::from(self.u32()?)),
            10 => Value::Number(self.u64()?),
            8 => Value::Text(self.string()?),
            9 => {
                let of = self.u32()?;
                let len = self.u64()?;
                match scalar_bytes(of) {
                    Some(width) => self.skip(len.checked_mul(width).ok_or("an array beyond all bounds")?)?,
                    None if depth > 2 || len > MAX_HEADER => return Err("an array beyond all bounds".into()),
                    None => {
                        for _ in 0..len {
                            self.value_of(of, depth + 1)?;
                        }
                    }
                }
                Value::Other
            }
            _ => {
                let width = scalar_bytes(kind).ok_or_else(|| format!("a value of unknown type {kind}"))?;
                self.skip(width)?;
                Value::Other
            }
        })
    }
}

/// Bytes of a value of fixed width.
fn scalar_bytes(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// The usual name of a `general.file_type`, as far as models of the catalog use them.
pub fn quant_name(file_type: u32) -> Option<&'static str> {
    Some(match file_type {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        32 => "BF16",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::gguf_sample::sample;
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Header, String> {
        header(&mut Input { inner: bytes, at: 0 }, bytes.len() as u64)
    }

    #[test]
    fn a_sound_header_tells_what_the_model_is() {
        let header = parse(&sample(1024)).unwrap();
        assert_eq!((header.arch.as_str(), header.ctx), ("llama", Some(512)));
    }

    #[test]
    fn every_truncation_is_seen() {
        let whole = sample(256);
        for len in 0..whole.len() {
            let error = parse(&whole[..len]).expect_err("a prefix passed as whole");
            assert!(!error.is_empty());
        }
    }

    #[test]
    fn lies_in_the_header_are_refused_without_reserving_memory() {
        let whole = sample(256);
        let with = |at: usize, bytes: &[u8]| {
            let mut out = whole.clone();
            out[at..at + bytes.len()].copy_from_slice(bytes);
            parse(&out).unwrap_err()
        };
        assert!(with(0, b"GGML").contains("begin"));
        assert!(with(4, &9u32.to_le_bytes()).contains("version 9"));
        assert!(with(8, &u64::MAX.to_le_bytes()).contains("entries"));
        assert!(with(16, &u64::MAX.to_le_bytes()).contains("entries"));
        assert!(with(24, &u64::MAX.to_le_bytes()).contains("text of"));
        assert!(parse(b"").is_err());
        // No byte of the header, however wrong, makes it panic.
        for at in 0..whole.len() - 256 {
            for value in [0, 1, 127, 255] {
                let mut out = whole.clone();
                out[at] = value;
                let _ = parse(&out);
            }
        }
    }
}
