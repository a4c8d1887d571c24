//! The parameters of a loop, with the names of the specification.

use std::time::Duration;

/// The parameters of a loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The number of turns after a new message.
    pub max_new_input_loops: u32,
    /// The number of turns after the loop wakes by itself.
    pub max_wake_loops: u32,
    /// The time between two turns.
    pub sleep_interval: Duration,
    /// The time from the last turn that asked the model to the next wake.
    pub wakeup_interval: Duration,
    /// Most characters of the latest results in a prompt.
    pub max_feedback: usize,
    /// Most characters of the history in a prompt.
    pub max_history: usize,
    /// Most notes that a query returns.
    pub max_recall_items: usize,
    /// Most entries of the history on each side of a time.
    pub max_episode_recall_lines: usize,
    /// Most tokens of a turn's completion.
    pub max_output_token: usize,
    /// Most time a skill may take.
    pub skill_timeout: Duration,
    /// True if an empty tuple ends the remaining turns.
    pub rest_on_empty: bool,
    /// The use of the grammar.
    pub grammar: Grammar,
}

/// The use of the grammar to constrain completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Constrains local models; the output of others is repaired.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            max_new_input_loops: 50,
            max_wake_loops: 1,
            sleep_interval: Duration::from_secs(1),
            wakeup_interval: Duration::from_secs(600),
            max_feedback: 50_000,
            max_history: 30_000,
            max_recall_items: 20,
            max_episode_recall_lines: 20,
            max_output_token: 6000,
            skill_timeout: Duration::from_secs(5),
            rest_on_empty: false,
            grammar: Grammar::Auto,
        }
    }
}

/// All parameters: name, default value, and description.
pub const PARAMETERS: [(&str, &str, &str); 12] = [
    ("maxNewInputLoops", "50", "turns after a new message, and at the first start"),
    ("maxWakeLoops", "1", "turns each time it wakes by itself"),
    ("sleepInterval", "1", "seconds between two turns"),
    ("wakeupInterval", "600", "seconds without work after which it wakes by itself"),
    ("maxFeedback", "50000", "characters of the latest results in a prompt, fewer for a small window"),
    ("maxHistory", "30000", "characters of the history in a prompt, fewer for a small window"),
    ("maxRecallItems", "20", "notes that `query` shows"),
    ("maxEpisodeRecallLines", "20", "entries of the history that `episodes` shows on each side of a time"),
    ("maxOutputToken", "6000", "tokens of a turn, fewer for a small window"),
    ("skillTimeout", "5", "seconds that a skill may take"),
    ("restOnEmpty", "false", "true: an empty list `()` ends the turns that are left until the next message"),
    ("grammar", "auto", "on, off, or auto: on for a model of this machine"),
];

/// The reason why a parameter cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// It is not of the form `name=value`.
    #[error("`{0}` is not of the form NAME=VALUE")]
    Form(String),
    /// There is no parameter with that name.
    #[error("there is no parameter `{name}`{}", nearest.map_or_else(String::new, |near| format!("; did you mean `{near}`?")))]
    Unknown {
        /// The given name.
        name: String,
        /// The most similar name.
        nearest: Option<&'static str>,
    },
    /// The value is not allowed.
    #[error("`{name}` must be {wanted}, and not `{value}`")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: String,
        /// A description of the allowed values.
        wanted: &'static str,
    },
}

impl ParameterError {
    /// Returns a hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Form(_) => "for example: `caro loop wakeupInterval=60`",
            Self::Unknown { .. } | Self::Value { .. } => "`caro loop --help` lists all parameters",
        }
    }
}

impl Parameters {
    /// Sets a parameter from `name=value`.
    ///
    /// # Errors
    /// If the assignment has another form, the name is unknown, or the value is not allowed.
    pub fn set(&mut self, assignment: &str) -> Result<(), ParameterError> {
        let (given, value) = assignment.split_once('=').ok_or_else(|| ParameterError::Form(assignment.into()))?;
        let (given, value) = (given.trim(), value.trim());
        let known = PARAMETERS.iter().map(|(name, ..)| *name).find(|name| *name == given);
        let name = known.ok_or_else(|| ParameterError::Unknown { name: given.into(), nearest: nearest(given) })?;
        let wrong = |wanted| ParameterError::Value { name, value: value.into(), wanted };
        let count = || value.parse::<u32>().map_err(|_| wrong("a whole number, 0 or more"));
        let size = || value.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(|| wrong("a whole number above 0"));
        let seconds = || {
            let seconds = value.parse::<f64>().ok().filter(|s| (0.0..=1e9).contains(s));
            seconds.map(Duration::from_secs_f64).ok_or_else(|| wrong("seconds, 0 or more"))
        };
        match name {
            "maxNewInputLoops" => self.max_new_input_loops = count()?,
            "maxWakeLoops" => self.max_wake_loops = count()?,
            "sleepInterval" => self.sleep_interval = seconds()?,
            "wakeupInterval" => self.wakeup_interval = seconds()?,
            "maxFeedback" => self.max_feedback = size()?,
            "maxHistory" => self.max_history = size()?,
            "maxRecallItems" => self.max_recall_items = size()?,
            "maxEpisodeRecallLines" => self.max_episode_recall_lines = size()?,
            "maxOutputToken" => self.max_output_token = size()?,
            "skillTimeout" => self.skill_timeout = seconds()?,
            "restOnEmpty" => self.rest_on_empty = value.parse().map_err(|_| wrong("true or false"))?,
            _ => {
                self.grammar = match value {
                    "auto" => Grammar::Auto,
                    "on" => Grammar::On,
                    "off" => Grammar::Off,
                    _ => return Err(wrong("auto, on or off")),
                }
            }
        }
        Ok(())
    }
}

/// Returns the most similar parameter name, if one is close.
fn nearest(given: &str) -> Option<&'static str> {
    // case, `_` and `-` do not count, so that `wakeup_interval` matches
    let letters = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let far = |name: &&str| strsim::osa_distance(&letters(given), &letters(name));
    let names = PARAMETERS.iter().map(|(name, ..)| *name);
    names.min_by_key(far).filter(|name| far(name) <= 1 + name.len() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_set_by_name_and_has_its_default() {
        let mut parameters = Parameters { max_new_input_loops: 9, rest_on_empty: true, ..Parameters::default() };
        for (name, default, _) in PARAMETERS {
            parameters.set(&format!("{name}={default}")).unwrap();
        }
        assert_eq!(parameters, Parameters::default());
        parameters.set("sleepInterval=0.25").unwrap();
        assert_eq!(parameters.sleep_interval, Duration::from_millis(250));
    }

    #[test]
    fn errors_name_the_nearest_parameter_or_the_allowed_values() {
        let why = |text: &str| Parameters::default().set(text).unwrap_err().to_string();
        for (given, near) in [
            ("wakeupIntervall=5", "wakeupInterval"),
            ("maxnewinputloops=5", "maxNewInputLoops"),
            ("wakeup_interval=5", "wakeupInterval"),
            ("sleepIntreval=5", "sleepInterval"),
        ] {
            assert!(why(given).ends_with(&format!("did you mean `{near}`?")), "{}", why(given));
        }
        assert_eq!(why("colour=red"), "there is no parameter `colour`");
        assert!(why("maxWakeLoops=-1").contains("a whole number"));
        assert!(why("sleepInterval=soon").contains("seconds"));
        assert!(why("verbose").contains("NAME=VALUE"));
    }
}
