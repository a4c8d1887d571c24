//! Detects operating system, version, distribution, architecture and user, from the kernel and from files; starts no
//! process.

use super::Ambient;
use std::fs;
use std::path::Path;

/// The file with the version of macOS, which `sw_vers` reads too.
const MACOS_VERSION: &str = "System/Library/CoreServices/SystemVersion.plist";

/// The system's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// The name of the kernel.
    pub os: String,
    /// The machine's architecture, as the kernel names it.
    pub arch: String,
    /// The release of the kernel, or the version of the product.
    pub os_version: String,
    /// The name of the distribution.
    pub distribution: Option<String>,
    /// The user's name, or id if there is no name.
    pub user: String,
}

impl System {
    /// Reads the facts.
    pub fn detect(ambient: &Ambient) -> Self {
        let mut system = Self::unknown();
        #[cfg(unix)]
        {
            let uname = rustix::system::uname();
            system.os = uname.sysname().to_string_lossy().into_owned();
            system.arch = uname.machine().to_string_lossy().into_owned();
            system.os_version = uname.release().to_string_lossy().into_owned();
        }
        if system.os == "Darwin" {
            let plist = fs::read_to_string(ambient.root.join(MACOS_VERSION)).unwrap_or_default();
            if let Some(version) = plist_string(&plist, "ProductVersion") {
                system.os_version = version.to_string();
                system.distribution = Some(format!("macOS {version}"));
            }
        } else {
            system.distribution = ["etc/os-release", "usr/lib/os-release"]
                .iter()
                .find_map(|file| pretty_name(&fs::read_to_string(ambient.root.join(file)).ok()?));
        }
        system.user = user(ambient);
        system
    }

    /// Returns what is known without reading anything: the system that the program was compiled for.
    pub fn unknown() -> Self {
        let os = match std::env::consts::OS {
            "linux" | "android" => "Linux",
            "macos" => "Darwin",
            "freebsd" => "FreeBSD",
            "windows" => "Windows",
            other => other,
        };
        Self {
            os: os.to_string(),
            arch: std::env::consts::ARCH.to_string(),
            os_version: String::new(),
            distribution: None,
            user: String::new(),
        }
    }
}

/// Returns the fields of the user's line in `/etc/passwd`.
pub fn passwd_fields(root: &Path, uid: u32) -> Option<Vec<String>> {
    let text = fs::read(root.join("etc/passwd")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .map(|line| line.split(':').map(str::to_string).collect::<Vec<_>>())
        .find(|fields| fields.len() >= 7 && fields[2].parse() == Ok(uid))
}

fn user(ambient: &Ambient) -> String {
    let by_number = || {
        let uid = ambient.uid?;
        let name = passwd_fields(&ambient.root, uid).map(|fields| fields[0].clone());
        Some(name.unwrap_or_else(|| uid.to_string()))
    };
    ambient.user.clone().or_else(by_number).unwrap_or_default()
}

/// Returns `PRETTY_NAME` of an os-release file, whose values are quoted as in a shell (os-release(5)).
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let name = shlex::split(value)?.into_iter().next()?;
    (!name.is_empty()).then_some(name)
}

/// Returns the string for a key of a property list in XML.
fn plist_string<'a>(plist: &'a str, key: &str) -> Option<&'a str> {
    let (_, after) = plist.split_once(&format!("<key>{key}</key>"))?;
    let (_, value) = after.split_once("<string>")?;
    Some(value.split_once("</string>")?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_names_are_unquoted() {
        let debian = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(pretty_name(debian).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name("PRETTY_NAME='Void Linux'").as_deref(), Some("Void Linux"));
        assert_eq!(pretty_name("PRETTY_NAME=Alpine").as_deref(), Some("Alpine"));
        for none in ["", "PRETTY_NAME=", "PRETTY_NAME=\"", "NAME=x"] {
            assert_eq!(pretty_name(none), None, "{none}");
        }
    }

    #[test]
    fn the_version_of_macos_is_read_from_its_property_list() {
        let plist = "<plist><dict>\n\t<key>ProductName</key>\n\t<string>macOS</string>\n\
                     \t<key>ProductVersion</key>\n\t<string>14.2.1</string>\n</dict></plist>";
        assert_eq!(plist_string(plist, "ProductVersion"), Some("14.2.1"));
        assert_eq!(plist_string(plist, "ProductCopyright"), None);
    }

    #[test]
    fn the_user_is_a_name_a_number_or_empty() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("etc")).unwrap();
        fs::write(
            root.path().join("etc/passwd"),
            "root:x:0:0:root:/root:/bin/bash\nana:x:1001:1001::/home/ana:/bin/zsh\n",
        )
        .unwrap();
        let mut ambient =
            Ambient { user: None, uid: Some(1001), root: root.path().to_path_buf(), ..Ambient::of_process() };
        assert_eq!(user(&ambient), "ana");
        ambient.uid = Some(7);
        assert_eq!(user(&ambient), "7");
        ambient.user = Some("eve".into());
        assert_eq!(user(&ambient), "eve");
    }
}
