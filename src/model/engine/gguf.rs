//! Reads the GGUF model file format, version 2 and 3, in place.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. Only names are copied: strings, arrays and
//! tensors are ranges of the mapped file. Every length, count, offset and dimension is checked against the file
//! before it is used, so that a truncated or hostile file is a [`ModelError::BadFile`] and never a panic or a large
//! allocation.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::bytes::Bytes;
use super::quant::Kind;
use crate::ModelError;

/// The default of `general.alignment`.
const DEFAULT_ALIGNMENT: u64 = 32;
/// Most dimensions of a tensor (ggml's own limit).
const MAX_DIMS: u32 = 4;

/// An open model file. Clones share the mapping and the parsed header.
#[derive(Clone)]
pub struct Gguf {
    inner: Arc<Inner>,
}

struct Inner {
    file: String,
    bytes: Bytes,
    meta: HashMap<String, Value>,
    tensors: HashMap<String, Tensor>,
    names: Vec<String>,
}

/// A metadata value: scalars as their bits, the rest as a range of the file.
enum Value {
    Scalar(Scalar, u64),
    Text(Range<usize>),
    Array(Element, u64, Range<usize>),
}

/// The fixed-size value types and their codes in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scalar {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    U64,
    I64,
    F64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Scalar(Scalar),
    Text,
}

struct Tensor {
    dims: Vec<usize>,
    /// The kind, or the code of an unknown one.
    kind: Result<Kind, u32>,
    /// Range of the whole file; empty if the kind is unknown.
    range: Range<usize>,
}

/// One tensor of a file: its type, shape and bytes.
#[derive(Debug, Clone)]
pub struct TensorView {
    /// The format of the numbers.
    pub kind: Kind,
    /// Dimensions, fastest first, as in the file: `[cols, rows]` of a matrix.
    pub dims: Vec<usize>,
    /// The blocks, still in the mapped file.
    pub bytes: Bytes,
}

/// A metadata array, read element by element from the mapped file.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    element: Element,
    count: usize,
    bytes: &'a [u8],
}

impl Scalar {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Converts the bits of a value to a whole number; `None` for a floating-point type.
    fn integer(self, bits: u64) -> Option<i128> {
        Some(match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::Bool => i128::from(bits),
            Self::I8 => i128::from(bits as u8 as i8),
            Self::I16 => i128::from(bits as u16 as i16),
            Self::I32 => i128::from(bits as u32 as i32),
            Self::I64 => i128::from(bits as i64),
            Self::F32 | Self::F64 => return None,
        })
    }

    fn float(self, bits: u64) -> Option<f64> {
        match self {
            Self::F32 => Some(f64::from(f32::from_bits(bits as u32))),
            Self::F64 => Some(f64::from_bits(bits)),
            _ => None,
        }
    }
}

impl Gguf {
    /// Maps and checks a file. Reads the header only; the weights stay on disk until they are used.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for a file that cannot be opened, is no GGUF, is truncated or contradicts itself,
    /// [`ModelError::Unsupported`] for an unsupported version.
    ///
    /// ```no_run
    /// # use caro_model::engine::gguf::Gguf;
    /// let model = Gguf::open("model.gguf".as_ref())?;
    /// assert_eq!(model.text("general.architecture"), Some("qwen2"));
    /// # Ok::<(), caro_model::ModelError>(())
    /// ```
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let name = path.display().to_string();
        let bytes = File::open(path)
            .and_then(|file| Bytes::map(&file))
            .map_err(|error| ModelError::BadFile { file: name.clone(), reason: error.to_string() })?;
        Self::parse(name, bytes)
    }

    /// Checks a file that is already mapped or in memory; `file` is its name for messages.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn parse(file: impl Into<String>, bytes: Bytes) -> Result<Self, ModelError> {
        let file = file.into();
        let inner = Reader { file: &file, data: &bytes, at: 0 }.header()?;
        let (meta, tensors, names) = inner;
        Ok(Self { inner: Arc::new(Inner { file, bytes, meta, tensors, names }) })
    }

    /// Returns the file's name, for messages.
    pub fn file(&self) -> &str {
        &self.inner.file
    }

    /// Returns the whole mapped file.
    pub fn bytes(&self) -> &Bytes {
        &self.inner.bytes
    }

    /// Returns a string value; `None` if the key is missing, or its value is not a string in UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.inner.meta.get(key)? {
            Value::Text(range) => std::str::from_utf8(&self.inner.bytes[range.clone()]).ok(),
            _ => None,
        }
    }

    /// Returns a whole number of any width that fits `u32`.
    pub fn u32(&self, key: &str) -> Option<u32> {
        match self.inner.meta.get(key)? {
            Value::Scalar(scalar, bits) => u32::try_from(scalar.integer(*bits)?).ok(),
            _ => None,
        }
    }

    /// Returns a whole number between 1 and `most`, if the key exists. Callers use limits far above any real model's,
    /// which only keep a damaged file from causing huge allocations.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] if it is out of range.
    pub fn number(&self, key: &str, most: usize) -> Result<Option<usize>, ModelError> {
        match self.u32(key).map(|n| n as usize) {
            Some(n) if !(1..=most).contains(&n) => Err(self.bad(format!("its `{key}` is {n}"))),
            found => Ok(found),
        }
    }

    /// Returns a floating-point number.
    pub fn f32(&self, key: &str) -> Option<f32> {
        match self.inner.meta.get(key)? {
            Value::Scalar(scalar, bits) => scalar.float(*bits).map(|value| value as f32),
            _ => None,
        }
    }

    /// Returns an array.
    pub fn array(&self, key: &str) -> Option<Array<'_>> {
        match self.inner.meta.get(key)? {
            Value::Array(element, count, range) => {
                Some(Array { element: *element, count: *count as usize, bytes: &self.inner.bytes[range.clone()] })
            }
            _ => None,
        }
    }

    /// Iterates over the names of all tensors, in the file's order.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.inner.names.iter().map(String::as_str)
    }

    /// True if the file has a tensor of this name, of any kind.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.inner.tensors.contains_key(name)
    }

    /// Returns a tensor by name.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] if there is none, [`ModelError::Unsupported`] if its kind is unknown.
    pub fn tensor(&self, name: &str) -> Result<TensorView, ModelError> {
        let tensor = self.inner.tensors.get(name).ok_or_else(|| self.bad(format!("it has no tensor `{name}`")))?;
        let kind = tensor.kind.map_err(|code| ModelError::Unsupported {
            what: "quantization",
            name: format!("{} (of {name})", Kind::foreign_name(code)),
        })?;
        let bytes = self
            .inner
            .bytes
            .slice(tensor.range.clone())
            .ok_or_else(|| self.bad(format!("tensor `{name}` lies outside it")))?;
        Ok(TensorView { kind, dims: tensor.dims.clone(), bytes })
    }

    /// Returns a [`ModelError::BadFile`] about this file.
    pub fn bad(&self, reason: impl Into<String>) -> ModelError {
        ModelError::BadFile { file: self.inner.file.clone(), reason: reason.into() }
    }
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gguf({})", self.inner.file)
    }
}

impl TensorView {
    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Converts all numbers to `f32`. Meant for norms and biases, which are small.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.elements()];
        self.kind.dequantize(&self.bytes, &mut out);
        out
    }
}

impl<'a> Array<'a> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the elements as raw strings, which may be invalid UTF-8; `None` if they are no strings.
    pub fn strings(&self) -> Option<impl Iterator<Item = &'a [u8]> + use<'a>> {
        let mut rest = self.bytes;
        (self.element == Element::Text).then(|| {
            std::iter::from_fn(move || {
                let (length, tail) = rest.split_first_chunk::<8>()?;
                let (text, tail) = tail.split_at_checked(u64::from_le_bytes(*length) as usize)?;
                rest = tail;
                Some(text)
            })
        })
    }

    /// Iterates over the elements as whole numbers; `None` if they are of another type.
    pub fn integers(&self) -> Option<impl Iterator<Item = i64> + use<'a>> {
        match self.element {
            Element::Scalar(scalar) if scalar.integer(0).is_some() => Some(
                self.bytes.chunks_exact(scalar.size()).filter_map(move |b| scalar.integer(bits(b))).map(|v| v as i64),
            ),
            _ => None,
        }
    }
}

/// Reads up to eight little-endian bytes as a number.
fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

type Header = (HashMap<String, Value>, HashMap<String, Tensor>, Vec<String>);

/// A cursor over the header, which checks everything it reads.
struct Reader<'a> {
    file: &'a str,
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bad(&self, reason: impl Into<String>) -> ModelError {
        ModelError::BadFile { file: self.file.to_owned(), reason: reason.into() }
    }

    fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], ModelError> {
        let left = &self.data[self.at..];
        match usize::try_from(count).ok().and_then(|count| left.get(..count)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(self.bad(format!("it ends inside {what}, at byte {} of {}", self.at, self.data.len()))),
        }
    }

    fn u32(&mut self, what: &str) -> Result<u32, ModelError> {
        self.take(4, what).map(|b| bits(b) as u32)
    }

    fn u64(&mut self, what: &str) -> Result<u64, ModelError> {
        self.take(8, what).map(bits)
    }

    /// Reads a length-prefixed string, as a range.
    fn text(&mut self, what: &str) -> Result<Range<usize>, ModelError> {
        let length = self.u64(what)?;
        let start = self.at;
        self.take(length, what)?;
        Ok(start..self.at)
    }

    /// Reads a key or tensor name.
    fn name(&mut self, what: &str) -> Result<String, ModelError> {
        let range = self.text(what)?;
        if range.len() > 65_535 {
            return Err(self.bad(format!("{what} of {} bytes", range.len())));
        }
        String::from_utf8(self.data[range].to_vec()).map_err(|_| self.bad(format!("{what} is not UTF-8")))
    }

    fn header(mut self) -> Result<Header, ModelError> {
        if self.data.get(..4) != Some(b"GGUF") {
            return Err(self.bad("it does not begin with `GGUF`"));
        }
        self.at = 4;
        let version = self.u32("the version")?;
        if version != 2 && version != 3 {
            let what = if version.swap_bytes() <= 3 { "big-endian GGUF".into() } else { format!("version {version}") };
            return Err(ModelError::Unsupported { what: "GGUF version", name: what });
        }
        let tensor_count = self.u64("the tensor count")?;
        let meta_count = self.u64("the metadata count")?;
        let mut meta = HashMap::new();
        // no capacity is reserved by the counts: memory grows only with entries that exist
        for _ in 0..meta_count {
            let key = self.name("a metadata key")?;
            let value = self.value(&key)?;
            if meta.insert(key.clone(), value).is_some() {
                return Err(self.bad(format!("metadata key `{key}` is there twice")));
            }
        }
        let alignment = match meta.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(Value::Scalar(Scalar::U32, bits)) if bits.is_power_of_two() => *bits,
            Some(_) => return Err(self.bad("`general.alignment` is not a power of two")),
        };
        let mut listed = Vec::new();
        for _ in 0..tensor_count {
            listed.push(self.tensor(alignment)?);
        }
        let (tensors, names) = self.resolve(listed, alignment)?;
        Ok((meta, tensors, names))
    }

    fn value(&mut self, key: &str) -> Result<Value, ModelError> {
        let what = || format!("metadata `{key}`");
        match self.u32(&what())? {
            8 => Ok(Value::Text(self.text(&what())?)),
            9 => {
                let code = self.u32(&what())?;
                let count = self.u64(&what())?;
                let start = self.at;
                let element = match code {
                    8 => {
                        for _ in 0..count {
                            // without `Reader::text`, for speed: half a million strings are read at every start
                            let length = self.data.get(self.at..).and_then(|d| d.first_chunk::<8>());
                            let end = length.and_then(|l| usize::try_from(u64::from_le_bytes(*l)).ok());
                            let end = end.and_then(|l| l.checked_add(self.at + 8)).filter(|&e| e <= self.data.len());
                            self.at = end.ok_or_else(|| self.bad(format!("it ends inside metadata `{key}`")))?;
                        }
                        Element::Text
                    }
                    code => {
                        let scalar = Scalar::from_code(code)
                            .ok_or_else(|| self.bad(format!("metadata `{key}` is an array of type {code}")))?;
                        let size = count.checked_mul(scalar.size() as u64);
                        self.take(size.unwrap_or(u64::MAX), &what())?;
                        Element::Scalar(scalar)
                    }
                };
                Ok(Value::Array(element, count, start..self.at))
            }
            code => {
                let scalar = Scalar::from_code(code)
                    .ok_or_else(|| self.bad(format!("metadata `{key}` has the unknown type {code}")))?;
                Ok(Value::Scalar(scalar, bits(self.take(scalar.size() as u64, &what())?)))
            }
        }
    }

    /// Reads an entry of the tensor list; its range is relative to the data section until [`Reader::resolve`].
    fn tensor(&mut self, alignment: u64) -> Result<(String, Tensor), ModelError> {
        let name = self.name("a tensor name")?;
        let what = format!("tensor `{name}`");
        let count = self.u32(&what)?;
        if count == 0 || count > MAX_DIMS {
            return Err(self.bad(format!("{what} has {count} dimensions")));
        }
        let mut dims = Vec::with_capacity(count as usize);
        let mut elements = Some(1usize);
        for _ in 0..count {
            let dim = usize::try_from(self.u64(&what)?).unwrap_or(usize::MAX);
            if dim == 0 {
                return Err(self.bad(format!("{what} has an empty dimension")));
            }
            elements = elements.and_then(|e| e.checked_mul(dim));
            dims.push(dim);
        }
        let elements = elements.ok_or_else(|| self.bad(format!("{what} has absurd dimensions {dims:?}")))?;
        let code = self.u32(&what)?;
        let offset = self.u64(&what)?;
        if offset % alignment != 0 {
            return Err(self.bad(format!("{what} is not aligned to {alignment} bytes")));
        }
        let kind = Kind::from_code(code).ok_or(code);
        let range = match kind {
            Err(_) => 0..0,
            Ok(kind) => {
                if dims[0] % kind.block_len() != 0 {
                    return Err(self.bad(format!("{what}: rows of {} do not fill {kind} blocks", dims[0])));
                }
                let size = (elements / kind.block_len()).checked_mul(kind.block_bytes());
                let start = usize::try_from(offset).ok();
                match start.zip(size).and_then(|(start, size)| Some(start..start.checked_add(size)?)) {
                    Some(range) => range,
                    None => return Err(self.bad(format!("{what} lies outside the file"))),
                }
            }
        };
        Ok((name, Tensor { dims, kind, range }))
    }

    /// Makes the tensors' ranges relative to the file, and checks them against its end.
    fn resolve(
        &self,
        listed: Vec<(String, Tensor)>,
        alignment: u64,
    ) -> Result<(HashMap<String, Tensor>, Vec<String>), ModelError> {
        let data = (self.at as u64).next_multiple_of(alignment) as usize;
        let mut tensors = HashMap::with_capacity(listed.len());
        let mut names = Vec::with_capacity(listed.len());
        for (name, mut tensor) in listed {
            if tensor.kind.is_ok() {
                let end = tensor.range.end.checked_add(data).filter(|&end| end <= self.data.len());
                let end = end.ok_or_else(|| {
                    self.bad(format!("it is truncated: tensor `{name}` ends behind its {} bytes", self.data.len()))
                })?;
                tensor.range = tensor.range.start + data..end;
            }
            names.push(name.clone());
            if tensors.insert(name.clone(), tensor).is_some() {
                return Err(self.bad(format!("tensor `{name}` is there twice")));
            }
        }
        Ok((tensors, names))
    }
}

#[cfg(test)]
#[path = "gguf_tests.rs"]
mod tests;
