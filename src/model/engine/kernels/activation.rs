//! The input of a product, rounded to what the kernels multiply.

use super::aligned::Aligned;
use super::{Kind, Out};
use crate::model::engine::threads::Pool;

/// What a kind of weight is multiplied with.
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

    /// Numbers that share a scale.
    pub(super) const fn block(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Block32 => 32,
            Self::Block256 => 256,
        }
    }
}

/// Activations as signed bytes: `x = scale * q`.
#[derive(Debug, Default)]
pub(super) struct Rounded {
    /// `m x k` integers within `-127..=127`.
    pub(super) q: Aligned<i8>,
    /// The same with the middle two of every four 32s swapped: the order in which 64 bytes of 4-bit weights hold the low
    /// and the high nibbles of two groups each. Only of [`Form::Block256`].
    pub(super) paired: Aligned<i8>,
    /// Scale of each block, `m x k / block`.
    pub(super) scale: Aligned<f32>,
    /// Sum of the integers of each 16, `m x k / 16`.
    pub(super) sums: Aligned<i16>,
    /// Sum of the integers of each 32 of `paired`, `m x k / 32`; of `q` in [`Form::Block32`].
    pub(super) sums32: Aligned<i16>,
    ready: bool,
}

/// The forms of one input that a call has asked for so far. Buffers are kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Activations {
    by32: Rounded,
    by256: Rounded,
}

impl Activations {
    /// Rounds `x` (`m x k`) to `form`, unless this call has done so already.
    pub(super) fn prepare(&mut self, form: Form, x: &[f32], m: usize, k: usize, pool: &Pool) {
        let rounded = match form {
            Form::Plain => return,
            Form::Block32 => &mut self.by32,
            Form::Block256 => &mut self.by256,
        };
        if !rounded.ready {
            rounded.fill(form, x, m, k, pool);
        }
    }

    /// Ends a call: the next one has another input.
    pub(super) fn forget(&mut self) {
        self.by32.ready = false;
        self.by256.ready = false;
    }

    pub(super) fn get(&self, form: Form) -> &Rounded {
        match form {
            Form::Block256 => &self.by256,
            Form::Plain | Form::Block32 => &self.by32,
        }
    }
}

impl Rounded {
    fn fill(&mut self, form: Form, x: &[f32], m: usize, k: usize, pool: &Pool) {
        let block = form.block();
        self.q.resize(m * k);
        self.paired.resize(if form == Form::Block256 { m * k } else { 0 });
        self.scale.resize(m * k / block);
        self.sums.resize(m * k / 16);
        self.sums32.resize(m * k / 32);
        let q = Out::new(&mut self.q, k);
        let paired = Out::new(&mut self.paired, if form == Form::Block256 { k } else { 0 });
        let scale = Out::new(&mut self.scale, k / block);
        let sums = Out::new(&mut self.sums, k / 16);
        let sums32 = Out::new(&mut self.sums32, k / 32);
        let fill = |i: usize| {
            // SAFETY: one task takes one row `i` of each matrix.
            #[allow(unsafe_code)]
            let (q, paired, scale, sums, sums32) =
                unsafe { (q.row(i), paired.row(i), scale.row(i), sums.row(i), sums32.row(i)) };
            let x = &x[i * k..][..k];
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU has AVX2.
                #[allow(unsafe_code)]
                return unsafe { round_row_avx2(block, x, q, paired, scale, sums, sums32) };
            }
            round_row(block, x, q, paired, scale, sums, sums32);
        };
        // A region costs some microseconds; a single row of some thousands is cheaper here.
        if m * k < 32 << 10 {
            (0..m).for_each(fill);
        } else {
            pool.run(m, |i, _| fill(i));
        }
        self.ready = true;
    }
}

/// [`round_row`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn round_row_avx2(
    block: usize,
    x: &[f32],
    q: &mut [i8],
    paired: &mut [i8],
    scale: &mut [f32],
    sums: &mut [i16],
    sums32: &mut [i16],
) {
    round_row(block, x, q, paired, scale, sums, sums32);
}

#[inline(always)]
fn round_row(
    block: usize,
    x: &[f32],
    q: &mut [i8],
    paired: &mut [i8],
    scale: &mut [f32],
    sums: &mut [i16],
    sums32: &mut [i16],
) {
    for ((x, q), scale) in x.chunks_exact(block).zip(q.chunks_exact_mut(block)).zip(scale) {
        *scale = round(x, q);
    }
    for (q, sum) in q.chunks_exact(16).zip(&mut *sums) {
        *sum = q.iter().map(|&q| i16::from(q)).sum();
    }
    for (pair, sum) in sums.chunks_exact(2).zip(&mut *sums32) {
        *sum = pair[0] + pair[1];
    }
    if !paired.is_empty() {
        for (q, paired) in q.chunks_exact(128).zip(paired.chunks_exact_mut(128)) {
            for (from, to) in [0, 64, 32, 96].into_iter().zip(paired.chunks_exact_mut(32)) {
                to.copy_from_slice(&q[from..from + 32]);
            }
        }
        for sums in sums32.chunks_exact_mut(4) {
            sums.swap(1, 2);
        }
    }
}

/// Rounds one block and returns its scale. The largest magnitude becomes 127; ties go to the even number.
#[inline(always)]
fn round(x: &[f32], q: &mut [i8]) -> f32 {
    /// Adding 1.5 x 2^23 leaves a number's nearest integer in the low bits of the sum.
    const MAGIC: f32 = 12_582_912.0;
    let mut parts = [0.0f32; 16];
    for x in x.chunks_exact(16) {
        for (part, &x) in parts.iter_mut().zip(x) {
            // Written so that NaN is passed over.
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
        activations.prepare(form, x, m, x.len() / m, &Pool::new(2));
        activations
    }

    #[test]
    fn rounding_errs_by_half_a_step_at_most() {
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
            let of = if form == Form::Block256 { &r.paired } else { &r.q };
            for (at, &sum) in r.sums32.iter().enumerate() {
                assert_eq!(sum, of[at * 32..][..32].iter().map(|&q| i16::from(q)).sum::<i16>());
            }
        }
        let all = rounded(Form::Block256, &x, 2);
        let r = all.get(Form::Block256);
        for at in (0..1024).step_by(128) {
            for (to, from) in [(0, 0), (32, 64), (64, 32), (96, 96)] {
                assert_eq!(r.paired[at + to..][..32], r.q[at + from..][..32]);
            }
        }
    }

    #[test]
    fn odd_numbers_do_not_spread() {
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
