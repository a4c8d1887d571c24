//! The interface between the generation loop and a forward pass: a sequence that grows by tokens and can be truncated.

use super::adapter::Adapter;
use crate::{Cancel, ModelError};
use std::io::{self, ErrorKind, Read, Write};

/// A token of one of several continuations (lanes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneToken {
    /// The index of the continuation.
    pub lane: usize,
    /// The token's index in it.
    pub step: usize,
    /// The token.
    pub id: u32,
}

/// A model's forward pass with the state of one sequence.
pub(super) trait Backend: Send {
    /// Returns the most positions that fit.
    fn context(&self) -> usize;

    /// Returns the number of computed positions.
    fn len(&self) -> usize;

    /// Drops the positions from `len` on, and more if it cannot truncate there: see [`Self::len`] afterwards.
    fn truncate(&mut self, len: usize);

    /// True if it can be truncated to any length, and [`Self::snapshot`] and [`Self::restore`] work.
    fn is_resumable(&self) -> bool {
        false
    }

    /// Writes the state of the first `len` positions.
    ///
    /// # Errors
    /// If writing fails; [`ErrorKind::Unsupported`] if it is not resumable.
    fn snapshot(&self, _len: usize, _to: &mut dyn Write) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Replaces its state by the state of `len` positions that it reads. Empty after an error. There are no logits
    /// before the next [`Self::feed`].
    ///
    /// # Errors
    /// If reading fails; [`ErrorKind::Unsupported`] if it is not resumable.
    fn restore(&mut self, _len: usize, _from: &mut dyn Read) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Appends tokens and computes the logits after the last one. Returns false if cancelled; then a leading part of
    /// the tokens may have been computed, as [`Self::len`] tells. If it is resumable, feeding the rest gives bit by
    /// bit the result of feeding all of them.
    ///
    /// # Errors
    /// [`ModelError::TooLong`] beyond the context; [`ModelError::Engine`] if computing fails.
    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError>;

    /// Appends tokens and passes on the logits after each of them: `each(index, logits)`. Returns false if cancelled.
    /// For tests, which compare implementations.
    ///
    /// # Errors
    /// As [`Self::feed`].
    #[cfg(test)]
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

    /// Returns the logits after the last token.
    fn logits(&mut self) -> &mut [f32];

    /// Returns the most tokens that [`Self::feed_drafts`] takes; 1 if several together cost as much as one by one.
    fn draft_window(&self) -> usize {
        1
    }

    /// Appends at most [`Self::draft_window`] tokens and keeps the logits after each of them for [`Self::logits_at`].
    /// The result is bit by bit that of feeding them one by one. Returns false if cancelled.
    ///
    /// # Errors
    /// As [`Self::feed`].
    fn feed_drafts(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError> {
        self.feed(tokens, cancel)
    }

    /// Returns the logits after the token `index` of the last [`Self::feed_drafts`].
    fn logits_at(&mut self, _index: usize) -> &[f32] {
        self.logits()
    }

    /// Returns the most continuations that [`Self::feed_lanes`] takes together; 0 if it is not supported.
    fn lanes(&self) -> usize {
        0
    }

    /// Appends one token each to several continuations of the sequence, which itself does not change, and keeps the
    /// logits after each of them for [`Self::logits_at`]. A continuation has room for `room` tokens, and gets them in
    /// order. The state of the continuations is lost with the next call of any other `feed` method. Returns false if
    /// cancelled.
    ///
    /// # Errors
    /// [`ModelError::TooLong`] if the context has no room for them; [`ModelError::Engine`] if computing fails.
    fn feed_lanes(&mut self, _tokens: &[LaneToken], _room: usize, _cancel: &Cancel) -> Result<bool, ModelError> {
        Err(ModelError::Engine("this backend computes one continuation at a time".into()))
    }

    /// Copies the state of the first `steps` tokens of continuation `from` to continuation `to`; each has room for
    /// `room` tokens. Valid between calls of [`Self::feed_lanes`] only.
    fn copy_lane(&mut self, _from: usize, _to: usize, _steps: usize, _room: usize) {}

    /// Allocates slots for `count` sequences of at most `len` tokens each, independent of the main sequence. Returns
    /// false if sequences cannot be computed together, or if there is not enough memory.
    fn open_slots(&mut self, _count: usize, _len: usize) -> bool {
        false
    }

    /// Computes tokens of several sequences, without an adapter, and keeps the logits after the last `scored` of them
    /// for [`Self::logits_at`]. A token's `lane` is the slot of its sequence and its `step` its position there; all
    /// earlier positions must be computed already or be among these tokens. The main sequence does not change.
    ///
    /// # Errors
    /// [`ModelError::Engine`] for a slot or position out of range, or an unknown token.
    fn feed_slots(&mut self, _tokens: &[LaneToken], _scored: usize) -> Result<(), ModelError> {
        Err(ModelError::Engine("this backend computes one sequence at a time".into()))
    }

    /// Copies the state of the first `len` tokens in slot `from` to slot `to`.
    fn copy_slot(&mut self, _from: usize, _to: usize, _len: usize) {}

    /// Returns the adapter that can be turned on, if there is one.
    fn adapter(&self) -> Option<&Adapter> {
        None
    }

    /// Turns the adapter on or off for the tokens fed from now on. It is off at first.
    fn adapt(&mut self, _on: bool) {}

    /// Describes the device and kernels, for people.
    fn describe(&self) -> String;
}
