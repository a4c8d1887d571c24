//! The one loop of the program. Whatever asks a model is a recipe: a pure machine that says what it needs next, and an
//! executor that brings it. An agent's run and the fast path (a request in plain words, a command out) differ in their machines
//! and executors; what they share is here and in [`generate`](super::generate()):
//!
//! - one step after the other, until the machine says that it has come to its end;
//! - a moment between any two, in which a run is kept or stopped;
//! - the one place that asks a model, under one switch, its words heard as they come.
//!
//! The fast path is the shortest recipe: it needs a command, a look at it, and mostly nothing more. As the suggester of an
//! agent it is driven by this same loop, inside of the agent's own.

use std::future::Future;
use std::ops::ControlFlow;

/// What a machine says.
pub enum Next<N, E> {
    /// Bring this, and ask again.
    Need(N),
    /// It has come to this.
    End(E),
}

/// A recipe as a machine: no clock, no file, no model.
pub trait StateMachine: Send {
    /// What it may need.
    type Need: Send;
    /// What it may come to.
    type End: Send;

    /// The next step.
    fn next_step(&mut self) -> Next<Self::Need, Self::End>;
}

/// Carries out the steps of a machine: brings what it needs.
pub trait Executor<M: StateMachine>: Send {
    /// Why it could not be brought.
    type Error: Send;

    /// Between two steps; [`ControlFlow::Break`] ends the drive with what it holds.
    fn between(&mut self, machine: &mut M) -> ControlFlow<M::End>;

    /// Brings what is needed to the machine.
    ///
    /// # Errors
    /// Ends the drive.
    fn execute(&mut self, machine: &mut M, need: M::Need) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Drives a machine to its end.
///
/// # Errors
/// Those of the executor.
pub async fn drive<M: StateMachine, E: Executor<M>>(machine: &mut M, executor: &mut E) -> Result<M::End, E::Error> {
    loop {
        if let ControlFlow::Break(end) = executor.between(machine) {
            return Ok(end);
        }
        match machine.next_step() {
            Next::Need(need) => executor.execute(machine, need).await?,
            Next::End(end) => return Ok(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counts(u32);

    impl StateMachine for Counts {
        type Need = u32;
        type End = u32;
        fn next_step(&mut self) -> Next<u32, u32> {
            if self.0 < 3 { Next::Need(self.0) } else { Next::End(self.0) }
        }
    }

    struct Adds {
        stop_at: u32,
        fail_at: u32,
        brought: Vec<u32>,
    }

    impl Executor<Counts> for Adds {
        type Error = String;
        fn between(&mut self, machine: &mut Counts) -> ControlFlow<u32> {
            if machine.0 == self.stop_at { ControlFlow::Break(100) } else { ControlFlow::Continue(()) }
        }
        async fn execute(&mut self, machine: &mut Counts, need: u32) -> Result<(), String> {
            if need == self.fail_at {
                return Err("no".into());
            }
            self.brought.push(need);
            machine.0 += 1;
            Ok(())
        }
    }

    #[tokio::test]
    async fn to_the_end_to_a_stop_or_to_a_failure() {
        let drive_to = async |stop_at, fail_at| {
            let mut hands = Adds { stop_at, fail_at, brought: Vec::new() };
            (drive(&mut Counts(0), &mut hands).await, hands.brought)
        };
        assert_eq!(drive_to(9, 9).await, (Ok(3), vec![0, 1, 2]));
        assert_eq!(drive_to(1, 9).await, (Ok(100), vec![0]));
        assert_eq!(drive_to(9, 2).await, (Err("no".into()), vec![0, 1]));
    }
}
