//! What the generation loop asks of whatever computes: a sequence that grows by tokens and can be cut back.

use super::adapter::Adapter;
use crate::{Cancel, ModelError};
use std::io::{self, ErrorKind, Read, Write};

/// A token of one of several continuations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneToken {
    /// Which continuation, from 0.
    pub lane: usize,
    /// The token's place in it, from 0.
    pub step: usize,
    /// The token.
    pub id: u32,
}

/// A model's forward pass with the state of one sequence.
pub(super) trait Backend: Send {
    /// The most positions it holds.
    fn context(&self) -> usize;

    /// Positions held.
    fn len(&self) -> usize;

    /// Forgets positions from `len` on, and more where it cannot cut there: see [`Self::len`] afterwards.
    fn truncate(&mut self, len: usize);

    /// True if it can be cut back to any length, and [`Self::snapshot`] and [`Self::restore`] work.
    fn is_resumable(&self) -> bool {
        false
    }

    /// Writes the state of the first `len` positions.
    ///
    /// # Errors
    /// What writing says; [`ErrorKind::Unsupported`] where it is not resumable.
    fn snapshot(&self, _len: usize, _to: &mut dyn Write) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Reads the state of `len` positions in place of what is held. After a failure nothing is held. There are no logits
    /// before the next [`Self::feed`].
    ///
    /// # Errors
    /// What reading says; [`ErrorKind::Unsupported`] where it is not resumable.
    fn restore(&mut self, _len: usize, _from: &mut dyn Read) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Appends tokens and computes the logits after the last of them. False if cancelled; then any leading part of the
    /// tokens may be held, as [`Self::len`] tells: where it is resumable, such a part that feeding the rest of them gives to
    /// the bit what feeding all of them does.
    ///
    /// # Errors
    /// [`ModelError::TooLong`] beyond the context; [`ModelError::Engine`] if computing fails.
    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError>;

    /// Appends tokens and shows the logits after each of them: `each(index, logits)`. False if cancelled. What the tests
    /// hold up beside other implementations.
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

    /// The logits after the last token.
    fn logits(&mut self) -> &mut [f32];

    /// The most tokens that [`Self::feed_drafts`] takes; 1 where several at once cost as much as one by one.
    fn draft_window(&self) -> usize {
        1
    }

    /// Appends at most [`Self::burst`] tokens and keeps the logits after each of them for [`Self::logits_at`]: to the bit
    /// what feeding them one by one gives. False if cancelled.
    ///
    /// # Errors
    /// As [`Self::feed`].
    fn feed_drafts(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError> {
        self.feed(tokens, cancel)
    }

    /// The logits after the token `index` of the last [`Self::feed_drafts`].
    fn logits_at(&mut self, _index: usize) -> &[f32] {
        self.logits()
    }

    /// The most continuations that [`Self::feed_lanes`] takes together; 0 where it takes none.
    fn lanes(&self) -> usize {
        0
    }

    /// Appends one token each to several continuations of what is held, which itself does not change, and keeps the logits
    /// after each of them for [`Self::logits_at`]. A continuation has room for `room` tokens, and gets them in order.
    /// What they computed is gone with the next call of anything else that feeds. False if cancelled.
    ///
    /// # Errors
    /// [`ModelError::TooLong`] where the context has no room for that; [`ModelError::Engine`] if computing fails.
    fn feed_lanes(&mut self, _tokens: &[LaneToken], _room: usize, _cancel: &Cancel) -> Result<bool, ModelError> {
        Err(ModelError::Engine("this backend computes one continuation at a time".into()))
    }

    /// Lets continuation `to` begin with the first `steps` tokens of continuation `from`, as [`Self::feed_lanes`] has computed
    /// them since anything else fed, each with room for `room`.
    fn copy_lane(&mut self, _from: usize, _to: usize, _steps: usize, _room: usize) {}

    /// Makes room for `count` sequences of at most `len` tokens each, beside the one that is held and independent of it. False
    /// where sequences are not computed together, or where there is no memory for so many.
    fn open_slots(&mut self, _count: usize, _len: usize) -> bool {
        false
    }

    /// Computes tokens of several sequences without an adapter and keeps the logits after the last `scored` of them for
    /// [`Self::logits_at`]: a token's `lane` is the slot of its sequence and its `step` its position there, behind which all
    /// earlier ones are computed or among these tokens. What is held of [`Self::feed`] does not change.
    ///
    /// # Errors
    /// [`ModelError::Engine`] for a slot or position there is no room for, or an unknown token.
    fn feed_slots(&mut self, _tokens: &[LaneToken], _scored: usize) -> Result<(), ModelError> {
        Err(ModelError::Engine("this backend computes one sequence at a time".into()))
    }

    /// Lets the sequence in slot `to` begin with the first `len` tokens of that in slot `from`.
    fn copy_slot(&mut self, _from: usize, _to: usize, _len: usize) {}

    /// The adapter that can be turned on; `None` where there is none.
    fn adapter(&self) -> Option<&Adapter> {
        None
    }

    /// Has what is fed from here on computed with the adapter, or without it, as at first.
    fn adapt(&mut self, _on: bool) {}

    /// What computes, for people.
    fn describe(&self) -> String;
}
