//! Buffers that start on a cache line, so that no vector load of a whole line is split.

/// Bytes of a cache line and of the widest vector.
const LINE: usize = 64;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// A number type for which every bit pattern, zero included, is a valid value.
///
/// # Safety
/// The type has no invalid values and no padding, and its alignment is at most 64.
#[allow(unsafe_code)]
pub(super) unsafe trait Number: Copy {}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        // SAFETY: a primitive number.
        #[allow(unsafe_code)]
        unsafe impl Number for $type {}
    )*};
}
numbers!(i8, i16, u16, i32, f32);

/// A growing buffer of numbers that starts on a cache line. New elements are zero, or have the values from before it
/// shrank; old ones keep their bits.
#[derive(Debug)]
pub(super) struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    numbers: std::marker::PhantomData<T>,
}

impl<T> Default for Aligned<T> {
    fn default() -> Self {
        Self { lines: Vec::new(), len: 0, numbers: std::marker::PhantomData }
    }
}

impl<T: Number> Aligned<T> {
    /// Sets its length to `len`. Memory is kept when it shrinks.
    pub(super) fn resize(&mut self, len: usize) {
        let lines = (len * size_of::<T>()).div_ceil(LINE);
        if self.lines.len() < lines {
            self.lines.resize(lines, Line([0; LINE]));
        }
        self.len = len;
    }
}

#[allow(unsafe_code)]
impl<T: Number> std::ops::Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `lines` holds at least `len` numbers, and any bits are numbers (`Number`).
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

#[allow(unsafe_code)]
impl<T: Number> std::ops::DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_starts_on_a_cache_line_and_grows() {
        let mut buffer = Aligned::<f32>::default();
        assert!(buffer.is_empty());
        buffer.resize(3);
        buffer[2] = 7.0;
        buffer.resize(1000);
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        assert_eq!((buffer.len(), buffer[2], buffer[999]), (1000, 7.0, 0.0));
        buffer.resize(2);
        assert_eq!(buffer.len(), 2);
    }
}
