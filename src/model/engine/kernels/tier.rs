//! Which instruction set the kernels use.

/// An instruction set with kernels of its own, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Plain Rust: the reference, and what runs on any CPU.
    Portable,
}

impl Tier {
    /// All tiers, weakest first.
    pub const ALL: [Self; 1] = [Self::Portable];

    /// The best tier this CPU has.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|tier| tier.is_available()).unwrap_or(Self::Portable)
    }

    /// True where this CPU and the operating system can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
        }
    }

    /// Its name, as configuration writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
        }
    }

    /// The tier of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
