//! Decides how much of a session is remembered, and what happens to the rest.

/// Percent of a limit in tokens that is reserved for a summary; the rest is for the exchanges.
pub const RESERVE: usize = 20;
/// Messages that the library remembers by default.
pub const MESSAGES: usize = 10_000;

/// The limit of what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As much as fits into the model's context window.
    Room,
    /// This number of latest messages, each from one side. A question and its answer stay together, so an odd number is
    /// rounded down, and the last two messages are always remembered.
    Messages(usize),
    /// The newest exchanges within this number of tokens together, by the model's tokenizer.
    Tokens(usize),
}

/// The fate of the exchanges that drop out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Originals {
    /// They stay stored, marked as no longer remembered.
    #[default]
    Keep,
    /// They are deleted with their runs.
    Delete,
}

/// The settings of what is remembered. The default is that of the library; the default of `caro chat` is
/// [`Remember::ROOM`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remember {
    /// The limit.
    pub limit: Limit,
    /// True if a model sums up the exchanges that drop out. The summary does not count against a limit in messages, but
    /// against one in tokens.
    pub summary: bool,
    /// The fate of the exchanges that drop out.
    pub originals: Originals,
}

impl Default for Remember {
    fn default() -> Self {
        Self { limit: Limit::Messages(MESSAGES), summary: false, originals: Originals::Keep }
    }
}

impl Remember {
    /// The settings for a model with a small window: as much as fits, and nothing is dropped for good, so that a
    /// model with a larger window still has it.
    pub const ROOM: Self = Self { limit: Limit::Room, summary: false, originals: Originals::Keep };

    /// Returns the number of exchanges that drop out, from the oldest. `costs` are their tokens, `summary` those of the
    /// present summary, `room` the tokens that a conversation may have in a prompt. The newest exchange always stays.
    pub fn falls_out(&self, costs: &[usize], summary: usize, room: usize) -> usize {
        let count = costs.len();
        let stays = match self.limit {
            // what does not fit now may fit into a larger window: it drops out only if it is summed up or deleted
            Limit::Room if !self.summary && self.originals == Originals::Keep => count,
            Limit::Messages(most) => most / 2,
            Limit::Room | Limit::Tokens(_) => {
                let most = self.tokens(room);
                let all = costs.iter().sum::<usize>() + summary;
                let mut left = if all <= most { usize::MAX } else { most - self.reserve(room) };
                let fits = |cost: &&usize| {
                    let fits = **cost <= left;
                    left = left.saturating_sub(**cost);
                    fits
                };
                costs.iter().rev().take_while(fits).count()
            }
        };
        count - stays.clamp(count.min(1), count)
    }

    /// Returns the limit in tokens.
    fn tokens(&self, room: usize) -> usize {
        if let Limit::Tokens(most) = self.limit { most } else { room }
    }

    /// Returns the tokens that are reserved for a summary.
    pub fn reserve(&self, room: usize) -> usize {
        if self.summary { self.tokens(room) * RESERVE / 100 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(limit: Limit, summary: bool) -> Remember {
        Remember { limit, summary, originals: Originals::Keep }
    }

    #[test]
    fn a_limit_in_messages_does_not_depend_on_the_summary() {
        let falls = |n, exchanges| {
            let falls = |summary, before| of(Limit::Messages(n), summary).falls_out(&vec![10; exchanges], before, 1000);
            let all = [falls(false, 0), falls(true, 0), falls(true, 9), falls(false, 9)];
            assert!(all.iter().all(|one| *one == all[0]), "{n} of {exchanges}: {all:?}");
            all[0]
        };
        assert_eq!((falls(6, 2), falls(6, 3), falls(6, 4), falls(6, 9)), (0, 0, 1, 6));
        // a question and its answer stay together
        assert_eq!((falls(7, 3), falls(7, 4)), (0, 1));
        assert_eq!((falls(1, 3), falls(0, 3), falls(0, 0)), (2, 2, 0), "the newest stays");
        assert_eq!(Remember::default().falls_out(&[10; 5000], 0, 100), 0);
        assert_eq!(Remember::default().falls_out(&[10; 5001], 0, 100), 1);
    }

    #[test]
    fn a_limit_in_tokens_reserves_a_fifth_for_the_summary() {
        let falls = |limit, summary, before| of(limit, summary).falls_out(&[10; 10], before, 60);
        assert_eq!((falls(Limit::Tokens(100), true, 0), falls(Limit::Tokens(99), false, 0)), (0, 1));
        assert_eq!((falls(Limit::Tokens(99), true, 0), falls(Limit::Tokens(100), true, 5)), (2, 2));
        assert_eq!((falls(Limit::Room, true, 0), falls(Limit::Room, false, 0)), (6, 0), "of 60, 48 for what was said");
        let delete = Remember { originals: Originals::Delete, ..Remember::ROOM };
        assert_eq!(delete.falls_out(&[10; 10], 0, 60), 4);
        // the newest stays even if it is too long
        assert_eq!(of(Limit::Tokens(5), false).falls_out(&[10, 10], 0, 60), 1);
        // the newest stay, not those that are short
        assert_eq!(of(Limit::Tokens(25), false).falls_out(&[20, 10, 10], 0, 60), 1);
    }
}
