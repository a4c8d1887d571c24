//! What a tool returned, before anybody has looked at it.

/// The output of a tool. Only the observation pipeline can open it, so that nothing of it reaches a prompt unscreened,
/// unescaped or unbounded:
///
/// ```compile_fail
/// let raw = caro_agent::Raw::text("from a tool");
/// let prompt = raw.open(); // private
/// ```
///
/// Nor can it be printed:
///
/// ```
/// let raw = caro_agent::Raw::text("from a tool");
/// assert_eq!(format!("{raw:?}"), "Raw(11 bytes)");
/// ```
pub struct Raw {
    bytes: Vec<u8>,
    failure: Option<String>,
    late: bool,
    cut: Option<String>,
}

/// What is in a [`Raw`].
pub(super) struct Opened {
    /// The text; what is no UTF-8 becomes a replacement character.
    pub(super) text: String,
    /// Set if the call failed: why, or nothing where the text says so itself.
    pub(super) failure: Option<String>,
    /// True if it failed after it had printed something.
    pub(super) late: bool,
    /// What is missing of the text, in a sentence.
    pub(super) cut: Option<String>,
}

impl Raw {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::bytes(text.into())
    }

    /// Bytes of any kind.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), failure: None, late: false, cut: None }
    }

    /// The same as the output of a call that failed. Why is told before all of it, however long that is; it is not
    /// screened, so it must be our own words, or nothing where the output says it.
    #[must_use]
    pub fn failed(mut self, why: &str) -> Self {
        self.failure = Some(why.to_owned());
        self
    }

    /// The same as the output of a call that failed late: of what it printed before ([`Outcome::FailedLate`]).
    ///
    /// [`Outcome::FailedLate`]: crate::tool::Outcome::FailedLate
    #[must_use]
    pub fn failed_late(mut self) -> Self {
        self.late = true;
        self
    }

    /// The same with what is missing of it, in a sentence of our own, if anything is.
    #[must_use]
    pub fn cut(mut self, what: Option<String>) -> Self {
        self.cut = what;
        self
    }

    /// Hands it all out.
    pub(super) fn open(self) -> Opened {
        let text = String::from_utf8(self.bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        Opened { text, failure: self.failure, late: self.late, cut: self.cut }
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Raw({} bytes)", self.bytes.len())
    }
}
