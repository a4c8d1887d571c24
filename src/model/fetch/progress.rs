//! The interface through which a fetch reports its progress.

/// Receives the progress of a fetch. The command line implements it; nothing here prints.
pub trait Progress: Sync {
    /// Starts a stage (`downloading x.gguf from the hub`, `checking x.gguf`), with its size in bytes if known.
    fn start(&self, what: &str, total: Option<u64>);
    /// Reports that the stage has reached byte `at`. Called often; the number decreases when a part is repeated.
    fn advance(&self, at: u64);
    /// Ends the stage, successful or not.
    fn finish(&self);
    /// Reports a fact for the user, in one line.
    fn note(&self, text: &str);
}

/// Ignores all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
    fn note(&self, _: &str) {}
}
