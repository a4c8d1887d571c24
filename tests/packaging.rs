//! Tests the installer of `.github/packaging` on archives made here: it installs, updates and uninstalls, refuses
//! invalid archives, and leaves nothing behind. Also tests the permissions of the release workflow. Packing, and each
//! package format in a bare root, is tested by `.github/packaging/check.sh`.

use crate::artifacts::files;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const INSTALLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.github/packaging/install.sh");
const WORKFLOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.github/workflows/release.yml");
const PROGRAM: &str = "#!/bin/sh\necho \"caro 1.2.3\"\n";

/// A file of an archive: full name, type as in tar, link target, text.
type Entry<'a> = (&'a str, u8, &'a str, &'a str);

fn plain<'a>(name: &'a str, text: &'a str) -> Entry<'a> {
    (name, b'0', "", text)
}

/// Encodes an archive in the tar format; unlike `tar` it accepts any name.
fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, kind, link, text) in entries {
        let mut head = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, name.as_bytes());
        put(100, b"0000755\x000000000\x000000000\x00");
        put(124, format!("{:011o}\x0000000000000\x00", text.len()).as_bytes());
        put(148, b"        ");
        put(156, &[*kind]);
        put(157, link.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\x00 ").as_bytes());
        all.extend(head);
        all.extend(text.as_bytes());
        all.resize(all.len().next_multiple_of(512), 0);
    }
    all.resize(all.len() + 1024, 0);
    all
}

/// A temporary folder with an archive, its checksums and a home folder.
struct Place(TempDir);

impl Place {
    fn new(entries: &[Entry]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.home()).unwrap();
        place.release(entries);
        place
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    fn archive(&self) -> String {
        self.0.path().join("caro-1.2.3-here.tar.gz").display().to_string()
    }

    /// Writes an archive and its checksum, in place of earlier ones.
    fn release(&self, entries: &[Entry]) {
        let raw = self.0.path().join("caro-1.2.3-here.tar");
        std::fs::write(&raw, tar(entries)).unwrap();
        let line = "gzip -nf caro-1.2.3-here.tar && { sha256sum *.gz || shasum -a 256 *.gz; } > SHA256SUMS";
        assert!(Command::new("sh").args(["-c", line]).current_dir(self.0.path()).status().unwrap().success());
    }

    /// Runs the installer or another script; returns its success and its output.
    fn run(&self, script: &Path, args: &[&str]) -> (bool, String) {
        let mut sh = Command::new("sh");
        sh.arg(script).args(args).env_clear().env("HOME", self.home()).env("PATH", crate::machine::PATH);
        let ran = sh.env("TMPDIR", self.0.path()).current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap();
        let output = [ran.stdout, ran.stderr].concat();
        (ran.status.success(), String::from_utf8_lossy(&output).into_owned())
    }

    fn install(&self, args: &[&str]) -> (bool, String) {
        self.run(Path::new(INSTALLER), args)
    }

    /// The files below the home folder, as relative paths.
    fn installed_files(&self) -> Vec<String> {
        let home = self.home();
        let name = |file: &PathBuf| file.strip_prefix(&home).unwrap().display().to_string();
        let mut all: Vec<String> = files(&home).iter().map(name).collect();
        all.sort();
        all
    }

    fn is_untouched(&self) -> bool {
        std::fs::read_dir(self.home()).unwrap().next().is_none()
    }
}

const WHOLE: [Entry; 3] = [
    ("caro-1.2.3-here/bin/caro", b'0', "", PROGRAM),
    ("caro-1.2.3-here/share/man/man1/caro.1", b'0', "", "page"),
    ("caro-1.2.3-here/share/man/man1/caro-old.1", b'0', "", "page"),
];

#[test]
fn an_installation_is_updated_and_uninstalled_completely() {
    let place = Place::new(&WHOLE);
    let (success, output) = place.install(&[&place.archive()]);
    assert!(success && output.contains("caro 1.2.3 is in") && output.contains("not on your PATH"), "{output}");
    let own = [".local/bin/caro", ".local/lib/caro/installed"];
    assert_eq!(
        place.installed_files(),
        [&own[..], &[".local/share/man/man1/caro-old.1", ".local/share/man/man1/caro.1"]].concat()
    );
    assert_eq!(place.home().join(".local/bin/caro").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    // a later version lacks one of the manual pages
    place.release(&WHOLE[..2]);
    assert!(place.install(&[&place.archive()]).0);
    assert_eq!(place.installed_files(), [&own[..], &[".local/share/man/man1/caro.1"]].concat());
    let (success, output) = place.install(&["--uninstall"]);
    assert!(success && place.is_untouched(), "{output} {:?}", place.installed_files());
    let (success, output) = place.install(&["--uninstall"]);
    assert!(!success && output.contains("hint: "), "{output}");
}

#[test]
fn files_of_others_are_kept() {
    let place = Place::new(&WHOLE);
    let theirs = place.home().join("own place/share/man/man1");
    std::fs::create_dir_all(&theirs).unwrap();
    std::fs::write(theirs.join("caro.1"), "theirs").unwrap();
    std::fs::write(theirs.join("other.1"), "theirs").unwrap();
    let prefix = place.home().join("own place").display().to_string();
    let (success, output) = place.install(&["--prefix", &prefix, &place.archive()]);
    assert!(!success && output.contains("did not put it there"), "{output}");
    assert_eq!(place.installed_files(), ["own place/share/man/man1/caro.1", "own place/share/man/man1/other.1"]);
    assert_eq!(std::fs::read_to_string(theirs.join("caro.1")).unwrap(), "theirs");
    assert!(place.install(&["--prefix", &prefix, "--force", &place.archive()]).0);
    assert_eq!(std::fs::read_to_string(theirs.join("caro.1")).unwrap(), "page");
    // a manipulated list of installed files removes no other files
    let list = place.home().join("own place/lib/caro/installed");
    let listed = std::fs::read_to_string(&list).unwrap();
    std::fs::write(place.home().join("letter"), "").unwrap();
    std::fs::write(&list, format!("{listed}file ../letter\nfile share/../../letter\nfolder ..\n")).unwrap();
    assert!(place.install(&[&format!("--prefix={prefix}"), "--uninstall"]).0);
    assert_eq!(place.installed_files(), ["letter", "own place/share/man/man1/other.1"]);
}

#[test]
fn an_invalid_archive_is_refused_and_leaves_nothing() {
    let program = WHOLE[0];
    let hostile: [(&str, &[Entry]); 9] = [
        ("not of caro's", &[program, plain("caro-1/../../evil", "x")]),
        ("not of caro's", &[program, plain("caro-1.2.3-here/share/../../evil", "x")]),
        ("not of caro's", &[program, plain("/caro-1/share/a/b", "x")]),
        ("not of caro's", &[program, plain("caro-1.2.3-here/bin/other", "x")]),
        ("not of caro's", &[program, plain("caro-1.2.3-here/share/man/a b", "x")]),
        ("no plain file", &[program, ("caro-1.2.3-here/share/man/link", b'2', "/etc/passwd", "")]),
        ("no plain file", &[program, ("caro-1.2.3-here/share/man/hard", b'1', "/etc/passwd", "")]),
        ("no program", &WHOLE[1..]),
        ("does not run here", &[plain("caro-1.2.3-here/bin/caro", "#!/bin/sh\nexit 1\n")]),
    ];
    for (why, entries) in hostile {
        let place = Place::new(entries);
        let (success, output) = place.install(&[&place.archive()]);
        assert!(!success && output.contains(why) && output.contains("hint: "), "{entries:?}: {output}");
        assert!(place.is_untouched(), "{entries:?}: {:?}", place.installed_files());
    }
}

#[test]
fn nothing_is_installed_without_its_checksum() {
    let place = Place::new(&WHOLE);
    let archive = place.archive();
    let zeros = "0".repeat(64);
    for (args, why) in [
        (&["--sha256", &zeros, &archive][..], "and not 000"),
        (&["/nowhere/caro.tar.gz"], "no file"),
        (&["ftp://here/caro.tar.gz"], "no address"),
        (&["http://here/caro.tar.gz"], "on its way"),
        (&["--sha256"], "wants a word"),
        (&["--everything"], "no option"),
        (&[], "no archive"),
    ] {
        let (success, output) = place.install(args);
        assert!(!success && output.contains(why) && place.is_untouched(), "{args:?}: {output}");
    }
    std::fs::write(place.0.path().join("SHA256SUMS"), format!("{zeros}  other.tar.gz\n")).unwrap();
    let (success, output) = place.install(&[&archive]);
    assert!(!success && output.contains("no line for") && place.is_untouched(), "{output}");
    // one more byte
    place.release(&WHOLE);
    let mut bytes = std::fs::read(&archive).unwrap();
    bytes.push(0);
    std::fs::write(&archive, bytes).unwrap();
    let (success, output) = place.install(&[&archive]);
    assert!(!success && output.contains("SHA-256") && place.is_untouched(), "{output}");
}

#[test]
fn a_truncated_installer_does_nothing() {
    let place = Place::new(&WHOLE);
    let script = std::fs::read(INSTALLER).unwrap();
    let half = place.0.path().join("half.sh");
    let last = script.len() - 1;
    // the variable names the archive even if the part that reads the arguments is cut off
    let first_line = format!("CARO_ARCHIVE='{}'\n", place.archive());
    for cut in (0..last).step_by(400).chain(last - 30..last) {
        std::fs::write(&half, [first_line.as_bytes(), &script[..cut]].concat()).unwrap();
        place.run(&half, &[]);
        assert!(place.is_untouched(), "{cut} of {} bytes did something", script.len());
    }
    std::fs::write(&half, [first_line.as_bytes(), &script[..last]].concat()).unwrap();
    assert!(place.run(&half, &[]).0);
}

#[test]
fn the_release_workflow_may_write_in_one_job_and_pins_its_actions() {
    let text = std::fs::read_to_string(WORKFLOW).unwrap();
    assert!(text.contains("\npermissions:\n  contents: read\n"));
    assert_eq!(text.matches(": write").count(), 1);
    assert!(text.contains("cargo build --locked --profile dist --features"));
    let mut actions = 0;
    for line in text.lines().filter_map(|line| line.split_once("uses: ")) {
        let commit = line.1.split_once('@').map(|(_, rest)| rest.split(' ').next().unwrap());
        assert!(commit.is_some_and(|c| c.len() == 40 && c.chars().all(|c| c.is_ascii_hexdigit())), "{line:?}");
        actions += 1;
    }
    assert!(actions >= 4, "{actions}");
}
