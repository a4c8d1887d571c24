//! Recognises files with keys and passwords by their names, whether programs or users chose these.

mod words;

use caro_base::wildcard::{is_pattern, name_fits};
use std::path::{Component, Path, PathBuf};

/// Names of folders and files with secrets, in lower case; `*` is any text. Several parts must follow each other.
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
    &["*.env"],
    &["*.tfstate"],
    &["*.tfstate.backup"],
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
    // the environments of processes
    &["proc", "*", "environ"],
    &["task", "*", "environ"],
    // what was typed into shells and clients
    &[".*_history"],
    &[".zhistory"],
    &[".histfile"],
    &["fish_history"],
    &["consolehost_history.txt"],
    // sign-ins of programs
    &["caro", "mcp.json"],
    &["auth.json"],
    &[".curlrc"],
    &["_curlrc"],
    &[".wgetrc"],
    &["wp-config.php*"],
    &["sitemanager.xml"],
    &["recentservers.xml"],
    // browsers and mail programs
    &[".mozilla"],
    &[".thunderbird"],
    &["google-chrome*"],
    &[".config", "chromium*"],
    &["login data*"],
    &["cookies.sqlite*"],
    &["key4.db"],
    &["default", "cookies"],
    &["network", "cookies"],
];

/// Places where words in names mean nothing: public files, published packages, programs, names of branches.
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

/// Names of sample files without secrets.
const SAMPLES: &[&str] = &[".env.example", ".env.sample", ".env.template", ".env.dist"];

/// Most entries compared with a pattern; a pattern over more counts as reading a secret.
const MAX_ENTRIES: usize = 20_000;

/// True if the path's name says that it holds keys or passwords. Its target type is not checked: use
/// [`leads_to_secret`] for a path that may be a folder.
pub fn is_secret(path: &Path) -> bool {
    is_known(path) || says_secret(path)
}

/// True for a name that programs give to files with keys or passwords.
fn is_known(path: &Path) -> bool {
    let parts = parts(path);
    let sample = parts.last().is_some_and(|name| SAMPLES.contains(&name.as_str()));
    SECRETS.iter().any(|secret| !(sample && secret[0].starts_with(".env")) && contains_parts(secret, &parts))
}

/// True for a file whose name contains a word for keys or passwords.
fn says_secret(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    // the words of a command in a name are not in the name: `in $(pwd)`
    !name.contains('`')
        && !name.contains("$(")
        && words::says_secret(&name)
        && !PUBLIC.iter().any(|public| contains_parts(public, &parts(path)))
}

/// Returns the names in a path in lower case, since many file systems ignore case.
fn parts(path: &Path) -> Vec<String> {
    path.components().map(|c| c.as_os_str().to_string_lossy().to_lowercase()).collect()
}

/// True if consecutive names fit the patterns.
fn contains_parts(patterns: &[&str], names: &[String]) -> bool {
    let fits = |window: &[String]| window.iter().zip(patterns).all(|(name, pattern)| name_fits(pattern, name));
    names.windows(patterns.len()).any(fits)
}

/// True if the path, or the target of its links, is a secret.
pub fn leads_to_secret(path: &Path) -> bool {
    let own = |path: &Path| is_known(path) || says_secret(path) && !path.is_dir();
    let is_target = |target: PathBuf| own(&target) || target.is_dir() && is_known(&target.join("any"));
    own(path) || path.canonicalize().is_ok_and(is_target)
}

/// True if reading this path, which may be a shell pattern, may show keys or passwords.
pub fn reads_secret(path: &Path) -> bool {
    let mut left = MAX_ENTRIES;
    may_show_secret(path, &mut left)
}

/// Does the work of [`reads_secret`]; `left` counts down the entries that may still be compared.
fn may_show_secret(path: &Path, left: &mut usize) -> bool {
    if leads_to_secret(path) {
        return true;
    }
    let mut parts = path.components();
    let mut folder = PathBuf::new();
    for part in parts.by_ref() {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        if matches!(part, Component::Normal(_)) && is_pattern(&name) {
            let rest: PathBuf = parts.collect();
            // an absent folder, or one that cannot be listed, cannot be read
            return std::fs::read_dir(&folder).into_iter().flatten().flatten().any(|entry| {
                *left = left.saturating_sub(1);
                let own = entry.file_name().to_string_lossy().to_lowercase();
                // like in a shell, a pattern must begin with a dot to match hidden files
                let is_included = !own.starts_with('.') || name.starts_with('.');
                let has_rest = || rest.as_os_str().is_empty() || entry.path().is_dir();
                let fits = || is_included && name_fits(&name, &own) && has_rest();
                *left == 0 || fits() && may_show_secret(&entry.path().join(&rest), left)
            });
        }
        folder.push(part);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_by_name() {
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
            "/proc/1/environ",
            "/proc/*/environ",
            "/proc/[0-9]*/environ",
            "/proc/self/task/7/environ",
            "/home/me/.bash_history",
            "/home/me/.python_history",
            "/home/me/.local/share/fish/fish_history",
            "/home/me/.config/caro/mcp.json",
            "/home/me/.codex/auth.json",
            "/home/me/.curlrc",
            "/var/www/wp-config.php",
            "/home/me/.config/filezilla/sitemanager.xml",
            "/home/me/.config/google-chrome/Default/Cookies",
            "/Users/me/Library/Application Support/Vivaldi/Default/Network/Cookies",
            "/home/me/.mozilla/firefox/x.default/cookies.sqlite",
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
            "/proc/1/status",
            "/w/src/environ",
            "/w/src/cookies/parse.rs",
            "/w/docs/history",
            "/w/.mcp.json",
            "/w/wp-content/index.php",
            "/w/auth.rs",
            "/w/in $(pwd)",
        ] {
            assert!(!is_secret(Path::new(plain)), "{plain}");
        }
    }

    #[test]
    fn a_folder_about_secrets_is_not_one() {
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
    fn a_pattern_is_compared_with_existing_files() {
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
        #[cfg(target_os = "linux")]
        for reads in ["/proc/*/env*", "/pro?/self/*", "/proc/[0-9]*/e?viron"] {
            assert!(reads_secret(Path::new(reads)), "{reads}");
        }
    }
}
