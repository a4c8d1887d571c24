//! The system calls that a sandboxed child may not make. A list of what is forbidden, not of what is allowed: any
//! program of the machine may run here, and all of them must still be able to say what they are.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Forbidden to a child that may only read, beside `socket`: the network, and local services that would act on the child's
/// behalf (D-Bus, systemd, docker, X).
const FORBIDDEN: &[c_long] = &[
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
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
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
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// The same on every processor, but not yet named for all of them in libc. Source: asm-generic/unistd.h.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

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
/// Other ways to signal, which only whoever means another process takes.
const SIGNALS: &[c_long] = &[libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];
/// The first Landlock that sees `truncate`, and the first that keeps signals inside. Source: landlock(7).
const SEES_TRUNCATE: i32 = 3;
const SEES_SIGNALS: i32 = 6;
/// `chattr` on a file opened for reading. Source: FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR of linux/fs.h, 64-bit.
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
/// Puts characters into the input of a terminal. Source: ioctl_tty(2).
const TIOCSTI: u64 = 0x5412;

/// Sockets of these families reach nothing but the child's own, empty network: AF_INET, AF_NETLINK, AF_INET6.
const OWN_NETWORK: [u64; 3] = [2, NETLINK, 10];
/// AF_NETLINK: questions to the kernel. Source: linux/socket.h.
const NETLINK: u64 = 16;
/// `clone` into a user namespace of one's own. Source: linux/sched.h.
const CLONE_NEWUSER: u64 = 0x1000_0000;

/// The filter of a child that may only read, built once; `None` where the kernel has no seccomp or the processor is not
/// known to it. With `netlink` it may ask the kernel about its network and devices.
pub(super) fn filter(netlink: bool) -> Option<&'static BpfProgram> {
    static FILTERS: LazyLock<[Option<BpfProgram>; 2]> = LazyLock::new(|| {
        let landlock = super::linux::landlock_version();
        [false, true].map(|netlink| if available() { build(reader(netlink, landlock)?) } else { None })
    });
    FILTERS[usize::from(netlink)].as_ref()
}

/// The filter of a child in a view of its own, built at each call (a helper makes one): it may change files, its own
/// processes and its own network, but not what the view is made of.
pub(crate) fn view_filter() -> Option<BpfProgram> {
    if available() { build(guest()?) } else { None }
}

/// True if this kernel can filter. Source: proc_pid_status(5), the line stands there exactly then.
fn available() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:"))
}

/// What is forbidden: a system call, and when; without a condition, always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn forbid(rules: &mut Rules, call: c_long, when: Vec<SeccompRule>) {
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

/// What Landlock of this version does not see is forbidden here.
fn reader(netlink: bool, landlock: i32) -> Option<Rules> {
    let mut rules = Rules::new();
    for call in FORBIDDEN.iter().chain(FORBIDDEN_TO_ALL).chain(FORBIDDEN_OLD).chain(FORBIDDEN_OLD_TO_ALL) {
        forbid(&mut rules, *call, Vec::new());
    }
    let sockets = if netlink { vec![when(&[(0, SeccompCmpOp::Ne, NETLINK)])?] } else { Vec::new() };
    forbid(&mut rules, libc::SYS_socket, sockets);
    for call in KILLS {
        forbid(&mut rules, *call, vec![is(0, 1)?, is(0, u64::from(u32::MAX))?]);
    }
    if landlock < SEES_SIGNALS {
        // A filter does not know whose child a process is: the own group as a whole is all that can be allowed. A thread
        // signals itself by the other two of `KILLS` (`abort`), so that these stay as they are.
        forbid(&mut rules, libc::SYS_kill, vec![when(&[(0, SeccompCmpOp::Ne, 0)])?]);
        for call in SIGNALS {
            forbid(&mut rules, *call, Vec::new());
        }
    }
    if landlock < SEES_TRUNCATE {
        forbid(&mut rules, libc::SYS_truncate, Vec::new());
    }
    forbid(&mut rules, libc::SYS_ioctl, vec![is(1, FS_IOC_SETFLAGS)?, is(1, FS_IOC_FSSETXATTR)?, is(1, TIOCSTI)?]);
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
    let rules: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).ok()?.try_into().ok()?;
    Some(if cfg!(target_arch = "x86_64") { [no_x32().as_slice(), &rules].concat() } else { rules })
}

/// Denies every call by an x32 number, of which no rule knows: some are the usual numbers with a bit more, others are new
/// (`ptrace`, `ioctl`). Before the rules, since their jumps count from themselves.
/// Source: bpf_common.h, linux/seccomp.h, and `__X32_SYSCALL_BIT` of asm/unistd.h.
fn no_x32() -> [seccompiler::sock_filter; 3] {
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| seccompiler::sock_filter { code: code as u16, jt, jf, k };
    [
        // the number of the call is the first of what is judged
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, X32_BIT),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ]
}

#[cfg(test)]
#[allow(clippy::print_stdout)] // a test that is skipped says why
mod tests {
    use super::*;

    /// What a shell says that runs behind these rules alone.
    fn run(rules: Rules, script: &str) -> std::process::Output {
        command(rules, script, || Ok(())).output().unwrap()
    }

    /// The same, not yet started, and what is done behind the rules before the shell begins: system calls only.
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
        // SAFETY: a few system calls over memory that was there before the fork.
        unsafe {
            command.pre_exec(hook)
        };
        command
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn no_call_passes_by_its_x32_number() {
        // ptrace, ioctl and process_vm_writev as x32 numbers them anew, and one that harms nobody. Source: x86's syscall_64.tbl
        for number in [521, 514, 540, 39] {
            let by_x32 = move || -> std::io::Result<()> {
                #[allow(unsafe_code)]
                // SAFETY: asks about process 0 and descriptor -1, of which there are none, and passes no memory.
                let done = unsafe { libc::syscall(0x4000_0000 | number, -1, 0, 0, 0, 0, 0) };
                if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            };
            for rules in [reader(false, 6).unwrap(), guest().unwrap()] {
                let why = command(rules, "exit 0", by_x32).output().unwrap_err();
                assert_eq!(why.raw_os_error(), Some(libc::EPERM), "{number}: {why}");
            }
        }
    }

    #[test]
    fn every_filter_can_be_built() {
        for landlock in [-1, 0, 1, 3, 6, 9] {
            assert!(
                build(reader(false, landlock).unwrap()).is_some() && build(reader(true, landlock).unwrap()).is_some()
            );
        }
        assert!(build(guest().unwrap()).is_some());
    }

    /// Debian 12, Ubuntu 22.04 and 24.04: kernels whose Landlock leaves signals alone.
    #[test]
    fn where_landlock_does_not_keep_signals_inside_the_filter_does() {
        let mut other = std::process::Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let script = format!(
            "kill {0} 2>/dev/null && echo reached; kill -- -{0} 2>/dev/null && echo reached; kill 0",
            other.id()
        );
        let said = run(reader(false, 5).unwrap(), &format!("trap 'echo own; exit 3' TERM; {script}; sleep 1"));
        let alive = other.try_wait().unwrap().is_none();
        let _ = other.kill();
        let _ = other.wait();
        assert!(alive, "a process outside was killed");
        assert_eq!((String::from_utf8_lossy(&said.stdout).trim(), said.status.code()), ("own", Some(3)));
    }

    #[test]
    fn where_landlock_does_not_see_truncate_the_filter_does() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "text").unwrap();
        let script = format!("perl -e 'truncate(\"{0}\", 0) or print $!' || echo none", file.display());
        let said = String::from_utf8_lossy(&run(reader(false, 2).unwrap(), &script).stdout).into_owned();
        if said.contains("none") {
            println!("skipped: no perl that would call truncate by path");
            return;
        }
        assert_eq!((said.as_str(), std::fs::read(&file).unwrap().len()), ("Operation not permitted", 4));
    }
}
