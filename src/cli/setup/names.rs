//! The named values of settings and flags.

use caro_command::Refine;
use caro_model::engine::{Device, EngineKind};
use caro_shell::safety::Level;

/// The word for no value.
pub const NONE: &str = "none";

/// The devices by name.
pub const DEVICES: [(&str, Device); 4] =
    [("auto", Device::Auto), ("cpu", Device::Cpu), ("cuda", Device::Cuda), ("metal", Device::Metal)];

/// The implementations of the forward pass by name.
pub const ENGINES: [(&str, EngineKind); 3] =
    [("auto", EngineKind::Auto), ("own", EngineKind::Own), ("candle", EngineKind::Candle)];

/// The choices of when a second iteration runs, by name.
pub const REFINES: [(&str, Refine); 3] =
    [("never", Refine::Never), ("evidence", Refine::Evidence), ("always", Refine::Always)];

/// The levels of risk, by name.
pub const LEVELS: [(&str, Level); 3] = [("safe", Level::Safe), ("caution", Level::Caution), ("danger", Level::Danger)];

/// The choices of when the resident process is used, by name.
pub const RESIDENTS: [(&str, Use); 3] = [("auto", Use::Auto), ("on", Use::On), ("off", Use::Off)];

/// The choice of when the resident process is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Use {
    /// For single requests on the CPU; it is started if there is memory for it.
    #[default]
    Auto,
    /// Whenever possible; the user is warned if it is not.
    On,
    /// Never.
    Off,
}

/// The choice of the adapter that requests are answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AdapterUse {
    /// The adapter of the model's card, if it has one.
    #[default]
    Auto,
    /// None.
    Off,
    /// A named one: a name or a file.
    Named(String),
}

impl AdapterUse {
    /// Parses a value.
    pub fn of(text: &str) -> Self {
        match text {
            AUTO => Self::Auto,
            "off" => Self::Off,
            name => Self::Named(name.into()),
        }
    }
}

/// The values of a switch, by name.
pub const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The word that leaves a choice to the program.
pub const AUTO: &str = "auto";

/// Returns the value of a name, or a message with the valid names.
pub fn one_of<T: Copy>(names: &[(&str, T)], text: &str) -> Result<T, String> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

/// Returns the value of a name, `None` for `auto`, or a message with the valid names.
pub fn auto_or<T: Copy>(names: &[(&str, T)], text: &str) -> Result<Option<T>, String> {
    if text == AUTO {
        return Ok(None);
    }
    one_of(names, text).map(Some).map_err(|names| format!("{names}, {AUTO}"))
}
