//! Recognises file names with words for secrets: `db_passwords.csv`, `githubToken.txt`, `credentials`.
//!
//! The last noun of a name tells the content: `db_password` is a password, `password_reset` a reset, `secret_santa` a
//! Santa. Only data files count: `tokens.rs` is code about tokens, and secrets within code are found by their form
//! (`event::redact`). Doubtful names count as secrets, since asking costs little.

use caro_intent::tokens::parts;

/// Words for secrets, in the singular.
const SECRET: &[&str] = &[
    "accesskey",
    "apikey",
    "cred",
    "credential",
    "htpasswd",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "smbcredential",
    "token",
];

/// Pairs of words for secrets: first words, and second words.
const PAIRS: &[(&[&str], &[&str])] = &[
    (&["access", "api", "encryption", "master", "private", "root", "secret", "signing", "ssh"], &["key"]),
    (&["backup", "recovery"], &["code"]),
    (&["seed"], &["phrase"]),
];

/// Extensions of data files. A file without an extension is one, too.
const DATA: &[&str] = &[
    "cfg",
    "conf",
    "config",
    "csv",
    "dat",
    "data",
    "db",
    "doc",
    "docx",
    "env",
    "ini",
    "json",
    "json5",
    "jsonl",
    "key",
    "kdbx",
    "list",
    "lst",
    "markdown",
    "md",
    "ndjson",
    "ods",
    "odt",
    "org",
    "pdf",
    "pem",
    "plist",
    "properties",
    "rtf",
    "sqlite",
    "text",
    "tfvars",
    "toml",
    "tsv",
    "txt",
    "xls",
    "xlsx",
    "xml",
    "yaml",
    "yml",
];

/// Extensions that are appended to a name without changing the kind of content.
const APPENDED: &[&str] =
    &["7z", "backup", "bak", "bz2", "gz", "old", "orig", "save", "swp", "tmp", "xz", "zip", "zst"];

/// Words after the noun that only qualify it.
const QUALIFIERS: &[&str] = &[
    "all",
    "auto",
    "backup",
    "bak",
    "copy",
    "dev",
    "dump",
    "export",
    "file",
    "final",
    "list",
    "local",
    "new",
    "old",
    "personal",
    "private",
    "prod",
    "production",
    "shared",
    "staging",
    "v",
    "work",
];

/// Words in names of programs and texts about secrets, of samples, and of tokens in the sense of text or design.
const ABOUT: &[&str] = &[
    "about", "added", "change", "check", "choose", "create", "css", "design", "dummy", "example", "fake", "fetch",
    "forgot", "generate", "get", "guide", "how", "mock", "policy", "reset", "rotate", "sample", "schema", "set",
    "special", "stop", "template", "verify", "what", "why",
];

/// Words that begin a complement of the noun: `passwords for the bank`, `guide to passwords`.
const PREPOSITIONS: &[&str] = &["for", "from", "to"];

/// True if the name of a file says that it holds keys or passwords.
pub(super) fn says_secret(name: &str) -> bool {
    let mut name = name.trim_end_matches('~');
    let is_appended = |end: &str| APPENDED.contains(&end.to_lowercase().as_str());
    while let Some((stem, _)) = name.rsplit_once('.').filter(|(_, end)| is_appended(end)) {
        name = stem;
    }
    // the last part of `.token` or `github.token` is not an extension
    let stem = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() && !is_secret(&end.to_lowercase()) => {
            if !DATA.contains(&end.to_lowercase().as_str()) {
                return false;
            }
            stem
        }
        _ => name,
    };
    let words = words(stem);
    let head = words.split(|word| PREPOSITIONS.contains(&word.as_str())).next().unwrap_or_default();
    let is_noun = |word: &&String| !QUALIFIERS.contains(&word.as_str()) && word.chars().any(char::is_alphabetic);
    let mut nouns = head.iter().rev().skip_while(|word| !is_noun(word));
    let (last, before) = (nouns.next().map_or("", String::as_str), nouns.next().map_or("", String::as_str));
    let is_pair =
        |(firsts, seconds): &(&[&str], &[&str])| firsts.contains(&before) && seconds.contains(&singular(last));
    !head.iter().any(|word| ABOUT.contains(&word.as_str())) && (is_secret(last) || PAIRS.iter().any(is_pair))
}

/// True for a word for secrets.
fn is_secret(word: &str) -> bool {
    SECRET.contains(&singular(word))
}

/// Returns the word without a plural `s`.
fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

/// Splits a name into lower-case words: `myAPIKeys-2` into my, api, keys, 2.
fn words(stem: &str) -> Vec<String> {
    let names = stem.split(|c: char| !c.is_alphanumeric()).filter(|name| !name.is_empty());
    let mut words = Vec::new();
    for part in names.flat_map(parts) {
        let chars: Vec<char> = part.chars().collect();
        let runs = chars.chunk_by(|a, b| a.is_numeric() == b.is_numeric());
        words.extend(runs.map(|run| run.iter().collect::<String>().to_lowercase()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (stem, all) in [
            ("myAPIKeys-2", "my api keys 2"),
            ("passwords2024", "passwords 2024"),
            ("PASSWORDS", "passwords"),
            (".vault-token", "vault token"),
            ("my passwords (old)", "my passwords old"),
            ("", ""),
        ] {
            assert_eq!(words(stem).join(" "), all, "{stem}");
        }
    }

    #[test]
    fn the_last_noun_of_a_name_decides() {
        for secret in [
            "passwords.txt",
            "Passwords.TXT",
            "PASSWORDS.md",
            "password",
            "credentials",
            "credentials.csv",
            "AWS Credentials.txt",
            "aws-credentials.csv",
            "creds.json",
            "db_password.txt",
            "dbPassword.yaml",
            "my-passwords (2).xlsx",
            "my_passwords_2024.csv",
            "passwords-old.txt",
            "passwords.txt.bak",
            "passwords.txt~",
            "passwords.zip",
            "password_list.txt",
            "passwords for the bank.txt",
            "passwords to change.txt",
            "sign-in-token.txt",
            "usernames_and_passwords.md",
            "passwd.conf",
            "passphrase.txt",
            "wifi-passcode.txt",
            "secret.txt",
            "secrets.yaml",
            "secrets.prod.toml",
            "prod.secrets.env",
            "secrets.auto.tfvars",
            "client_secret.json",
            "clientSecrets.xml",
            "top-secret.docx",
            "token",
            ".token",
            "github.token",
            "github_token.txt",
            "githubToken.json",
            "refresh-tokens.csv",
            "oauth2_token.json",
            "token.kdbx",
            "apikey",
            "api_key.txt",
            "api-keys.json",
            "APIKeys.ini",
            "openaiApiKey.cfg",
            "private_key.xml",
            "privatekey.txt",
            "secret-key.txt",
            "rootAccessKeys.csv",
            "ssh_key",
            "github-recovery-codes.txt",
            "seed phrase.txt",
            "users.htpasswd",
        ] {
            assert!(says_secret(secret), "{secret}");
        }
        for plain in [
            // code and pages
            "password.rs",
            "passwords.rs",
            "tokens.rs",
            "token.py",
            "secrets.py",
            "password_reset.py",
            "credentials.go",
            "apiKey.ts",
            "token.html",
            "passwords.rs.bak",
            "token.h",
            // the last noun is not a secret
            "password_reset",
            "password_reset.md",
            "password-policy.md",
            "password_strength.csv",
            "secret_santa.md",
            "secret-garden.txt",
            "secretary.txt",
            "secrets-management.md",
            "token_usage.csv",
            "token-counts.json",
            "tokens_per_second.csv",
            "api_key_rotation.md",
            "credentials_guide.txt",
            // texts about secrets, or without any
            "forgot_password.txt",
            "how-to-rotate-secrets.md",
            "guide to passwords.md",
            "best practices for secrets.md",
            "intro-to-tokens.md",
            "secrets.example.yaml",
            "credentials.template.json",
            "get-token",
            "special_tokens.json",
            "added_tokens.json",
            "design-tokens.json",
            // other words
            "tokenizer.json",
            "tokenizer_config.json",
            "tokenize.txt",
            "tokenization.md",
            "passport.txt",
            "passenger.csv",
            "compass.txt",
            "credit.csv",
            "keys.md",
            "public_key.txt",
            "keyboard.md",
            "monkey.txt",
            "turnkey.csv",
            "code.txt",
            "pass.txt",
            "for passwords.txt",
            "2024.csv",
            "list.txt",
            ".txt",
            "",
        ] {
            assert!(!says_secret(plain), "{plain}");
        }
    }
}
