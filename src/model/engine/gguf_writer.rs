//! Writes small GGUF files, for tests.
#![allow(clippy::unwrap_used, dead_code)]

use std::fmt::Debug;

use super::quant::Kind;

/// Collects a file's parts; [`Writer::finish`] returns its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer {
    meta: Vec<u8>,
    meta_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

fn text(into: &mut Vec<u8>, text: &[u8]) {
    into.extend((text.len() as u64).to_le_bytes());
    into.extend(text);
}

impl Writer {
    /// Adds a key with an encoded value.
    pub(crate) fn raw(mut self, key: &str, code: u32, value: &[u8]) -> Self {
        text(&mut self.meta, key.as_bytes());
        self.meta.extend(code.to_le_bytes());
        self.meta.extend(value);
        self.meta_count += 1;
        self
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        let mut bytes = Vec::new();
        text(&mut bytes, value.as_bytes());
        self.raw(key, 8, &bytes)
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn f32(self, key: &str, value: f32) -> Self {
        self.raw(key, 6, &value.to_le_bytes())
    }

    pub(crate) fn bool(self, key: &str, value: bool) -> Self {
        self.raw(key, 7, &[u8::from(value)])
    }

    pub(crate) fn texts<T: AsRef<[u8]>>(self, key: &str, values: &[T]) -> Self {
        let mut bytes = 8u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| text(&mut bytes, value.as_ref()));
        self.raw(key, 9, &bytes)
    }

    pub(crate) fn i32s(self, key: &str, values: &[i32]) -> Self {
        let mut bytes = 5u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        self.raw(key, 9, &bytes)
    }

    /// Adds a tensor; `dims` fastest first.
    pub(crate) fn tensor(self, name: &str, kind: Kind, dims: &[u64], bytes: &[u8]) -> Self {
        let code = (0..64).find(|&code| Kind::from_code(code) == Some(kind)).unwrap();
        self.foreign_tensor(name, code, dims, bytes)
    }

    /// Adds a tensor of any type code.
    pub(crate) fn foreign_tensor(mut self, name: &str, code: u32, dims: &[u64], bytes: &[u8]) -> Self {
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        text(&mut self.tensors, name.as_bytes());
        self.tensors.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| self.tensors.extend(dim.to_le_bytes()));
        self.tensors.extend(code.to_le_bytes());
        self.tensors.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(bytes);
        self.tensor_count += 1;
        self
    }

    /// Adds a tensor of `f32`.
    pub(crate) fn floats(self, name: &str, dims: &[u64], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.tensor(name, Kind::F32, dims, &bytes)
    }

    /// Returns the bytes of the file.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend(self.tensor_count.to_le_bytes());
        file.extend(self.meta_count.to_le_bytes());
        file.extend(self.meta);
        file.extend(self.tensors);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(self.data);
        file
    }
}
