//! The access token of the server: created at the first start, readable by this user only, compared in constant time.

use caro_base::files;
use std::io;
use std::path::Path;
use subtle::ConstantTimeEq;

/// The name of the token's file in the data folder.
pub const FILE: &str = "serve-token";

/// Random bytes of a new token.
const RANDOM_BYTES: usize = 32;
/// Valid numbers of characters of a token.
const LENGTH: std::ops::RangeInclusive<usize> = 32..=512;

/// A token. Debug output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The reason that there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Its file cannot be read or created.
    #[error("the token of `caro serve` cannot be kept in {0}: {1}")]
    File(String, io::Error),
    /// Other users may read it.
    #[error("others may read the token of `caro serve` (mode {1:o} of {0})")]
    Shared(String, u32),
    /// The file contains no valid token.
    #[error("{0} holds no token")]
    NoToken(String),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
}

impl TokenError {
    /// Returns what the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File(..) => "check that the data folder can be written",
            Self::Shared(..) => "remove the file: the next start makes a new token, and the old one opens nothing then",
            Self::NoToken(_) => "remove the file: the next start makes a new token",
            Self::Random(_) => "start it again",
        }
    }
}

impl Token {
    /// Reads the token of a file, and creates the file if it does not exist. Concurrent callers get the same token.
    ///
    /// # Errors
    /// If it cannot be read or created, or other users may read it.
    pub fn of_file(file: &Path) -> Result<Self, TokenError> {
        let file_error = |error| TokenError::File(file.display().to_string(), error);
        match Self::read(file) {
            Err(TokenError::File(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        match files::create(file, format!("{}\n", Self::random()?.0).as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(file_error(error)),
            _ => Self::read(file),
        }
    }

    /// Creates a random token without a file.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn read(file: &Path) -> Result<Self, TokenError> {
        let name = || file.display().to_string();
        let text = files::read_text(file, 4096).map_err(|error| TokenError::File(name(), error))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let mode = std::fs::metadata(file).map_err(|error| TokenError::File(name(), error))?.mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(TokenError::Shared(name(), mode));
            }
        }
        let token = text.trim();
        let is_valid = LENGTH.contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(token.to_owned())).ok_or_else(|| TokenError::NoToken(name()))
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// True if `given` is this token. The comparison takes constant time, so that its duration reveals nothing.
    pub fn is_equal(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_created_once_and_readable_by_its_user_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep").join(FILE);
        let made = Token::of_file(&file).unwrap();
        assert_eq!(made.text().len(), 2 * RANDOM_BYTES);
        assert_eq!(Token::of_file(&file).unwrap(), made);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
            assert!(matches!(Token::of_file(&file), Err(TokenError::Shared(_, 0o640))));
        }
        assert_ne!(Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(format!("{made:?}"), "Token(..)");
    }

    #[test]
    fn invalid_files_and_other_tokens_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        for wrong in ["", "short", &"x y".repeat(20), &"x".repeat(600)] {
            files::replace(&file, wrong.as_bytes(), files::Access::Private).unwrap();
            assert!(matches!(Token::of_file(&file), Err(TokenError::NoToken(_))), "{wrong}");
        }
        let token = Token::random().unwrap();
        let text = token.text().to_owned();
        assert!(token.is_equal(text.as_bytes()));
        for other in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &format!(" {text}")] {
            assert!(other == text || !token.is_equal(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn concurrent_callers_get_the_same_token() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let made: Vec<Token> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| Token::of_file(&file).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(made.iter().all(|one| *one == made[0]));
    }
}
