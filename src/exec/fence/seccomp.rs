//! The system calls that a sandboxed child may not make. This is a denylist, as any program of the machine may run
//! here, and all of them must still be able to print their version and help.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Forbidden to a read-only child in addition to `socket`. Without sockets it can reach neither the network nor local
/// services that would act for it (D-Bus, systemd, docker, X).
const FORBIDDEN_TO_READERS: &[c_long] = &[
    // leaving the process group, by which the whole job is killed
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // changes to files that Landlock does not check: mode, owner, times, attributes
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
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
];

/// Forbidden to every sandboxed child, with any arguments.
const FORBIDDEN_TO_ALL: &[c_long] = &[
    // system calls that bypass the filter
    libc::SYS_io_uring_setup,
    // changes to the whole system, which matter if we run as root
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
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
    // access to other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// Numbers that are the same on every processor, but not yet in libc for all of them. Source: asm-generic/unistd.h.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

/// Older variants that only some processors have.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD_TO_READERS: &[c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD_TO_ALL: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD_TO_READERS: &[c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD_TO_ALL: &[c_long] = &[];

/// `kill` and similar may signal the own group, but not process 1 or all processes (-1).
const KILLS: &[c_long] = &[libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill];
/// Other ways to send signals, used only for other processes.
const SIGNALS: &[c_long] = &[libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];
/// The first Landlock version that checks `truncate`, and the first that confines signals. Source: landlock(7).
const CHECKS_TRUNCATE: i32 = 3;
const CONFINES_SIGNALS: i32 = 6;
/// `chattr` on a file opened for reading. Source: FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR of linux/fs.h, 64-bit.
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
/// Inserts characters into the input of a terminal. Source: ioctl_tty(2).
const TIOCSTI: u64 = 0x5412;

/// Socket families that reach only the child's own, empty network: AF_INET, AF_NETLINK, AF_INET6.
const OWN_NETWORK: [u64; 3] = [2, NETLINK, 10];
/// AF_NETLINK: queries to the kernel. Source: linux/socket.h.
const NETLINK: u64 = 16;
/// `clone` into a new user namespace. Source: linux/sched.h.
const CLONE_NEWUSER: u64 = 0x1000_0000;

/// Returns the filter of a read-only child, built once; `None` if the kernel has no seccomp or the processor is not
/// supported. With `netlink` it may query the kernel about its network and devices.
pub(super) fn filter(netlink: bool) -> Option<&'static BpfProgram> {
    static FILTERS: LazyLock<[Option<BpfProgram>; 2]> = LazyLock::new(|| {
        let landlock = super::linux::landlock_version();
        [false, true].map(|netlink| if available() { build(reader_rules(netlink, landlock)?) } else { None })
    });
    FILTERS[usize::from(netlink)].as_ref()
}

/// Builds the filter of a child in a view of its own (once per helper): it may change files, its own processes and
/// its own network, but not the mounts of the view.
pub(crate) fn view_filter() -> Option<BpfProgram> {
    if available() { build(view_rules()?) } else { None }
}

/// True if this kernel supports filters. Source: proc_pid_status(5); the line exists exactly then.
fn available() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:"))
}

/// Forbidden system calls with their conditions; a call without a condition is always forbidden.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn forbid(rules: &mut Rules, call: c_long, when: Vec<SeccompRule>) {
    rules.insert(call, when);
}

/// Creates a rule that requires all conditions: argument, comparison, value.
fn when(conditions: &[(u8, SeccompCmpOp, u64)]) -> Option<SeccompRule> {
    let condition = |(argument, op, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, op.clone(), *value).ok()
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Option<_>>()?).ok()
}

fn equals(argument: u8, value: u64) -> Option<SeccompRule> {
    when(&[(argument, SeccompCmpOp::Eq, value)])
}

/// Creates the rules of a read-only child; they include what this version of Landlock does not check.
fn reader_rules(netlink: bool, landlock: i32) -> Option<Rules> {
    let mut rules = Rules::new();
    for call in
        FORBIDDEN_TO_READERS.iter().chain(FORBIDDEN_TO_ALL).chain(FORBIDDEN_OLD_TO_READERS).chain(FORBIDDEN_OLD_TO_ALL)
    {
        forbid(&mut rules, *call, Vec::new());
    }
    let sockets = if netlink { vec![when(&[(0, SeccompCmpOp::Ne, NETLINK)])?] } else { Vec::new() };
    forbid(&mut rules, libc::SYS_socket, sockets);
    for call in KILLS {
        forbid(&mut rules, *call, vec![equals(0, 1)?, equals(0, u64::from(u32::MAX))?]);
    }
    if landlock < CONFINES_SIGNALS {
        // a filter does not know the parent of a process, so only the own group as a whole can be allowed; a thread
        // signals itself by the other two of `KILLS` (`abort`), which stay allowed
        forbid(&mut rules, libc::SYS_kill, vec![when(&[(0, SeccompCmpOp::Ne, 0)])?]);
        for call in SIGNALS {
            forbid(&mut rules, *call, Vec::new());
        }
    }
    if landlock < CHECKS_TRUNCATE {
        forbid(&mut rules, libc::SYS_truncate, Vec::new());
    }
    forbid(
        &mut rules,
        libc::SYS_ioctl,
        vec![equals(1, FS_IOC_SETFLAGS)?, equals(1, FS_IOC_FSSETXATTR)?, equals(1, TIOCSTI)?],
    );
    Some(rules)
}

fn view_rules() -> Option<Rules> {
    let mut rules = Rules::new();
    for call in FORBIDDEN_TO_ALL.iter().chain(FORBIDDEN_OLD_TO_ALL) {
        forbid(&mut rules, *call, Vec::new());
    }
    let others = OWN_NETWORK.map(|family| (0, SeccompCmpOp::Ne, family));
    forbid(&mut rules, libc::SYS_socket, vec![when(&others)?]);
    forbid(&mut rules, libc::SYS_ioctl, vec![equals(1, TIOCSTI)?]);
    let new_user = (0, SeccompCmpOp::MaskedEq(CLONE_NEWUSER), CLONE_NEWUSER);
    forbid(&mut rules, libc::SYS_clone, vec![when(&[new_user])?]);
    Some(rules)
}

fn build(rules: Rules) -> Option<BpfProgram> {
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).ok()?);
    let architecture = std::env::consts::ARCH.try_into().ok()?;
    let rules: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).ok()?.try_into().ok()?;
    Some(if cfg!(target_arch = "x86_64") { [deny_x32().as_slice(), &rules].concat() } else { rules })
}

/// Denies every call by an x32 number, which the rules do not cover: some are the usual numbers with another bit set,
/// others are new (`ptrace`, `ioctl`). Placed before the rules, since their jumps are relative. Source: bpf_common.h,
/// linux/seccomp.h, and `__X32_SYSCALL_BIT` of asm/unistd.h.
fn deny_x32() -> [seccompiler::sock_filter; 3] {
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| seccompiler::sock_filter { code: code as u16, jt, jf, k };
    [
        // the number of the call is the first field of the data
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, X32_BIT),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ]
}

#[cfg(test)]
#[allow(clippy::print_stdout)] // a test that is skipped says why
mod tests {
    use super::*;

    /// Returns the output of a shell that runs with these rules alone.
    fn run(rules: Rules, script: &str) -> std::process::Output {
        command(rules, script, || Ok(())).output().unwrap()
    }

    /// Prepares the same; the closure runs after the rules are applied and before the shell begins, with system calls
    /// only.
    fn command(
        rules: Rules,
        script: &str,
        before: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> std::process::Command {
        use std::os::unix::process::CommandExt;
        let filter = build(rules).unwrap();
        let mut command = std::process::Command::new("/bin/sh");
        // a group of its own, which it may signal
        command.args(["-c", script]).process_group(0);
        let hook = move || {
            rustix::thread::set_no_new_privs(true)?;
            seccompiler::apply_filter(&filter).map_err(|_| std::io::Error::last_os_error())?;
            before()
        };
        #[allow(unsafe_code)] // the only place between fork and exec
        // SAFETY: a few system calls on memory that existed before the fork.
        unsafe {
            command.pre_exec(hook)
        };
        command
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn x32_calls_are_denied() {
        // ptrace, ioctl and process_vm_writev by their new x32 numbers, and a harmless call. Source: x86's
        // syscall_64.tbl
        for number in [521, 514, 540, 39] {
            let by_x32 = move || -> std::io::Result<()> {
                #[allow(unsafe_code)]
                // SAFETY: queries process 0 and descriptor -1, which do not exist, and passes no memory.
                let done = unsafe { libc::syscall(0x4000_0000 | number, -1, 0, 0, 0, 0, 0) };
                if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            };
            for rules in [reader_rules(false, 6).unwrap(), view_rules().unwrap()] {
                let why = command(rules, "exit 0", by_x32).output().unwrap_err();
                assert_eq!(why.raw_os_error(), Some(libc::EPERM), "{number}: {why}");
            }
        }
    }

    #[test]
    fn every_filter_can_be_built() {
        for landlock in [-1, 0, 1, 3, 6, 9] {
            assert!(
                build(reader_rules(false, landlock).unwrap()).is_some()
                    && build(reader_rules(true, landlock).unwrap()).is_some()
            );
        }
        assert!(build(view_rules().unwrap()).is_some());
    }

    /// Debian 12, Ubuntu 22.04 and 24.04: kernels whose Landlock does not confine signals.
    #[test]
    fn the_filter_confines_signals_if_landlock_does_not() {
        let mut other = std::process::Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let script = format!(
            "kill {0} 2>/dev/null && echo reached; kill -- -{0} 2>/dev/null && echo reached; kill 0",
            other.id()
        );
        let said = run(reader_rules(false, 5).unwrap(), &format!("trap 'echo own; exit 3' TERM; {script}; sleep 1"));
        let alive = other.try_wait().unwrap().is_none();
        let _ = other.kill();
        let _ = other.wait();
        assert!(alive, "a process outside was killed");
        assert_eq!((String::from_utf8_lossy(&said.stdout).trim(), said.status.code()), ("own", Some(3)));
    }

    #[test]
    fn the_filter_forbids_truncate_if_landlock_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "text").unwrap();
        let script = format!("perl -e 'truncate(\"{0}\", 0) or print $!' || echo none", file.display());
        let said = String::from_utf8_lossy(&run(reader_rules(false, 2).unwrap(), &script).stdout).into_owned();
        if said.contains("none") {
            println!("skipped: no perl that would call truncate by path");
            return;
        }
        assert_eq!((said.as_str(), std::fs::read(&file).unwrap().len()), ("Operation not permitted", 4));
    }
}
