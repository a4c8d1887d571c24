//! Redacts secrets that must not be stored (keys, tokens, passwords), by their well-known forms and by known values.

use regex::{Captures, Regex, RegexSet};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The replacement of a secret.
pub const MARK: &str = "[redacted]";

/// The names of secrets, which may be parts of longer names. In [`FORMS`], `NAMES` stands for them.
const NAMES: &str = "password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|account[_-]?key";

/// Patterns of secrets. The groups `keep` before a secret and `rest` after it are kept. A match of a group `random` or
/// `numbered` may also be a word and is only redacted if it is not one: see [`may_be_a_word`].
const FORMS: &[&str] = &[
    // a private key, up to its end or the end of the text
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    // AWS access key, GitHub, GitLab, Slack, OpenAI-like, Stripe, Google, npm, Hugging Face, DigitalOcean, Grafana
    // tokens
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\b(?:ghp|gho|ghu|ghs|ghr|github_pat)_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bxox[abposr]-[A-Za-z0-9-]{10,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\bdo[opr]_v1_[0-9a-f]{32,}",
    r"\bglsa_[A-Za-z0-9_]{20,}",
    // a JSON web token
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
    // Authorization: Bearer ..., Basic ..., token ...; the first two also by themselves
    r#"(?i)(?P<keep>\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[A-Za-z0-9+/._~=-]{8,}"#,
    r"(?i)(?P<keep>\b(?:bearer|basic)\s+)(?P<random>[A-Za-z0-9+/._~=-]{12,})",
    // password=..., api_key: "..."; an unquoted value after a colon may be a type or a word
    r#"(?i)(?P<keep>\b[A-Za-z0-9_.-]*(?:NAMES)(?:["']?\s*(?:=|:\s)|["']\s*:)\s*)(?:"[^"\n]{4,}"|'[^'\n]{4,}')"#,
    r#"(?i)(?P<keep>\b[A-Za-z0-9_.-]*(?:NAMES)["']?\s*=\s*)[^\s"',;&}]{6,}"#,
    r#"(?i)(?P<keep>\b[A-Za-z0-9_.-]*(?:NAMES)(?:["']?\s*:\s|["']\s*:)\s*)(?P<numbered>[^\s"',;&}]{6,})"#,
    // user:password in a URL, or a token instead of both
    r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?P<rest>@)",
    r"(?P<keep>\bhttps?://)(?P<random>[A-Za-z0-9_-]{16,})(?P<rest>(?::[^\s/@]*)?@)",
    // --password ..., --token ... as separate words
    r"(?i)(?P<keep>\s--?(?:NAMES|pass)\s+)[^\s-]\S{3,}",
    // curl -u user:password, mysql -ppassword, sshpass -p password
    r#"(?P<keep>\bcurl\b[^\n|;&]*\s(?:-u\s*|--user[\s=]|--proxy-user[\s=])["']?[^\s:"']+:)[^\s"']+"#,
    r"(?P<keep>\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mariadb-admin)\b[^\n|;&]*\s-p)[^\s-]\S*",
    r"(?P<keep>\bsshpass\s+-p\s*)\S+",
];

/// Returns the patterns with the names filled in.
fn forms() -> impl Iterator<Item = String> {
    FORMS.iter().map(|form| form.replace("NAMES", NAMES))
}

static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(forms()).ok());
static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| forms().filter_map(|form| Regex::new(&form).ok()).collect());
/// The key of a secret in a document, reduced to letters and digits.
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("(?:{NAMES}|private[_-]?key)$")).ok());
/// An option whose value, the next argument, is a secret.
static OPTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("(?i)^--?(?:{NAMES}|pass)$")).ok());

/// True if a match may be an ordinary word.
fn may_be_a_word(found: &Captures<'_>) -> bool {
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let is_mixed = |text: &str| {
        let mut pairs = text.chars().zip(text.chars().skip(1));
        text.contains(['=', '+']) || pairs.any(|(a, b)| a.is_lowercase() && b.is_uppercase())
    };
    let word = |name: &str, is_word: &dyn Fn(&str) -> bool| found.name(name).is_some_and(|text| is_word(text.as_str()));
    word("random", &|text| !has_digit(text) && !is_mixed(text)) || word("numbered", &|text| !has_digit(text))
}

/// Redacts secrets.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    known: Vec<String>,
}

impl Redactor {
    /// Creates a redactor that also redacts these values, if they have at least 6 bytes.
    pub fn with_secrets(values: impl IntoIterator<Item = String>) -> Self {
        // a value of three letters would redact half of the text
        let mut known: Vec<String> = values.into_iter().filter(|value| value.len() >= 6).collect();
        // longest first, since one value may be the beginning of another
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { known }
    }

    /// Returns the text with its secrets redacted.
    pub fn text(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for secret in &self.known {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MARK));
            }
        }
        let Some(set) = &*SET else { return MARK.into() };
        let found: Vec<usize> = set.matches(&text).into_iter().collect();
        for form in found.into_iter().filter_map(|i| EACH.get(i)) {
            let without = |found: &Captures<'_>| {
                if may_be_a_word(found) {
                    return found[0].to_owned();
                }
                // a group that a pattern lacks is empty
                let group = |name: &str| found.name(name).map_or("", |group| group.as_str());
                format!("{}{MARK}{}", group("keep"), group("rest"))
            };
            text = Cow::Owned(form.replace_all(&text, without).into_owned());
        }
        text.into_owned()
    }

    /// Returns a document as JSON with its secrets redacted.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub fn document(&self, document: &impl Serialize) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(document)?;
        self.value(&mut value);
        Ok(value.to_string())
    }

    /// Redacts every string of a document, including keys.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => {
                // a pattern cannot match across the arguments of a command, which are separate strings
                let is_secret_option = |text: &str| OPTION.as_ref().is_some_and(|option| option.is_match(text));
                let mut follows_option = false;
                for item in items {
                    let is_option = item.as_str().is_some_and(is_secret_option);
                    match item {
                        Value::String(text) if follows_option && text.len() >= 4 && !text.starts_with('-') => {
                            *text = MARK.into();
                        }
                        item => self.value(item),
                    }
                    follows_option = is_option;
                }
            }
            Value::Object(map) => {
                let fields = std::mem::take(map);
                for (key, mut field) in fields {
                    match &mut field {
                        // a pattern cannot match across a key and its value
                        Value::String(text) if is_secret_of(&key, text) => *text = MARK.into(),
                        field => self.value(field),
                    }
                    map.insert(self.text(&key), field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// True if a document contains a redacted secret.
pub fn is_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MARK),
        Value::Array(items) => items.iter().any(is_redacted),
        Value::Object(map) => map.iter().any(|(key, field)| key.contains(MARK) || is_redacted(field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// True if a key says that its value is a secret: `password`, `api_key`. The value of a `token` must also look random.
fn is_secret_of(key: &str, value: &str) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let has_digits = value.len() >= 8 && value.chars().any(|c| c.is_ascii_digit());
    let is_one_word = value.len() >= 4 && !value.contains(char::is_whitespace);
    let is_named = KEY.as_ref().is_some_and(|name| name.is_match(&key)) && !value.is_empty();
    value != MARK && if key.ends_with("token") { is_one_word && has_digits } else { is_named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_secret_key_is_redacted() {
        let mut call = serde_json::json!({
            "tool": "login", "args": {"user": "me", "password": "correcthorse", "apiKey": "abc def", "max_tokens": 5},
            "finding": {"token": "--max-depth"}, "session_token": "a1b2c3d4e5"
        });
        Redactor::default().value(&mut call);
        assert_eq!(call["args"], serde_json::json!({"user": "me", "password": MARK, "apiKey": MARK, "max_tokens": 5}));
        assert_eq!((&call["finding"]["token"], &call["session_token"]), (&"--max-depth".into(), &MARK.into()));
    }

    #[test]
    fn the_argument_after_a_secret_option_is_redacted() {
        let mut call = serde_json::json!({"args": ["--password", "hunter22xy", "-TOKEN", "abcd", "--user", "root"]});
        Redactor::default().value(&mut call);
        assert_eq!(call["args"], serde_json::json!(["--password", MARK, "-TOKEN", MARK, "--user", "root"]));
        for harmless in [["--token", "--count"], ["--token-file", "secrets.txt"], ["password", "wanted"]] {
            let mut words = serde_json::json!(harmless);
            Redactor::default().value(&mut words);
            assert_eq!(words, serde_json::json!(harmless));
        }
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(EACH.len(), FORMS.len());
        assert!(SET.is_some() && KEY.is_some() && OPTION.is_some());
    }

    #[test]
    fn two_secrets_with_the_same_beginning_are_both_redacted() {
        let known = ["myproject", "myproject-9f8e77"].map(str::to_owned);
        assert_eq!(Redactor::with_secrets(known).text("x myproject-9f8e77 y myproject"), format!("x {MARK} y {MARK}"));
    }

    #[test]
    fn secrets_are_redacted_and_words_are_kept() {
        let redactor = Redactor::with_secrets(["hunter2-hunter2".into(), "abc".into()]);
        for (text, kept) in [
            ("key AKIAABCDEFGHIJKLMNOP end", "key [redacted] end"),
            ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [redacted]"),
            ("export DB_PASSWORD=correcthorse ls", "export DB_PASSWORD=[redacted] ls"),
            (r#"{"api_key": "0123456789"}"#, r#"{"api_key": [redacted]}"#),
            (r#"{"access_token":"0123456789","n":1}"#, r#"{"access_token":[redacted],"n":1}"#),
            ("postgres://me:secret1@db/x", "postgres://me:[redacted]@db/x"),
            ("redis://:secret1@db", "redis://:[redacted]@db"),
            ("curl -s -u me:secret https://x", "curl -s -u me:[redacted] https://x"),
            ("curl --user 'me:secret' https://x", "curl --user 'me:[redacted]' https://x"),
            ("mysql -u root -psecret db", "mysql -u root -p[redacted] db"),
            ("sshpass -p secret ssh x", "sshpass -p [redacted] ssh x"),
            ("deploy --token abcdefgh now", "deploy --token [redacted] now"),
            ("it is hunter2-hunter2!", "it is [redacted]!"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", "[redacted]\nrest"),
            ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted]"),
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----\nrest",
                "[redacted]\nrest",
            ),
            ("Authorization: token abcdefgh", "Authorization: token [redacted]"),
            (r#"{"Authorization": "Basic correcthorse"}"#, r#"{"Authorization": "Basic [redacted]"}"#),
            ("basic dXNlcjpwYXNzd29yZA==", "basic [redacted]"),
            ("bearer abcdefghiJklmnop", "bearer [redacted]"),
            ("pay with sk_live_abcdefghijklmnop", "pay with [redacted]"),
            ("AccountName=a;AccountKey=abcdefgh/ijk==;x", "AccountName=a;AccountKey=[redacted];x"),
            ("dop_v1_0123456789abcdef0123456789abcdef", "[redacted]"),
            ("glsa_abcdefghijklmnopqrstuvwx_01234567", "[redacted]"),
            (
                "git clone https://0a1b2c3d4e5f6a7b8c9d@git.example.com/x",
                "git clone https://[redacted]@git.example.com/x",
            ),
            ("https://0a1b2c3d4e5f6a7b8c9d:x-oauth-basic@host", "https://[redacted]:[redacted]@host"),
            ("password: correct1horse", "password: [redacted]"),
            ("password: 'correcthorse'", "password: [redacted]"),
        ] {
            assert_eq!(redactor.text(text), kept);
        }
        for harmless in [
            "abc",
            "the password is asked for",
            "token count: 5",
            "basic training",
            "a sk-1 b",
            "max_tokens=512",
            "mysql -p -u root",
            "curl -u me https://x:8080/a",
            "ls -p dir",
            "grep --token --count f",
            "explain what basic authentication is",
            "Basic Authentication, Bearer authentication",
            "basic configuration",
            "basic documentation/installation",
            "fn f(token: String, password: string, secret: SecretBytes)",
            "def login(password: str, api_key: Optional): pass",
            r#"{"token": Identifier}"#,
            "ssh://git@example.com https://somebody@example.com https://continuous-integration@example.com",
        ] {
            assert_eq!(redactor.text(harmless), harmless);
        }
    }
}
