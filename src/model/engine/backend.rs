//! What the generation loop asks of whatever computes: a sequence that grows by tokens and can be cut back.

use crate::model::{Cancel, ModelError};

/// A model's forward pass with the state of one sequence.
pub(super) trait Backend: Send {
    /// The most positions it holds.
    fn context(&self) -> usize;

    /// Positions held.
    fn len(&self) -> usize;

    /// Forgets positions from `len` on, and more where it cannot cut there: see [`Self::len`] afterwards.
    fn truncate(&mut self, len: usize);

    /// Appends tokens and computes the logits after the last of them. False if cancelled; then any leading part of the
    /// tokens may be held, as [`Self::len`] tells.
    ///
    /// # Errors
    /// [`ModelError::TooLong`] beyond the context; [`ModelError::Engine`] if computing fails.
    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError>;

    /// Appends tokens and shows the logits after each of them: `each(index, logits)`. False if cancelled.
    ///
    /// # Errors
    /// As [`Self::feed`].
    fn feed_scored(
        &mut self,
        tokens: &[u32],
        cancel: &Cancel,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<bool, ModelError> {
        for (index, token) in tokens.iter().enumerate() {
            if !self.feed(&[*token], cancel)? {
                return Ok(false);
            }
            each(index, self.logits());
        }
        Ok(true)
    }

    /// The logits of the last [`Self::feed`], for the caller to mask as it likes.
    fn logits(&mut self) -> &mut [f32];

    /// What computes, for people.
    fn describe(&self) -> String;
}
