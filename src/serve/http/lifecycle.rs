//! Start and end of the server as a pure state machine: tool servers are connected, the model is loaded, background
//! tasks begin, and it is ready. At the end it waits for requests in progress, and then undoes the stages in reverse
//! order.

/// A stage of the start, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Tool servers are connected.
    Connect,
    /// The model is loaded.
    Load,
    /// Background tasks begin.
    Background,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Connect, Self::Load, Self::Background];

    fn after(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }

    fn before(self) -> Option<Self> {
        (self as usize).checked_sub(1).map(|at| Self::ALL[at])
    }
}

/// The state of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It starts, and is at this stage.
    Starting(Stage),
    /// It answers.
    Ready,
    /// It is ending: requests in progress are completed, no new ones are accepted.
    Draining,
    /// It undoes this stage.
    Stopping(Stage),
    /// It has ended.
    Stopped,
}

impl Phase {
    /// True if new requests are accepted. Until the model is loaded, the answer says that it is not.
    pub fn admits(self) -> bool {
        matches!(self, Self::Starting(_) | Self::Ready)
    }
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The current stage is done, or undone.
    Done,
    /// The user or the system wants it to end; a second one ends it without waiting for requests in progress.
    Stop,
    /// No request is in progress, or the time to wait for them has passed.
    Idle,
}

/// The state machine.
#[derive(Debug)]
pub struct Lifecycle(Phase);

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Phase::Starting(Stage::Connect))
    }
}

impl Lifecycle {
    /// The current phase.
    pub fn phase(&self) -> Phase {
        self.0
    }

    /// Applies a change; returns the new phase. A change that does not apply to the current phase is ignored.
    pub fn apply(&mut self, event: Event) -> Phase {
        self.0 = match (self.0, event) {
            (Phase::Starting(stage), Event::Done) => stage.after().map_or(Phase::Ready, Phase::Starting),
            // the stage in progress is undone too
            (Phase::Starting(stage), Event::Stop) => Phase::Stopping(stage),
            (Phase::Ready, Event::Stop) => Phase::Draining,
            (Phase::Draining, Event::Stop | Event::Idle) => Phase::Stopping(Stage::Background),
            (Phase::Stopping(stage), Event::Done) => stage.before().map_or(Phase::Stopped, Phase::Stopping),
            (phase, _) => phase,
        };
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Phase::{Draining, Ready, Starting, Stopped, Stopping};
    use Stage::{Background, Connect, Load};

    fn walk(events: &[Event]) -> Vec<Phase> {
        let mut lifecycle = Lifecycle::default();
        let first = lifecycle.phase();
        std::iter::once(first).chain(events.iter().map(|event| lifecycle.apply(*event))).collect()
    }

    #[test]
    fn stages_are_undone_in_reverse_order() {
        use Event::{Done, Idle, Stop};
        let phases = walk(&[Done, Done, Done, Stop, Idle, Done, Done, Done]);
        assert_eq!(
            phases,
            [
                Starting(Connect),
                Starting(Load),
                Starting(Background),
                Ready,
                Draining,
                Stopping(Background),
                Stopping(Load),
                Stopping(Connect),
                Stopped
            ]
        );
        let stages = |of: fn(&Phase) -> Option<Stage>| phases.iter().filter_map(of).collect::<Vec<_>>();
        let started = stages(|p| if let Starting(stage) = p { Some(*stage) } else { None });
        let mut stopped = stages(|p| if let Stopping(stage) = p { Some(*stage) } else { None });
        stopped.reverse();
        assert_eq!(started, stopped);
    }

    #[test]
    fn a_stop_during_the_start_undoes_the_stages_begun() {
        use Event::{Done, Stop};
        assert_eq!(walk(&[Stop])[1..], [Stopping(Connect)]);
        assert_eq!(walk(&[Done, Stop, Done, Done])[2..], [Stopping(Load), Stopping(Connect), Stopped]);
    }

    #[test]
    fn a_second_stop_does_not_wait_for_requests_in_progress() {
        use Event::{Done, Stop};
        assert_eq!(walk(&[Done, Done, Done, Stop, Stop])[5], Stopping(Background));
    }

    #[test]
    fn new_requests_are_accepted_until_the_first_stop() {
        use Event::{Done, Idle, Stop};
        for events in [vec![Done; 8], vec![Idle; 4], vec![Done, Idle, Done]] {
            assert!(walk(&events).iter().all(|phase| phase.admits()));
        }
        for ends in [vec![Stop], vec![Done, Done, Done, Stop]] {
            let mut lifecycle = Lifecycle::default();
            for event in ends {
                lifecycle.apply(event);
            }
            for event in [Done, Idle, Stop, Done, Done, Done, Done, Stop, Done] {
                assert!(!lifecycle.apply(event).admits(), "{lifecycle:?}");
            }
            assert_eq!(lifecycle.phase(), Stopped);
        }
    }
}
