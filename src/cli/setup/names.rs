//! The values that settings and flags choose from, by name.

use caro_command::Refine;
use caro_model::engine::Device;
use caro_shell::safety::Level;

/// The word for no value.
pub const NONE: &str = "none";

/// The devices by name.
pub const DEVICES: [(&str, Device); 4] =
    [("auto", Device::Auto), ("cpu", Device::Cpu), ("cuda", Device::Cuda), ("metal", Device::Metal)];

/// When a second iteration runs, by name.
pub const REFINES: [(&str, Refine); 3] =
    [("never", Refine::Never), ("evidence", Refine::Evidence), ("always", Refine::Always)];

/// Levels of risk, by name.
pub const LEVELS: [(&str, Level); 3] = [("safe", Level::Safe), ("caution", Level::Caution), ("danger", Level::Danger)];

/// When the resident process is used, by name.
pub const RESIDENTS: [(&str, Use); 3] = [("auto", Use::Auto), ("on", Use::On), ("off", Use::Off)];

/// When the resident process is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Use {
    /// For single requests on the CPU, started where there is memory for it.
    #[default]
    Auto,
    /// Whenever there can be one; the person is told when there cannot.
    On,
    /// Never.
    Off,
}

/// Which adapter of the model requests are answered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AdapterUse {
    /// The one that the model's card has, if it has one.
    #[default]
    Auto,
    /// None.
    Off,
    /// That one: a name or a file.
    Named(String),
}

impl AdapterUse {
    /// Reads a value.
    pub fn of(text: &str) -> Self {
        match text {
            AUTO => Self::Auto,
            "off" => Self::Off,
            name => Self::Named(name.into()),
        }
    }
}

/// A switch, by name.
pub const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The word in the configuration that leaves a choice to the machine.
pub const AUTO: &str = "auto";

/// The value of that name, or what would have been accepted.
pub fn one_of<T: Copy>(names: &[(&str, T)], text: &str) -> Result<T, String> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

/// The same where the choice may be left to the machine.
pub fn auto_or<T: Copy>(names: &[(&str, T)], text: &str) -> Result<Option<T>, String> {
    if text == AUTO {
        return Ok(None);
    }
    one_of(names, text).map(Some).map_err(|names| format!("{names}, {AUTO}"))
}
