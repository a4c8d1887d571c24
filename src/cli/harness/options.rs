//! The flags that control a run, shared by `caro agent`, `caro chat` and `caro resume`.

use super::view::Shows;
use crate::Failure;
use crate::setup::config;
use crate::setup::settings::RESIDENTS;
use caro_agent::guard::LoopLimits;
use caro_agent::harness::Options;
use caro_agent::knowledge::{LIMIT, THRESHOLD};
use caro_agent::state::Limits;
use caro_policy as policy;
use clap::builder::PossibleValuesParser;
use std::path::{Path, PathBuf};

/// The session of `caro loop` if none is named.
pub const LOOP_SESSION: &str = "loop";

/// How a run is driven; the same for a new one and one that is gone on with.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Drive {
    /// Print one JSON document instead of the answer
    #[arg(long, conflicts_with = "events")]
    pub json: bool,
    /// Print every event as a line of JSON, as it happens
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl"])]
    pub events: Option<String>,
    /// Tell what the prompt is made of: each provider with its priority and size, and the total
    #[arg(short, long)]
    verbose: bool,
    /// Do not ask before changes below the working folder and commands that are no danger
    #[arg(short, long)]
    yes: bool,
    /// The most requests to the model, of one run (in a conversation: of one answer); 0 for any number. `caro resume` keeps it
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
    /// The most tokens, of prompts and completions; likewise
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// A folder below which commands may write, beside the working folder; `/` for anywhere. Changes there are asked for all
    /// the same
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    write: Vec<PathBuf>,
    /// Leave out a guard: action, loop, goal, ground
    #[arg(long, value_name = "NAME", value_parser = ["action", "loop", "goal", "ground"])]
    no_guard: Vec<String>,
    /// When a run goes in circles: an identical call is refused and the third ends it (strict), or nothing is refused and
    /// the fifth ends it (published)
    #[arg(long = "loop", value_name = "PRESET", default_value = "strict", value_parser = ["strict", "published"])]
    preset: String,
    /// Where text that gives the model orders is kept from it: in what you say and in what tools return (full), in what
    /// you say (input-only), in neither (off)
    #[arg(long, value_name = "WHAT", default_value = "full", value_parser = ["full", "input-only", "off"])]
    guardrail: String,
    /// Do not look into what `caro knowledge` has read in
    #[arg(long)]
    pub no_rag: bool,
    /// The most passages of it in a prompt [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50), conflicts_with = "no_rag")]
    knowledge_limit: Option<u8>,
    /// The least score of a passage, from 0 (whatever is found) to 1 [default: 0.5]
    #[arg(long, value_name = "SCORE", value_parser = score, conflicts_with = "no_rag")]
    knowledge_threshold: Option<f64>,
    /// Neither recall notes nor take any
    #[arg(long)]
    no_memory: bool,
    /// Start no MCP servers
    #[arg(long)]
    pub no_mcp: bool,
    /// Let the model have helpers work on parts of the task side by side; what they spend counts as the run's own
    #[arg(long)]
    pub subagents: bool,
    /// Use no skills
    #[arg(long, conflicts_with = "skill")]
    pub no_skills: bool,
    /// When a run that has grown long is shortened: at so much of the window (budget, budget:PERCENT), when it has more than
    /// N steps (window:N), or never (off). Old steps become a line each; with :truncate behind it they go, with :summary the
    /// model sums them up; :last=N keeps so many entries whole [default: budget]
    #[arg(long, value_name = "WHEN")]
    context: Option<String>,
    /// Go about it as this skill says (`caro skills list`); may be given several times
    #[arg(long, value_name = "NAME")]
    skill: Vec<String>,
    /// Who the model is to be: architect, developer, researcher, or words of your own
    #[arg(long, value_name = "WHO")]
    role: Option<String>,
    /// Who decides about a part that one command can do: the command recipe (always), the model among all tools
    /// (never), or whichever suits the model (auto: a small one on this machine does better with the recipe)
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub advise: Advise,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE; `caro resume` keeps it
    #[arg(long, value_name = "SPEC")]
    pub model: Option<String>,
    /// Keep the model ready in a process that ends by itself: on, off; auto is off here
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(RESIDENTS.map(|(name, _)| name)))]
    resident: Option<String>,
}

impl Drive {
    /// Returns the options of a verb that has only these flags.
    pub fn plain(model: Option<String>, yes: bool, write: Vec<PathBuf>) -> Self {
        Self { model, yes, write, ..Self::default() }
    }

    /// Returns the flags that override settings.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        config::given(&[("model", &self.model), ("resident", &self.resident), ("context", &self.context)])
    }

    /// Returns the limits of a run, overridden by the flags.
    pub fn limits(&self, before: Limits) -> Limits {
        let Limits { requests, tokens } = before;
        Limits { requests: self.max_requests.unwrap_or(requests), tokens: self.max_tokens.unwrap_or(tokens) }
    }

    /// Returns the first given option that only has an effect on a new prompt.
    pub fn prompt_option(&self) -> Option<&'static str> {
        let given = [
            (self.role.is_some(), "--role"),
            (!self.skill.is_empty(), "--skill"),
            (self.no_skills, "--no-skills"),
            (self.no_rag, "--no-rag"),
        ];
        given.into_iter().find_map(|(given, option)| given.then_some(option))
    }

    /// True if the layers of the prompt are to be shown.
    pub fn verbose(&self) -> bool {
        self.verbose
    }

    /// Returns what is to be shown of a run in progress.
    pub fn shows(&self) -> Shows {
        match (&self.events, self.json) {
            (Some(_), _) => Shows::Jsonl,
            (None, true) => Shows::Nothing,
            (None, false) => Shows::Steps,
        }
    }

    /// The mode of the guardrail.
    fn guardrail_mode(&self) -> policy::Mode {
        match self.guardrail.as_str() {
            "off" => policy::Mode::Off,
            "input-only" => policy::Mode::InputOnly,
            _ => policy::Mode::Full,
        }
    }

    /// Returns the options of the harness.
    pub fn options(&self) -> Options {
        Options {
            subagents: self.subagents,
            notes: !self.no_memory,
            enable_rag: !self.no_rag,
            knowledge_limit: self.knowledge_limit.map_or(LIMIT, usize::from),
            knowledge_threshold: self.knowledge_threshold.unwrap_or(THRESHOLD),
            guardrail: self.guardrail_mode(),
            loops: if self.preset == "published" { LoopLimits::PUBLISHED } else { LoopLimits::STRICT },
            without: self.no_guard.clone(),
            unasked: self.yes,
            skills: self.skill.clone(),
            role: self.role.clone(),
            ..Options::local()
        }
    }

    /// Returns the folders below which commands may write, besides the working directory `root`.
    ///
    /// # Errors
    /// If one of them does not exist: the flag would silently have no effect.
    pub fn writable(&self, root: &Path) -> Result<Vec<PathBuf>, Failure> {
        let resolve = |dir: &PathBuf| {
            let path = dir.canonicalize().or_else(|_| root.join(dir).canonicalize());
            path.ok().filter(|path| path.is_dir()).ok_or_else(|| {
                Failure::usage(format!("there is no folder {}", dir.display()))
                    .hint("make it first, or leave out --write")
            })
        };
        self.write.iter().map(resolve).collect()
    }

    /// Checks that the user's text, a `task` or a `message`, may be given to the model.
    ///
    /// # Errors
    /// If it is too long, or gives the model orders that the guardrail refuses.
    pub fn admit(&self, text: &str, what: &str) -> Result<(), Failure> {
        policy::admit(text, self.guardrail_mode()).map_err(|error| {
            let hint = error.hint();
            Failure::usage(format!("the {what} cannot be taken: {error}")).hint(hint)
        })
    }
}

/// Parses a score, from 0 to 1.
fn score(text: &str) -> Result<f64, String> {
    let score: Option<f64> = text.parse().ok().filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| "a number from 0 to 1, for example 0.4".to_owned())
}

/// When the command recipe is asked for a part of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Advise {
    /// For models that run on this machine.
    #[default]
    Auto,
    /// For every model.
    Always,
    /// For none.
    Never,
}
