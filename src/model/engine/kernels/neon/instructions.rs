//! Instructions whose intrinsics the standard library does not offer yet (`stdarch_neon_dotprod`, `stdarch_neon_i8mm`
//! and `stdarch_aarch64_prefetch` are unstable), or does not offer with the oldest compiler that builds caro (`fcvt`
//! of halves).

use std::arch::aarch64::{int8x16_t, int32x4_t};
use std::arch::asm;

/// Adds to each lane of `sum` the four products of the lane's bytes of `a` and `b`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(super) fn sdot(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the CPU has the instruction, which works on registers only.
    unsafe {
        asm!("sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b", sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b,
             options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// As [`sdot`], with the bytes of lane `LANE` of `b` for every lane of `a`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(super) fn sdot_lane<const LANE: usize>(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    const { assert!(LANE < 4) };
    // SAFETY: the CPU has the instruction, which works on registers only.
    unsafe {
        asm!("sdot {sum:v}.4s, {a:v}.16b, {b:v}.4b[{lane}]", sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b,
             lane = const LANE, options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Adds the product of two matrices of 2 x 8 bytes, the second one transposed, to a matrix of 2 x 2, row-major in the
/// lanes.
#[inline]
#[target_feature(enable = "neon,i8mm")]
pub(super) fn smmla(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the CPU has the instruction, which works on registers only.
    unsafe {
        asm!("smmla {sum:v}.4s, {a:v}.16b, {b:v}.16b", sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b,
             options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Converts the bits of a half-precision number.
#[inline(always)]
pub(super) fn half(bits: u16) -> f32 {
    let number: f32;
    // SAFETY: an instruction of every CPU of this architecture, which works on registers only.
    unsafe {
        asm!("fmov {number:s}, {bits:w}", "fcvt {number:s}, {number:h}", bits = in(reg) u32::from(bits),
             number = out(vreg) number, options(pure, nomem, nostack, preserves_flags));
    }
    number
}

/// Prefetches a cache line.
#[inline(always)]
pub(super) fn fetch(at: *const u8) {
    // SAFETY: a hint, for which any address will do.
    unsafe { asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(readonly, nostack, preserves_flags)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_converted_as_by_the_library() {
        for bits in 0..=u16::MAX {
            let (ours, want) = (half(bits), ::half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == want.to_bits() || ours.is_nan() && want.is_nan(), "{bits:#x}: {ours} {want}");
        }
    }
}
