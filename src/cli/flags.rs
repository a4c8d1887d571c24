//! The flags shared by several verbs, and those of a request.

use crate::setup::config;
use crate::setup::names::{DEVICES, ENGINES, REFINES, RESIDENTS, SWITCH};
use crate::term::color::ColorChoice;
use caro_shell::{Dialect, Target};
use clap::builder::PossibleValuesParser;
use std::ffi::OsString;

/// Flags of every verb.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Common {
    /// Print nothing but the answer and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub color: ColorChoice,
    /// For screen readers: no colour, nothing that moves or is drawn over, questions that a line answers
    #[arg(long, global = true)]
    pub plain: bool,
}

/// The default verb: a request.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RequestArgs {
    /// The request, in plain words
    #[arg(value_name = "WORDS")]
    pub words: Vec<OsString>,
    /// Run the command after asking
    #[arg(short = 'x', long, conflicts_with = "json")]
    pub execute: bool,
    /// A command to change, or `last`, the last answer of this terminal: the words say how
    #[arg(long, value_name = "COMMAND")]
    pub from: Option<String>,
    /// With -x: show what it would create, change and delete, before it asks
    #[arg(long, requires = "execute")]
    pub preview: bool,
    /// With -x: lay what it deletes into the desktop's trash, too
    #[arg(long, requires = "execute")]
    pub trash: bool,
    /// Offer no keys after the answer at a terminal
    #[arg(long)]
    pub no_keys: bool,
    /// The line editor of a shell waits for the command: Esc gives up (see `caro init`)
    #[arg(long, hide = true, conflicts_with_all = ["execute", "json"])]
    pub widget: bool,
    /// True if the words follow `--`, which makes them a request whatever they look like.
    #[arg(skip)]
    pub literal: bool,
    /// How to answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// How a request is answered; the same for one and for a batch.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct AnswerArgs {
    /// Print one JSON document instead of the command
    #[arg(long)]
    pub json: bool,
    /// Show prompts, raw answers, findings and every iteration (on stderr)
    #[arg(long)]
    pub debug: bool,
    /// Show the prompt's parts with their tokens, and decisions (on stderr)
    #[arg(short, long)]
    pub verbose: bool,
    /// Show where the time went (on stderr)
    #[arg(long)]
    pub timing: bool,
    /// Number of different commands to offer, 1 to 8
    #[arg(short = 'n', long = "alternatives", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=8))]
    pub alternatives: u8,
    /// For measurements: so many pairs of the example library are shown to the model, 0 to 16, in place of those that
    /// ask for nearly the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=16))]
    pub few_shot: Option<u8>,
    /// When to reconsider an answer: never, on evidence against it, always [default: evidence]
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(REFINES.map(|(name, _)| name)))]
    pub refine: Option<String>,
    /// The most iterations, 1 to 3 [default: 2]
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<String>,
    /// Commands to choose from where the model is unsure, 1 to 8 [default: 5]
    #[arg(long, value_name = "N")]
    pub candidates: Option<String>,
    /// May commands be tried in a sandbox before they are shown, and to choose among them
    #[arg(long, value_name = "SWITCH", value_parser = PossibleValuesParser::new(SWITCH.map(|(name, _)| name)))]
    pub rehearse: Option<String>,
    /// Are documents of your own that `caro knowledge` has read in looked into for commands
    #[arg(long, value_name = "SWITCH", value_parser = PossibleValuesParser::new(SWITCH.map(|(name, _)| name)))]
    pub knowledge: Option<String>,
    /// Seconds after which there is no answer, a model download not counted [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<String>,
    /// Seconds within which a better answer than the first is looked for: more helps where the model is slow
    /// [default: 4]
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<String>,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE
    #[arg(long, value_name = "SPEC")]
    pub model: Option<String>,
    /// Adapter of the model: auto (its own, if it has one), off, a name of `caro model adapter list`, a GGUF file
    #[arg(long, value_name = "SPEC")]
    pub adapter: Option<String>,
    /// Where to compute
    #[arg(long, value_name = "DEVICE", value_parser = PossibleValuesParser::new(DEVICES.map(|(name, _)| name)))]
    pub device: Option<String>,
    /// What computes the model: auto (the own engine where it can, else candle), own, candle
    #[arg(long, value_name = "ENGINE", value_parser = PossibleValuesParser::new(ENGINES.map(|(name, _)| name)))]
    pub engine: Option<String>,
    /// Keep the model ready in a process that ends by itself: auto, on, off
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(RESIDENTS.map(|(name, _)| name)))]
    pub resident: Option<String>,
    /// Write for another machine than this one
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Target::ALL.map(|(name, _)| name)))]
    pub target: Option<String>,
    /// Write for another shell than the one that called
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Dialect::ALL.map(|(name, _)| name)))]
    pub shell: Option<String>,
}

impl AnswerArgs {
    /// Returns the flags that override settings, as the topmost layer of configuration.
    pub fn layer(&self) -> Vec<(&'static str, String)> {
        config::given(&[
            ("refine", &self.refine),
            ("max_iterations", &self.max_iterations),
            ("candidates", &self.candidates),
            ("rehearse", &self.rehearse),
            ("knowledge", &self.knowledge),
            ("timeout", &self.timeout),
            ("budget", &self.budget),
            ("model", &self.model),
            ("adapter", &self.adapter),
            ("device", &self.device),
            ("engine", &self.engine),
            ("resident", &self.resident),
            ("target", &self.target),
            ("shell", &self.shell),
        ])
    }
}
