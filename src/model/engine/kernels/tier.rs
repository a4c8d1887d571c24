//! The instruction sets of the kernels.

use super::activation::Layout;

/// An instruction set with its own kernels, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Plain Rust: the reference, which runs on any CPU.
    Portable,
    /// x86-64 with AVX2, FMA and F16C (Intel since Haswell, AMD since Zen).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL and VNNI (Intel since Ice Lake, AMD since Zen 4).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// [`Tier::Avx512`] with AMX tiles in bf16 for larger batches (Intel since Sapphire Rapids).
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// AArch64 with the dot product instructions (`FEAT_DotProd`: Apple since M1, ARM's Cortex since A76 and A55,
    /// Neoverse).
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// [`Tier::Neon`] with the matrix instructions for longer batches (`FEAT_I8MM`: Apple since M2, Neoverse since V1
    /// and N2).
    #[cfg(target_arch = "aarch64")]
    I8mm,
}

impl Tier {
    /// All tiers, weakest first.
    pub const ALL: &[Self] = &[
        Self::Portable,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "x86_64")]
        Self::Amx,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        #[cfg(target_arch = "aarch64")]
        Self::I8mm,
    ];

    /// Returns the best tier that this CPU has.
    pub fn detect() -> Self {
        Self::ALL.iter().copied().rev().find(|tier| tier.is_available()).unwrap_or(Self::Portable)
    }

    /// True if this CPU and the operating system can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("fma")
                    && std::arch::is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512vl")
                    && std::arch::is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Amx => Self::Avx512.is_available() && super::amx::is_available(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[cfg(target_arch = "aarch64")]
            Self::I8mm => Self::Neon.is_available() && std::arch::is_aarch64_feature_detected!("i8mm"),
        }
    }

    /// Returns the layout of activations that its kernels read.
    pub(super) fn layout(self) -> Layout {
        match self {
            Self::Portable => Layout::Rows,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Layout::Rows,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Amx => Layout::Steps,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Layout::Rows,
            #[cfg(target_arch = "aarch64")]
            Self::I8mm => Layout::Pairs,
        }
    }

    /// Returns its name, as in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Amx => "amx",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Self::I8mm => "i8mm",
        }
    }

    /// Returns the tier of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tier| tier.name() == name)
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
