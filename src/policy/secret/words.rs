//! Names that say in words that a file holds what opens doors: `db_passwords.csv`, `githubToken.txt`, `credentials`.
//!
//! What a file holds is said by the last noun of its name: `db_password` is a password, `password_reset` a reset,
//! `secret_santa` a Santa. Only data counts: `tokens.rs` is code about them, and code with a secret in it is found by what
//! it says (`event::redact`). A doubt counts as yes, for a question costs little.

use caro_intent::tokens::parts;

/// What opens doors, one of them or several.
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

/// The same in two words: what stands before, and what it is then.
const PAIRS: &[(&[&str], &[&str])] = &[
    (&["access", "api", "encryption", "master", "private", "root", "secret", "signing", "ssh"], &["key"]),
    (&["backup", "recovery"], &["code"]),
    (&["seed"], &["phrase"]),
];

/// Endings of files that are read as they are; what has none is one too.
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

/// Endings that are added to a name and change nothing of what is in the file.
const ADDED: &[&str] = &["7z", "backup", "bak", "bz2", "gz", "old", "orig", "save", "swp", "tmp", "xz", "zip", "zst"];

/// Words behind the noun that only say which one, or that there are several.
const WHICH: &[&str] = &[
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

/// Words of names of programs and texts about secrets, of samples, and of tokens that are pieces of text or of a design.
const ABOUT: &[&str] = &[
    "about", "added", "change", "check", "choose", "create", "css", "design", "dummy", "example", "fake", "fetch",
    "forgot", "generate", "get", "guide", "how", "mock", "policy", "reset", "rotate", "sample", "schema", "set",
    "special", "stop", "template", "verify", "what", "why",
];

/// Words with which a name begins to say more of its noun: `passwords for the bank`, `guide to passwords`.
const MORE: &[&str] = &["for", "from", "to"];

/// True if the name of a file says that it holds keys or passwords.
pub(super) fn says_secret(name: &str) -> bool {
    let mut name = name.trim_end_matches('~');
    while let Some((stem, _)) = name.rsplit_once('.').filter(|(_, end)| ADDED.contains(&end.to_lowercase().as_str())) {
        name = stem;
    }
    // what stands behind the only point of `.token`, or the last one of `github.token`, is no kind of file
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
    let said = words.split(|word| MORE.contains(&word.as_str())).next().unwrap_or_default();
    let only = |word: &&String| !WHICH.contains(&word.as_str()) && word.chars().any(char::is_alphabetic);
    let mut nouns = said.iter().rev().skip_while(|word| !only(word));
    let (last, before) = (nouns.next().map_or("", String::as_str), nouns.next().map_or("", String::as_str));
    let pair = |(firsts, seconds): &(&[&str], &[&str])| firsts.contains(&before) && seconds.contains(&one(last));
    !said.iter().any(|word| ABOUT.contains(&word.as_str())) && (is_secret(last) || PAIRS.iter().any(pair))
}

fn is_secret(word: &str) -> bool {
    SECRET.contains(&one(word))
}

/// The word without the mark of the plural.
fn one(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

/// The words of a name in lower case: `myAPIKeys-2` is my, api, keys, 2.
fn words(stem: &str) -> Vec<String> {
    let names = stem.split(|c: char| !c.is_alphanumeric()).filter(|name| !name.is_empty());
    let mut words = Vec::new();
    for part in names.flat_map(parts) {
        let signs: Vec<char> = part.chars().collect();
        let runs = signs.chunk_by(|a, b| a.is_numeric() == b.is_numeric());
        words.extend(runs.map(|run| run.iter().collect::<String>().to_lowercase()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
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
    fn what_a_name_says_it_holds_is_its_last_noun() {
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
            // what the last noun is not
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
            // about them, or none at all
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
