//! Parallel loops over disjoint pieces of one slice.
#![allow(unsafe_code)] // Handing each task its own piece of a slice is not expressible with one shared closure.

use super::threads::Pool;

/// Calls `task(index, piece, thread)` for each of the consecutive pieces of `data`, `size` long (the last may be
/// shorter).
///
/// # Panics
/// If `size` is zero.
pub(super) fn for_pieces(pool: &Pool, data: &mut [f32], size: usize, task: impl Fn(usize, &mut [f32], usize) + Sync) {
    /// A pointer that may cross threads because each thread forms another piece from it.
    struct Start(*mut f32);
    // SAFETY: only used to form the disjoint pieces below.
    unsafe impl Sync for Start {}
    impl Start {
        // A method, so that the closure captures the `Sync` wrapper and not the bare pointer.
        fn get(&self) -> *mut f32 {
            self.0
        }
    }

    assert!(size > 0, "pieces of no size");
    let len = data.len();
    let start = Start(data.as_mut_ptr());
    pool.run(len.div_ceil(size), |index, thread| {
        let from = index * size;
        // SAFETY: `run` calls the task once for each index below the number of pieces, so `from < len`, the range lies
        // in `data`, and no two tasks overlap; `data` stays borrowed until `run` returns.
        let piece = unsafe { std::slice::from_raw_parts_mut(start.get().add(from), size.min(len - from)) };
        task(index, piece, thread);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_belongs_to_one_piece() {
        let pool = Pool::new(3);
        for (len, size) in [(0, 1), (1, 5), (10, 3), (12, 3), (1000, 1)] {
            let mut data = vec![0.0; len];
            for_pieces(&pool, &mut data, size, |index, piece, _| {
                for (i, x) in piece.iter_mut().enumerate() {
                    *x += (index * size + i) as f32;
                }
            });
            assert!(data.iter().enumerate().all(|(i, &x)| x == i as f32), "{len} by {size}");
        }
    }
}
