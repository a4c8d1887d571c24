//! The system calls that a sandboxed child may not make. A list of what is forbidden, not of what is allowed: any
//! program of the machine may run here, and all of them must still be able to say what they are.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Forbidden to a child that may only read.
const FORBIDDEN: &[c_long] = &[
    // The network, and local services that would act on the child's behalf (D-Bus, systemd, docker, X).
    libc::SYS_socket,
    // Leaving the process group, by which the whole job is killed.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Changes to files that Landlock does not see: mode, owner, times, attributes.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
];

/// Forbidden to every sandboxed child, whatever the arguments.
const FORBIDDEN_TO_ALL: &[c_long] = &[
    // System calls past the filter.
    libc::SYS_io_uring_setup,
    // The system as a whole; matters where we run as root.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_by_handle_at,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// The same on every processor, but not yet named for all of them in libc. Source: asm-generic/unistd.h.
const FCHMODAT2: c_long = 452;

/// The older forms that only some processors have.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD: &[c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD_TO_ALL: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD: &[c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD_TO_ALL: &[c_long] = &[];

/// `kill` and its kin may reach the own group; process 1 and "everybody" (-1) they may not.
const KILLS: &[c_long] = &[libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill];
/// `chattr` on a file opened for reading. Source: FS_IOC_SETFLAGS of linux/fs.h, 64-bit.
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
/// Puts characters into the input of a terminal. Source: ioctl_tty(2).
const TIOCSTI: u64 = 0x5412;

/// Sockets of these families reach nothing but the child's own, empty network: AF_INET, AF_NETLINK, AF_INET6.
const OWN_NETWORK: [u64; 3] = [2, 16, 10];
/// `clone` into a user namespace of one's own. Source: linux/sched.h.
const CLONE_NEWUSER: u64 = 0x1000_0000;

/// The filter of a child that may only read, built once; `None` where the kernel has no seccomp or the processor is not
/// known to it.
pub(super) fn filter() -> Option<&'static BpfProgram> {
    static FILTER: LazyLock<Option<BpfProgram>> = LazyLock::new(|| if available() { build(reader()?) } else { None });
    FILTER.as_ref()
}

/// The filter of a child in a view of its own, built at each call (a helper makes one): it may change files, its own
/// processes and its own network, but not what the view is made of.
pub(in crate::exec) fn view_filter() -> Option<BpfProgram> {
    if available() { build(guest()?) } else { None }
}

/// True if this kernel can filter. Source: proc_pid_status(5), the line stands there exactly then.
fn available() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:"))
}

/// What is forbidden: a system call, and when; without a condition, always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn forbid(rules: &mut Rules, call: c_long, when: Vec<SeccompRule>) {
    // The same call by its x32 number, which the filter would not recognise.
    if cfg!(target_arch = "x86_64") {
        rules.insert(call | 0x4000_0000, when.clone());
    }
    rules.insert(call, when);
}

/// All of these conditions: argument, comparison, value.
fn when(conditions: &[(u8, SeccompCmpOp, u64)]) -> Option<SeccompRule> {
    let condition = |(argument, op, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, op.clone(), *value).ok()
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Option<_>>()?).ok()
}

fn is(argument: u8, value: u64) -> Option<SeccompRule> {
    when(&[(argument, SeccompCmpOp::Eq, value)])
}

fn reader() -> Option<Rules> {
    let mut rules = Rules::new();
    for call in FORBIDDEN.iter().chain(FORBIDDEN_TO_ALL).chain(FORBIDDEN_OLD).chain(FORBIDDEN_OLD_TO_ALL) {
        forbid(&mut rules, *call, Vec::new());
    }
    for call in KILLS {
        forbid(&mut rules, *call, vec![is(0, 1)?, is(0, u64::from(u32::MAX))?]);
    }
    forbid(&mut rules, libc::SYS_ioctl, vec![is(1, FS_IOC_SETFLAGS)?, is(1, TIOCSTI)?]);
    Some(rules)
}

fn guest() -> Option<Rules> {
    let mut rules = Rules::new();
    for call in FORBIDDEN_TO_ALL.iter().chain(FORBIDDEN_OLD_TO_ALL) {
        forbid(&mut rules, *call, Vec::new());
    }
    let others = OWN_NETWORK.map(|family| (0, SeccompCmpOp::Ne, family));
    forbid(&mut rules, libc::SYS_socket, vec![when(&others)?]);
    forbid(&mut rules, libc::SYS_ioctl, vec![is(1, TIOCSTI)?]);
    let new_user = (0, SeccompCmpOp::MaskedEq(CLONE_NEWUSER), CLONE_NEWUSER);
    forbid(&mut rules, libc::SYS_clone, vec![when(&[new_user])?]);
    Some(rules)
}

fn build(rules: Rules) -> Option<BpfProgram> {
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).ok()?);
    let architecture = std::env::consts::ARCH.try_into().ok()?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_built() {
        assert!(build(reader().unwrap()).is_some() && build(guest().unwrap()).is_some());
    }
}
