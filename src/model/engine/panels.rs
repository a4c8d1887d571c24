//! The product of few numbers with a tall matrix, as an adapter's second half is: written for instruction sets by hand, since
//! compilers take sums in arrays apart into single numbers.
#![allow(unsafe_code)] // Vector instructions.

use super::simd;

/// Columns of a panel.
pub(super) const PANEL: usize = 16;

/// The most rows that are multiplied together.
const ROWS: usize = 8;

/// A number of a matrix in panels: f32, or f16 as raw bits.
pub(super) trait Number: Copy + Default {
    /// Makes sixteen of them f32.
    fn widen(from: &[Self; PANEL], to: &mut [f32; PANEL]);

    /// Sixteen of them, as f32.
    ///
    /// # Safety
    /// The CPU has AVX-512F, and there are sixteen at `from`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_avx512(from: *const Self) -> std::arch::x86_64::__m512;

    /// Eight of them, as f32.
    ///
    /// # Safety
    /// The CPU has AVX2 and F16C, and there are eight at `from`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_avx2(from: *const Self) -> std::arch::x86_64::__m256;
}

impl Number for f32 {
    fn widen(from: &[Self; PANEL], to: &mut [f32; PANEL]) {
        *to = *from;
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_avx512(from: *const Self) -> std::arch::x86_64::__m512 {
        // SAFETY: sixteen are there.
        unsafe { std::arch::x86_64::_mm512_loadu_ps(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_avx2(from: *const Self) -> std::arch::x86_64::__m256 {
        // SAFETY: eight are there.
        unsafe { std::arch::x86_64::_mm256_loadu_ps(from) }
    }
}

impl Number for u16 {
    fn widen(from: &[Self; PANEL], to: &mut [f32; PANEL]) {
        simd::widen(from, to);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_avx512(from: *const Self) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::{_mm256_loadu_si256, _mm512_cvtph_ps};
        // SAFETY: sixteen are there.
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_avx2(from: *const Self) -> std::arch::x86_64::__m256 {
        use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps};
        // SAFETY: eight are there.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(from.cast()) })
    }
}

/// Adds rows of numbers times a matrix: `outs[i][16 p + c] += sum of x[i * rank + j] * panels[16 (p * rank + j) + c]`. The matrix
/// is in panels of sixteen columns, each with its rows one after another; of the last panel only so many columns count as
/// `outs` have left. An output does not depend on how many others there are, to the bit.
///
/// # Panics
/// If the sizes do not fit each other.
pub(super) fn add<N: Number>(x: &[f32], rank: usize, panels: &[N], outs: &mut [&mut [f32]]) {
    assert_eq!(x.len(), outs.len() * rank, "x has another number of rows");
    for (x, outs) in x.chunks(ROWS * rank).zip(outs.chunks_mut(ROWS)) {
        match outs {
            [a] => some(x, rank, panels, [a]),
            [a, b] => some(x, rank, panels, [a, b]),
            [a, b, c] => some(x, rank, panels, [a, b, c]),
            [a, b, c, d] => some(x, rank, panels, [a, b, c, d]),
            [a, b, c, d, e] => some(x, rank, panels, [a, b, c, d, e]),
            [a, b, c, d, e, f] => some(x, rank, panels, [a, b, c, d, e, f]),
            [a, b, c, d, e, f, g] => some(x, rank, panels, [a, b, c, d, e, f, g]),
            [a, b, c, d, e, f, g, h] => some(x, rank, panels, [a, b, c, d, e, f, g, h]),
            _ => {}
        }
    }
}

/// [`add`] for so many rows.
fn some<N: Number, const R: usize>(x: &[f32], rank: usize, panels: &[N], mut outs: [&mut [f32]; R]) {
    let width = outs.iter().map(|out| out.len()).min().unwrap_or(0);
    assert!(outs.iter().all(|out| out.len() == width) && x.len() == R * rank, "rows of different lengths");
    assert_eq!(panels.len(), width.div_ceil(PANEL) * PANEL * rank, "the panels have another width");
    let (whole, rest) = (width / PANEL, width % PANEL);
    whole_panels(x, rank, &panels[..whole * PANEL * rank], outs.each_mut().map(|out| &mut out[..whole * PANEL]));
    if rest > 0 {
        let mut ends = [[0.0; PANEL]; R];
        for (end, out) in ends.iter_mut().zip(&outs) {
            end[..rest].copy_from_slice(&out[whole * PANEL..]);
        }
        whole_panels(x, rank, &panels[whole * PANEL * rank..], ends.each_mut().map(|end| &mut end[..]));
        for (end, out) in ends.iter().zip(&mut outs) {
            out[whole * PANEL..].copy_from_slice(&end[..rest]);
        }
    }
}

/// The same for panels of which every column counts, and sizes that fit.
fn whole_panels<N: Number, const R: usize>(x: &[f32], rank: usize, panels: &[N], outs: [&mut [f32]; R]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the instructions, and the caller has held the sizes against each other.
            return unsafe { x86::avx512(x, rank, panels, outs) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            // SAFETY: likewise.
            return unsafe { x86::avx2(x, rank, panels, outs) };
        }
    }
    portable(x, rank, panels, outs);
}

/// The reference. On AArch64 it is compiled to vector instructions: four of them hold a panel.
fn portable<N: Number, const R: usize>(x: &[f32], rank: usize, panels: &[N], mut outs: [&mut [f32]; R]) {
    let mut row = [0.0; PANEL];
    for (at, panel) in panels.chunks_exact(PANEL * rank).enumerate() {
        let mut sums = [[0.0; PANEL]; R];
        for (j, numbers) in panel.as_chunks::<PANEL>().0.iter().enumerate() {
            N::widen(numbers, &mut row);
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = x[i * rank + j];
                for (sum, y) in sums.iter_mut().zip(&row) {
                    *sum = if cfg!(target_arch = "aarch64") { x.mul_add(*y, *sum) } else { x * y + *sum };
                }
            }
        }
        for (out, sums) in outs.iter_mut().zip(&sums) {
            for (out, sum) in out[at * PANEL..][..PANEL].iter_mut().zip(sums) {
                *out += sum;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Number, PANEL};
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
        _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    /// # Safety
    /// The CPU has AVX-512F; `x` is `R x rank`, and `outs` are as wide as the panels.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512<N: Number, const R: usize>(
        x: &[f32],
        rank: usize,
        panels: &[N],
        mut outs: [&mut [f32]; R],
    ) {
        let (count, outs) = (panels.len() / (PANEL * rank), outs.each_mut().map(|out| out.as_mut_ptr()));
        let mut at = 0;
        // Few rows take several panels at a time: the sums of one alone would wait for themselves.
        while R < 4 && at + 4 <= count {
            // SAFETY: four panels are there.
            unsafe {
                tile512::<N, R, 4>(x, rank, panels.as_ptr().add(at * PANEL * rank), outs.map(|o| o.add(at * PANEL)))
            };
            at += 4;
        }
        while at < count {
            // SAFETY: a panel is there.
            unsafe {
                tile512::<N, R, 1>(x, rank, panels.as_ptr().add(at * PANEL * rank), outs.map(|o| o.add(at * PANEL)))
            };
            at += 1;
        }
    }

    /// `R` rows by `P` panels.
    ///
    /// # Safety
    /// As [`avx512`], for `P` panels at `panels` and as many columns at each of `outs`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn tile512<N: Number, const R: usize, const P: usize>(
        x: &[f32],
        rank: usize,
        panels: *const N,
        outs: [*mut f32; R],
    ) {
        let mut sums = [[_mm512_setzero_ps(); P]; R];
        for j in 0..rank {
            // SAFETY: row `j` of `P` panels, and column `j` of `R` rows.
            unsafe {
                let rows: [_; P] = std::array::from_fn(|p| N::load_avx512(panels.add((p * rank + j) * PANEL)));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*x.as_ptr().add(i * rank + j));
                    for (sum, row) in sums.iter_mut().zip(rows) {
                        *sum = _mm512_fmadd_ps(x, row, *sum);
                    }
                }
            }
        }
        for (out, sums) in outs.into_iter().zip(sums) {
            for (p, sum) in sums.into_iter().enumerate() {
                // SAFETY: `P` panels' columns are there.
                unsafe {
                    let out = out.add(p * PANEL);
                    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), sum));
                }
            }
        }
    }

    /// # Safety
    /// The CPU has AVX2, FMA and F16C; `x` is `R x rank`, and `outs` are as wide as the panels.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn avx2<N: Number, const R: usize>(
        x: &[f32],
        rank: usize,
        panels: &[N],
        mut outs: [&mut [f32]; R],
    ) {
        let (count, outs) = (panels.len() / (PANEL * rank), outs.each_mut().map(|out| out.as_mut_ptr()));
        let mut at = 0;
        while R < 2 && at + 2 <= count {
            // SAFETY: two panels are there.
            unsafe {
                tile256::<N, R, 2>(x, rank, panels.as_ptr().add(at * PANEL * rank), outs.map(|o| o.add(at * PANEL)))
            };
            at += 2;
        }
        while at < count {
            // SAFETY: a panel is there.
            unsafe {
                tile256::<N, R, 1>(x, rank, panels.as_ptr().add(at * PANEL * rank), outs.map(|o| o.add(at * PANEL)))
            };
            at += 1;
        }
    }

    /// `R` rows by `P` panels, half a panel after the other: more sums than that do not fit the registers.
    ///
    /// # Safety
    /// As [`avx2`], for `P` panels at `panels` and as many columns at each of `outs`.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tile256<N: Number, const R: usize, const P: usize>(
        x: &[f32],
        rank: usize,
        panels: *const N,
        outs: [*mut f32; R],
    ) {
        for half in [0, PANEL / 2] {
            let mut sums = [[_mm256_setzero_ps(); P]; R];
            for j in 0..rank {
                // SAFETY: row `j` of `P` panels, and column `j` of `R` rows.
                unsafe {
                    let rows: [_; P] = std::array::from_fn(|p| N::load_avx2(panels.add((p * rank + j) * PANEL + half)));
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let x = _mm256_set1_ps(*x.as_ptr().add(i * rank + j));
                        for (sum, row) in sums.iter_mut().zip(rows) {
                            *sum = _mm256_fmadd_ps(x, row, *sum);
                        }
                    }
                }
            }
            for (out, sums) in outs.into_iter().zip(sums) {
                for (p, sum) in sums.into_iter().enumerate() {
                    // SAFETY: `P` panels' columns are there.
                    unsafe {
                        let out = out.add(p * PANEL + half);
                        _mm256_storeu_ps(out, _mm256_add_ps(_mm256_loadu_ps(out), sum));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version of [`whole_panels`], for some rows.
    type Version<const R: usize> = fn(&[f32], usize, &[u16], [&mut [f32]; R]);

    fn values(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    }

    fn halves(values: &[f32]) -> Vec<u16> {
        values.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect()
    }

    /// The product in `f64`, of a matrix whose numbers are f16.
    fn exact(x: &[f32], rank: usize, panels: &[u16], column: usize) -> f64 {
        let at =
            |j: usize| f64::from(half::f16::from_bits(panels[(column / PANEL * rank + j) * PANEL + column % PANEL]));
        (0..rank).map(|j| f64::from(x[j]) * at(j)).sum()
    }

    #[test]
    fn any_number_of_rows_and_columns_is_multiplied_and_each_as_it_is_alone() {
        for (rank, width) in [(1, 1usize), (3usize, 16), (16, 17), (16, 64), (5, 100), (33, 130), (16, 200), (256, 31)]
        {
            let panels = halves(&values(width.div_ceil(PANEL) * PANEL * rank, 6));
            let wide: Vec<f32> = panels.iter().map(|&h| half::f16::from_bits(h).to_f32()).collect();
            for rows in [1, 2, 3, 4, 5, 6, 7, 8, 9, 21] {
                let (x, before) = (values(rows * rank, 5), values(rows * width, 7));
                let run = |x: &[f32], before: &[f32]| {
                    let mut all = [before.to_vec(), before.to_vec()];
                    let [half, full] = &mut all;
                    add(x, rank, &panels, &mut half.chunks_mut(width).collect::<Vec<_>>());
                    add(x, rank, &wide, &mut full.chunks_mut(width).collect::<Vec<_>>());
                    assert!(half == full, "f16 and f32 of the same numbers");
                    all[0].clone()
                };
                let together = run(&x, &before);
                for (i, row) in together.chunks(width).enumerate() {
                    let (x, before) = (&x[i * rank..][..rank], &before[i * width..][..width]);
                    let alone = run(x, before);
                    assert!(row.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "row {i} of {rows}");
                    for (column, &got) in row.iter().enumerate() {
                        let want = f64::from(before[column]) + exact(x, rank, &panels, column);
                        let off = (f64::from(got) - want).abs();
                        assert!(off < 1e-5 * (1 + rank) as f64, "{rank}, {column} of {width}: {got}, not {want}");
                    }
                }
            }
        }
    }

    fn versions<const R: usize>() -> Vec<(&'static str, Version<R>)> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut all: Vec<(&'static str, Version<R>)> =
            vec![("chosen", whole_panels::<u16, R>), ("portable", portable::<u16, R>)];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            // SAFETY: the CPU has the instructions; the test's sizes fit each other.
            all.push(("avx2", |x, rank, panels, outs| unsafe { x86::avx2(x, rank, panels, outs) }));
        }
        all
    }

    fn every_version_agrees<const R: usize>() {
        for (rank, count) in [(1, 1), (16, 9), (7, 5)] {
            let (width, x) = (count * PANEL, values(R * rank, 3));
            let panels = halves(&values(width * rank, 4));
            for (name, version) in versions::<R>() {
                let mut out = vec![0.5; R * width];
                let mut rows = out.chunks_exact_mut(width);
                version(&x, rank, &panels, std::array::from_fn(|_| rows.next().unwrap()));
                for (at, &got) in out.iter().enumerate() {
                    let want = 0.5 + exact(&x[at / width * rank..], rank, &panels, at % width);
                    assert!(
                        (f64::from(got) - want).abs() < 1e-5 * (1 + rank) as f64,
                        "{name}, {R} rows: {got}, {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_says_the_same() {
        every_version_agrees::<1>();
        every_version_agrees::<3>();
        every_version_agrees::<8>();
    }

    #[test]
    #[should_panic(expected = "another width")]
    fn sizes_are_checked() {
        add(&[1.0; 2], 2, &[0.0f32; 31], &mut [&mut [0.0; 16]]);
    }
}
