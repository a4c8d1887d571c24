//! Block formats of quantised weights: the layout of a block and the numbers it stands for.
//!
//! A format is described once, by [`Format::unpack`], which all code uses that is not tuned for speed: dequantising,
//! the reference kernels and the generic paths of the tuned ones. Multiplication is in [`super::kernels`].

mod blocks;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use blocks::k_scales;
pub use blocks::{Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};

/// Most weights in a block.
pub const MAX_BLOCK: usize = 256;
/// Most scale groups in a block.
pub const MAX_GROUPS: usize = 16;

/// The format of a tensor's numbers. Names follow ggml's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 32-bit floating point.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// 32 weights of 4 bits, one scale.
    Q4_0,
    /// 32 weights of 4 bits, scale and minimum.
    Q4_1,
    /// 32 weights of 5 bits, one scale.
    Q5_0,
    /// 32 weights of 5 bits, scale and minimum.
    Q5_1,
    /// 32 weights of 8 bits, one scale.
    Q8_0,
    /// 256 weights of 4 bits, 8 groups with 6-bit scales and minima.
    Q4K,
    /// 256 weights of 5 bits, 8 groups with 6-bit scales and minima.
    Q5K,
    /// 256 weights of 6 bits, 16 groups with 8-bit scales.
    Q6K,
}

/// One quantised block format: `weight = scale[g] * q - offset[g]`, where `g` is the weight's group.
pub trait Format {
    /// Its kind.
    const KIND: Kind;
    /// Weights in a block.
    const LEN: usize;
    /// Weights that share a scale.
    const GROUP: usize;
    /// Bytes of a block.
    const BYTES: usize;

    /// Reads one block of `BYTES` bytes: `LEN` integers and `LEN / GROUP` scales and offsets.
    fn unpack(block: &[u8], into: &mut Unpacked);
}

/// A block, unpacked by [`Format::unpack`]. Entries beyond the format's size are not written.
#[derive(Debug, Clone, PartialEq)]
#[repr(C, align(64))]
pub struct Unpacked {
    /// The integers, each within `-128..=127`.
    pub q: [i8; MAX_BLOCK],
    /// Scale of each group.
    pub scale: [f32; MAX_GROUPS],
    /// Offset of each group, which is subtracted.
    pub offset: [f32; MAX_GROUPS],
}

impl Default for Unpacked {
    fn default() -> Self {
        Self { q: [0; MAX_BLOCK], scale: [0.0; MAX_GROUPS], offset: [0.0; MAX_GROUPS] }
    }
}

/// Evaluates `$body` with `$F` bound to the [`Format`] of a quantised kind, or `$float` for a plain one.
macro_rules! with_format {
    ($kind:expr, $F:ident => $body:expr, $float:expr) => {
        match $kind {
            $crate::engine::quant::Kind::Q4_0 => {
                type $F = $crate::engine::quant::Q4_0;
                $body
            }
            $crate::engine::quant::Kind::Q4_1 => {
                type $F = $crate::engine::quant::Q4_1;
                $body
            }
            $crate::engine::quant::Kind::Q5_0 => {
                type $F = $crate::engine::quant::Q5_0;
                $body
            }
            $crate::engine::quant::Kind::Q5_1 => {
                type $F = $crate::engine::quant::Q5_1;
                $body
            }
            $crate::engine::quant::Kind::Q8_0 => {
                type $F = $crate::engine::quant::Q8_0;
                $body
            }
            $crate::engine::quant::Kind::Q4K => {
                type $F = $crate::engine::quant::Q4K;
                $body
            }
            $crate::engine::quant::Kind::Q5K => {
                type $F = $crate::engine::quant::Q5K;
                $body
            }
            $crate::engine::quant::Kind::Q6K => {
                type $F = $crate::engine::quant::Q6K;
                $body
            }
            _ => $float,
        }
    };
}
pub(crate) use with_format;

impl Kind {
    /// All kinds, for tests and benches.
    pub const ALL: [Self; 11] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    /// Returns the kind of ggml's type code.
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::BF16,
            _ => return None,
        })
    }

    /// Returns a name for a type code without a [`Kind`], for messages.
    pub(crate) fn foreign_name(code: u32) -> String {
        let name = match code {
            10 => "Q2_K",
            11 => "Q3_K",
            16..=23 | 29 => "an IQ format",
            34 | 35 => "a ternary format",
            39 => "MXFP4",
            _ => "an unknown format",
        };
        format!("{name}, ggml type {code}")
    }

    /// Returns its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        }
    }

    /// Returns the number of weights in a block; 1 for plain numbers.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Returns the bytes of a block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q4_0 => Q4_0::BYTES,
            Self::Q4_1 => Q4_1::BYTES,
            Self::Q5_0 => Q5_0::BYTES,
            Self::Q5_1 => Q5_1::BYTES,
            Self::Q8_0 => Q8_0::BYTES,
            Self::Q4K => Q4K::BYTES,
            Self::Q5K => Q5K::BYTES,
            Self::Q6K => Q6K::BYTES,
        }
    }

    /// Returns the bytes of a row of `cols` weights, a multiple of [`Kind::block_len`].
    pub const fn row_bytes(self, cols: usize) -> usize {
        cols / self.block_len() * self.block_bytes()
    }

    /// Converts whole blocks to numbers.
    ///
    /// # Panics
    /// If `bytes` are not exactly the blocks of `out.len()` numbers.
    pub fn dequantize(self, bytes: &[u8], out: &mut [f32]) {
        assert_eq!(out.len() % self.block_len(), 0, "{self}: {} numbers are no whole blocks", out.len());
        assert_eq!(bytes.len(), self.row_bytes(out.len()), "{self}: bytes of {} numbers", out.len());
        with_format!(self, F => dequantize::<F>(bytes, out), match self {
            Self::F16 => for (b, o) in bytes.chunks_exact(2).zip(out) { *o = f16(b); },
            Self::BF16 => for (b, o) in bytes.chunks_exact(2).zip(out) {
                *o = f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
            },
            _ => for (b, o) in bytes.chunks_exact(4).zip(out) { *o = f32::from_le_bytes([b[0], b[1], b[2], b[3]]); },
        });
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn dequantize<F: Format>(bytes: &[u8], out: &mut [f32]) {
    let mut block = Unpacked::default();
    for (bytes, out) in bytes.chunks_exact(F::BYTES).zip(out.chunks_exact_mut(F::LEN)) {
        F::unpack(bytes, &mut block);
        for (g, out) in out.chunks_exact_mut(F::GROUP).enumerate() {
            for (o, &q) in out.iter_mut().zip(&block.q[g * F::GROUP..]) {
                *o = block.scale[g] * f32::from(q) - block.offset[g];
            }
        }
    }
}

/// Reads the half-precision number in the first two bytes.
#[inline(always)]
pub(crate) fn f16(bytes: &[u8]) -> f32 {
    half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

#[cfg(test)]
mod tests;
