//! Assesses the risk of a command on this machine, given the files that exist on its disk.

use caro_shell::safety::{Found, Risk, Surroundings, assess, assess_in};
use caro_shell::{self as shell, Script};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Assesses a command that is to run on this machine in the folder `cwd`.
pub fn assess_here(script: &Script, cwd: &Path) -> Risk {
    let Some(folder) = cwd.to_str() else { return assess(script) };
    if !cwd.is_absolute() {
        return assess(script);
    }
    let home = std::env::home_dir();
    let home = home.as_deref().and_then(Path::to_str);
    assess_in(script, &Surroundings { folder, home, look: &look_up, real: &real_path })
}

/// Assesses a command by its text, and by the files on the disk if its folder is known.
pub fn assess_text(command: &str, dialect: shell::Dialect, cwd: Option<&Path>) -> Risk {
    let script = shell::parse(command, dialect);
    cwd.map_or_else(|| assess(&script), |cwd| assess_here(&script, cwd))
}

fn look_up(path: &str) -> Found {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Found::File(metadata.len()),
        Ok(metadata) if metadata.is_dir() => Found::Folder,
        Ok(_) => Found::Other,
        Err(e) if e.kind() == ErrorKind::NotFound => Found::Nothing,
        Err(_) => Found::Other,
    }
}

fn real_path(path: &str) -> Option<String> {
    fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, Level, parse};

    /// Creates a folder with a file of 1200 bytes, an empty one, a folder with a file in it, and links.
    fn fixture() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("full"), [b'x'; 1200]).unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::write(at("a"), "a").unwrap();
        fs::create_dir_all(at("dir/deep")).unwrap();
        fs::write(at("dir/full"), "x").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("full", at("link")).unwrap();
            std::os::unix::fs::symlink("gone", at("dangling")).unwrap();
        }
        folder
    }

    fn level(command: &str, cwd: &Path) -> Level {
        assess_here(&parse(command, Dialect::Bash), cwd).level
    }

    #[test]
    fn writing_a_new_file_is_safe() {
        let folder = fixture();
        for command in [
            "ls > out.txt",
            "ls > ./out.txt",
            "ls > dir/out.txt",
            "ls > dir/../out.txt",
            "cp a b",
            "cp a dir/",
            "cp a dir",
            "mv a b",
            "mv a dir/",
            "cp -r dir other",
            "sort a -o sorted",
            "curl -o page.html https://example.com",
            "ls > empty",
            "ln -sf a b",
            "tee new < a",
            "cd dir && ls > out.txt",
            "mkdir new && cp a new/a",
            "ls | sort > out.txt",
            "ls > out.txt 2> errors.txt",
            "cp a dir/deep/",
            "tar czf a.tgz dir",
            "echo x > 'with blank.txt'",
        ] {
            let risk = assess_here(&parse(command, Dialect::Bash), folder.path());
            assert_eq!(risk.level, Level::Safe, "{command}: {:?}", risk.reasons);
        }
    }

    #[test]
    fn the_working_folder_is_recognized_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        fs::create_dir_all(work.join("sub")).unwrap();
        let whole = work.display().to_string();
        for command in [
            "rm -rf .",
            "rm -rf ../work",
            "rm -rf ./../work/",
            "rm -rf ../work/*",
            "rm -rf ../wor*",
            "rm -rf ../[v-x]ork/*",
            "rm -rf ../work/sub/..",
            "rm -rf ./~/../../work",
            "rm -rf FOLDER",
            "rm -rf FOLDER/*",
            "rm -rf FOLDER/../../x/..",
            "cd .. && rm -rf work",
            "cd ..; rm -rf work/*",
            "cd $PWD/..; rm -rf work",
            "up=..; cd \"$up\"; rm -rf work",
            "cd sub; cd ..; rm -rf ../work",
        ] {
            let command = command.replace("FOLDER", &whole);
            assert_eq!(level(&command, &work), Level::Danger, "{command}");
        }
        let root = assess_here(&parse("rm -rf /", Dialect::Bash), Path::new("/"));
        assert!(root.reasons[0].why.contains("everything on this disk"), "{root:?}");
        for command in [
            "rm -rf sub",
            "rm -rf ../other",
            "rm -rf ../w",
            "rm -rf ../*.log",
            "rm -rf FOLDER/sub",
            "rm -rf FOLDER/s*",
            "cd sub && rm -rf ../sub",
            "rm FOLDER/sub/a",
        ] {
            let command = command.replace("FOLDER", &whole);
            assert!(level(&command, &work) < Level::Danger, "{command}");
        }
    }

    /// The signs that a shell expands are parts of a name within quotes.
    #[test]
    fn the_working_folder_may_have_any_sign_in_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["Photos (2024)", "[slug]", "100%", "what!", "a{b,c}", "it's"] {
            let work = folder.path().join(name);
            fs::create_dir(&work).unwrap();
            for command in ["rm -rf \"../NAME\"", "rm -rf \"../NAME\"/*", "cd .. && rm -rf \"NAME\""] {
                let command = command.replace("NAME", name);
                assert_eq!(level(&command, &work), Level::Danger, "{command}");
            }
            assert!(level(&format!("rm -rf \"../{name}2\""), &work) < Level::Danger, "{name}");
        }
    }

    #[test]
    fn a_folder_above_has_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        for (command, told) in [
            ("rm -rf TOP/a/b", "everything in this folder"),
            ("rm -rf TOP/a", "everything in the folder .. above this one"),
            ("rm -rf TOP", "everything in the folder ../.. above this one"),
            ("rm -rf TOP/*", "everything in the folder ../.. above this one"),
        ] {
            let command = command.replace("TOP", &folder.path().display().to_string());
            let risk = assess_here(&parse(&command, Dialect::Bash), &deep);
            assert!(risk.reasons[0].why.contains(told), "{command}: {risk:?}");
        }
        // without -r no folder goes
        let files = assess_here(&parse("rm ../b*", Dialect::Bash), &deep);
        assert!(files.reasons[0].why.contains("../b*"), "{files:?}");
    }

    #[cfg(unix)]
    #[test]
    fn the_working_folder_is_recognized_through_links() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("work/sub")).unwrap();
        symlink("work", at("link")).unwrap();
        symlink("../../work", at("work/sub/back")).unwrap();
        for command in ["rm -rf TOP/link/*", "rm -rf TOP/link/", "rm -rf TOP/link/sub/..", "cd TOP/link && rm -rf *"] {
            let command = command.replace("TOP", &folder.path().display().to_string());
            for work in ["work", "link"] {
                assert_eq!(level(&command, &at(work)), Level::Danger, "{command} in {work}");
            }
        }
        assert_eq!(level("rm -rf sub/back/*", &at("work")), Level::Danger);
        // only the link is deleted
        for command in ["rm -rf TOP/link", "rm -rf sub/back"] {
            let command = command.replace("TOP", &folder.path().display().to_string());
            assert!(level(&command, &at("work")) < Level::Danger, "{command}");
        }
    }

    #[test]
    fn writing_where_a_file_may_exist_is_a_caution() {
        let folder = fixture();
        for command in [
            "ls > full",
            "cp a full",
            "mv a full",
            "cp full dir/",
            "mv full dir",
            "ls > dir/full",
            "cd dir && ls > full",
            "ls > link",
            "ls > dangling",
            "cp a link",
            "touch b; cp a b",
            "ls > $x",
            "ls > *",
            "cp a *",
            "cp * dir",
            "cd $x && ls > out.txt",
            "cd dir; ls > out.txt",
            "cd dir || ls > full",
            "(cd dir; ls > full)",
            "cd dir && cd deep && ls > out.txt",
            "./frob; ls > out.txt",
            "mv full b; cp a b",
            "ln -s full b; cp a b",
            "ln -s / d; cp a d/x",
            "tar xf t.tar; cp a b",
            "xargs cp a < list",
            "bash -c 'ls > out.txt'",
            "find . -name x -exec cp a out {} +",
            "for f in *; do mv \"x$f\" out; done",
            "ls > b; mv b c; ls > c",
            "cp a nowhere/",
            "ls > .profile",
            "ls > .git/hooks/x",
            "ls > ../../../../../../../../usr/local/x",
            "ls > /usr/local/bin/new",
            "ls > /srv/new",
            "mv full ~/.bashrc-new",
            "cat ~/.ssh/id_rsa > out.txt",
            "cat /etc/shadow > out.txt",
            "yes > out.txt",
            "cat /dev/zero > out.txt",
            "dd if=a of=new",
            "fallocate -l 100T new",
            "git -C dir diff --output=new",
            "ssh h 'ls > out.txt'",
            "sudo cp a b",
            "f() { ls > out.txt; }; f",
            "cp a /dev/sda-not",
            "git checkout -b x; ls > out.txt",
            "make; ls > out.txt",
        ] {
            assert!(level(command, folder.path()) >= Level::Caution, "{command}");
        }
    }

    #[test]
    fn the_reason_has_the_size_of_an_overwritten_file() {
        let folder = fixture();
        let risk = assess_here(&parse("ls > full", Dialect::Bash), folder.path());
        assert_eq!(risk.reasons[0].why, "it overwrites full (1.2 kB there now)");
        for (command, why) in [
            ("dd if=a of=new", "it writes new"),
            ("dd if=a of=full", "it overwrites full (1.2 kB there now)"),
            ("cat ~/.ssh/id_rsa > out.txt", "it writes out.txt"),
            ("grep x a > \"$(date +%F).log\"", "it may overwrite $(date +%F).log"),
        ] {
            let risk = assess_here(&parse(command, Dialect::Bash), folder.path());
            assert!(risk.reasons.iter().any(|reason| reason.why == why), "{command}: {risk:?}");
        }
    }

    /// Devices and system files are dangers, whether they exist here or not.
    #[test]
    fn dangers_do_not_depend_on_the_disk() {
        let folder = fixture();
        for command in [
            "ls > /dev/sda",
            "cp a /etc/passwd",
            "echo x > /etc/nothing-there/passwd",
            "rm -rf /",
            "echo k >> ~/.ssh/authorized_keys",
        ] {
            assert_eq!(level(command, folder.path()), Level::Danger, "{command}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_unreadable_folder_is_a_caution() {
        use std::os::unix::fs::PermissionsExt;
        let folder = fixture();
        let shut = folder.path().join("shut");
        fs::create_dir(&shut).unwrap();
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
        // root may read it all the same
        if fs::read_dir(&shut).is_err() {
            assert_eq!(level("ls > shut/out.txt", folder.path()), Level::Caution);
        }
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(look_up(&folder.path().join("full/x").to_string_lossy()), Found::Other, "a file on the way");
    }

    #[test]
    fn without_a_folder_a_command_is_assessed_by_its_text() {
        assert_eq!(assess_text("ls > out.txt", Dialect::Bash, None).level, Level::Caution);
        assert_eq!(level("ls > out.txt", Path::new("relative")), Level::Caution);
    }
}
