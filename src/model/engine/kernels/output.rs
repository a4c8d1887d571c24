//! The output of a product, which several threads write at the same time.

/// A matrix that several threads write, each its own elements.
pub(super) struct Out<'a, T = f32> {
    start: *mut T,
    len: usize,
    stride: usize,
    owner: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: the only accesses are the methods below, whose contracts keep the threads' elements apart.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Out<'_, T> {}

#[allow(unsafe_code)]
impl<'a, T> Out<'a, T> {
    /// Wraps a matrix with rows of `stride` elements each.
    pub(super) fn new(out: &'a mut [T], stride: usize) -> Self {
        Self { start: out.as_mut_ptr(), len: out.len(), stride, owner: std::marker::PhantomData }
    }

    /// Writes element `column` of row `i`.
    ///
    /// # Safety
    /// During the region no other thread writes the same element: each task keeps to its own columns.
    #[inline(always)]
    pub(super) unsafe fn write(&self, i: usize, column: usize, value: T) {
        let at = i * self.stride + column;
        assert!(column < self.stride && at < self.len);
        // SAFETY: in bounds, as just seen, and not shared, by contract.
        unsafe { *self.start.add(at) = value }
    }

    /// Returns the elements `column .. column + width` of row `i`.
    ///
    /// # Safety
    /// During the region no other thread uses the same elements: each task keeps to its own columns.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // the contract replaces the borrow
    pub(super) unsafe fn part(&self, i: usize, column: usize, width: usize) -> &mut [T] {
        let at = i * self.stride + column;
        assert!(column + width <= self.stride && at + width <= self.len);
        // SAFETY: in bounds, as just seen, and not shared, by contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), width) }
    }

    /// Returns the whole matrix.
    ///
    /// # Safety
    /// During the region nobody writes it any more, and all that was written happened before.
    pub(super) unsafe fn read(&self) -> &[T] {
        // SAFETY: the whole slice, and not written any more, by contract.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Wraps a slice as one row.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn whole(out: &'a mut [T]) -> Self {
        let stride = out.len();
        Self::new(out, stride)
    }

    /// Returns row `i`.
    ///
    /// # Safety
    /// During the region no other task asks for the same row.
    #[allow(clippy::mut_from_ref)] // the contract replaces the borrow of a row
    pub(super) unsafe fn row(&self, i: usize) -> &mut [T] {
        assert!(self.stride == 0 || (i + 1) * self.stride <= self.len);
        // SAFETY: in bounds, as just seen, and not shared, by contract; an empty row needs no memory.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(i * self.stride), self.stride) }
    }
}
