//! Local inference: the only place that names candle.

pub mod bytes;
pub mod gguf;
#[cfg(test)]
pub(crate) mod gguf_writer;
pub mod kernels;
pub mod quant;
pub mod threads;
