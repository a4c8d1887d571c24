//! What a tool returned, before anybody has looked at it.

/// The output of a tool. Only the observation pipeline can open it, so that nothing of it reaches a prompt unscreened,
/// unescaped or unbounded:
///
/// ```compile_fail
/// let raw = caro::agent::Raw::text("from a tool");
/// let prompt = raw.open(); // private
/// ```
///
/// Nor can it be printed:
///
/// ```
/// let raw = caro::agent::Raw::text("from a tool");
/// assert_eq!(format!("{raw:?}"), "Raw(11 bytes)");
/// ```
pub struct Raw(Vec<u8>);

impl Raw {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(text.into().into_bytes())
    }

    /// Bytes of any kind.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The text of it; what is no UTF-8 becomes a replacement character.
    pub(super) fn open(self) -> String {
        String::from_utf8(self.0).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Raw({} bytes)", self.0.len())
    }
}
