//! Measures the memory that the machine has left and that this process uses.

use std::path::Path;

/// The machine's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    pub total: u64,
    /// The memory that can be allocated without swapping; pages of mapped files count as available.
    pub available: u64,
}

/// Bytes that a model uses besides its mapped file.
const WORKING_BYTES: u64 = 512 << 20;

impl Machine {
    /// Measures the memory now, within this process's limits; `None` if the system does not report it. Source:
    /// proc_meminfo(5).
    pub fn now() -> Option<Self> {
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        let machine = parse_machine(&read(Path::new("/proc/meminfo"))?)?;
        Some(machine.limited_by_groups(&read(Path::new("/proc/self/cgroup")).unwrap_or_default(), read))
    }

    /// Applies the limits of these control groups (`/proc/self/cgroup`) and of their ancestors. Mapped files count as
    /// available here too: the kernel reclaims their pages at the group's limit as it does at the machine's. Source:
    /// the kernel's admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1/memory.rst.
    fn limited_by_groups(self, groups: &str, read: impl Fn(&Path) -> Option<String>) -> Self {
        let mut machine = self;
        for line in groups.lines() {
            // `0::/a/b` in version 2, `4:memory:/a/b` in version 1
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(kind), Some(group)) = (parts.next(), parts.next()) else { continue };
            let (root, [limit, used, prefix]) = match kind {
                "" => ("/sys/fs/cgroup", ["memory.max", "memory.current", ""]),
                "memory" => ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_"]),
                _ => continue,
            };
            let lowest = Path::new(root).join(group.trim_start_matches('/'));
            for group in lowest.ancestors().take_while(|group| group.starts_with(root)) {
                let number = |name: &str| read(&group.join(name))?.trim().parse::<u64>().ok();
                // `max`, which is no number, means no limit
                let (Some(limit), Some(used)) = (number(limit), number(used)) else { continue };
                let stat = read(&group.join("memory.stat")).unwrap_or_default();
                let of = |name: &str| {
                    let mut lines = stat.lines();
                    let value = lines.find_map(|line| line.strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix(' '));
                    value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
                };
                let files = of("inactive_file").saturating_add(of("active_file"));
                machine.total = machine.total.min(limit);
                machine.available = machine.available.min(limit.saturating_sub(used.saturating_sub(files)));
            }
        }
        machine
    }

    /// Returns the bytes that should be available before a resident is started for a model file of `model` bytes:
    /// enough that the resident does not find memory short because of itself.
    pub fn wanted(self, model: u64) -> u64 {
        model.max(self.reserve()).saturating_add(WORKING_BYTES)
    }

    /// True if so little memory is available that a resident should end.
    pub fn is_short(self) -> bool {
        self.available < self.reserve()
    }

    /// Returns the bytes that should stay available for other programs.
    fn reserve(self) -> u64 {
        (self.total / 20).clamp(256 << 20, 1 << 30)
    }
}

/// The machine's available memory, and the memory that a model needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that can be had without swapping.
    pub available: u64,
    /// Bytes that should be available for the model to be kept loaded.
    pub wanted: u64,
}

/// Returns the memory available and wanted for a model file of `model` bytes; `None` if the system does not report it.
pub fn room(model: u64) -> Option<Room> {
    let machine = Machine::now()?;
    Some(Room { available: machine.available, wanted: machine.wanted(model) })
}

fn parse_machine(text: &str) -> Option<Machine> {
    Some(Machine { total: field(text, "MemTotal:")?, available: field(text, "MemAvailable:")? })
}

/// Returns the bytes of resident memory of this process, and of the part that is not mapped from files; `None` if the
/// system does not report them. Source: proc_pid_status(5).
pub(super) fn of_this_process() -> (Option<u64>, Option<u64>) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (field(&text, "VmRSS:"), field(&text, "RssAnon:"))
}

/// Returns the bytes of a line like `MemTotal:  1024 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Makes the kernel's out-of-memory killer prefer this process: its callers can compute their answers themselves.
pub(super) fn prefer_for_oom_kill() {
    // only Linux has this; elsewhere, or if it is forbidden, nothing changes
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_parsed() {
        let text = "MemTotal:        8000000 kB\nMemFree:  1 kB\nMemAvailable:    4000000 kB\n";
        let machine = parse_machine(text).unwrap();
        assert_eq!(machine, Machine { total: 8_192_000_000, available: 4_096_000_000 });
        assert!(!machine.is_short());
        assert_eq!(parse_machine("MemTotal: x kB\n"), None);
        assert_eq!(parse_machine(""), None);
    }

    #[test]
    fn memory_is_short_below_a_twentieth_within_bounds() {
        let machine =
            |total_mb: u64, available_mb: u64| Machine { total: total_mb << 20, available: available_mb << 20 };
        assert!(machine(2048, 255).is_short() && !machine(2048, 257).is_short());
        assert!(machine(8 << 10, 409).is_short() && !machine(8 << 10, 410).is_short());
        assert!(
            machine(64 << 10, 1023).is_short() && !machine(64 << 10, 1025).is_short(),
            "a gigabyte is enough for all"
        );
    }

    #[test]
    fn the_limits_of_a_control_group_and_its_ancestors_apply() {
        const MACHINE: Machine = Machine { total: 64_000, available: 50_000 };
        let limited_by_groups = |groups: &str, files: &[(&str, &str)]| {
            let machine = MACHINE.limited_by_groups(groups, |path| {
                let known = files.iter().find(|(name, _)| path == Path::new("/sys/fs/cgroup").join(name));
                known.map(|(_, text)| (*text).to_string())
            });
            (machine.total, machine.available)
        };
        let alone = (MACHINE.total, MACHINE.available);
        assert_eq!(limited_by_groups("", &[]), alone);
        assert_eq!(limited_by_groups("0::/\n", &[]), alone);
        let stat = "anon 2000\nfile 900\ninactive_file 600\nactive_file 300\n";
        let own = [("a/b/memory.max", "4000\n"), ("a/b/memory.current", "3000\n"), ("a/b/memory.stat", stat)];
        assert_eq!(limited_by_groups("0::/a/b\n", &own), (4000, 1900));
        let free = [("a/b/memory.max", "max\n"), ("a/b/memory.current", "3000\n"), ("a/b/memory.stat", stat)];
        assert_eq!(limited_by_groups("0::/a/b\n", &free), alone);
        // the tightest limit of all ancestors counts, also in a container, whose own group appears as the root
        let above = [own.as_slice(), &[("a/memory.max", "9000\n"), ("a/memory.current", "8500\n")]].concat();
        assert_eq!(limited_by_groups("0::/a/b\n", &above), (4000, 500));
        assert_eq!(limited_by_groups("0::/\n", &[("memory.max", "4000\n"), ("memory.current", "5000\n")]), (4000, 0));
        let first = [
            ("memory/a/memory.limit_in_bytes", "4000\n"),
            ("memory/a/memory.usage_in_bytes", "3000\n"),
            ("memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 600\ntotal_active_file 300\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "60000\n"),
        ];
        assert_eq!(limited_by_groups("7:cpu,cpuacct:/a\n4:memory:/a\n", &first), (4000, 1900));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_and_the_machine_have_memory() {
        let (all, own) = of_this_process();
        assert!(all.unwrap() > own.unwrap() && own.unwrap() > 0);
        assert!(Machine::now().unwrap().available > 0);
    }
}
