//! Connects a channel with the store: messages are stored before they are processed, and answers until they are sent.

use super::channel::{Channel, Received};
use crate::event::{Actor, Draft, Emitter, Kind};
use crate::harness::HarnessError;
use crate::runtime::{Approval, Approver, Question};
use crate::store::{Outgoing, Store};
use crate::tool::Args;
use caro_model::Cancel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most time a question waits for an answer; without one the answer is no.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// Time between two polls of the channel meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The channel of a session, shared by the driver and the approver.
pub(super) struct Mailbox {
    channel: Mutex<Box<dyn Channel>>,
    store: Arc<Store>,
    session: String,
}

impl Mailbox {
    pub(super) fn new(channel: Box<dyn Channel>, store: Arc<Store>, session: String) -> Self {
        Self { channel: Mutex::new(channel), store, session }
    }

    fn channel(&self) -> MutexGuard<'_, Box<dyn Channel>> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the new messages of the channel.
    pub(super) fn collect(&self) -> Result<(), HarnessError> {
        self.collect_after(|_| ())
    }

    /// Stores the new messages of the channel, without those that `take` removes from them; returns what `take` returns.
    fn collect_after<T>(&self, take: impl FnOnce(&mut Vec<String>) -> T) -> Result<T, HarnessError> {
        let mut channel = self.channel();
        let source = channel.source();
        let before = self.store.loop_cursor(&self.session, &source)?;
        let Received { mut messages, cursor } = channel.receive(&before).map_err(HarnessError::Channel)?;
        let taken = take(&mut messages);
        if !messages.is_empty() || cursor != before {
            self.store.keep_messages(&self.session, &source, &messages, &cursor)?;
        }
        Ok(taken)
    }

    /// True if no more messages will arrive.
    pub(super) fn is_over(&self) -> bool {
        self.channel().is_over()
    }

    /// Sends the pending texts, each exactly once even if a process was killed while sending.
    pub(super) fn deliver(&self, emitter: &Emitter) -> Result<(), HarnessError> {
        let mut channel = self.channel();
        for Outgoing { number, text, mark } in self.store.outgoing(&self.session)? {
            let is_sent = mark.is_some_and(|mark| channel.has_sent(&mark, &text));
            if !is_sent {
                self.store.mark_sending(number, &channel.mark())?;
                channel.send(&text).map_err(HarnessError::Channel)?;
            }
            self.store.remove_sent(number)?;
            emitter.emit(Draft::new(Kind::FinalAnswer).by(Actor::Model).output(text));
        }
        Ok(())
    }
}

/// Asks for consent through the channel: only `y` or `yes` allows a call. A reply that is neither yes nor no is also
/// stored as a message.
pub(super) struct ChannelApprover {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) cancel: Cancel,
}

impl Approver for ChannelApprover {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let no = (Approval::No, None);
        let mailbox = &self.mailbox;
        let Question { call, reasons, .. } = question;
        let text = format!("May I? {} {} ({}) [yes/no]", call.tool, call.summary(), reasons.join("; "));
        // messages from before the question are no answers to it
        if mailbox.collect().is_err() || mailbox.channel().send(&text).is_err() {
            return no;
        }
        let until = Instant::now() + ANSWER_TIMEOUT;
        while Instant::now() < until && !self.cancel.is_cancelled() {
            match mailbox.collect_after(take_answer) {
                Ok(Some(true)) => return (Approval::Yes, None),
                Ok(Some(false)) | Err(_) => return no,
                Ok(None) => {}
            }
            if mailbox.is_over() {
                return no;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        no
    }
}

/// Returns true if the first message is a yes and false if it is anything else; removes it if it is a yes or a no.
fn take_answer(messages: &mut Vec<String>) -> Option<bool> {
    let answer = messages.first()?.trim().to_lowercase();
    let is_yes = ["y", "yes"].contains(&answer.as_str());
    if is_yes || ["n", "no"].contains(&answer.as_str()) {
        messages.remove(0);
    }
    Some(is_yes)
}
