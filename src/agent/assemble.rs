//! Assembles the context of a prompt: layers of text, one per provider, by priority within a budget of tokens.
//!
//! Providers run in parallel, and their layers are sorted afterwards, so the result does not depend on which one is
//! fastest. Lower numbers come first: persona 0, active skill 10, tools 20, knowledge and memory 40. A layer that
//! does not fit is left out as a whole, and a smaller one after it may still fit. A provider that fails is left out
//! too, and the run goes on.

use super::event::Draft;
use caro_model::{Prompt, Shape};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The time that all providers may take together; those that take longer are left out.
pub const ASSEMBLY_TIMEOUT: Duration = Duration::from_secs(20);

/// The task that layers are assembled for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The task, in the user's words.
    pub task: String,
    /// The session.
    pub session: String,
}

/// One piece of context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name in `--show-prompt` and in events.
    pub name: String,
    /// Its position: lower is earlier and more important.
    pub priority: u16,
    /// The text.
    pub text: String,
    /// Tokens of the text, by the model's own tokenizer.
    pub tokens: usize,
    /// True for text of this program. Any other text (documents, notes, memories) is data: it is fenced, and is placed
    /// with the task and not with the instructions.
    pub trusted: bool,
}

/// The reason why a provider has no layer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

impl ProviderError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        "the run goes on without this layer; `--show-prompt` shows what was assembled"
    }
}

/// A source of one layer.
pub trait ContextProvider: Send + Sync {
    /// The layer's name.
    fn name(&self) -> &'static str;

    /// The layer's position.
    fn priority(&self) -> u16;

    /// Returns the text for this query in at most `budget` tokens; `None` if there is nothing to tell.
    ///
    /// # Errors
    /// An error leaves the layer out; the run goes on.
    fn provide(&self, query: &Query, budget: usize) -> Result<Option<Provided>, ProviderError>;

    /// Returns an event about the last call of [`ContextProvider::provide`], if there is one to record.
    fn record(&self) -> Option<Draft> {
        None
    }

    /// A rule about the layer's content. It is placed with the instructions, and only if the layer is in the prompt.
    fn rule(&self) -> Option<&'static str> {
        None
    }

    /// A text that the model has to write before [`ContextProvider::provide`] is called with the same `budget`. Asked
    /// for in a run only, not when a prompt is just shown.
    fn request(&self, _query: &Query, _budget: usize) -> Option<ProviderRequest> {
        None
    }

    /// Receives what the model wrote, once before each run; `None` if nothing was requested, or if the request failed.
    /// Returns an event about it, if there is one to record.
    fn accept(&self, _written: Option<&str>) -> Option<Draft> {
        None
    }
}

/// A request of a provider for a text written by the model. It counts as a request of the run: its limits hold, and
/// it is recorded in its events and charged to it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderRequest {
    /// Its name in events.
    pub name: &'static str,
    /// The messages.
    pub prompt: Prompt,
    /// The grammar of the text.
    pub shape: Shape,
    /// Most tokens of the text.
    pub max_tokens: usize,
}

/// The text of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// The text.
    pub text: String,
    /// True for text of this program, see [`Layer::trusted`].
    pub trusted: bool,
}

/// A layer whose text does not depend on the task.
pub struct Fixed {
    /// Its name.
    pub name: &'static str,
    /// Its position.
    pub priority: u16,
    /// Its text: trusted.
    pub text: String,
}

impl Fixed {
    /// Returns the layer without going through [`assemble`].
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

/// The layers of a prompt, and the names of those that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembly {
    /// The layers, in the order of the prompt.
    pub layers: Vec<Layer>,
    /// Names of layers that did not fit.
    pub dropped: Vec<String>,
    /// Names of providers that failed or took too long, with the reason.
    pub failed: Vec<(String, String)>,
}

impl Assembly {
    /// Tokens of all layers.
    pub fn tokens(&self) -> usize {
        self.layers.iter().map(|l| l.tokens).sum()
    }

    /// Sorts the layers and leaves out those that do not fit into `budget` tokens.
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
        // a rule about a layer that was left out is left out too
        let kept: Vec<String> = self.layers.iter().map(|layer| layer.name.clone()).collect();
        let is_kept = |name: &str| kept.iter().any(|one| one == name);
        self.layers.retain(|layer| layer.name.strip_suffix(RULE_SUFFIX).is_none_or(is_kept));
        self
    }
}

/// Suffix of the name of the layer that holds the rule for another layer.
const RULE_SUFFIX: &str = " rule";
/// The position of such rules: after the tools, before all data.
const RULE_PRIORITY: u16 = 23;

/// Asks every provider and assembles the layers within `budget` tokens. A provider that takes longer than `timeout` is
/// left out.
pub fn assemble(
    providers: &[Arc<dyn ContextProvider>],
    query: &Query,
    (budget, timeout): (usize, Duration),
    count: &dyn Fn(&str) -> usize,
) -> Assembly {
    gather(providers, query, (budget, timeout), count).within(budget)
}

/// Asks every provider as [`assemble`] does, but leaves no layer out and does not sort them: the caller adds more
/// layers.
pub fn gather(
    providers: &[Arc<dyn ContextProvider>],
    query: &Query,
    (budget, timeout): (usize, Duration),
    count: &dyn Fn(&str) -> usize,
) -> Assembly {
    let deadline = Instant::now() + timeout;
    let waiting: Vec<_> = providers.iter().map(|p| (p.clone(), ask(p.clone(), query.clone(), budget))).collect();
    let mut assembly = Assembly::default();
    for (provider, answer) in waiting {
        let name = provider.name().to_owned();
        let left = deadline.saturating_duration_since(Instant::now());
        match answer.recv_timeout(left) {
            Ok(Ok(Some(Provided { text, trusted }))) => {
                if let Some(rule) = provider.rule() {
                    let (name, text, tokens) = (format!("{name}{RULE_SUFFIX}"), rule.to_owned(), count(rule));
                    assembly.layers.push(Layer { name, priority: RULE_PRIORITY, text, tokens, trusted: true });
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

/// Asks one provider on a thread of its own. A thread that takes too long is not stopped, only ignored.
fn ask(
    provider: Arc<dyn ContextProvider>,
    query: Query,
    budget: usize,
) -> mpsc::Receiver<Result<Option<Provided>, ProviderError>> {
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        // sending fails if the run has gone on without this layer
        let _ = sender.send(provider.provide(&query, budget));
    };
    // if no thread can be started the sender is dropped, which looks like a provider that panicked
    let _ = std::thread::Builder::new().name("context".into()).spawn(work);
    receiver
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
        assemble(&providers, &query(), (budget, ASSEMBLY_TIMEOUT), &|t| t.split_whitespace().count())
    }

    fn names(assembly: &Assembly) -> Vec<&str> {
        assembly.layers.iter().map(|l| l.name.as_str()).collect()
    }

    #[test]
    fn the_order_is_by_priority_and_not_by_speed() {
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
    fn providers_run_in_parallel() {
        // each provider returns only once all four are running
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
    fn a_provider_that_takes_too_long_is_left_out() {
        assert_eq!(ASSEMBLY_TIMEOUT, Duration::from_secs(20));
        let providers: Vec<Arc<dyn ContextProvider>> = vec![
            Arc::new(Slow("late", 0, 60_000, || words(1))),
            Arc::new(Slow("later", 1, 60_000, || words(1))),
            Arc::new(Slow("here", 2, 0, || words(1))),
        ];
        let started = Instant::now();
        let assembly = assemble(&providers, &query(), (10, Duration::from_secs(2)), &|_| 1);
        assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
        assert_eq!(names(&assembly), ["here"]);
        let late = |name: &str| (name.to_owned(), "it took too long".to_owned());
        assert_eq!(assembly.failed, [late("late"), late("later")]);
    }

    #[test]
    fn a_rule_is_there_only_with_its_layer() {
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
        let words = |text: &str| text.split_whitespace().count();
        let of = |size| assemble(&[Arc::new(Ruled(size))], &query(), (10, ASSEMBLY_TIMEOUT), &words);
        assert_eq!(names(&of(5)), ["memory rule", "memory"]);
        assert!(of(5).layers[0].trusted && !of(5).layers[1].trusted);
        assert_eq!(names(&of(0)), [""; 0]);
        assert_eq!((names(&of(9)), of(9).dropped), (vec![], vec!["memory".to_owned()]));
    }

    #[test]
    fn a_layer_that_does_not_fit_is_left_out_and_a_smaller_one_still_fits() {
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
    fn a_provider_that_fails_panics_or_has_nothing_costs_only_its_layer() {
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
