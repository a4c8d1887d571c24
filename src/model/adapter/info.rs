//! The description that an adapter has in its header.

/// The description in an adapter's header.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AdapterInfo {
    /// Its name: that of its file, without the extension.
    pub name: String,
    /// Its largest rank.
    pub rank: usize,
    /// The version of the prompt format that it was trained with; `None` if it does not say.
    pub prompt: Option<String>,
    /// The SHA-256 of the model file that it was trained on; `None` if it does not say.
    pub base_sha256: Option<String>,
}
