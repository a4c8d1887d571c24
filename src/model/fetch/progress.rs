//! Who is told how far a fetch is.

/// Is told how far a fetch is. The command line draws; nothing here prints.
pub trait Progress: Sync {
    /// A stage begins (`downloading x.gguf from the hub`, `checking x.gguf`), with its size in bytes where it is known.
    fn start(&self, what: &str, total: Option<u64>);
    /// The stage has come to byte `at`. Called often, also with a lower number than before, when something must be done anew.
    fn advance(&self, at: u64);
    /// The stage is over, well or not.
    fn finish(&self);
    /// Something the user should know, in one line.
    fn note(&self, text: &str);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
    fn note(&self, _: &str) {}
}
