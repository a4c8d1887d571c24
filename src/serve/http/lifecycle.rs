//! How the server begins and ends, as a pure state machine: servers of tools are connected, the model is loaded, tasks in
//! the background begin, and it is ready; told to end, it lets what is under way end, and then takes all of that back in
//! reverse.

/// A stage of the start, in the order of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The servers of tools are connected.
    Connect,
    /// The model is loaded.
    Load,
    /// Tasks in the background begin.
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

/// How the server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is at that stage of its start.
    Starting(Stage),
    /// It answers.
    Ready,
    /// It was told to end: what is under way ends, nothing new begins.
    Draining,
    /// It takes that stage back.
    Stopping(Stage),
    /// It is over.
    Stopped,
}

impl Phase {
    /// True if new requests are answered: before the model is there, with the word that it is not.
    pub fn admits(self) -> bool {
        matches!(self, Self::Starting(_) | Self::Ready)
    }
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The stage at hand is done, or taken back.
    Done,
    /// The person or the system wants it to end; said twice, at once.
    Stop,
    /// Nothing is under way any more, or it has had its time.
    Idle,
}

/// The machine.
#[derive(Debug)]
pub struct Lifecycle(Phase);

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Phase::Starting(Stage::Connect))
    }
}

impl Lifecycle {
    /// How the server stands.
    pub fn phase(&self) -> Phase {
        self.0
    }

    /// Takes a change; returns how the server stands now. What makes no sense where it stands changes nothing.
    pub fn apply(&mut self, event: Event) -> Phase {
        self.0 = match (self.0, event) {
            (Phase::Starting(stage), Event::Done) => stage.after().map_or(Phase::Ready, Phase::Starting),
            // what was begun is taken back with what was done
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
    fn it_ends_in_the_reverse_of_its_start() {
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
    fn told_to_end_while_it_starts_it_takes_back_what_it_has_begun() {
        use Event::{Done, Stop};
        assert_eq!(walk(&[Stop])[1..], [Stopping(Connect)]);
        assert_eq!(walk(&[Done, Stop, Done, Done])[2..], [Stopping(Load), Stopping(Connect), Stopped]);
    }

    #[test]
    fn a_second_word_does_not_wait_for_what_is_under_way() {
        use Event::{Done, Stop};
        assert_eq!(walk(&[Done, Done, Done, Stop, Stop])[5], Stopping(Background));
    }

    #[test]
    fn new_requests_are_taken_until_it_is_told_to_end_and_never_again() {
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
