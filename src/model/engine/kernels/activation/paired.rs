//! Rounded activations in pairs of rows, eight inputs of each in turn, as `smmla` multiplies them.

/// Writes a pair of rows, or one row and zeros.
pub(super) fn fill<'a>(rows: impl Iterator<Item = &'a [i8]>, to: &mut [i8]) {
    let to = to.as_chunks_mut::<8>().0;
    let mut written = 0;
    for (i, row) in rows.enumerate() {
        for (to, from) in to[i..].iter_mut().step_by(2).zip(row.as_chunks().0) {
            *to = *from;
        }
        written = i + 1;
    }
    if written < 2 {
        to.iter_mut().skip(1).step_by(2).for_each(|to| *to = [0; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Activations, Form, Layout, Pool};

    #[test]
    fn a_pair_has_eight_inputs_of_each_row_in_turn() {
        for (m, k) in [(9, 256), (10, 64), (33, 1024)] {
            let x: Vec<f32> = (0..m * k).map(|i| ((i * 37) % 513) as f32 * 0.013 - 3.0).collect();
            let mut all = Activations::default();
            all.begin(m, k);
            all.prepare(Form::Block32, Layout::Pairs, &x, &Pool::new(2));
            let r = all.get(Form::Block32);
            assert_eq!(r.paired.len(), m.next_multiple_of(2) * k);
            for (at, &got) in r.paired.iter().enumerate() {
                let (pair, within) = (at / (2 * k), at % (2 * k));
                let (row, input) = (2 * pair + within / 8 % 2, within / 16 * 8 + within % 8);
                assert_eq!(got, if row < m { r.q[row * k + input] } else { 0 }, "{m} x {k} at {at}");
            }
        }
    }
}
