//! Decides if output is coloured.

use crate::{Env, env};

/// When to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set; elsewhere only if `CLICOLOR_FORCE` is.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorChoice {
    /// Returns true if a stream is coloured; `tty` says if it is a terminal.
    pub fn resolve(self, env: &Env, tty: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if env.get(env::NO_COLOR).is_some() => false,
            Self::Auto if env.get(env::CLICOLOR_FORCE).is_some_and(|v| v != "0") => true,
            Self::Auto => tty && env.get(env::TERM).is_none_or(|t| t != "dumb"),
        }
    }
}
