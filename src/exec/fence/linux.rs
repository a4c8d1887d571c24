//! Linux: Landlock against writes, seccomp against the network and other changes to the system, and no new
//! privileges. Each is used if the kernel has it.
#![allow(unsafe_code)] // Two system calls without a function in libc.

use super::seccomp;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// Devices that may be written to, as they store nothing.
const HARMLESS_DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The rules to apply in the child; none by default.
#[derive(Clone, Default)]
pub(super) struct Sandboxed {
    wanted: bool,
    /// True if this machine was found to support more than could be prepared: the child must not start.
    incomplete: bool,
    landlock: Option<Arc<OwnedFd>>,
    filter: Option<&'static seccompiler::BpfProgram>,
}

impl Sandboxed {
    /// Prepares the rules for a child without network that may write below `places`; with `netlink` it may query the
    /// kernel.
    pub(super) fn closed(places: &[PathBuf], netlink: bool) -> Self {
        let fenced = Self::with_ruleset(ruleset(places, Scope::from_all(ABI::V6)));
        let filter = seccomp::filter(netlink);
        Self { incomplete: fenced.incomplete || filter.is_none() && super::support().network, filter, ..fenced }
    }

    /// Prepares the rules for a child that may write below `places`.
    pub(super) fn within(places: &[PathBuf]) -> Self {
        Self::with_ruleset(ruleset(places, BitFlags::EMPTY))
    }

    fn with_ruleset(landlock: Option<OwnedFd>) -> Self {
        let incomplete = landlock.is_none() && super::support().writes;
        Self { wanted: true, incomplete, landlock: landlock.map(Arc::new), filter: None }
    }

    /// True if no process inside can leave its process group.
    pub(super) fn keeps_group(&self) -> bool {
        self.filter.is_some()
    }

    /// Applies the rules to the calling process, irrevocably. Makes system calls only.
    pub(super) fn apply(&self) -> io::Result<()> {
        if !self.wanted {
            return Ok(());
        }
        if self.incomplete {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        rustix::thread::set_no_new_privs(true)?;
        if let Some(ruleset) = &self.landlock {
            // SAFETY: takes two integers and touches no memory of ours; the descriptor is open while `self` lives.
            let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // last, as the steps above may need calls that it forbids
        if let Some(filter) = self.filter
            && seccompiler::apply_filter(filter).is_err()
        {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Restricts writes of the calling process and its children to `places`, if the kernel has Landlock.
///
/// # Errors
/// If the kernel has Landlock but refuses, or has no memory for the rules.
pub(crate) fn restrict_writes(places: &[PathBuf]) -> io::Result<()> {
    Sandboxed::within(places).apply()
}

/// Returns the version of the kernel's Landlock; below 1 if it has none.
pub(super) fn landlock_version() -> i32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
    const VERSION: u32 = 1;
    // SAFETY: queries the version, for which the kernel takes no attributes and touches no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    i32::try_from(version).unwrap_or(0)
}

/// True if the kernel accepts a ruleset.
pub(super) fn landlock_works() -> bool {
    ruleset(&[], Scope::from_all(ABI::V6)).is_some()
}

/// Creates a ruleset that allows writes only below `places`; reading and executing stay allowed. On kernels that
/// support `scope`, signals and abstract sockets to outside processes are forbidden too. A place for which the kernel
/// accepts no rule (a pipe by the name of its descriptor) is left out; the others still hold.
fn ruleset(places: &[PathBuf], scope: BitFlags<Scope>) -> Option<OwnedFd> {
    let writes = AccessFs::from_write(ABI::V5);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writes).ok()?;
    // an empty scope is an error
    if !scope.is_empty() {
        ruleset = ruleset.scope(scope).ok()?;
    }
    let mut ruleset = ruleset.create().ok()?;
    for device in HARMLESS_DEVICES {
        if let Ok(fd) = PathFd::new(device) {
            let _ = (&mut ruleset).add_rule(PathBeneath::new(fd, AccessFs::WriteFile | AccessFs::Truncate));
        }
    }
    for place in places {
        // a missing path needs no rule; a file has no files below it
        let Ok(fd) = PathFd::new(place) else { continue };
        let access = if place.is_dir() { writes } else { writes & AccessFs::from_file(ABI::V5) };
        let _ = (&mut ruleset).add_rule(PathBeneath::new(fd, access));
    }
    ruleset.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries the kernel directly, so that a wrong ruleset is not mistaken for a kernel without Landlock.
    #[test]
    fn a_kernel_with_landlock_accepts_our_ruleset() {
        let version = landlock_version();
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(
            (landlock_works(), ruleset(&[scratch.path().into()], BitFlags::EMPTY).is_some()),
            (version >= 1, version >= 1)
        );
    }

    #[test]
    fn only_a_place_without_a_rule_is_left_out() {
        let (_, writer) = io::pipe().unwrap();
        let pipe = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        assert_eq!(ruleset(&[pipe], BitFlags::EMPTY).is_some(), landlock_version() >= 1);
    }

    #[test]
    fn a_child_does_not_start_with_incomplete_rules() {
        let refused = Sandboxed::with_ruleset(None).apply().map_err(|e| e.kind());
        let expected = if landlock_works() { Err(io::ErrorKind::OutOfMemory) } else { Ok(()) };
        assert_eq!(refused, expected);
    }
}
