//! The main loop of the program. Anything that asks a model is a recipe: a pure state machine that says what it needs
//! next, and an executor that provides it. An agent's run and the fast path (a request in plain words, a command as
//! the answer) have different machines and executors; what they share is here and in [`generate`](super::generate()):
//!
//! - one step after another until the machine ends;
//! - a hook between two steps, where a run is stored or stopped;
//! - the only place that calls a model, with one way to cancel and with streamed output.
//!
//! The fast path is the shortest recipe: it needs a command, checks of it, and mostly nothing more. As the suggester
//! of an agent it is driven by the same loop, inside the agent's own.

use std::future::Future;
use std::ops::ControlFlow;

/// The next step of a machine.
pub enum Next<N, E> {
    /// The executor must provide this.
    Need(N),
    /// The machine has ended with this result.
    End(E),
}

/// A recipe as a pure state machine, without access to a clock, files or a model.
pub trait StateMachine: Send {
    /// The things that it may need.
    type Need: Send;
    /// Its result.
    type End: Send;

    /// Returns the next step.
    fn next_step(&mut self) -> Next<Self::Need, Self::End>;
}

/// Provides what a machine needs.
pub trait Executor<M: StateMachine>: Send {
    /// The error of a step.
    type Error: Send;

    /// Called between two steps; [`ControlFlow::Break`] ends the drive with its value.
    fn between(&mut self, machine: &mut M) -> ControlFlow<M::End>;

    /// Provides what the machine needs.
    ///
    /// # Errors
    /// An error ends the drive.
    fn execute(&mut self, machine: &mut M, need: M::Need) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Runs a machine to its end.
///
/// # Errors
/// The errors of the executor.
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

    struct Counter(u32);

    impl StateMachine for Counter {
        type Need = u32;
        type End = u32;
        fn next_step(&mut self) -> Next<u32, u32> {
            if self.0 < 3 { Next::Need(self.0) } else { Next::End(self.0) }
        }
    }

    struct Adder {
        stop_at: u32,
        fail_at: u32,
        provided: Vec<u32>,
    }

    impl Executor<Counter> for Adder {
        type Error = String;
        fn between(&mut self, machine: &mut Counter) -> ControlFlow<u32> {
            if machine.0 == self.stop_at { ControlFlow::Break(100) } else { ControlFlow::Continue(()) }
        }
        async fn execute(&mut self, machine: &mut Counter, need: u32) -> Result<(), String> {
            if need == self.fail_at {
                return Err("no".into());
            }
            self.provided.push(need);
            machine.0 += 1;
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_machine_is_driven_to_its_end_a_break_or_an_error() {
        let drive_to = async |stop_at, fail_at| {
            let mut adder = Adder { stop_at, fail_at, provided: Vec::new() };
            (drive(&mut Counter(0), &mut adder).await, adder.provided)
        };
        assert_eq!(drive_to(9, 9).await, (Ok(3), vec![0, 1, 2]));
        assert_eq!(drive_to(1, 9).await, (Ok(100), vec![0]));
        assert_eq!(drive_to(9, 2).await, (Err("no".into()), vec![0, 1]));
    }
}
