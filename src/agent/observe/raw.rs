//! A tool's output before it is processed.

/// The output of a tool. Only the observation pipeline can open it, so that nothing of it reaches a prompt unscreened,
/// unescaped or unlimited:
///
/// ```compile_fail
/// let raw = caro_agent::Raw::text("from a tool");
/// let prompt = raw.open(); // private
/// ```
///
/// It cannot be printed either:
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

/// The contents of a [`Raw`].
pub(super) struct Opened {
    /// The text; invalid UTF-8 is replaced.
    pub(super) text: String,
    /// The reason if the call failed; empty if the text itself gives it.
    pub(super) failure: Option<String>,
    /// True if the call failed after it had printed something.
    pub(super) late: bool,
    /// A sentence that says what is missing of the text.
    pub(super) cut: Option<String>,
}

impl Raw {
    /// Creates an output from text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::bytes(text.into())
    }

    /// Creates an output from bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), failure: None, late: false, cut: None }
    }

    /// Marks the call as failed. The reason is put before the output and is not screened, so it must be our own text;
    /// it is empty if the output itself gives it.
    #[must_use]
    pub fn failed(mut self, why: &str) -> Self {
        self.failure = Some(why.to_owned());
        self
    }

    /// Marks the call as failed after it had printed the output ([`Outcome::FailedLate`]).
    ///
    /// [`Outcome::FailedLate`]: crate::tool::Outcome::FailedLate
    #[must_use]
    pub fn failed_late(mut self) -> Self {
        self.late = true;
        self
    }

    /// Adds a sentence of our own that says what is missing of the output.
    #[must_use]
    pub fn cut(mut self, what: Option<String>) -> Self {
        self.cut = what;
        self
    }

    /// Returns the contents.
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
