//! Rounds the input of a product to the form that the kernels multiply.

#[cfg(target_arch = "x86_64")]
mod packed;
#[cfg(target_arch = "aarch64")]
mod paired;

use super::aligned::Aligned;
use super::output::Out;
use crate::engine::quant::Kind;
use crate::engine::threads::Pool;
#[cfg(target_arch = "x86_64")]
pub(super) use packed::{TILE, Tile};

/// The form of activations that a kind of weight is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The numbers as they are.
    Plain,
    /// Signed bytes with a scale per 32.
    Block32,
    /// Signed bytes with a scale per 256.
    Block256,
}

impl Form {
    pub(super) const fn of(kind: Kind) -> Self {
        match kind.block_len() {
            1 => Self::Plain,
            32 => Self::Block32,
            _ => Self::Block256,
        }
    }

    /// Returns the count of numbers that share a scale.
    pub(super) const fn block(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Block32 => 32,
            Self::Block256 => 256,
        }
    }
}

/// Inputs of a chunk: one block of 256, or eight of 32.
pub(super) const CHUNK: usize = 256;

/// Activations as signed bytes: `x = scale * q`.
#[derive(Debug, Default)]
pub(super) struct Rounded {
    /// `m x k` integers within `-127..=127`.
    pub(super) q: Aligned<i8>,
    /// Scale of each block, `m x k / block`.
    pub(super) scale: Aligned<f32>,
    /// Sum of the integers of each 16, `m x k / 16`.
    pub(super) sums: Aligned<i16>,
    #[cfg(target_arch = "x86_64")]
    packed: packed::Packed,
    /// See [`paired`]; empty for short batches.
    #[cfg(target_arch = "aarch64")]
    pub(super) paired: Aligned<i8>,
    ready: bool,
}

/// The layout that the kernels of a tier read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Rows: `q`, `scale`, `sums`.
    Rows,
    /// Rows, and all of it packed.
    #[cfg(target_arch = "x86_64")]
    Steps,
    /// Rows, and the integers of long batches in pairs of rows.
    #[cfg(target_arch = "aarch64")]
    Pairs,
}

/// The forms of one input that a call has prepared so far. Buffers are reused from call to call.
#[derive(Debug, Default)]
pub(super) struct Activations {
    by32: Rounded,
    by256: Rounded,
    m: usize,
    k: usize,
}

impl Activations {
    /// Begins a call with an input of `m x k`.
    pub(super) fn begin(&mut self, m: usize, k: usize) {
        (self.m, self.k) = (m, k);
        self.by32.ready = false;
        self.by256.ready = false;
    }

    /// Rounds `x` to `form`, unless this call has done so already.
    pub(super) fn prepare(&mut self, form: Form, layout: Layout, x: &[f32], pool: &Pool) {
        let rounded = match form {
            Form::Plain => return,
            Form::Block32 => &mut self.by32,
            Form::Block256 => &mut self.by256,
        };
        if !rounded.ready {
            rounded.fill(form, layout, x, self.m, self.k, pool);
        }
    }

    /// Computes the sum of the integers of each block of `form`, which must be prepared.
    pub(super) fn sum_blocks(&self, form: Form, sums: &mut Vec<i32>) {
        sums.clear();
        if form != Form::Plain {
            let blocks = self.get(form).sums.chunks_exact(form.block() / 16);
            sums.extend(blocks.map(|sums| sums.iter().map(|&sum| i32::from(sum)).sum::<i32>()));
        }
    }

    pub(super) fn get(&self, form: Form) -> &Rounded {
        match form {
            Form::Block256 => &self.by256,
            Form::Plain | Form::Block32 => &self.by32,
        }
    }
}

impl Rounded {
    fn fill(&mut self, form: Form, layout: Layout, x: &[f32], m: usize, k: usize, pool: &Pool) {
        let block = form.block();
        self.q.resize(m * k);
        self.scale.resize(m * k / block);
        self.sums.resize(m * k / 16);
        let q = Out::new(&mut self.q, k);
        let scale = Out::new(&mut self.scale, k / block);
        let sums = Out::new(&mut self.sums, k / 16);
        let fill = |i: usize| {
            // SAFETY: one task takes one row `i` of each matrix.
            #[allow(unsafe_code)]
            let (q, scale, sums) = unsafe { (q.row(i), scale.row(i), sums.row(i)) };
            let x = &x[i * k..][..k];
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU has AVX2.
                #[allow(unsafe_code)]
                return unsafe { round_row_avx2(block, x, q, scale, sums) };
            }
            round_row(block, x, q, scale, sums);
        };
        let all = |tasks: usize, task: &(dyn Fn(usize) + Sync)| {
            // a parallel region costs some microseconds, more than rounding a small input
            if m * k < 32 << 10 {
                (0..tasks).for_each(task);
            } else {
                pool.run(tasks, |i, _| task(i));
            }
        };
        all(m, &fill);
        match layout {
            Layout::Rows => {}
            #[cfg(target_arch = "x86_64")]
            Layout::Steps => {
                let Self { q, scale, sums, packed, .. } = self;
                packed.fit(form, m, k);
                let to = packed.writer();
                all(m.div_ceil(packed::TILE), &|tile| to.fill(tile, form, m, k, (q, scale, sums)));
            }
            #[cfg(target_arch = "aarch64")]
            Layout::Pairs => {
                let len = if m < super::neon::MIN_BATCH { 0 } else { m.next_multiple_of(2) * k };
                self.paired.resize(len);
                let (q, to) = (&self.q, Out::new(&mut self.paired, 2 * k));
                all(len / (2 * k), &|pair| {
                    // SAFETY: one task takes one pair of rows.
                    #[allow(unsafe_code)]
                    let to = unsafe { to.row(pair) };
                    paired::fill(q[pair * 2 * k..].chunks_exact(k).take(2), to);
                });
            }
        }
        self.ready = true;
    }
}

/// As [`round_row`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn round_row_avx2(block: usize, x: &[f32], q: &mut [i8], scale: &mut [f32], sums: &mut [i16]) {
    round_row(block, x, q, scale, sums);
}

#[inline(always)]
fn round_row(block: usize, x: &[f32], q: &mut [i8], scale: &mut [f32], sums: &mut [i16]) {
    for ((x, q), scale) in x.chunks_exact(block).zip(q.chunks_exact_mut(block)).zip(scale) {
        *scale = round(x, q);
    }
    for (q, sum) in q.chunks_exact(16).zip(&mut *sums) {
        *sum = q.iter().map(|&q| i16::from(q)).sum();
    }
}

/// Rounds one block and returns its scale. The largest magnitude becomes 127; ties go to the even number.
#[inline(always)]
pub(super) fn round(x: &[f32], q: &mut [i8]) -> f32 {
    /// 1.5 x 2^23; adding it leaves a number's nearest integer in the low bits of the sum.
    const MAGIC: f32 = 12_582_912.0;
    let mut parts = [0.0f32; 16];
    for x in x.chunks_exact(16) {
        for (part, &x) in parts.iter_mut().zip(x) {
            // written so that NaN is ignored
            *part = if x.abs() > *part { x.abs() } else { *part };
        }
    }
    let largest = parts.iter().fold(0.0f32, |a, &b| a.max(b));
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    for (&x, q) in x.iter().zip(q) {
        *q = ((x * inverse + MAGIC).to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32) as i8;
    }
    largest / 127.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(form: Form, x: &[f32], m: usize) -> Activations {
        let mut activations = Activations::default();
        activations.begin(m, x.len() / m);
        activations.prepare(form, Layout::Rows, x, &Pool::new(2));
        activations
    }

    #[test]
    fn rounding_errs_by_at_most_half_a_step() {
        let x: Vec<f32> = (0..1024).map(|i| ((i * 37) % 513) as f32 * 0.013 - 3.0).collect();
        for form in [Form::Block32, Form::Block256] {
            let all = rounded(form, &x, 2);
            let r = all.get(form);
            for (at, &x) in x.iter().enumerate() {
                let scale = r.scale[at / form.block()];
                assert!((x - scale * f32::from(r.q[at])).abs() <= scale * 0.501, "{at}");
            }
            for (at, &sum) in r.sums.iter().enumerate() {
                assert_eq!(sum, r.q[at * 16..][..16].iter().map(|&q| i16::from(q)).sum::<i16>());
            }
        }
    }

    #[test]
    fn nan_does_not_affect_other_numbers() {
        let mut x = vec![0.5f32; 512];
        x[300] = f32::NAN;
        let all = rounded(Form::Block256, &x, 1);
        let r = all.get(Form::Block256);
        assert_eq!(r.q[0], 127);
        assert_eq!(r.scale[0], 0.5 / 127.0);
        assert_eq!(r.q[256], 127);
        assert_eq!(rounded(Form::Block32, &[0.0; 32], 1).get(Form::Block32).q[..], [0; 32]);
    }
}
