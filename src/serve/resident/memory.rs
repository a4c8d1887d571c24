//! How much memory the machine has left, and how much this process has.

/// What the machine has, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    pub total: u64,
    /// What can be had without swapping; a mapped file's pages count as such.
    pub available: u64,
}

/// Room for the working memory of a model beside its file.
const BESIDE: u64 = 512 << 20;

impl Machine {
    /// As it is now; `None` where the system does not tell. Source: proc_meminfo(5).
    pub fn now() -> Option<Self> {
        parse_machine(&std::fs::read_to_string("/proc/meminfo").ok()?)
    }

    /// What should be available before a process is left behind that keeps a model file of this many bytes ready: so much
    /// that it need not end again for its own sake.
    pub fn wanted(self, model: u64) -> u64 {
        model.max(self.least()).saturating_add(BESIDE)
    }

    /// True where others need the memory more than we do.
    pub fn is_short(self) -> bool {
        self.available < self.least()
    }

    /// What should stay available for others.
    fn least(self) -> u64 {
        (self.total / 20).clamp(256 << 20, 1 << 30)
    }
}

fn parse_machine(text: &str) -> Option<Machine> {
    Some(Machine { total: field(text, "MemTotal:")?, available: field(text, "MemAvailable:")? })
}

/// Resident memory of this process, and the part of it that is no file's; `None` where the system does not tell.
/// Source: proc_pid_status(5).
pub(super) fn own() -> (Option<u64>, Option<u64>) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (field(&text, "VmRSS:"), field(&text, "RssAnon:"))
}

/// Bytes of a line like `MemTotal:  1024 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Has the kernel end this process before any other of this user where memory runs out: whoever waits for an answer gets it
/// without us.
pub(super) fn be_first_to_go() {
    // Only Linux has it; elsewhere, and where it is forbidden, nothing is lost.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let text = "MemTotal:        8000000 kB\nMemFree:  1 kB\nMemAvailable:    4000000 kB\n";
        let machine = parse_machine(text).unwrap();
        assert_eq!(machine, Machine { total: 8_192_000_000, available: 4_096_000_000 });
        assert!(!machine.is_short());
        assert_eq!(parse_machine("MemTotal: x kB\n"), None);
        assert_eq!(parse_machine(""), None);
    }

    #[test]
    fn a_twentieth_or_a_quarter_of_a_gigabyte_is_short() {
        let machine =
            |total_mb: u64, available_mb: u64| Machine { total: total_mb << 20, available: available_mb << 20 };
        assert!(machine(2048, 255).is_short() && !machine(2048, 257).is_short());
        assert!(machine(8 << 10, 409).is_short() && !machine(8 << 10, 410).is_short());
        assert!(
            machine(64 << 10, 1023).is_short() && !machine(64 << 10, 1025).is_short(),
            "a gigabyte is enough for all"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_some() {
        let (all, own) = own();
        assert!(all.unwrap() > own.unwrap() && own.unwrap() > 0);
        assert!(Machine::now().unwrap().available > 0);
    }
}
