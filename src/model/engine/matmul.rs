//! The small f32 matrix product of attention, with its accumulators in registers: compilers did not keep them there,
//! and moving them took half of a prompt's time.
#![allow(unsafe_code)] // Vector instructions.

use super::simd::View;

/// Computes `c += a b`, with `a` of m x k, `b` of k x n, and `c` of m x n in rows `stride` apart.
///
/// # Panics
/// If a matrix does not fit its slice.
pub(super) fn multiply_add(a: View<'_>, b: View<'_>, c: &mut [f32], stride: usize, m: usize, n: usize, k: usize) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    // the kernels rely on these bounds
    assert!((m - 1) * a.stride + k <= a.data.len(), "a is too short");
    assert!((k - 1) * b.stride + n <= b.data.len(), "b is too short");
    assert!((m - 1) * stride + n <= c.len(), "c is too short");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the instructions, and the matrices lie inside their slices.
            return unsafe { x86::avx512(a, b, c, stride, m, n, k) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: likewise.
            return unsafe { x86::avx2(a, b, c, stride, m, n, k) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the matrices lie inside their slices.
    unsafe {
        arm::neon(a, b, c, stride, m, n, k)
    }
    #[cfg(not(target_arch = "aarch64"))]
    portable(a, b, c, stride, 0..m, 0..n, k);
}

/// Computes some rows and columns of the product: the reference, and the rest that the kernels leave.
fn portable(
    a: View<'_>,
    b: View<'_>,
    c: &mut [f32],
    stride: usize,
    rows: std::ops::Range<usize>,
    cols: std::ops::Range<usize>,
    k: usize,
) {
    for row in rows {
        let c = &mut c[row * stride..][cols.clone()];
        for (p, &x) in a.data[row * a.stride..][..k].iter().enumerate() {
            for (c, &y) in c.iter_mut().zip(&b.data[p * b.stride..][cols.clone()]) {
                *c += x * y;
            }
        }
    }
}

/// Calls a tile for the remaining rows, at most six: more accumulators do not fit the registers.
macro_rules! by_rows {
    ($tile:ident, $rows:expr, $($arg:expr),*) => {
        match $rows {
            1 => $tile::<1>($($arg),*),
            2 => $tile::<2>($($arg),*),
            3 => $tile::<3>($($arg),*),
            4 => $tile::<4>($($arg),*),
            5 => $tile::<5>($($arg),*),
            _ => $tile::<6>($($arg),*),
        }
    };
}

/// Computes the columns in tiles of 16, and the rest portably. Unsafe as the tiles are: each lies inside the
/// matrices if they lie inside their slices.
macro_rules! by_columns {
    ($tile:ident, $a:ident, $b:ident, $c:ident, $stride:ident, $m:ident, $n:ident, $k:ident) => {{
        let tiled = $n - $n % 16;
        for col in (0..tiled).step_by(16) {
            for row in (0..$m).step_by(6) {
                let from = &$a.data[row * $a.stride..];
                let (b_at, c_at) = (&$b.data[col..], &mut $c[row * $stride + col..]);
                by_rows!($tile, $m - row, from, $a.stride, b_at, $b.stride, c_at, $stride, $k);
            }
        }
        if tiled < $n {
            portable($a, $b, $c, $stride, 0..$m, tiled..$n, $k);
        }
    }};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{View, portable};
    use std::arch::x86_64::{
        __m256, __m512, __mmask16, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_set1_ps,
        _mm512_setzero_ps,
    };

    /// # Safety
    /// The CPU has AVX-512F; the matrices lie inside their slices.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(a: View<'_>, b: View<'_>, c: &mut [f32], stride: usize, m: usize, n: usize, k: usize) {
        for col in (0..n).step_by(32) {
            let mask = |from: usize| ((1u32 << n.saturating_sub(from).min(16)) - 1) as __mmask16;
            let masks = [mask(col), mask(col + 16)];
            for row in (0..m).step_by(6) {
                let from = &a.data[row * a.stride..];
                let (b_at, c_at) = (&b.data[col..], &mut c[row * stride + col..]);
                // SAFETY: the tile's rows lie inside the matrices, and the masks keep it inside their columns.
                unsafe { by_rows!(tile512, m - row, from, a.stride, b_at, b.stride, c_at, stride, k, masks) };
            }
        }
    }

    /// Computes `R` rows by up to 32 columns, selected by the masks.
    ///
    /// # Safety
    /// As [`avx512`], for `R` rows from the starts of `a` and `c`.
    #[target_feature(enable = "avx512f")]
    #[allow(clippy::too_many_arguments)]
    unsafe fn tile512<const R: usize>(
        a: &[f32],
        a_stride: usize,
        b: &[f32],
        b_stride: usize,
        c: &mut [f32],
        stride: usize,
        k: usize,
        masks: [__mmask16; 2],
    ) {
        let mut sums: [[__m512; 2]; R] = [[_mm512_setzero_ps(); 2]; R];
        for p in 0..k {
            // SAFETY: row p of b and column p of a are inside; masked lanes are not read. An address past the end may
            // be formed for a half that is masked out whole, and is not used.
            unsafe {
                let at = b.as_ptr().add(p * b_stride);
                let b = [_mm512_maskz_loadu_ps(masks[0], at), _mm512_maskz_loadu_ps(masks[1], at.wrapping_add(16))];
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*a.as_ptr().add(i * a_stride + p));
                    sums[0] = _mm512_fmadd_ps(x, b[0], sums[0]);
                    sums[1] = _mm512_fmadd_ps(x, b[1], sums[1]);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (half, sum) in sums.iter().enumerate() {
                // SAFETY: row i of c is inside; masked lanes are neither read nor written.
                unsafe {
                    let at = c.as_mut_ptr().wrapping_add(i * stride + half * 16);
                    let old = _mm512_maskz_loadu_ps(masks[half], at);
                    _mm512_mask_storeu_ps(at, masks[half], _mm512_add_ps(old, *sum));
                }
            }
        }
    }

    /// # Safety
    /// The CPU has AVX2 and FMA; the matrices lie inside their slices.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(a: View<'_>, b: View<'_>, c: &mut [f32], stride: usize, m: usize, n: usize, k: usize) {
        // SAFETY: the matrices lie inside their slices.
        unsafe { by_columns!(tile256, a, b, c, stride, m, n, k) };
    }

    /// Computes `R` rows by 16 columns.
    ///
    /// # Safety
    /// As [`avx2`], for `R` rows from the starts of `a` and `c`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile256<const R: usize>(
        a: &[f32],
        a_stride: usize,
        b: &[f32],
        b_stride: usize,
        c: &mut [f32],
        stride: usize,
        k: usize,
    ) {
        let mut sums: [[__m256; 2]; R] = [[_mm256_setzero_ps(); 2]; R];
        for p in 0..k {
            // SAFETY: row p of b has 16 columns here, and column p of a is inside.
            unsafe {
                let at = b.as_ptr().add(p * b_stride);
                let b = [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))];
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = _mm256_set1_ps(*a.as_ptr().add(i * a_stride + p));
                    sums[0] = _mm256_fmadd_ps(x, b[0], sums[0]);
                    sums[1] = _mm256_fmadd_ps(x, b[1], sums[1]);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (half, sum) in sums.iter().enumerate() {
                // SAFETY: row i of c has 16 columns here.
                unsafe {
                    let at = c.as_mut_ptr().add(i * stride + half * 8);
                    _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), *sum));
                }
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{View, portable};
    use std::arch::aarch64::{float32x4_t, vaddq_f32, vdupq_n_f32, vfmaq_n_f32, vld1q_f32, vst1q_f32};

    /// # Safety
    /// The matrices lie inside their slices.
    pub(super) unsafe fn neon(a: View<'_>, b: View<'_>, c: &mut [f32], stride: usize, m: usize, n: usize, k: usize) {
        // SAFETY: the matrices lie inside their slices.
        unsafe { by_columns!(tile, a, b, c, stride, m, n, k) };
    }

    /// Computes `R` rows by 16 columns; 24 of the 32 registers hold sums.
    ///
    /// # Safety
    /// As [`neon`], for `R` rows from the starts of `a` and `c`.
    unsafe fn tile<const R: usize>(
        a: &[f32],
        a_stride: usize,
        b: &[f32],
        b_stride: usize,
        c: &mut [f32],
        stride: usize,
        k: usize,
    ) {
        // SAFETY (all): row p of b and row i of c have 16 columns here, and column p of a is inside; NEON belongs to
        // every CPU of this architecture.
        let mut sums: [[float32x4_t; 4]; R] = unsafe { [[vdupq_n_f32(0.0); 4]; R] };
        for p in 0..k {
            unsafe {
                let at = b.as_ptr().add(p * b_stride);
                let b = [vld1q_f32(at), vld1q_f32(at.add(4)), vld1q_f32(at.add(8)), vld1q_f32(at.add(12))];
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = *a.as_ptr().add(i * a_stride + p);
                    for (sum, b) in sums.iter_mut().zip(b) {
                        *sum = vfmaq_n_f32(*sum, b, x);
                    }
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (quarter, sum) in sums.iter().enumerate() {
                unsafe {
                    let at = c.as_mut_ptr().add(i * stride + quarter * 4);
                    vst1q_f32(at, vaddq_f32(vld1q_f32(at), *sum));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Product = fn(View<'_>, View<'_>, &mut [f32], usize, usize, usize, usize);

    /// Returns all versions that this CPU can run, with their names.
    fn versions() -> Vec<(&'static str, Product)> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut all: Vec<(&'static str, Product)> =
            vec![("chosen", multiply_add), ("portable", |a, b, c, s, m, n, k| portable(a, b, c, s, 0..m, 0..n, k))];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has the instructions; the test's matrices fit their slices.
            all.push(("avx2", |a, b, c, s, m, n, k| unsafe { x86::avx2(a, b, c, s, m, n, k) }));
        }
        all
    }

    #[test]
    fn every_shape_agrees_with_f64_and_nothing_else_is_written() {
        let values = |len: usize, seed: usize| -> Vec<f32> {
            (0..len).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
        };
        let shapes =
            [(1, 1, 1), (3, 64, 5), (4, 32, 128), (7, 33, 9), (13, 80, 64), (96, 64, 128), (5, 15, 3), (12, 17, 2)];
        for (name, product) in versions() {
            for (m, n, k) in shapes {
                let (a_stride, b_stride, stride) = (k + 3, n + 1, n + 2);
                // the last rows end at the end of the allocation, so that a read past them is out of bounds
                let a = values((m - 1) * a_stride + k, 5);
                let b = values((k - 1) * b_stride + n, 6);
                let before = values((m - 1) * stride + n, 7);
                let mut c = before.clone();
                product(
                    View { data: &a, stride: a_stride },
                    View { data: &b, stride: b_stride },
                    &mut c,
                    stride,
                    m,
                    n,
                    k,
                );
                for (at, (&old, &new)) in before.iter().zip(&c).enumerate() {
                    let (row, col) = (at / stride, at % stride);
                    let term = |p: usize| f64::from(a[row * a_stride + p]) * f64::from(b[p * b_stride + col]);
                    let sum: f64 = if col < n { (0..k).map(term).sum() } else { 0.0 };
                    let want = f64::from(old) + sum;
                    assert!((f64::from(new) - want).abs() < 1e-4, "{name} {m}x{n}x{k} at {row},{col}: {new} {want}");
                }
            }
        }
    }
}
