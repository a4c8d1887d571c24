//! The block formats, in ggml's layouts (`ggml/src/ggml-common.h` in <https://github.com/ggml-org/ggml>).

use super::{Format, Kind, Unpacked, f16};

/// 32 x 4 bit: `f16 d`, 16 bytes of nibbles (low: first half of the block). `w = d * (q - 8)`.
#[derive(Debug, Clone, Copy)]
pub struct Q4_0;
/// 32 x 4 bit: `f16 d`, `f16 m`, nibbles. `w = d * q + m`.
#[derive(Debug, Clone, Copy)]
pub struct Q4_1;
/// 32 x 5 bit: `f16 d`, 4 bytes with the fifth bits, nibbles. `w = d * (q - 16)`.
#[derive(Debug, Clone, Copy)]
pub struct Q5_0;
/// 32 x 5 bit: `f16 d`, `f16 m`, fifth bits, nibbles. `w = d * q + m`.
#[derive(Debug, Clone, Copy)]
pub struct Q5_1;
/// 32 x 8 bit: `f16 d`, 32 signed bytes. `w = d * q`.
#[derive(Debug, Clone, Copy)]
pub struct Q8_0;
/// 256 x 4 bit: `f16 d`, `f16 dmin`, 12 bytes of 6-bit scales and minima, nibbles. `w = d * sc * q - dmin * m`.
#[derive(Debug, Clone, Copy)]
pub struct Q4K;
/// 256 x 5 bit: as [`Q4K`] with 32 bytes of fifth bits before the nibbles.
#[derive(Debug, Clone, Copy)]
pub struct Q5K;
/// 256 x 6 bit: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales, `f16 d`. `w = d * sc * (q -
/// 32)`.
#[derive(Debug, Clone, Copy)]
pub struct Q6K;

/// Writes the 32 values of 16 bytes of nibbles: all low ones, then all high ones.
#[inline(always)]
fn nibbles(bytes: &[u8], q: &mut [i8], minus: i8) {
    for (l, &b) in bytes[..16].iter().enumerate() {
        q[l] = (b & 0x0F) as i8 - minus;
        q[l + 16] = (b >> 4) as i8 - minus;
    }
}

/// As [`nibbles`], with the fifth bit of value `l` in bit `l` of `high`.
#[inline(always)]
fn nibbles5(high: &[u8], bytes: &[u8], q: &mut [i8], minus: i8) {
    let high = u32::from_le_bytes([high[0], high[1], high[2], high[3]]);
    for (l, &b) in bytes[..16].iter().enumerate() {
        q[l] = ((b & 0x0F) | ((high >> l & 1) as u8) << 4) as i8 - minus;
        q[l + 16] = (b >> 4 | ((high >> (l + 16) & 1) as u8) << 4) as i8 - minus;
    }
}

/// Unpacks the eight 6-bit scales and eight 6-bit minima of [`Q4K`] and [`Q5K`] from 12 bytes: the first four of each
/// are in the low six bits of bytes 0..4 and 4..8, the others are split into a nibble of bytes 8..12 and the two
/// spare bits above. Returns them as bytes of two words, scale 0 lowest.
#[inline(always)]
pub(crate) fn k_scales(packed: &[u8]) -> (u64, u64) {
    let word = |at: usize| u32::from_le_bytes([packed[at], packed[at + 1], packed[at + 2], packed[at + 3]]);
    let (a, b, c) = (word(0), word(4), word(8));
    let scales = u64::from(a & 0x3F3F_3F3F) | u64::from((c & 0x0F0F_0F0F) | (a >> 2 & 0x3030_3030)) << 32;
    let minima = u64::from(b & 0x3F3F_3F3F) | u64::from((c >> 4 & 0x0F0F_0F0F) | (b >> 2 & 0x3030_3030)) << 32;
    (scales, minima)
}

/// Reads the head common to [`Q4K`] and [`Q5K`]: `d`, `dmin` and the packed scales.
#[inline(always)]
fn k_head(block: &[u8], into: &mut Unpacked) {
    let (d, dmin) = (f16(block), f16(&block[2..]));
    let (scales, minima) = k_scales(&block[4..16]);
    for (g, (sc, m)) in scales.to_le_bytes().into_iter().zip(minima.to_le_bytes()).enumerate() {
        into.scale[g] = d * f32::from(sc);
        into.offset[g] = dmin * f32::from(m);
    }
}

impl Format for Q4_0 {
    const KIND: Kind = Kind::Q4_0;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const BYTES: usize = 18;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        (into.scale[0], into.offset[0]) = (f16(block), 0.0);
        nibbles(&block[2..], &mut into.q, 8);
    }
}

impl Format for Q4_1 {
    const KIND: Kind = Kind::Q4_1;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const BYTES: usize = 20;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        (into.scale[0], into.offset[0]) = (f16(block), -f16(&block[2..]));
        nibbles(&block[4..], &mut into.q, 0);
    }
}

impl Format for Q5_0 {
    const KIND: Kind = Kind::Q5_0;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const BYTES: usize = 22;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        (into.scale[0], into.offset[0]) = (f16(block), 0.0);
        nibbles5(&block[2..], &block[6..], &mut into.q, 16);
    }
}

impl Format for Q5_1 {
    const KIND: Kind = Kind::Q5_1;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const BYTES: usize = 24;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        (into.scale[0], into.offset[0]) = (f16(block), -f16(&block[2..]));
        nibbles5(&block[4..], &block[8..], &mut into.q, 0);
    }
}

impl Format for Q8_0 {
    const KIND: Kind = Kind::Q8_0;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const BYTES: usize = 34;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        (into.scale[0], into.offset[0]) = (f16(block), 0.0);
        for (q, &b) in into.q.iter_mut().zip(&block[2..34]) {
            *q = b as i8;
        }
    }
}

impl Format for Q4K {
    const KIND: Kind = Kind::Q4K;
    const LEN: usize = 256;
    const GROUP: usize = 32;
    const BYTES: usize = 144;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        k_head(block, into);
        for (bytes, q) in block[16..144].chunks_exact(32).zip(into.q.chunks_exact_mut(64)) {
            for (l, &b) in bytes.iter().enumerate() {
                q[l] = (b & 0x0F) as i8;
                q[l + 32] = (b >> 4) as i8;
            }
        }
    }
}

impl Format for Q5K {
    const KIND: Kind = Kind::Q5K;
    const LEN: usize = 256;
    const GROUP: usize = 32;
    const BYTES: usize = 176;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        k_head(block, into);
        let high = &block[16..48];
        for (j, (bytes, q)) in block[48..176].chunks_exact(32).zip(into.q.chunks_exact_mut(64)).enumerate() {
            for (l, (&b, &h)) in bytes.iter().zip(high).enumerate() {
                q[l] = ((b & 0x0F) | (h >> (2 * j) & 1) << 4) as i8;
                q[l + 32] = (b >> 4 | (h >> (2 * j + 1) & 1) << 4) as i8;
            }
        }
    }
}

impl Format for Q6K {
    const KIND: Kind = Kind::Q6K;
    const LEN: usize = 256;
    const GROUP: usize = 16;
    const BYTES: usize = 210;

    #[inline(always)]
    fn unpack(block: &[u8], into: &mut Unpacked) {
        let d = f16(&block[208..]);
        for (g, &sc) in block[192..208].iter().enumerate() {
            into.scale[g] = d * f32::from(sc as i8);
            into.offset[g] = 0.0;
        }
        let halves = block[..128].chunks_exact(64).zip(block[128..192].chunks_exact(32));
        for ((low, high), q) in halves.zip(into.q.chunks_exact_mut(128)) {
            for (l, &h) in high.iter().enumerate() {
                let (a, b) = (low[l], low[l + 32]);
                q[l] = ((a & 0x0F) | (h & 3) << 4) as i8 - 32;
                q[l + 32] = ((b & 0x0F) | (h >> 2 & 3) << 4) as i8 - 32;
                q[l + 64] = (a >> 4 | (h >> 4 & 3) << 4) as i8 - 32;
                q[l + 96] = (b >> 4 | (h >> 6) << 4) as i8 - 32;
            }
        }
    }
}
