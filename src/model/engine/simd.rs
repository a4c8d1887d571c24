//! The vector arithmetic outside the matrix kernels: norms, activations, softmax and the dot products of
//! single queries.
//!
//! Each function is written once, in a form that compilers vectorise (fixed-size lanes, no early exits), and compiled
//! for several instruction sets by [`versions!`]; the version is chosen at run time by the CPU. Only the conversion
//! of f16 needs intrinsics.
#![allow(unsafe_code)] // A function compiled for an instruction set may be called only where the CPU has it.

/// Defines a function whose body is compiled for AVX-512, for AVX2 with FMA, and for the baseline, and chosen at run
/// time. In the body, `LANES` is the number of f32 in a vector register, and `FMA` is true if multiply-add is one
/// instruction.
macro_rules! versions {
    ($(#[$meta:meta])* pub fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        pub(super) fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body<const FMA: bool, const LANES: usize>($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body::<true, 16>($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body::<true, 8>($($arg),*) }
                match level() {
                    // SAFETY: `level` has found every feature that the function is compiled for.
                    Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: likewise.
                    Level::Avx2 => return unsafe { avx2($($arg),*) },
                    Level::Baseline => {}
                }
            }
            body::<{ cfg!(target_arch = "aarch64") }, 4>($($arg),*)
        }
    };
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
enum Level {
    Avx512,
    Avx2,
    Baseline,
}

/// Returns the best supported level of this CPU. The standard library caches the detection.
#[cfg(target_arch = "x86_64")]
#[inline]
fn level() -> Level {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma")
    {
        Level::Avx512
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
        Level::Avx2
    } else {
        Level::Baseline
    }
}

/// Computes `a * b + c`, fused only if there is an instruction for it: otherwise `mul_add` is a slow library call.
#[inline(always)]
fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Computes e^x with a relative error below 3e-7 on [-87, 88]; clamped outside. Uses Cody and Waite's reduction to
/// [-ln2/2, ln2/2] and the Taylor polynomial of degree 6, whose error there is below f32's.
#[inline(always)]
fn exp<const FMA: bool>(x: f32) -> f32 {
    /// Adding it leaves the nearest integer in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let t = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = fma::<FMA>(n, -LN2_LOW, fma::<FMA>(n, -LN2_HIGH, x));
    let mut p = 1.0 / 720.0;
    p = fma::<FMA>(p, r, 1.0 / 120.0);
    p = fma::<FMA>(p, r, 1.0 / 24.0);
    p = fma::<FMA>(p, r, 1.0 / 6.0);
    p = fma::<FMA>(p, r, 0.5);
    p = fma::<FMA>(p, r, 1.0);
    p = fma::<FMA>(p, r, 1.0);
    let power = t.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    p * f32::from_bits(power)
}

/// Sums the lanes.
#[inline(always)]
fn total<const LANES: usize>(lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    let mut lanes = lanes;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

versions! {
    /// Sums `e^(x - peak)`. NaN is ignored.
    pub fn sum_exp(values: &[f32], peak: f32) -> f32 {
        let mut lanes = [0f32; LANES];
        let mut chunks = values.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                // `max` replaces NaN
                *lane += exp::<FMA>((x - peak).max(-87.0));
            }
        }
        total(lanes) + chunks.remainder().iter().map(|&x| exp::<FMA>((x - peak).max(-87.0))).sum::<f32>()
    }
}

versions! {
    /// Replaces scores by `e^(x - peak)` and returns their sum.
    pub fn exp_in_place(values: &mut [f32], peak: f32) -> f32 {
        let mut lanes = [0f32; LANES];
        let mut chunks = values.chunks_exact_mut(LANES);
        for chunk in &mut chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *x = exp::<FMA>(*x - peak);
                *lane += *x;
            }
        }
        let mut sum = total(lanes);
        for x in chunks.into_remainder() {
            *x = exp::<FMA>(*x - peak);
            sum += *x;
        }
        sum
    }
}

versions! {
    /// Returns the largest value; negative infinity if there is none.
    pub fn largest(values: &[f32]) -> f32 {
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let mut chunks = values.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = if x > *lane { x } else { *lane };
            }
        }
        lanes.iter().chain(chunks.remainder()).copied().fold(f32::NEG_INFINITY, f32::max)
    }
}

versions! {
    /// Computes the root mean square norm: `out = x / sqrt(mean(x^2) + eps) * weight` (Zhang, Sennrich 2019).
    pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let mut lanes = [0f32; LANES];
        let mut chunks = x.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = fma::<FMA>(x, x, *lane);
            }
        }
        let squares = total(lanes) + chunks.remainder().iter().map(|&x| x * x).sum::<f32>();
        let scale = 1.0 / (squares / x.len() as f32 + eps).sqrt();
        for ((out, &x), &weight) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * weight;
        }
    }
}

versions! {
    /// Computes [`rms_norm`] of a head in place.
    pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
        let squares: f32 = x.chunks_exact(LANES).fold([0f32; LANES], |mut lanes, chunk| {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = fma::<FMA>(x, x, *lane);
            }
            lanes
        }).iter().sum::<f32>() + x.chunks_exact(LANES).remainder().iter().map(|&x| x * x).sum::<f32>();
        let scale = 1.0 / (squares / x.len() as f32 + eps).sqrt();
        for (x, &weight) in x.iter_mut().zip(weight) {
            *x = *x * scale * weight;
        }
    }
}

versions! {
    /// Computes the gated activation `gate = silu(gate) * up`, with `silu(x) = x / (1 + e^-x)`.
    pub fn silu_mul(gate: &mut [f32], up: &[f32]) {
        for (gate, &up) in gate.iter_mut().zip(up) {
            *gate = *gate / (1.0 + exp::<FMA>(-*gate)) * up;
        }
    }
}

versions! {
    /// Computes the Gaussian error linear unit, `x * (1 + erf(x / sqrt(2))) / 2` (Hendrycks, Gimpel 2016), with the
    /// error function of Abramowitz and Stegun, formula 7.1.26, whose error is at most 1.5e-7.
    pub fn gelu(x: &mut [f32]) {
        for x in x {
            let z = *x * std::f32::consts::FRAC_1_SQRT_2;
            let size = z.abs();
            let t = 1.0 / fma::<FMA>(0.327_591_1, size, 1.0);
            let mut p = 1.061_405_4;
            p = fma::<FMA>(p, t, -1.453_152_1);
            p = fma::<FMA>(p, t, 1.421_413_8);
            p = fma::<FMA>(p, t, -0.284_496_72);
            p = fma::<FMA>(p, t, 0.254_829_6);
            let erf = 1.0 - p * t * exp::<FMA>(-size * size);
            *x *= 0.5 * (1.0 + erf.copysign(z));
        }
    }
}

versions! {
    /// Normalizes a row to mean 0 and variance 1, then scales and shifts it:
    /// `x = (x - mean) / sqrt(variance + eps) * weight + bias` (Ba, Kiros, Hinton 2016).
    pub fn layer_norm(x: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) {
        let mut lanes = [0f32; LANES];
        for chunk in x.chunks_exact(LANES) {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += x;
            }
        }
        let mean = (total(lanes) + x.chunks_exact(LANES).remainder().iter().sum::<f32>()) / x.len() as f32;
        let mut lanes = [0f32; LANES];
        for chunk in x.chunks_exact(LANES) {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = fma::<FMA>(x - mean, x - mean, *lane);
            }
        }
        let rest: f32 = x.chunks_exact(LANES).remainder().iter().map(|&x| (x - mean) * (x - mean)).sum();
        let scale = 1.0 / ((total(lanes) + rest) / x.len() as f32 + eps).sqrt();
        for (x, (&weight, &bias)) in x.iter_mut().zip(weight.iter().zip(bias)) {
            *x = fma::<FMA>((*x - mean) * scale, weight, bias);
        }
    }
}

versions! {
    /// Computes `x += y`.
    pub fn add(x: &mut [f32], y: &[f32]) {
        for (x, &y) in x.iter_mut().zip(y) {
            *x += y;
        }
    }
}

versions! {
    /// Computes `x *= factor`.
    pub fn scale(x: &mut [f32], factor: f32) {
        for x in x {
            *x *= factor;
        }
    }
}

versions! {
    /// Computes the inner products of one row with many: `out[i] = x * rows[i]`, with contiguous rows.
    pub fn products(x: &[f32], rows: &[f32], out: &mut [f32]) {
        let width = x.len();
        let (xs, x_rest) = x.split_at(width - width % LANES);
        let mut groups = rows.chunks_exact(4 * width);
        let mut outs = out.chunks_exact_mut(4);
        for (group, out) in (&mut groups).zip(&mut outs) {
            let mut sums = [[0f32; LANES]; 4];
            for (at, x) in xs.chunks_exact(LANES).enumerate() {
                for (i, sums) in sums.iter_mut().enumerate() {
                    let row = &group[i * width + at * LANES..][..LANES];
                    for j in 0..LANES {
                        sums[j] = fma::<FMA>(x[j], row[j], sums[j]);
                    }
                }
            }
            for (i, (out, sums)) in out.iter_mut().zip(sums).enumerate() {
                let row = &group[i * width + xs.len()..(i + 1) * width];
                *out = total(sums) + x_rest.iter().zip(row).map(|(&x, &y)| x * y).sum::<f32>();
            }
        }
        for (row, out) in groups.remainder().chunks_exact(width).zip(outs.into_remainder()) {
            let mut sums = [0f32; LANES];
            for (x, y) in xs.chunks_exact(LANES).zip(row.chunks_exact(LANES)) {
                for j in 0..LANES {
                    sums[j] = fma::<FMA>(x[j], y[j], sums[j]);
                }
            }
            *out = total(sums) + x_rest.iter().zip(&row[xs.len()..]).map(|(&x, &y)| x * y).sum::<f32>();
        }
    }
}

versions! {
    /// Writes rows of `width` as columns: `to[j * stride + i] = from[i * width + j]`.
    pub fn transpose(from: &[f32], width: usize, to: &mut [f32], stride: usize) {
        let rows = from.len() / width;
        let mut j = 0;
        // eight columns at a time, so that each cache line of `from` is read once
        while j < width {
            let columns = (width - j).min(8);
            for i in 0..rows {
                let row = &from[i * width + j..][..columns];
                for (c, &x) in row.iter().enumerate() {
                    to[(j + c) * stride + i] = x;
                }
            }
            j += columns;
        }
        // the body does not use lanes, but the instruction set speeds up the moves
        let _ = (LANES, FMA);
    }
}

versions! {
    /// Rotates the pairs `(i, i + half)` of one head by the angles with these cosines and sines.
    pub fn rotate_halves(x: &mut [f32], cos: &[f32], sin: &[f32]) {
        let (low, high) = x[..2 * cos.len()].split_at_mut(cos.len());
        for (((low, high), &cos), &sin) in low.iter_mut().zip(high).zip(cos).zip(sin) {
            (*low, *high) = (*low * cos - *high * sin, *high * cos + *low * sin);
        }
    }
}

versions! {
    /// Rotates the pairs `(2i, 2i + 1)` of one head by the angles with these cosines and sines.
    pub fn rotate_pairs(x: &mut [f32], cos: &[f32], sin: &[f32]) {
        for ((pair, &cos), &sin) in x.chunks_exact_mut(2).zip(cos).zip(sin) {
            (pair[0], pair[1]) = (pair[0] * cos - pair[1] * sin, pair[1] * cos + pair[0] * sin);
        }
    }
}

/// A row-major matrix inside a slice: its values and the distance between rows.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// The values, starting with the first of the first row.
    pub data: &'a [f32],
    /// The distance from one row to the next, in values.
    pub stride: usize,
}

/// Widens f16 (as raw bits) to f32.
///
/// # Panics
/// If the slices differ in length.
pub(super) fn widen(from: &[u16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: `level` has found the features.
        Level::Avx512 => return unsafe { x86::widen_avx512(from, to) },
        // SAFETY: likewise.
        Level::Avx2 => return unsafe { x86::widen_f16c(from, to) },
        Level::Baseline => {}
    }
    #[cfg(target_arch = "aarch64")]
    let (from, to) = arm::widen(from, to);
    for (to, &from) in to.iter_mut().zip(from) {
        *to = widen_one(from);
    }
}

/// Narrows f32 to f16 (as raw bits), to the nearest, ties to even.
///
/// # Panics
/// If the slices differ in length.
pub(super) fn narrow(from: &[f32], to: &mut [u16]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: `level` has found the features.
        Level::Avx512 => return unsafe { x86::narrow_avx512(from, to) },
        // SAFETY: likewise.
        Level::Avx2 => return unsafe { x86::narrow_f16c(from, to) },
        Level::Baseline => {}
    }
    narrow_each(from, to);
}

/// Implements [`narrow`] one by one.
fn narrow_each(from: &[f32], to: &mut [u16]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = half::f16::from_f32(from).to_bits();
    }
}

/// Widens one finite f16 with integer operations that every instruction set has for vectors: exponent and mantissa,
/// shifted into place, are the value divided by 2^112, subnormals included.
#[inline(always)]
fn widen_one(half: u16) -> f32 {
    /// 2^112.
    const SCALE: f32 = f32::from_bits((112 + 127) << 23);
    let magnitude = f32::from_bits(u32::from(half & 0x7fff) << 13) * SCALE;
    f32::from_bits(magnitude.to_bits() | (u32::from(half & 0x8000) << 16))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_storeu_ps, _mm256_storeu_si256, _mm512_cvtph_ps,
        _mm512_cvtps_ph, _mm512_loadu_ps, _mm512_storeu_ps,
    };

    #[target_feature(enable = "avx512f")]
    pub(super) fn narrow_avx512(from: &[f32], to: &mut [u16]) {
        let (mut froms, mut tos) = (from.chunks_exact(16), to.chunks_exact_mut(16));
        for (from, to) in (&mut froms).zip(&mut tos) {
            // SAFETY: both chunks hold 16 values; the operations need no alignment.
            unsafe {
                let halves: __m256i = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(from.as_ptr()));
                _mm256_storeu_si256(to.as_mut_ptr().cast(), halves);
            }
        }
        super::narrow_each(froms.remainder(), tos.into_remainder());
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow_f16c(from: &[f32], to: &mut [u16]) {
        let (mut froms, mut tos) = (from.chunks_exact(8), to.chunks_exact_mut(8));
        for (from, to) in (&mut froms).zip(&mut tos) {
            // SAFETY: both chunks hold 8 values; the operations need no alignment.
            unsafe {
                let halves: __m128i = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
                _mm_storeu_si128(to.as_mut_ptr().cast(), halves);
            }
        }
        super::narrow_each(froms.remainder(), tos.into_remainder());
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn widen_avx512(from: &[u16], to: &mut [f32]) {
        let (mut froms, mut tos) = (from.chunks_exact(16), to.chunks_exact_mut(16));
        for (from, to) in (&mut froms).zip(&mut tos) {
            // SAFETY: both chunks hold 16 values; the operations need no alignment.
            unsafe {
                let halves: __m256i = _mm256_loadu_si256(from.as_ptr().cast());
                _mm512_storeu_ps(to.as_mut_ptr(), _mm512_cvtph_ps(halves));
            }
        }
        for (to, &from) in tos.into_remainder().iter_mut().zip(froms.remainder()) {
            *to = super::widen_one(from);
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen_f16c(from: &[u16], to: &mut [f32]) {
        let (mut froms, mut tos) = (from.chunks_exact(8), to.chunks_exact_mut(8));
        for (from, to) in (&mut froms).zip(&mut tos) {
            // SAFETY: both chunks hold 8 values; the operations need no alignment.
            unsafe {
                let halves: __m128i = _mm_loadu_si128(from.as_ptr().cast());
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
            }
        }
        for (to, &from) in tos.into_remainder().iter_mut().zip(froms.remainder()) {
            *to = super::widen_one(from);
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::{float32x4_t, uint16x8_t, vld1q_u16, vst1q_f32};
    use std::arch::asm;

    /// Widens whole groups of eight and returns the rest. In assembly, because the oldest compiler that builds caro
    /// lacks the intrinsics.
    pub(super) fn widen<'a, 'b>(from: &'a [u16], to: &'b mut [f32]) -> (&'a [u16], &'b mut [f32]) {
        let (froms, rest) = from.as_chunks::<8>();
        let (tos, to_rest) = to.split_at_mut(froms.len() * 8);
        for (from, to) in froms.iter().zip(tos.as_chunks_mut::<8>().0) {
            // SAFETY: both chunks hold eight values; the instructions belong to every CPU of this architecture.
            unsafe {
                let halves: uint16x8_t = vld1q_u16(from.as_ptr());
                let (low, high): (float32x4_t, float32x4_t);
                asm!("fcvtl {low:v}.4s, {halves:v}.4h", "fcvtl2 {high:v}.4s, {halves:v}.8h", halves = in(vreg) halves,
                     low = out(vreg) low, high = lateout(vreg) high, options(pure, nomem, nostack));
                vst1q_f32(to.as_mut_ptr(), low);
                vst1q_f32(to.as_mut_ptr().add(4), high);
            }
        }
        (rest, to_rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 22) as f32 - 2.0
            })
            .collect()
    }

    #[test]
    fn exp_is_accurate_on_every_version() {
        for i in -8700..=8500 {
            let x = i as f32 / 100.0;
            let want = f64::from(x).exp();
            for got in [exp::<false>(x), exp::<true>(x), exp_in_place(&mut [x; 17], 0.0) / 17.0] {
                assert!(((f64::from(got) - want) / want).abs() < 1e-6, "exp({x}) = {got}, not {want}");
            }
        }
        assert!(exp::<true>(-1e9) < 1e-37 && exp::<true>(1e9).is_finite());
    }

    #[test]
    fn sums_ignore_nan() {
        let mut xs = values(1000, 1);
        let want: f64 = xs.iter().map(|&x| f64::from(x - 2.0).exp()).sum();
        assert!((f64::from(sum_exp(&xs, 2.0)) / want - 1.0).abs() < 1e-5);
        xs[500] = f32::NEG_INFINITY;
        xs[501] = f32::NAN;
        assert!(sum_exp(&xs, 2.0).is_finite());
    }

    #[test]
    fn vector_functions_agree_with_plain_arithmetic() {
        for len in [1, 7, 16, 33, 64, 100, 1536] {
            let (x, y) = (values(len, 3), values(len, 4));
            for count in [1, 4, 7] {
                let rows = values(count * len, 8);
                let mut out = vec![0.0; count];
                products(&x, &rows, &mut out);
                for (row, got) in rows.chunks(len).zip(out) {
                    let want: f64 = x.iter().zip(row).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                    assert!((f64::from(got) - want).abs() < 1e-3 * len as f64, "product of {len}");
                }
            }
            assert_eq!(largest(&x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));

            let mut out = vec![0.0; len];
            rms_norm(&x, &y, 1e-6, &mut out);
            let mean: f64 = x.iter().map(|&a| f64::from(a) * f64::from(a)).sum::<f64>() / len as f64 + 1e-6;
            for i in 0..len {
                let want = f64::from(x[i]) / mean.sqrt() * f64::from(y[i]);
                assert!((f64::from(out[i]) - want).abs() < 1e-4, "norm of {len}");
            }

            let mut in_place = x.clone();
            rms_norm_in_place(&mut in_place, &y, 1e-6);
            assert!(in_place.iter().zip(&out).all(|(a, b)| (a - b).abs() < 1e-5), "norm of {len} in place");

            let mut gate = x.clone();
            silu_mul(&mut gate, &y);
            for i in 0..len {
                let want = f64::from(x[i]) / (1.0 + (-f64::from(x[i])).exp()) * f64::from(y[i]);
                assert!((f64::from(gate[i]) - want).abs() < 1e-5, "silu of {len}");
            }

            let mut z = x.clone();
            add(&mut z, &y);
            scale(&mut z, 0.5);
            for i in 0..len {
                assert!((z[i] - (x[i] + y[i]) / 2.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_matrix_is_transposed() {
        let from = values(13 * 20, 2);
        let mut to = vec![0.0; 20 * 16];
        transpose(&from, 20, &mut to, 16);
        assert!((0..13).all(|i| (0..20).all(|j| to[j * 16 + i] == from[i * 20 + j])));
    }

    #[test]
    fn both_rotations_rotate_their_pairs() {
        let x = values(20, 9);
        let angles: Vec<f32> = (0..8).map(|i| i as f32 * 0.3).collect();
        let (cos, sin): (Vec<f32>, Vec<f32>) = angles.iter().map(|a| (a.cos(), a.sin())).unzip();
        let (mut halves, mut pairs) = (x.clone(), x.clone());
        rotate_halves(&mut halves, &cos, &sin);
        rotate_pairs(&mut pairs, &cos, &sin);
        for i in 0..8 {
            for (out, a, b) in [(&halves, i, i + 8), (&pairs, 2 * i, 2 * i + 1)] {
                assert!((out[a] - (x[a] * cos[i] - x[b] * sin[i])).abs() < 1e-6);
                assert!((out[b] - (x[b] * cos[i] + x[a] * sin[i])).abs() < 1e-6);
            }
        }
        assert_eq!((&halves[16..], &pairs[16..]), (&x[16..], &x[16..]), "what lies beyond is not turned");
    }

    #[test]
    fn every_finite_half_widens_exactly() {
        let halves: Vec<u16> = (0..=u16::MAX).filter(|&h| half::f16::from_bits(h).is_finite()).collect();
        let mut wide = vec![0.0; halves.len()];
        widen(&halves, &mut wide);
        for (&h, &w) in halves.iter().zip(&wide) {
            let want = half::f16::from_bits(h).to_f32();
            assert_eq!(w.to_bits(), want.to_bits(), "{h:#x}");
            assert_eq!(widen_one(h).to_bits(), want.to_bits(), "{h:#x} by integer operations");
        }
        let mut back = vec![0; halves.len()];
        narrow(&wide, &mut back);
        assert_eq!(back, halves);
    }

    #[test]
    fn every_instruction_set_narrows_to_the_same_half() {
        // every sign and exponent, with mantissas at and beside the middle between two halves; all but NaN
        let mantissas = [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x3001, 0x40_0000, 0x7f_efff, 0x7f_f000];
        let bits = (0..512u32).flat_map(|head| mantissas.map(|mantissa| head << 23 | mantissa));
        let mut wide: Vec<f32> = bits.map(f32::from_bits).filter(|x| !x.is_nan()).collect();
        // a rest that does not fill a vector
        wide.push(0.1);
        let want: Vec<u16> = wide.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect();
        let check = |narrow: &dyn Fn(&[f32], &mut [u16])| {
            let mut halves = vec![1; wide.len()];
            narrow(&wide, &mut halves);
            assert!(halves == want);
        };
        check(&narrow);
        check(&narrow_each);
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx512 | Level::Avx2 = level() {
            // SAFETY: `level` has found AVX2 and F16C, or AVX-512, of which every CPU has both.
            check(&|from, to| unsafe { x86::narrow_f16c(from, to) });
        }
    }
}
