//! Linux: Landlock against writes, seccomp against the network and against everything that changes the system
//! otherwise, no new privileges. Each is used where the kernel has it.
#![allow(unsafe_code)] // Two system calls that libc has no functions for.

use super::seccomp;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// Devices that may be written to: nothing remembers it.
const HARMLESS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What is put up in the child; nothing by default.
#[derive(Clone, Default)]
pub(super) struct Sandboxed {
    wanted: bool,
    /// True if this machine was found to offer more than could be prepared: the child must not start.
    short: bool,
    landlock: Option<Arc<OwnedFd>>,
    filter: Option<&'static seccompiler::BpfProgram>,
}

impl Sandboxed {
    /// Prepares the rules for a child without network that may write beneath `places`, and may ask the kernel if `netlink`.
    pub(super) fn closed(places: &[PathBuf], netlink: bool) -> Self {
        let fenced = Self::by(ruleset(places, Scope::from_all(ABI::V6)));
        let filter = seccomp::filter(netlink);
        Self { short: fenced.short || filter.is_none() && super::support().network, filter, ..fenced }
    }

    /// Prepares the rules for a child that may write beneath `places`.
    pub(super) fn within(places: &[PathBuf]) -> Self {
        Self::by(ruleset(places, BitFlags::EMPTY))
    }

    fn by(landlock: Option<OwnedFd>) -> Self {
        let short = landlock.is_none() && super::support().writes;
        Self { wanted: true, short, landlock: landlock.map(Arc::new), filter: None }
    }

    /// True if no process inside can leave its process group.
    pub(super) fn keeps_group(&self) -> bool {
        self.filter.is_some()
    }

    /// Puts the rules up in the calling process, for good. Makes system calls only.
    pub(super) fn enter(&self) -> io::Result<()> {
        if !self.wanted {
            return Ok(());
        }
        if self.short {
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
        // Last: what is set up above may need calls that it forbids.
        if let Some(filter) = self.filter
            && seccompiler::apply_filter(filter).is_err()
        {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Lets the calling process, and what it starts, write beneath `places` only, as far as the kernel has Landlock.
///
/// # Errors
/// If the kernel has it and refuses, or has no room for the rules.
pub(crate) fn hold_to(places: &[PathBuf]) -> io::Result<()> {
    Sandboxed::within(places).enter()
}

/// The version of the kernel's Landlock, below 1 where it has none.
pub(super) fn landlock_version() -> i32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
    const VERSION: u32 = 1;
    // SAFETY: asks for the version, for which the kernel takes no attributes and touches no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    i32::try_from(version).unwrap_or(0)
}

/// True if the kernel accepts a ruleset at all.
pub(super) fn landlock_works() -> bool {
    ruleset(&[], Scope::from_all(ABI::V6)).is_some()
}

/// A ruleset under which nothing can be written but what is beneath `places`; reading and running stay free. On kernels
/// that know `scope`, signals and abstract sockets to processes outside are forbidden too. A place of which the kernel takes
/// no rule (a pipe by its descriptor's name) is left out: the others still hold.
fn ruleset(places: &[PathBuf], scope: BitFlags<Scope>) -> Option<OwnedFd> {
    let writes = AccessFs::from_write(ABI::V5);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writes).ok()?;
    // to ask for no scope at all is an error
    if !scope.is_empty() {
        ruleset = ruleset.scope(scope).ok()?;
    }
    let mut ruleset = ruleset.create().ok()?;
    for device in HARMLESS {
        if let Ok(fd) = PathFd::new(device) {
            let _ = (&mut ruleset).add_rule(PathBeneath::new(fd, AccessFs::WriteFile | AccessFs::Truncate));
        }
    }
    for place in places {
        // what is not there cannot be written beneath; what is a file has no files beneath it
        let Ok(fd) = PathFd::new(place) else { continue };
        let access = if place.is_dir() { writes } else { writes & AccessFs::from_file(ABI::V5) };
        let _ = (&mut ruleset).add_rule(PathBeneath::new(fd, access));
    }
    ruleset.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel is asked directly, lest a ruleset that we build wrongly be taken for a kernel that has none.
    #[test]
    fn a_kernel_with_landlock_takes_our_ruleset() {
        let version = landlock_version();
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(
            (landlock_works(), ruleset(&[scratch.path().into()], BitFlags::EMPTY).is_some()),
            (version >= 1, version >= 1)
        );
    }

    #[test]
    fn a_place_of_which_the_kernel_takes_no_rule_is_the_only_one_left_out() {
        let (_, writer) = io::pipe().unwrap();
        let pipe = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        assert_eq!(ruleset(&[pipe], BitFlags::EMPTY).is_some(), landlock_version() >= 1);
    }

    #[test]
    fn a_child_does_not_start_behind_less_than_this_machine_offers() {
        let refused = Sandboxed::by(None).enter().map_err(|e| e.kind());
        let expected = if landlock_works() { Err(io::ErrorKind::OutOfMemory) } else { Ok(()) };
        assert_eq!(refused, expected);
    }
}
