//! Parses the names of keys, and writes keys in the form of each shell's line editor.

use caro_base::iter::only;
use std::fmt;
use std::str::FromStr;

/// A key that a line editor can bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character with Alt (Esc before it does the same).
    Alt(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// F1 to F12.
    Function(u8),
}

/// Keys with Ctrl that a terminal or every line editor needs for something else: interrupt, end of input, backspace, tab,
/// the two line ends, the screen, flow, quoting, stopping.
const RESERVED_CTRL: &str = "cdhijlmqsvz";

/// The sequences, after Esc, that xterm and similar terminals send for the function keys, F1 first.
const SEQUENCES: [&str; 12] = ["OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~", "[20~", "[21~", "[23~", "[24~"];

impl Key {
    /// The key as GNU Readline writes it.
    pub fn for_readline(self) -> String {
        match self {
            Self::Alt(c) => format!("\\e{c}"),
            Self::Ctrl(c) => format!("\\C-{c}"),
            Self::Function(_) => format!("\\e{}", self.sequence()),
        }
    }

    /// The key as `bindkey` of zsh writes it.
    pub fn for_zle(self) -> String {
        match self {
            Self::Alt(c) => format!("^[{c}"),
            Self::Ctrl(c) => format!("^{}", c.to_ascii_uppercase()),
            Self::Function(_) => format!("^[{}", self.sequence()),
        }
    }

    /// The key as `bind` of fish writes it.
    pub fn for_fish(self) -> String {
        match self {
            Self::Alt(c) => format!("\\e{c}"),
            Self::Ctrl(c) => format!("\\c{c}"),
            // quoted, because a bracket would be a glob
            Self::Function(_) => format!("\\e'{}'", self.sequence()),
        }
    }

    /// The key code of a binding of nushell.
    pub fn for_nu(self) -> String {
        match self {
            Self::Alt(c) | Self::Ctrl(c) => format!("char_{c}"),
            Self::Function(n) => format!("f{n}"),
        }
    }

    /// The modifier of a binding of nushell.
    pub fn modifier(self) -> &'static str {
        match self {
            Self::Alt(_) => "alt",
            Self::Ctrl(_) => "control",
            Self::Function(_) => "none",
        }
    }

    /// The key as `Set-PSReadLineKeyHandler` of PowerShell writes it.
    pub fn for_psreadline(self) -> String {
        match self {
            Self::Alt(c) => format!("Alt+{c}"),
            Self::Ctrl(c) => format!("Ctrl+{c}"),
            Self::Function(n) => format!("F{n}"),
        }
    }

    fn sequence(self) -> &'static str {
        let Self::Function(number) = self else { return "" };
        SEQUENCES.get(usize::from(number).saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let name = name.to_lowercase();
        let one = |rest: &str| only(rest.chars()).filter(char::is_ascii_alphanumeric);
        if let Some(c) = name.strip_prefix("alt-").and_then(one) {
            return Ok(Self::Alt(c));
        }
        if let Some(c) = name.strip_prefix("ctrl-").and_then(one) {
            return match RESERVED_CTRL.contains(c) || c.is_ascii_digit() {
                true => Err("the terminal or every line editor needs that key for something else".into()),
                false => Ok(Self::Ctrl(c)),
            };
        }
        let number = name.strip_prefix('f').and_then(|n| n.parse().ok()).filter(|n| (1..=12).contains(n));
        number.map(Self::Function).ok_or_else(|| "a key is alt-LETTER, ctrl-LETTER, or f1 to f12".into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alt(c) => write!(f, "alt-{c}"),
            Self::Ctrl(c) => write!(f, "ctrl-{c}"),
            Self::Function(n) => write!(f, "f{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names_and_are_written_as_each_shell_does() {
        for (name, readline, zle, fish) in [
            ("alt-e", "\\ee", "^[e", "\\ee"),
            ("ctrl-g", "\\C-g", "^G", "\\cg"),
            ("f2", "\\eOQ", "^[OQ", "\\e'OQ'"),
            ("f12", "\\e[24~", "^[[24~", "\\e'[24~'"),
        ] {
            let key: Key = name.parse().unwrap();
            assert_eq!((key.for_readline(), key.for_zle(), key.for_fish()), (readline.into(), zle.into(), fish.into()));
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        assert_eq!("Alt-E".parse(), Ok(Key::Alt('e')));
        for (name, modifier, nu, psreadline) in
            [("alt-e", "alt", "char_e", "Alt+e"), ("ctrl-g", "control", "char_g", "Ctrl+g"), ("f2", "none", "f2", "F2")]
        {
            let key: Key = name.parse().unwrap();
            assert_eq!((key.modifier(), key.for_nu(), key.for_psreadline()), (modifier, nu.into(), psreadline.into()));
        }
    }

    #[test]
    fn reserved_keys_and_unknown_names_are_refused() {
        for name in ["ctrl-l", "ctrl-c", "ctrl-d", "ctrl-m", "ctrl-i", "ctrl-1"] {
            assert!(name.parse::<Key>().unwrap_err().contains("something else"), "{name}");
        }
        for name in ["", "e", "alt-", "alt-ee", "alt-ä", "alt-'", "f0", "f13", "f-1", "meta-x", "ctrl-;"] {
            assert!(name.parse::<Key>().unwrap_err().contains("alt-LETTER"), "{name}");
        }
    }
}
