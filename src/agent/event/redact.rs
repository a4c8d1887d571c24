//! What must not be stored: keys, tokens, passwords. By their well-known forms, and by value where the value is known.

use regex::{Regex, RegexSet};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands where a secret was.
pub const MARK: &str = "[redacted]";

/// Forms of secrets that nothing else has. What is in a group named `keep` before it, or `rest` behind it, stays.
const FORMS: &[&str] = &[
    // a private key, to its end or the end of the text
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    // AWS access key, GitHub, GitLab, Slack, OpenAI-like, Google, npm, Hugging Face tokens
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\b(?:ghp|gho|ghu|ghs|ghr|github_pat)_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bxox[abposr]-[A-Za-z0-9-]{10,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bhf_[A-Za-z0-9]{30,}",
    // a JSON web token
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
    // Authorization: Bearer ..., Basic ...
    r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{12,}",
    // password=..., api_key: "...", --token ...
    r#"(?i)(?P<keep>\b[A-Za-z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)(?:["']?\s*(?:=|:\s)|["']\s*:)\s*)(?:"[^"\n]{4,}"|'[^'\n]{4,}'|[^\s"',;&}]{6,})"#,
    // user:password in an address
    r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?P<rest>@)",
    // --password ..., --token ... as words of their own
    r"(?i)(?P<keep>\s--?(?:password|passwd|pass|secret|token|api[_-]?key)\s+)[^\s-]\S{3,}",
    // curl -u user:password, mysql -ppassword, sshpass -p password
    r#"(?P<keep>\bcurl\b[^\n|;&]*\s(?:-u\s*|--user[\s=]|--proxy-user[\s=])["']?[^\s:"']+:)[^\s"']+"#,
    r"(?P<keep>\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mariadb-admin)\b[^\n|;&]*\s-p)[^\s-]\S*",
    r"(?P<keep>\bsshpass\s+-p\s*)\S+",
];

static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(FORMS).ok());
static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| FORMS.iter().filter_map(|form| Regex::new(form).ok()).collect());

/// Takes secrets out of text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    known: Vec<String>,
}

impl Redactor {
    /// One that also knows these values.
    pub fn with_secrets(values: impl IntoIterator<Item = String>) -> Self {
        // a value of three letters would take half of the text with it
        let mut known: Vec<String> = values.into_iter().filter(|value| value.len() >= 6).collect();
        // one may begin with another: the longest goes first, whole
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { known }
    }

    /// The text without its secrets.
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
            // a group that a form does not have is empty
            let with = format!("${{keep}}{MARK}${{rest}}");
            text = Cow::Owned(form.replace_all(&text, with.as_str()).into_owned());
        }
        text.into_owned()
    }

    /// Takes secrets out of every string of a document, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                let fields = std::mem::take(map);
                for (key, mut field) in fields {
                    match &mut field {
                        // a form of its own has only what stands in one text
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

/// True where a key says that its value is a secret: `password`, `api_key`. A token may be a word like any other.
fn is_secret_of(key: &str, value: &str) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let named = ["password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey"];
    let random = value.len() >= 8 && value.chars().any(|c| c.is_ascii_digit());
    let plain = value.len() >= 4 && !value.contains(char::is_whitespace);
    value != MARK
        && (named.iter().any(|n| key.ends_with(n)) && !value.is_empty() || key.ends_with("token") && plain && random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_its_value_is() {
        let mut call = serde_json::json!({
            "tool": "login", "args": {"user": "me", "password": "correcthorse", "apiKey": "abc def", "max_tokens": 5},
            "finding": {"token": "--max-depth"}, "session_token": "a1b2c3d4e5"
        });
        Redactor::default().value(&mut call);
        assert_eq!(call["args"], serde_json::json!({"user": "me", "password": MARK, "apiKey": MARK, "max_tokens": 5}));
        assert_eq!((&call["finding"]["token"], &call["session_token"]), (&"--max-depth".into(), &MARK.into()));
    }

    #[test]
    fn every_form_compiles() {
        assert_eq!(EACH.len(), FORMS.len());
        assert!(SET.is_some());
    }

    #[test]
    fn of_two_secrets_that_begin_alike_each_goes_whole() {
        let known = ["myproject", "myproject-9f8e77"].map(str::to_owned);
        assert_eq!(Redactor::with_secrets(known).text("x myproject-9f8e77 y myproject"), format!("x {MARK} y {MARK}"));
    }

    #[test]
    fn secrets_go_and_words_stay() {
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
        ] {
            assert_eq!(redactor.text(harmless), harmless);
        }
    }
}
