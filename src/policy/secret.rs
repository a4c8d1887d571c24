//! Which files hold keys and passwords, by their names: those that programs give them, and those that persons do.

mod words;

use std::path::{Component, Path, PathBuf};

/// Folders and files that hold what opens doors, in lower case; `*` is any text. Several parts stand in this order.
const SECRETS: &[&[&str]] = &[
    &[".ssh"],
    &[".gnupg"],
    &[".aws"],
    &[".azure"],
    &[".kube"],
    &[".docker"],
    &[".password-store"],
    &[".config", "gh"],
    &[".config", "gcloud"],
    &[".config", "hub"],
    &["keyrings"],
    &["keychains"],
    &["etc", "shadow*"],
    &["etc", "gshadow*"],
    &["etc", "master.passwd"],
    &["run", "secrets"],
    &[".m2", "settings*.xml"],
    &[".netrc"],
    &["_netrc"],
    &[".authinfo"],
    &[".pgpass"],
    &[".my.cnf"],
    &[".mylogin.cnf"],
    &[".s3cfg"],
    &[".boto"],
    &[".dockercfg"],
    &[".msmtprc"],
    &[".fetchmailrc"],
    &["rclone.conf"],
    &["kubeconfig"],
    &[".terraformrc"],
    &["credentials.tfrc.json"],
    &[".vault_pass*"],
    &[".vault-pass*"],
    &[".git-credentials"],
    &[".npmrc"],
    &[".pypirc"],
    &[".vault-token"],
    &[".htpasswd"],
    &[".env"],
    &[".env.*"],
    &[".envrc"],
    &["id_rsa"],
    &["id_dsa"],
    &["id_ecdsa"],
    &["id_ecdsa_sk"],
    &["id_ed25519"],
    &["id_ed25519_sk"],
    &["*.pem"],
    &["*.key"],
    &["*.p12"],
    &["*.pfx"],
    &["*.jks"],
    &["*.keystore"],
    &["*.kdb"],
    &["*.kdbx"],
    &["*.keytab"],
    &["*.ovpn"],
    &["*.p8"],
    &["*.ppk"],
    &["client_secret*.json"],
    &["service-account*.json"],
    &["logins.json"],
    &["wallet.dat"],
];

/// Where words say nothing: what everybody may read, what others have published, programs, names of branches.
const PUBLIC: &[&[&str]] = &[
    &["etc", "passwd"],
    &["etc", "passwd-"],
    &["etc", "pam.d"],
    &["bin", "passwd"],
    &["usr", "bin"],
    &["usr", "sbin"],
    &["usr", "lib*"],
    &["usr", "share"],
    &["node_modules"],
    &["site-packages"],
    &[".git", "refs"],
    &[".git", "logs"],
];

/// Names that show how such a file looks and have nothing in it.
const SAMPLES: &[&str] = &[".env.example", ".env.sample", ".env.template", ".env.dist"];

/// Entries that are held against a pattern. Who names more of them at once is asked about.
const MOST: usize = 20_000;

/// True if the path, by its name, holds keys or passwords. A folder is none by its own name alone: ask
/// [`leads_to_secret`] of what may be one.
pub fn is_secret(path: &Path) -> bool {
    is_known(path) || says_secret(path)
}

/// True for a name that programs give to what holds keys or passwords.
fn is_known(path: &Path) -> bool {
    let parts = parts(path);
    let sample = parts.last().is_some_and(|name| SAMPLES.contains(&name.as_str()));
    SECRETS.iter().any(|secret| !(sample && secret[0].starts_with(".env")) && stands(secret, &parts))
}

/// True for a file whose name says in words that it holds them.
fn says_secret(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    words::says_secret(&name) && !PUBLIC.iter().any(|public| stands(public, &parts(path)))
}

/// The names of a path: on many disks upper and lower case are one.
fn parts(path: &Path) -> Vec<String> {
    path.components().map(|c| c.as_os_str().to_string_lossy().to_lowercase()).collect()
}

/// True if the forms stand in this order among the names.
fn stands(forms: &[&str], names: &[String]) -> bool {
    names.windows(forms.len()).any(|window| window.iter().zip(forms).all(|(name, form)| name_fits(form, name)))
}

/// True for a secret, under whatever name links make it go by.
pub fn leads_to_secret(path: &Path) -> bool {
    let own = |path: &Path| is_known(path) || says_secret(path) && !path.is_dir();
    let real = |target: PathBuf| own(&target) || target.is_dir() && is_known(&target.join("any"));
    own(path) || path.canonicalize().is_ok_and(real)
}

/// True if reading this path, which may be a pattern of the shell, may show keys or passwords.
pub fn reads_secret(path: &Path) -> bool {
    let mut left = MOST;
    shows(path, &mut left)
}

/// [`reads_secret`], after so many entries at most.
fn shows(path: &Path, left: &mut usize) -> bool {
    if leads_to_secret(path) {
        return true;
    }
    let mut parts = path.components();
    let mut folder = PathBuf::new();
    for part in parts.by_ref() {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        if matches!(part, Component::Normal(_)) && is_pattern(&name) {
            let rest: PathBuf = parts.collect();
            // what is not there, or cannot be listed, is not read
            return std::fs::read_dir(&folder).into_iter().flatten().flatten().any(|entry| {
                *left = left.saturating_sub(1);
                let own = entry.file_name().to_string_lossy().to_lowercase();
                // as in a shell, what is hidden has to be meant
                let meant = !own.starts_with('.') || name.starts_with('.');
                let leads_on = || rest.as_os_str().is_empty() || entry.path().is_dir();
                *left == 0 || meant && name_fits(&name, &own) && leads_on() && shows(&entry.path().join(&rest), left)
            });
        }
        folder.push(part);
    }
    false
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// True if the name fits the pattern. `*` is any text and `?` one character; a `[...]` counts as any one character, so
/// that a doubt counts as yes.
pub fn name_fits(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // reach[n]: the places so far can stand for the first n characters
    let mut reach = vec![false; name.len() + 1];
    reach[0] = true;
    for place in places(pattern) {
        let mut next = vec![false; name.len() + 1];
        match place {
            Place::Any => {
                let first = reach.iter().position(|reached| *reached).unwrap_or(next.len());
                next[first..].fill(true);
            }
            one => {
                for (n, c) in name.iter().enumerate() {
                    next[n + 1] = reach[n] && (one == Place::One || one == Place::Char(*c));
                }
            }
        }
        reach = next;
    }
    reach[name.len()]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Any,
    One,
    Char(char),
}

fn places(pattern: &str) -> Vec<Place> {
    let mut found = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        found.push(match c {
            '*' => Place::Any,
            '?' => Place::One,
            '[' if rest.as_str().contains(']') => {
                rest.by_ref().skip(1).find(|c| *c == ']');
                Place::One
            }
            c => Place::Char(c),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns_as_in_a_shell() {
        for (pattern, name) in [
            ("*.pem", "a.pem"),
            ("id_*", "id_rsa"),
            (".en?", ".env"),
            ("[i]d_rsa", "id_rsa"),
            ("*", ""),
            ("a*c", "abc"),
            ("a**c*", "ac"),
            ("[]]x", "]x"),
            ("a[", "a["),
        ] {
            assert!(name_fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.pem", "a.pe"), ("id_?", "id_rsa"), ("a*", "ba"), ("", "x"), ("??", "x"), ("a*c", "acb"), ("x", "*")]
        {
            assert!(!name_fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn keys_are_known_by_name() {
        for secret in [
            "/home/me/.ssh/config",
            "/home/me/.SSH/x",
            "/w/.env",
            "/w/.env.local",
            "/w/server.key",
            "/w/a/b.p12",
            "/home/me/.config/gh/hosts.yml",
            "/home/me/.config/gcloud/x",
            "/etc/shadow",
            "/etc/shadow-",
            "/w/credentials.json",
            "/etc/master.passwd",
            "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
            "/home/me/.s3cfg",
            "/w/My Passwords.kdbx",
            "/w/svn/conf/passwd",
            "/w/docs/passwords.txt",
            "/w/docs/credentials",
            "/Users/me/Library/Keychains/login.keychain",
        ] {
            assert!(is_secret(Path::new(secret)), "{secret}");
        }
        for plain in [
            "/w/shadow/a.css",
            "/w/.env.example",
            "/w/environment.md",
            "/home/me/.config/htop/htoprc",
            "/w/keyboard.md",
            "/w/monkey",
            "/etc/hosts",
            "/etc/passwd",
            "/etc/passwd-",
            "/etc/pam.d/passwd",
            "/usr/bin/passwd",
            "/usr/share/doc/git/credentials.txt",
            "/w/node_modules/x/tokens.json",
            "/w/.git/refs/heads/refresh-token",
            "/w/password/form.html",
            "/w/tokens/a.txt",
            "/w/gh",
        ] {
            assert!(!is_secret(Path::new(plain)), "{plain}");
        }
    }

    #[test]
    fn a_folder_about_secrets_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("tokens")).unwrap();
        for file in ["credentials", "tokens/credentials", "tokens/a.rs"] {
            std::fs::write(at(file), "x").unwrap();
        }
        for reads in ["credentials", "cred*", "tokens/*", "*/cred*", "passwords.txt"] {
            assert!(reads_secret(&at(reads)), "{reads}");
        }
        for free in ["tokens", "tok*", "tokens/a*", "."] {
            assert!(!reads_secret(&at(free)), "{free}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("credentials"), at("notes.md")).unwrap();
            assert!(reads_secret(&at("notes.md")), "a link to one");
        }
    }

    #[test]
    fn a_pattern_is_held_against_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at(".ssh")).unwrap();
        std::fs::create_dir(at("plain")).unwrap();
        for file in [".ssh/id_new", ".env", "server.key", "plain/a.txt", "a.log"] {
            std::fs::write(at(file), "x").unwrap();
        }
        for reads in [".en*", ".e?v", ".*", "s*", "*", "*.key", "[s]erver.*", ".ss*/id_new", "*/../.ssh/x"] {
            assert!(reads_secret(&at(reads)), "{reads}");
        }
        for free in ["*.log", "a*", "plain/*", "*/a.txt", "none/*"] {
            assert!(!reads_secret(&at(free)), "{free}");
        }
    }
}
