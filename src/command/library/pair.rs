//! A pair of the library: a request, and its command on each system.

use caro_shell::{Os, Target, Userland};
use std::borrow::Cow;

/// A request in several wordings with its commands. The fields for tests are left out.
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

/// A string of an embedded file, borrowed from it unless it has escapes.
pub(super) type Text = Cow<'static, str>;

impl Pair {
    /// Returns all wordings of the request.
    pub(super) fn wordings(&self) -> impl Iterator<Item = &Text> {
        std::iter::once(&self.request).chain(&self.also)
    }

    /// Returns the command for a target, if there is one.
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
