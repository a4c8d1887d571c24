//! A weight matrix in the mapped file.

use crate::ModelError;
use crate::engine::bytes::Bytes;
use crate::engine::gguf::TensorView;
use crate::engine::quant::Kind;

/// A weight matrix in the mapped file: `rows` outputs by `cols` inputs, row after row.
#[derive(Debug, Clone)]
pub struct Weight {
    pub(super) kind: Kind,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) bytes: Bytes,
}

impl Weight {
    /// Returns a matrix of `rows` x `cols` weights in `bytes`.
    ///
    /// # Errors
    /// [`ModelError::Engine`] if `cols` does not fill whole blocks or `bytes` has another size.
    pub fn new(kind: Kind, rows: usize, cols: usize, bytes: Bytes) -> Result<Self, ModelError> {
        let fits = cols > 0
            && cols.is_multiple_of(kind.block_len())
            && kind.row_bytes(cols).checked_mul(rows) == Some(bytes.len());
        if !fits {
            return Err(ModelError::Engine(format!("{} bytes are no {rows} x {cols} matrix of {kind}", bytes.len())));
        }
        Ok(Self { kind, rows, cols, bytes })
    }

    /// Returns the matrix of a tensor with two dimensions, or with one, as a single row.
    ///
    /// # Errors
    /// As [`Weight::new`].
    pub fn from_tensor(tensor: &TensorView) -> Result<Self, ModelError> {
        let cols = tensor.dims.first().copied().unwrap_or(0);
        let rows = tensor.dims.iter().skip(1).product();
        Self::new(tensor.kind, rows, cols, tensor.bytes.clone())
    }

    /// Returns the format of the weights.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of inputs.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the bytes of all rows.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes row `row` as numbers: one token's embedding.
    ///
    /// # Panics
    /// If `row` or the length of `out` does not fit the matrix.
    pub fn embed_row(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.cols);
        self.kind.dequantize(self.row(row), out);
    }

    pub(super) fn row(&self, row: usize) -> &[u8] {
        let size = self.kind.row_bytes(self.cols);
        &self.bytes[row * size..][..size]
    }
}
