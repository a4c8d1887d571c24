//! Opens the place of workspaces that the configuration names.

use super::Workspaces;
use std::path::PathBuf;

/// The backend that stores the files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// The local disk.
    #[default]
    Local,
    /// A bucket of S3 or of a compatible server.
    S3,
    /// A bucket of Cloudflare R2.
    R2,
}

/// The kinds with their names.
const KINDS: [(&str, Kind); 3] = [("local", Kind::Local), ("s3", Kind::S3), ("r2", Kind::R2)];

impl Kind {
    /// Returns the kind of that name.
    ///
    /// # Errors
    /// [`PlaceError::Unknown`] for any other.
    pub fn named(name: &str) -> Result<Self, PlaceError> {
        KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind).ok_or(PlaceError::Unknown)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].0
    }
}

/// The reason a place cannot be opened.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlaceError {
    /// There is no backend of that name.
    #[error("workspace_backend must be one of: local, s3, r2")]
    Unknown,
    /// This program was built without the backend.
    #[error("`workspace_backend = {0}` is not in this build of caro")]
    NotBuilt(&'static str),
    /// A setting is missing.
    #[error("`workspace_backend = {0}` needs {1}")]
    Missing(&'static str, &'static str),
    /// The address names no bucket.
    #[error("workspace_url names no bucket: {0}")]
    Url(String),
}

impl PlaceError {
    /// Returns the next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown => "`caro config --origin` shows every setting and where it comes from",
            Self::NotBuilt(_) => "build it in with `cargo build --release --features s3`, or choose local",
            Self::Missing(..) | Self::Url(_) => {
                "set workspace_url to https://HOST/BUCKET[/FOLDER], and CARO_WORKSPACE_KEY to KEY_ID:SECRET"
            }
        }
    }
}

/// The configured place.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The backend.
    pub kind: Kind,
    /// The folder of [`Kind::Local`].
    pub folder: Option<PathBuf>,
    /// The bucket of the other kinds: `https://HOST[:PORT]/BUCKET[/FOLDER]`.
    pub url: Option<String>,
    /// The credentials: `KEY_ID:SECRET`.
    pub key: Option<String>,
    /// A PEM file with certificate authorities besides the built-in ones.
    pub authorities: Option<PathBuf>,
}

impl Place {
    /// Opens the workspaces without connecting; `None` if no local folder is configured.
    ///
    /// # Errors
    /// If this program was built without the backend, or the address or the key is missing or wrong.
    pub fn open(&self) -> Result<Option<Workspaces>, PlaceError> {
        match self.kind {
            Kind::Local => Ok(self.folder.clone().map(Workspaces::at)),
            Kind::S3 | Kind::R2 => self.bucket().map(Some),
        }
    }

    #[cfg(feature = "s3")]
    fn bucket(&self) -> Result<Workspaces, PlaceError> {
        let missing = |what| PlaceError::Missing(self.kind.name(), what);
        let url = self.url.as_deref().ok_or(missing("workspace_url"))?;
        let key = self.key.as_deref().and_then(|key| key.split_once(':')).ok_or(missing("CARO_WORKSPACE_KEY"))?;
        super::s3::open(self.kind, url, key, self.authorities.clone())
            .map(|remote| Workspaces::of(std::sync::Arc::new(remote)))
    }

    #[cfg(not(feature = "s3"))]
    fn bucket(&self) -> Result<Workspaces, PlaceError> {
        Err(PlaceError::NotBuilt(self.kind.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_unknown_backend_lists_the_known_ones() {
        for (name, kind) in KINDS {
            assert_eq!((Kind::named(name), kind.name()), (Ok(kind), name));
        }
        for wrong in ["", "S3", "gcs", "loca"] {
            let error = Kind::named(wrong).unwrap_err();
            assert_eq!(error.to_string(), "workspace_backend must be one of: local, s3, r2");
        }
    }

    #[test]
    fn a_bucket_needs_an_address_and_a_key() {
        let place = |kind, url: Option<&str>, key: Option<&str>| Place {
            kind,
            url: url.map(str::to_owned),
            key: key.map(str::to_owned),
            ..Place::default()
        };
        assert!(place(Kind::Local, None, None).open().unwrap().is_none());
        let opened = place(Kind::R2, Some("https://a.r2.cloudflarestorage.com/b/c"), Some("id:secret")).open();
        if cfg!(feature = "s3") {
            let folder = opened.unwrap().unwrap().folder("s_1");
            assert_eq!(folder, PathBuf::from("https://a.r2.cloudflarestorage.com/b/c/s_1"));
            assert!(place(Kind::S3, None, Some("a:b")).open().unwrap_err().to_string().contains("workspace_url"));
            let no_key = place(Kind::S3, Some("https://h/b"), None).open().unwrap_err();
            assert!(no_key.to_string().contains("CARO_WORKSPACE_KEY"), "{no_key}");
            for wrong in ["", "bucket", "https://host", "https://host/", "ftp://host/b", "https://u:p@host/b"] {
                let error = place(Kind::S3, Some(wrong), Some("a:b")).open().unwrap_err();
                assert!(matches!(error, PlaceError::Url(_)), "{wrong}: {error}");
            }
        } else {
            assert_eq!(opened.unwrap_err(), PlaceError::NotBuilt("r2"));
        }
    }
}
