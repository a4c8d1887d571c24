//! A pair of the library: what is asked, and its command on each system.

use caro_shell::{Os, Target, Userland};
use std::borrow::Cow;

/// A request in several wordings with its commands; what judges them is passed over.
#[derive(Debug, Default, PartialEq)]
#[cfg_attr(test, derive(Clone, serde::Deserialize))]
pub(super) struct Pair {
    pub(super) request: Text,
    #[cfg_attr(test, serde(default))]
    pub(super) also: Vec<Text>,
    pub(super) cmd: Text,
    pub(super) macos: Option<Text>,
    pub(super) freebsd: Option<Text>,
    pub(super) busybox: Option<Text>,
    pub(super) powershell: Option<Text>,
}

/// A string of an embedded file: a piece of it where nothing in it is escaped.
pub(super) type Text = Cow<'static, str>;

impl Pair {
    /// All that is asked with.
    pub(super) fn wordings(&self) -> impl Iterator<Item = &Text> {
        std::iter::once(&self.request).chain(&self.also)
    }

    /// Its command for a target, if there is one.
    pub(super) fn command(&self, target: Target) -> Option<&str> {
        let macos = self.macos.as_ref().unwrap_or(&self.cmd);
        let command = match (target.userland, target.os) {
            (Userland::Gnu, _) => &self.cmd,
            (Userland::Busybox, _) => self.busybox.as_ref().unwrap_or(&self.cmd),
            (Userland::Bsd, Os::FreeBsd) => self.freebsd.as_ref().unwrap_or(macos),
            (Userland::Bsd, _) => macos,
            (Userland::PowerShell, _) => self.powershell.as_ref()?,
        };
        (!command.is_empty()).then_some(&**command)
    }
}
