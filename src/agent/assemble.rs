//! What the model is told beside the task: layers of context, each from its provider, by priority within a budget.
//!
//! Providers are asked side by side and put together in order, so that the result does not depend on who was first. Lower
//! numbers win: persona 0, active skill 10, tools 20, knowledge and memory 40. A layer that does not fit is left out
//! whole, and a smaller one after it may still fit. A provider that fails is left out too, and the run goes on.

use super::event::Draft;
use caro_model::{Prompt, Shape};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long the providers may take, all together; who is later is left out.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What the layers are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The task, in the person's words.
    pub task: String,
    /// The session.
    pub session: String,
}

/// One piece of context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// What it is, as `--show-prompt` and the events name it.
    pub name: String,
    /// Its place: lower is earlier and more important.
    pub priority: u16,
    /// The text.
    pub text: String,
    /// Tokens of the text, by the model's own tokenizer.
    pub tokens: usize,
    /// True for our own words. Others' words (documents, notes, memories) are data: they are fenced, and stand with the
    /// task and not with the instructions.
    pub trusted: bool,
}

/// Why a provider has no layer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

impl ProviderError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        "the run goes on without this layer; `--show-prompt` shows what was assembled"
    }
}

/// Brings one layer.
pub trait ContextProvider: Send + Sync {
    /// The layer's name.
    fn name(&self) -> &'static str;

    /// The layer's place.
    fn priority(&self) -> u16;

    /// The text for this query in at most `budget` tokens, and whether it is trusted; nothing where there is nothing to say.
    ///
    /// # Errors
    /// Costs the layer, not the run.
    fn provide(&self, query: &Query, budget: usize) -> Result<Option<Provided>, ProviderError>;

    /// What the event log is to have of the last call, if it is worth an event.
    fn record(&self) -> Option<Draft> {
        None
    }

    /// A rule of our own for what the layer has: it stands with the instructions, and only where the layer is there.
    fn rule(&self) -> Option<&'static str> {
        None
    }

    /// What a model is to write before the layer is brought, for a run and not for a look at its prompt. `budget` is that
    /// of [`ContextProvider::provide`].
    fn errand(&self, _query: &Query, _budget: usize) -> Option<ProviderRequest> {
        None
    }

    /// Takes what the model wrote, once before each run; nothing where there was no errand, or where it could not be done:
    /// the provider does without. Returns what the event log is to have of it.
    fn settle(&self, _written: Option<&str>) -> Option<Draft> {
        None
    }
}

/// A text that a provider has a model write. It is the run's request like any other: held to its limits, told in its events
/// and charged to it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderRequest {
    /// What it is, as the events name it.
    pub name: &'static str,
    /// The conversation.
    pub prompt: Prompt,
    /// What may be written.
    pub shape: Shape,
    /// Tokens of that at most.
    pub max_tokens: usize,
}

/// What a provider says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// The text.
    pub text: String,
    /// True for our own words, see [`Layer::trusted`].
    pub trusted: bool,
}

/// A layer that is the same whatever the task.
pub struct Fixed {
    /// Its name.
    pub name: &'static str,
    /// Its place.
    pub priority: u16,
    /// Its text: our own words.
    pub text: String,
}

impl Fixed {
    /// The layer itself, for who has it at hand.
    pub fn layer(self, count: &dyn Fn(&str) -> usize) -> Layer {
        let Self { name, priority, text } = self;
        Layer { name: name.into(), priority, tokens: count(&text), text, trusted: true }
    }
}

impl ContextProvider for Fixed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn priority(&self) -> u16 {
        self.priority
    }

    fn provide(&self, _: &Query, _: usize) -> Result<Option<Provided>, ProviderError> {
        Ok((!self.text.is_empty()).then(|| Provided { text: self.text.clone(), trusted: true }))
    }
}

/// The layers that made it, in order, and those that did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembly {
    /// In the order of the prompt.
    pub layers: Vec<Layer>,
    /// Names of those that did not fit.
    pub dropped: Vec<String>,
    /// Names of providers that failed or were late, with the reason.
    pub failed: Vec<(String, String)>,
}

impl Assembly {
    /// Tokens of all layers.
    pub fn tokens(&self) -> usize {
        self.layers.iter().map(|l| l.tokens).sum()
    }

    /// The same in the order of the prompt, without what `budget` tokens do not hold.
    #[must_use]
    pub fn within(mut self, budget: usize) -> Self {
        self.layers.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        let mut left = budget;
        for layer in std::mem::take(&mut self.layers) {
            if layer.tokens <= left {
                left -= layer.tokens;
                self.layers.push(layer);
            } else {
                self.dropped.push(layer.name);
            }
        }
        // a rule for what is not there says nothing
        let there: Vec<String> = self.layers.iter().map(|layer| layer.name.clone()).collect();
        self.layers.retain(|layer| layer.name.strip_suffix(RULE).is_none_or(|of| there.iter().any(|name| name == of)));
        self
    }
}

/// Behind the name of a layer: the rule for it.
const RULE: &str = " rule";
/// The place of rules for what a layer has: behind the tools, before whatever is data.
const RULES: u16 = 23;

/// Asks every provider and puts the layers together within `budget` tokens. Who is not there after `patience` is left out.
pub fn assemble(
    providers: &[Arc<dyn ContextProvider>],
    query: &Query,
    (budget, patience): (usize, Duration),
    count: &dyn Fn(&str) -> usize,
) -> Assembly {
    gather(providers, query, (budget, patience), count).within(budget)
}

/// Asks every provider as [`assemble`] does, and leaves none of their layers out: for who has more to put beside them.
pub fn gather(
    providers: &[Arc<dyn ContextProvider>],
    query: &Query,
    (budget, patience): (usize, Duration),
    count: &dyn Fn(&str) -> usize,
) -> Assembly {
    let deadline = Instant::now() + patience;
    let waiting: Vec<_> = providers.iter().map(|p| (p.clone(), ask(p.clone(), query.clone(), budget))).collect();
    let mut assembly = Assembly::default();
    for (provider, answer) in waiting {
        let name = provider.name().to_owned();
        let left = deadline.saturating_duration_since(Instant::now());
        match answer.recv_timeout(left) {
            Ok(Ok(Some(Provided { text, trusted }))) => {
                if let Some(rule) = provider.rule() {
                    let (name, text, tokens) = (format!("{name}{RULE}"), rule.to_owned(), count(rule));
                    assembly.layers.push(Layer { name, priority: RULES, text, tokens, trusted: true });
                }
                let tokens = count(&text);
                assembly.layers.push(Layer { name, priority: provider.priority(), text, tokens, trusted });
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => assembly.failed.push((name, error.to_string())),
            Err(mpsc::RecvTimeoutError::Timeout) => assembly.failed.push((name, "it took too long".into())),
            Err(mpsc::RecvTimeoutError::Disconnected) => assembly.failed.push((name, "it panicked".into())),
        }
    }
    assembly
}

/// Asks one provider on a thread of its own, which is left to itself if it is late.
fn ask(
    provider: Arc<dyn ContextProvider>,
    query: Query,
    budget: usize,
) -> mpsc::Receiver<Result<Option<Provided>, ProviderError>> {
    let (say, hear) = mpsc::channel();
    let work = move || {
        // nobody listens any more: the run has gone on
        let _ = say.send(provider.provide(&query, budget));
    };
    // without a thread the sender is dropped, and the layer is missing like that of a provider that panicked
    let _ = std::thread::Builder::new().name("context".into()).spawn(work);
    hear
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    struct Slow(&'static str, u16, u64, fn() -> Result<Option<Provided>, ProviderError>);

    impl ContextProvider for Slow {
        fn name(&self) -> &'static str {
            self.0
        }
        fn priority(&self) -> u16 {
            self.1
        }
        fn provide(&self, _: &Query, _: usize) -> Result<Option<Provided>, ProviderError> {
            std::thread::sleep(Duration::from_millis(self.2));
            (self.3)()
        }
    }

    fn words(n: usize) -> Result<Option<Provided>, ProviderError> {
        Ok(Some(Provided { text: vec!["w"; n].join(" "), trusted: true }))
    }

    fn query() -> Query {
        Query { task: "t".into(), session: "s".into() }
    }

    fn run(providers: Vec<Slow>, budget: usize) -> Assembly {
        let providers: Vec<Arc<dyn ContextProvider>> = providers.into_iter().map(|p| Arc::new(p) as _).collect();
        assemble(&providers, &query(), (budget, PATIENCE), &|t| t.split_whitespace().count())
    }

    fn names(assembly: &Assembly) -> Vec<&str> {
        assembly.layers.iter().map(|l| l.name.as_str()).collect()
    }

    #[test]
    fn the_order_is_by_priority_whoever_is_first() {
        let mut seen = Vec::new();
        for round in 0..20u64 {
            let slow = |at: u64| (round * 7 + at * 3) % 5;
            let providers = vec![
                Slow("memory", 40, slow(0), || words(2)),
                Slow("persona", 0, slow(1), || words(2)),
                Slow("knowledge", 40, slow(2), || words(2)),
                Slow("tools", 20, slow(3), || words(2)),
            ];
            seen.push(run(providers, 100));
        }
        assert_eq!(names(&seen[0]), ["persona", "tools", "knowledge", "memory"]);
        assert!(seen.iter().all(|a| *a == seen[0]));
    }

    #[test]
    fn they_are_asked_side_by_side() {
        // each of them comes back once all four are there
        static ALL: Barrier = Barrier::new(4);
        let meets = |name| {
            Slow(name, 1, 0, || {
                ALL.wait();
                words(1)
            })
        };
        assert_eq!(names(&run(vec![meets("a"), meets("b"), meets("c"), meets("d")], 10)), ["a", "b", "c", "d"]);
    }

    #[test]
    fn who_is_late_is_left_out_and_nobody_waits_for_it() {
        assert_eq!(PATIENCE, Duration::from_secs(20));
        let providers: Vec<Arc<dyn ContextProvider>> = vec![
            Arc::new(Slow("late", 0, 60_000, || words(1))),
            Arc::new(Slow("later", 1, 60_000, || words(1))),
            Arc::new(Slow("here", 2, 0, || words(1))),
        ];
        let begun = Instant::now();
        let assembly = assemble(&providers, &query(), (10, Duration::from_secs(2)), &|_| 1);
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
        assert_eq!(names(&assembly), ["here"]);
        let late = |name: &str| (name.to_owned(), "it took too long".to_owned());
        assert_eq!(assembly.failed, [late("late"), late("later")]);
    }

    #[test]
    fn a_rule_stands_with_its_layer_or_not_at_all() {
        struct Ruled(usize);
        impl ContextProvider for Ruled {
            fn name(&self) -> &'static str {
                "memory"
            }
            fn priority(&self) -> u16 {
                40
            }
            fn provide(&self, _: &Query, _: usize) -> Result<Option<Provided>, ProviderError> {
                Ok((self.0 > 0).then(|| Provided { text: vec!["w"; self.0].join(" "), trusted: false }))
            }
            fn rule(&self) -> Option<&'static str> {
                Some("look first")
            }
        }
        let of = |size| assemble(&[Arc::new(Ruled(size))], &query(), (10, PATIENCE), &|t| t.split_whitespace().count());
        assert_eq!(names(&of(5)), ["memory rule", "memory"]);
        assert!(of(5).layers[0].trusted && !of(5).layers[1].trusted);
        assert_eq!(names(&of(0)), [""; 0]);
        assert_eq!((names(&of(9)), of(9).dropped), (vec![], vec!["memory".to_owned()]));
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole_and_a_smaller_one_still_fits() {
        let providers = vec![
            Slow("persona", 0, 0, || words(5)),
            Slow("memory", 40, 0, || words(50)),
            Slow("note", 50, 0, || words(5)),
        ];
        let assembly = run(providers, 10);
        assert_eq!((names(&assembly), assembly.tokens()), (vec!["persona", "note"], 10));
        assert_eq!(assembly.dropped, ["memory"]);
    }

    #[test]
    fn one_that_fails_panics_or_is_silent_costs_only_its_layer() {
        let providers = vec![
            Slow("a", 0, 0, || Err(ProviderError("no store".into()))),
            Slow("b", 1, 0, || panic!("broken on purpose")),
            Slow("c", 2, 0, || Ok(None)),
            Slow("d", 3, 0, || words(1)),
        ];
        let assembly = run(providers, 10);
        assert_eq!(names(&assembly), ["d"]);
        assert_eq!(assembly.failed.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }
}
