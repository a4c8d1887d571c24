//! The system that a command is written for: an operating system, the kind of its tools, and a shell dialect.

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Any Linux.
    Linux,
    /// macOS (Darwin).
    MacOs,
    /// FreeBSD.
    FreeBsd,
    /// Windows.
    Windows,
}

/// The implementation of the standard tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Userland {
    /// GNU coreutils, findutils, sed, grep ...
    Gnu,
    /// busybox applets.
    Busybox,
    /// The BSD tools (macOS, FreeBSD).
    Bsd,
    /// PowerShell cmdlets.
    PowerShell,
}

/// The system that a command is written for; not always this machine (`--target`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Target {
    /// The operating system.
    pub os: Os,
    /// The kind of its tools.
    pub userland: Userland,
}

impl Target {
    /// Every target that caro writes commands for, under its name in `--target` and in `platform-rules/`.
    pub const ALL: [(&'static str, Self); 5] = [
        ("linux-gnu", Self { os: Os::Linux, userland: Userland::Gnu }),
        ("linux-busybox", Self { os: Os::Linux, userland: Userland::Busybox }),
        ("macos-bsd", Self { os: Os::MacOs, userland: Userland::Bsd }),
        ("freebsd", Self { os: Os::FreeBsd, userland: Userland::Bsd }),
        ("windows", Self { os: Os::Windows, userland: Userland::PowerShell }),
    ];

    /// The name of this target, for instance `linux-gnu`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, t)| *t == self).map_or("linux-gnu", |(name, _)| name)
    }

    /// Returns the target of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(n, _)| *n == name).map(|(_, t)| *t)
    }
}

/// A shell language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// GNU bash.
    Bash,
    /// Z shell.
    Zsh,
    /// fish.
    Fish,
    /// POSIX sh (dash, ash, ksh in its POSIX part).
    Sh,
    /// PowerShell 5 and 7.
    PowerShell,
}

impl Dialect {
    /// Every dialect, under its name in `--shell`.
    pub const ALL: [(&'static str, Self); 5] = [
        ("bash", Self::Bash),
        ("zsh", Self::Zsh),
        ("fish", Self::Fish),
        ("sh", Self::Sh),
        ("powershell", Self::PowerShell),
    ];

    /// The name of this dialect.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, d)| *d == self).map_or("sh", |(name, _)| name)
    }

    /// Returns the dialect of a shell program (`bash`, `/bin/dash`, `-zsh`, `pwsh.exe`); `None` for other programs.
    pub fn of_program(program: &str) -> Option<Self> {
        let base = program.rsplit(['/', '\\']).next().unwrap_or(program).trim_start_matches('-').to_ascii_lowercase();
        Some(match base.strip_suffix(".exe").unwrap_or(&base) {
            "bash" | "rbash" => Self::Bash,
            "zsh" => Self::Zsh,
            "fish" => Self::Fish,
            "sh" | "dash" | "ash" | "ksh" | "mksh" | "busybox" => Self::Sh,
            "powershell" | "pwsh" => Self::PowerShell,
            _ => return None,
        })
    }
}
