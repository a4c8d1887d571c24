//! A channel with the store behind it: what comes in is kept before anybody sees it, what goes out is kept until it was sent.

use super::channel::{Channel, Received};
use crate::event::{Actor, Draft, Emitter, Kind};
use crate::harness::HarnessError;
use crate::runtime::{Approval, Approver, Question};
use crate::store::{Outgoing, Store};
use crate::tool::Args;
use caro_model::Cancel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a question waits for an answer; without one it is a no.
const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks at the channel meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// The channel of a session, shared by who brings messages in and who asks in between.
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

    /// Brings in what the channel has.
    pub(super) fn collect(&self) -> Result<(), HarnessError> {
        let mut channel = self.channel();
        let (_, cursor) = self.store.loop_state(&self.session)?;
        let received = channel.receive(&cursor).map_err(HarnessError::Channel)?;
        self.keep(&cursor, &received)
    }

    fn keep(&self, before: &str, received: &Received) -> Result<(), HarnessError> {
        if received.messages.is_empty() && received.cursor == before {
            return Ok(());
        }
        Ok(self.store.keep_messages(&self.session, &received.messages, &received.cursor)?)
    }

    /// True if nothing will come in any more.
    pub(super) fn is_over(&self) -> bool {
        self.channel().is_over()
    }

    /// Sends what is to be sent, each text once, also where a process was ended while it sent one.
    pub(super) fn deliver(&self, emitter: &Emitter) -> Result<(), HarnessError> {
        let mut channel = self.channel();
        for Outgoing { number, text, mark } in self.store.outgoing(&self.session)? {
            let is_sent = mark.is_some_and(|mark| channel.has_sent(&mark, &text));
            if !is_sent {
                self.store.sending(number, &channel.mark())?;
                channel.send(&text).map_err(HarnessError::Channel)?;
            }
            self.store.sent(number)?;
            emitter.emit(Draft::new(Kind::FinalAnswer).by(Actor::Model).output(text));
        }
        Ok(())
    }
}

/// Asks through the channel: `yes` allows a call, whatever else comes does not. What is no answer is a message.
pub(super) struct AskThere {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) cancel: Cancel,
}

impl Approver for AskThere {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let no = (Approval::No, None);
        let mailbox = &self.mailbox;
        let Question { call, reasons, .. } = question;
        let text = format!("May I? {} {} ({}) [yes/no]", call.tool, call.summary(), reasons.join("; "));
        // what came before the question answers nothing
        if mailbox.collect().is_err() || mailbox.channel().send(&text).is_err() {
            return no;
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.cancel.is_cancelled() {
            let Ok((_, cursor)) = mailbox.store.loop_state(&mailbox.session) else { return no };
            let Ok(mut received) = mailbox.channel().receive(&cursor) else { return no };
            if !received.messages.is_empty() {
                let said = received.messages[0].trim().to_lowercase();
                let is_yes = ["y", "yes"].contains(&said.as_str());
                if is_yes || ["n", "no"].contains(&said.as_str()) {
                    received.messages.remove(0);
                }
                if mailbox.keep(&cursor, &received).is_err() {
                    return no;
                }
                return if is_yes { (Approval::Yes, None) } else { no };
            }
            if mailbox.is_over() {
                return no;
            }
            std::thread::sleep(PAUSE);
        }
        no
    }
}
