//! The settings in their types, parsed from the layers of [`Config`].

pub use super::names::{AUTO, AdapterUse, DEVICES, ENGINES, LEVELS, REFINES, RESIDENTS, SWITCH, Use, one_of};

use super::config::{KEYS, Origin};
use super::names::{NONE, auto_or};
use crate::{Config, Env, Failure};
use caro_agent::chat::Remember;
use caro_agent::perpetual::Parameters;
use caro_agent::turn::Fitting;
use caro_agent::{memory, workspace};
use caro_command::Refine;
use caro_model::engine::{Device, EngineKind};
use caro_serve::http;
use caro_shell::safety::Level;
use caro_shell::{Dialect, Target};
use std::time::Duration;

/// Every setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The model.
    pub model: String,
    /// The implementation of the model's forward pass.
    pub engine: EngineKind,
    /// The device to compute on.
    pub device: Device,
    /// The adapter that requests are answered with.
    pub adapter: AdapterUse,
    /// The machine to write for; `None` is this one.
    pub target: Option<Target>,
    /// The shell to write for; `None` is the calling one.
    pub shell: Option<Dialect>,
    /// The choice of when a second iteration runs.
    pub refine: Refine,
    /// Most iterations, 1 to 3.
    pub max_iterations: u32,
    /// The number of commands to choose from if the model is unsure.
    pub candidates: u32,
    /// True if commands may be rehearsed.
    pub rehearse: bool,
    /// True if the user's own documents are searched for commands.
    pub knowledge: bool,
    /// Most time for an answer.
    pub timeout: Duration,
    /// Most time to look for a better answer than the first.
    pub budget: Duration,
    /// The origin of the timeout, if it is a file or a variable.
    pub timeout_from: Option<String>,
    /// The worst risk that `-x` runs after asking.
    pub run_up_to: Level,
    /// True if keys are offered after an answer at a terminal.
    pub keys: bool,
    /// True if what a command changes is saved first.
    pub undo: bool,
    /// Most bytes that undo copies for one command.
    pub undo_copies: u64,
    /// Most bytes of all saved files.
    pub undo_total: u64,
    /// Age at which saved files are dropped.
    pub undo_age: Duration,
    /// The choice of when the resident process is used.
    pub resident: Use,
    /// The time that it stays after the last request.
    pub resident_idle: Duration,
    /// The backend of notes.
    pub memory: memory::Kind,
    /// The URL of its server, if it has one. May hold a password.
    pub memory_url: Option<String>,
    /// The backend of the files of agents.
    pub workspace_backend: workspace::Kind,
    /// The URL of its bucket, if it has one.
    pub workspace_url: Option<String>,
    /// True if requests are logged with their commands.
    pub request_history: bool,
    /// True if the last answer of a terminal is saved until it closes.
    pub last_answer: bool,
    /// The part of a conversation that is in the prompt.
    pub history: Remember,
    /// The choice of when a long run is shortened, and how.
    pub context: Fitting,
    /// The parameters of a perpetual loop.
    pub perpetual: Parameters,
}

impl Settings {
    /// Parses the variables that are valid; everything else has its default value.
    ///
    /// # Errors
    /// If a default value is not valid.
    pub fn of_variables(env: &Env) -> Result<Self, Failure> {
        let mut config = Config::defaults();
        for key in &KEYS {
            let Some(value) = env.get(key.env).and_then(|value| value.to_str()) else { continue };
            let origin = Origin::Env(key.env);
            if Self::of(&Config::of(key, value, origin.clone())).is_ok() {
                config.set(key, value.into(), origin);
            }
        }
        Self::of(&config)
    }

    /// Parses the settings from the layers.
    ///
    /// # Errors
    /// If a value is not valid; names its origin.
    pub fn of(config: &Config) -> Result<Self, Failure> {
        let url = |name: &str| Some(config.text(name)).filter(|url| *url != NONE).map(str::to_owned);
        Ok(Self {
            model: config.text("model").to_string(),
            device: config.parse("device", |v| one_of(&DEVICES, v))?,
            engine: config.parse("engine", |v| one_of(&ENGINES, v))?,
            adapter: AdapterUse::of(config.text("adapter")),
            target: config.parse("target", |v| auto_or(&Target::ALL, v))?,
            shell: config.parse("shell", |v| auto_or(&Dialect::ALL, v))?,
            refine: config.parse("refine", |v| one_of(&REFINES, v))?,
            max_iterations: config.parse("max_iterations", |v| {
                v.parse().ok().filter(|n| (1..=3).contains(n)).ok_or_else(|| "a number from 1 to 3".to_string())
            })?,
            candidates: config.parse("candidates", |v| {
                v.parse().ok().filter(|n| (1..=8).contains(n)).ok_or_else(|| "a number from 1 to 8".to_string())
            })?,
            rehearse: config.parse("rehearse", |v| one_of(&SWITCH, v))?,
            knowledge: config.parse("knowledge", |v| one_of(&SWITCH, v))?,
            timeout: config.parse("timeout", |v| {
                seconds(v, 3600.0).ok_or_else(|| "seconds, above 0 and up to 3600".to_string())
            })?,
            budget: config
                .parse("budget", |v| seconds(v, 600.0).ok_or_else(|| "seconds, above 0 and up to 600".to_string()))?,
            timeout_from: match config.origin("timeout") {
                from @ (Origin::File(..) | Origin::Env(_)) => Some(from.to_string()),
                _ => None,
            },
            run_up_to: config.parse("run_up_to", |v| one_of(&LEVELS, v))?,
            keys: config.parse("keys", |v| one_of(&SWITCH, v))?,
            undo: config.parse("undo", |v| one_of(&SWITCH, v))?,
            undo_copies: config.parse("undo_copies", bytes)?,
            undo_total: config.parse("undo_total", bytes)?,
            undo_age: config.parse("undo_days", days)?,
            resident: config.parse("resident", |v| one_of(&RESIDENTS, v))?,
            resident_idle: config.parse("resident_idle", |v| {
                seconds(v, 86_400.0).ok_or_else(|| "seconds, above 0 and up to 86400".to_string())
            })?,
            memory: config.parse("memory", |v| one_of(&memory::KINDS, v))?,
            memory_url: config.parse("memory_url", memory_url)?,
            workspace_backend: workspace::Kind::named(config.text("workspace_backend")).map_err(|error| {
                let (from, text) = (config.origin("workspace_backend"), config.text("workspace_backend"));
                let hint = format!("{from} says `{text}`; {}", error.hint());
                Failure::usage(error).hint(hint)
            })?,
            workspace_url: url("workspace_url"),
            request_history: config.parse("request_history", |v| one_of(&SWITCH, v))?,
            last_answer: config.parse("last_answer", |v| one_of(&SWITCH, v))?,
            history: config.parse("history", crate::setup::remembered::read)?,
            context: config.parse("context", crate::setup::fitting::read)?,
            perpetual: perpetual(config)?,
        })
    }

    /// Returns the settings for a process of many requests: it keeps the model itself, and uses a resident only if
    /// that is set to `on`.
    #[must_use]
    pub fn for_many(self) -> Self {
        let resident = if self.resident == Use::Auto { Use::Off } else { self.resident };
        Self { resident, ..self }
    }
}

/// Parses the settings of the server. Only the server does so: an invalid one does not stop other verbs.
///
/// # Errors
/// If a value is not valid; names its origin.
pub fn serve(config: &Config) -> Result<http::Settings, Failure> {
    Ok(http::Settings {
        host: config.parse("serve.host", http::settings::host)?,
        port: config.parse("serve.port", http::settings::port)?,
        timeout: config.parse("serve.timeout", http::settings::timeout)?,
        cors_origins: config.parse("serve.cors_origins", http::settings::origins)?,
        rate_limit: config.parse("serve.rate_limit", http::settings::rate_limit)?,
    })
}

/// Parses the URL of the server of notes, without connecting to it.
fn memory_url(text: &str) -> Result<Option<String>, String> {
    let has_form = ["redis://", "redis+unix://"]
        .iter()
        .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    match text {
        NONE => Ok(None),
        _ if has_form => Ok(Some(text.to_owned())),
        _ => Err("redis://[:PASSWORD@]HOST[:PORT][/N], redis+unix:///SOCKET or none".to_owned()),
    }
}

/// Parses a number of bytes: `1500`, `64K`, `1.5G`, in powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "a number of bytes, as 500M or 2G".to_string();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit: u64 = match text[split..].to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err(expected()),
    };
    let number: f64 = text[..split].trim().parse().map_err(|_| expected())?;
    let bytes = number * unit as f64;
    if number.is_finite() && (0.0..1e15).contains(&bytes) { Ok(bytes as u64) } else { Err(expected()) }
}

/// Parses a number of days, up to ten years.
fn days(text: &str) -> Result<Duration, String> {
    let days = text.parse::<u64>().ok().filter(|days| (1..=3650).contains(days));
    days.map(|days| Duration::from_secs(days * 86_400)).ok_or_else(|| "a number of days, 1 to 3650".to_string())
}

/// Parses the parameters of a perpetual loop: `NAME=VALUE`, one after the other.
fn perpetual(config: &Config) -> Result<Parameters, Failure> {
    let mut parameters = Parameters::default();
    for assignment in config.text("loop").split_whitespace().filter(|word| *word != NONE) {
        parameters.set(assignment).map_err(|error| {
            let hint = error.hint();
            Failure::usage(format!("{}: `loop`: {error}", config.origin("loop"))).hint(hint)
        })?;
    }
    Ok(parameters)
}

/// Parses seconds, with or without a fraction, up to `most`.
fn seconds(text: &str, most: f64) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (seconds > 0.0 && seconds <= most).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(seconds("2.5", 3600.0), Some(Duration::from_millis(2500)));
        for bad in ["", "0", "-1", "nan", "inf", "1e9", "5s"] {
            assert_eq!(seconds(bad, 3600.0), None, "{bad}");
        }
    }

    #[test]
    fn bytes_are_read_with_their_unit() {
        for (text, wanted) in
            [("0", 0), ("1500", 1500), ("64k", 64 << 10), ("1.5G", 3 << 29), ("2 GiB", 2 << 30), ("1MB", 1 << 20)]
        {
            assert_eq!(bytes(text), Ok(wanted), "{text}");
        }
        for bad in ["", "-1", "G", "1X", "nan", "1e30", "inf"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert!(days("0").is_err() && days("3651").is_err() && days("14") == Ok(Duration::from_secs(14 * 86_400)));
    }

    #[test]
    fn an_adapter_is_automatic_off_or_named() {
        for (text, wanted) in [
            ("auto", AdapterUse::Auto),
            ("off", AdapterUse::Off),
            ("terse", AdapterUse::Named("terse".into())),
            ("./off.gguf", AdapterUse::Named("./off.gguf".into())),
        ] {
            assert_eq!(AdapterUse::of(text), wanted);
        }
    }

    #[test]
    fn names_are_matched_whole_and_listed_when_wrong() {
        assert_eq!(one_of(&REFINES, "always"), Ok(Refine::Always));
        assert_eq!(one_of(&REFINES, "al").unwrap_err(), "one of never, evidence, always");
        assert_eq!(auto_or(&Dialect::ALL, "auto"), Ok(None));
        assert!(auto_or(&Dialect::ALL, "tcsh").unwrap_err().ends_with("powershell, auto"));
    }
}
