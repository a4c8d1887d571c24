//! Derives the paths that a command will touch from the effects of its parse tree, with patterns resolved like the
//! shell will, and from the changes of a rehearsal. Effects that neither can tell are reported as gaps.

use super::glob;
use super::plan::{Cover, Plan, Target, Touch};
use caro_base::wildcard::is_pattern;
use caro_exec::rehearse::{Change, ChangeKind, EntryKind};
use caro_shell::effects::{Kind, Place, is_refused, place_of};
use caro_shell::{Dialect, Effect, Script, Word, effects};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Programs that delete and rename files and write to none. (`shred` deletes, too, but overwrites a file first.)
const RENAME: &[&str] = &["find", "gfind", "gmv", "grm", "mv", "rm", "rmdir", "unlink"];
/// Programs whose other operands are created or replaced as a whole, and not written to.
const REPLACE: &[&str] = &["gmkdir", "gmv", "mkdir", "mv"];
/// Programs that put each operand under its own name into the last one, if that is a folder.
const INTO: &[&str] = &["cp", "gcp", "gmv", "install", "ln", "mv"];

/// The effects that follow from a command's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foreseen {
    /// The paths that it touches.
    pub targets: Vec<Target>,
    /// Folders of which an unknown part is touched; a rehearsal tells which.
    pub narrowed: Vec<Target>,
    /// Effects that do not follow from its text; a rehearsal may tell them.
    pub opaque: Vec<String>,
    /// Effects that saved files cannot undo.
    pub outside: Vec<String>,
}

/// The changes of a rehearsal.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The paths that it changed.
    pub changes: &'a [Change],
    /// True if it succeeded and the list is complete.
    pub whole: bool,
}

impl Foreseen {
    /// True if it changes no files, according to its text.
    pub fn is_harmless(&self) -> bool {
        self.targets.is_empty() && self.narrowed.is_empty() && self.opaque.is_empty()
    }

    /// True if a rehearsal would tell more.
    pub fn wants_rehearsal(&self) -> bool {
        !self.opaque.is_empty() || !self.narrowed.is_empty()
    }

    /// Returns the plan of what to save, including the changes of a rehearsal if there was one.
    pub fn plan(self, shown: Option<Shown<'_>>) -> Plan {
        let wanted = self.wants_rehearsal();
        let Self { mut targets, narrowed, opaque, mut outside } = self;
        targets.extend(shown.iter().flat_map(|shown| shown.changes).filter_map(target_of));
        if !shown.is_some_and(|shown| shown.whole) {
            targets.extend(narrowed);
            outside.extend(opaque);
        }
        let cover = match (outside.is_empty(), wanted) {
            (false, _) => Cover::Partly,
            (true, true) if shown.is_some_and(|shown| shown.whole) => Cover::Rehearsed,
            (true, _) => Cover::Whole,
        };
        Plan::new(targets, cover, outside)
    }
}

/// Converts a change of a rehearsal to a target.
fn target_of(change: &Change) -> Option<Target> {
    let path = resolve(&change.place())?;
    Some(match (change.kind, change.now.as_ref().map(|now| now.kind)) {
        (ChangeKind::Created, _) => Target::new(path, Touch::Make),
        (ChangeKind::Deleted, _) => Target::new(path, Touch::Delete),
        (ChangeKind::Changed, Some(EntryKind::Folder)) if path.is_dir() => Target::new(path, Touch::Surface),
        (ChangeKind::Changed, _) => Target { path, touch: Touch::Write, deep: true },
    })
}

/// Returns the effects that follow from a command's text if it runs in that folder now.
pub fn foresee(script: &Script, cwd: &Path) -> Foreseen {
    let mut found = Foreseen::default();
    if script.dialect == Dialect::PowerShell {
        found.opaque.push("which files it changes cannot be told of PowerShell".into());
        return found;
    }
    if !script.errors.is_empty() {
        found.opaque.push("it is not understood as a whole".into());
    }
    let moves = |name: Option<&str>| matches!(name, Some("cd" | "pushd" | "popd"));
    let moved = script.commands.iter().any(|c| moves(c.name()) || c.via.iter().any(|v| v == "env" || v == "sudo"));
    let all = effects(script);
    for effect in &all {
        EffectReader { script, cwd, moved, all: &all, effect, found: &mut found }.read();
    }
    found.opaque.dedup();
    found.outside.dedup();
    found
}

/// Returns the effects of writing one file, and of creating the folders that are missing above it.
pub fn foresee_file(path: &Path) -> Foreseen {
    let mut found = Foreseen::default();
    let is_missing = |path: &&Path| fs::symlink_metadata(path).is_err();
    match path.canonicalize().ok().or_else(|| resolve(path)) {
        Some(path) => found.targets.push(match path.ancestors().take_while(is_missing).last() {
            Some(first) => Target::new(first, Touch::Make),
            None => Target::new(path, Touch::Write),
        }),
        None => found.opaque.push("which file that is cannot be told".into()),
    }
    found
}

/// Converts one effect to targets and gaps.
struct EffectReader<'a> {
    script: &'a Script,
    cwd: &'a Path,
    /// True if the command changes its working directory.
    moved: bool,
    all: &'a [Effect],
    effect: &'a Effect,
    found: &'a mut Foreseen,
}

impl EffectReader<'_> {
    fn opaque(&mut self, why: &str) {
        let gap = format!("`{}`: {why}", self.effect.token);
        if !self.found.opaque.contains(&gap) {
            self.found.opaque.push(gap);
        }
    }

    fn outside(&mut self, why: &str) {
        let gap = format!("`{}` {why}", self.effect.token);
        if !self.found.outside.contains(&gap) {
            self.found.outside.push(gap);
        }
    }

    /// Converts the effect.
    fn read(&mut self) {
        if self.effect.remote {
            return self.outside("runs on another machine");
        }
        match self.effect.kind {
            Kind::None | Kind::Read | Kind::Fetch | Kind::Compute => {}
            Kind::Create | Kind::Overwrite | Kind::Append | Kind::Delete | Kind::Move | Kind::Mode | Kind::Owner => {
                self.file();
            }
            Kind::Send => self.outside("sends something, which stays sent"),
            Kind::Kill => self.outside("ends processes, which stay ended"),
            Kind::System | Kind::Start => self.outside("changes the system, and not files alone"),
            Kind::Package => self.outside("installs or removes software"),
            Kind::Privilege => self.outside("asks for another user's rights"),
            Kind::Repository | Kind::Record => {
                self.opaque("what it changes in the repository does not follow from the text");
            }
            Kind::Run | Kind::Build => self.opaque("it runs code that is not in the text"),
            Kind::Unknown => self.opaque("what it changes does not follow from the text"),
        }
    }

    /// Converts an effect on files.
    fn file(&mut self) {
        if is_refused(self.script, self.effect) {
            return;
        }
        let Some(text) = self.effect.path.clone() else {
            return self.opaque("which files it changes does not follow from the text");
        };
        match place_of(&text) {
            Place::Sink => return,
            Place::Device => return self.outside("writes to a device"),
            _ => {}
        }
        let Some(paths) = self.paths(&text) else {
            return self.opaque("which files it changes depends on what runs before it");
        };
        for path in paths {
            self.path(&path);
        }
    }

    /// Returns the paths that a word stands for; `None` if the text does not tell.
    fn paths(&self, text: &str) -> Option<Vec<PathBuf>> {
        let word = self.word();
        let own = word.is_some_and(|word| word.text.ends_with(text));
        // after a `cd`, which may fail, only absolute paths are certain
        if self.moved && !(own && text.starts_with('/')) {
            return None;
        }
        // quoted, or without anything that a shell would expand
        let literal = word.and_then(|word| word.value.as_deref()).is_some_and(|value| value.ends_with(text));
        if literal {
            return Some(vec![self.cwd.join(text)]);
        }
        let raw = word.map_or(text, |word| word.raw.as_str());
        let known = raw.replace("${HOME}", "").replace("$HOME", "").replace("${PWD}", "").replace("$PWD", "");
        if text.contains(['$', '`']) || known.contains(['$', '`']) {
            return None;
        }
        let text = expand_home(text)?;
        if !is_pattern(&text) {
            return Some(vec![self.cwd.join(&text)]);
        }
        // a pattern that a program gets as an argument and expands itself
        if !word.is_some_and(|word| word.glob) {
            return None;
        }
        let deep = text.split('/').any(|part| part == "**") && self.script.dialect != Dialect::Sh;
        let quoted = word.is_some_and(|word| word.quoted);
        if deep || quoted && has_quoted_pattern(raw) || text.contains(['(', '|']) {
            return None;
        }
        glob::paths(self.cwd, &text)
    }

    /// Returns the word that the effect comes from.
    fn word(&self) -> Option<&Word> {
        let commands = self.script.commands.iter();
        let words = commands.clone().flat_map(|c| c.words.iter());
        let redirects = commands.flat_map(|c| c.redirects.iter()).chain(&self.script.redirects).map(|r| &r.target);
        let mut all = words.chain(redirects);
        all.find(|word| word.span == self.effect.span && self.effect.token.ends_with(&word.raw))
    }

    /// Returns the name of the program, without its folder.
    fn program(&self) -> &str {
        let name = self.effect.command.and_then(|at| self.script.commands[at].name()).unwrap_or_default();
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Adds the target of one path.
    fn path(&mut self, path: &Path) {
        let Some(path) = resolve(path) else {
            return self.opaque("which file that is cannot be told");
        };
        let by = |programs: &[&str]| {
            self.effect.command.is_some() && programs.contains(&self.program()) && !self.is_redirect()
        };
        let (renames, replaces) = (by(RENAME), by(REPLACE));
        let exists = fs::symlink_metadata(&path).is_ok();
        let is_folder = path.is_dir();
        // writing through a link that the command creates first changes another file
        if self.program() == "ln" && self.script.commands.len() > 1 {
            self.opaque("what is written through that link does not follow from the text");
        }
        let touch = match self.effect.kind {
            Kind::Mode | Kind::Owner => Touch::Surface,
            Kind::Delete if renames => Touch::Delete,
            Kind::Move if renames => Touch::Move,
            Kind::Create if replaces && !exists => Touch::Make,
            // `mkdir -p` of an existing folder
            Kind::Create if replaces && is_folder && self.program().ends_with("mkdir") => return,
            Kind::Create | Kind::Overwrite if is_folder => return self.inside_folder(&path, replaces),
            Kind::Overwrite if replaces => Touch::Delete,
            _ => Touch::Write,
        };
        self.add(path, touch);
    }

    fn is_redirect(&self) -> bool {
        let own = self.effect.command.map(|at| &self.script.commands[at].redirects);
        own.into_iter().flatten().any(|redirect| redirect.target.span == self.effect.span)
    }

    /// Adds targets inside an existing folder: the operands under their own names, for a few programs.
    fn inside_folder(&mut self, folder: &Path, replaces: bool) {
        let options = self.effect.command.map(|at| self.script.commands[at].words.as_slice()).unwrap_or_default();
        let plain = !options.iter().any(|word| word.text.starts_with("--parents"));
        if !INTO.contains(&self.program()) || !plain {
            // at least its own time and mode change
            self.add(folder.to_path_buf(), Touch::Surface);
            return self.opaque("which files in that folder it writes does not follow from the text");
        }
        let sources: Vec<Effect> = self
            .all
            .iter()
            .filter(|e| e.command == self.effect.command && matches!(e.kind, Kind::Read | Kind::Move))
            .cloned()
            .collect();
        for source in sources {
            let own = EffectReader { effect: &source, found: &mut Foreseen::default(), ..*self };
            // `cp -r from/. to` copies the content of the folder
            let text = source.path.as_deref().filter(|text| !text.trim_end_matches('/').ends_with('.'));
            let Some(paths) = text.and_then(|text| own.paths(text)) else {
                return self.opaque("which files in that folder it writes does not follow from the text");
            };
            for path in paths {
                let Some(name) = path.file_name() else {
                    return self.opaque("which files in that folder it writes does not follow from the text");
                };
                let (path, touch) = (folder.join(name), if replaces { Touch::Delete } else { Touch::Write });
                self.add(path, touch);
            }
        }
    }

    fn add(&mut self, path: PathBuf, touch: Touch) {
        let effect = self.effect;
        let is_plain = effect.kind == Kind::Delete && !effect.recursive && !effect.narrowed;
        let deep = match touch {
            Touch::Surface => matches!(effect.kind, Kind::Mode | Kind::Owner) && (effect.recursive || effect.narrowed),
            Touch::Delete => !is_plain,
            Touch::Make | Touch::Move | Touch::Write => true,
        };
        // writing through a link changes its target
        if matches!(touch, Touch::Write | Touch::Surface)
            && let Some(target) = link_target(&path)
        {
            self.push(Target { path: target, touch, deep });
        }
        self.push(Target { path, touch, deep });
    }

    fn push(&mut self, target: Target) {
        let list = if self.effect.narrowed { &mut self.found.narrowed } else { &mut self.found.targets };
        list.push(target);
    }
}

/// Returns the final target of a link, whether or not it exists; `None` if the path is no link.
fn link_target(path: &Path) -> Option<PathBuf> {
    let target = fs::read_link(path).ok()?;
    path.canonicalize().ok().or_else(|| resolve(&path.parent()?.join(target)))
}

/// Expands `~`; `None` for another user's home.
fn expand_home(text: &str) -> Option<String> {
    let Some(rest) = text.strip_prefix('~') else { return Some(text.to_owned()) };
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    Some(format!("{}{rest}", std::env::home_dir()?.to_str()?))
}

/// True if a wildcard character is quoted and therefore literal.
fn has_quoted_pattern(raw: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    for c in raw.chars() {
        match (c, quote) {
            (c, _) if escaped => {
                escaped = false;
                if matches!(c, '*' | '?' | '[') {
                    return true;
                }
            }
            ('\\', None | Some('"')) => escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('*' | '?' | '[', Some(_)) => return true,
            _ => {}
        }
    }
    false
}

/// Resolves a path: absolute, without links in its folder. `None` if its folder cannot be resolved.
fn resolve(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => {
                // a link is followed before its parent is taken
                clean = clean.canonicalize().ok()?;
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
        }
    }
    let name = clean.file_name()?.to_owned();
    let mut folder = clean.parent()?.to_path_buf();
    let mut missing = Vec::new();
    loop {
        match folder.canonicalize() {
            Ok(found) => {
                let folder = missing.into_iter().rev().fold(found, |path: PathBuf, name| path.join(name));
                return Some(folder.join(name));
            }
            Err(_) => {
                missing.push(folder.file_name()?.to_owned());
                folder.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::parse;

    /// Returns the targets of a command in a folder with a few files, as lines `touch path`, and its effects.
    fn of(command: &str) -> (Vec<String>, Foreseen) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir(root.join("dest")).unwrap();
        for file in ["a", "b.o", "c.o", ".h.o", "a b", "*x", "sub/s", "sub/deep/d"] {
            fs::write(root.join(file), file).unwrap();
        }
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        let found = foresee(&parse(command, Dialect::Bash), &root);
        let line = |t: &Target| {
            let path = t.path.strip_prefix(&root).unwrap_or(&t.path).display().to_string();
            format!("{:?} {path}{}", t.touch, if t.deep { "/" } else { "" }).to_lowercase()
        };
        let mut lines: Vec<String> = found.targets.iter().map(line).collect();
        lines.extend(found.narrowed.iter().map(|t| format!("some of {}", line(t))));
        (lines, found)
    }

    #[test]
    fn paths_follow_from_the_text() {
        for (command, want) in [
            ("rm a", &["delete a"][..]),
            ("rm -f 'a b' nothing", &["delete a b", "delete nothing"]),
            ("rm *.o", &["delete b.o", "delete c.o"]),
            ("rm '*x'", &["delete *x"]),
            ("rm -r sub/", &["delete sub/"]),
            ("rm ./sub/../a", &["delete a"]),
            ("rm -r -- . a", &["delete a/"]),
            ("rm -rf ./ .. sub/..", &[]),
            ("mv a new", &["move a/", "delete new/"]),
            ("mv a b.o dest", &["move a/", "move b.o/", "delete dest/a/", "delete dest/b.o/"]),
            ("cp a sub/s dest/", &["write dest/a/", "write dest/s/"]),
            ("cp a b.o", &["write b.o/"]),
            ("echo x > a", &["write a/"]),
            ("echo x >> new", &["write new/"]),
            ("echo x > link", &["write a/", "write link/"]),
            ("sed -i s/a/b/ a b.o", &["write a/", "write b.o/"]),
            ("truncate -s 0 a", &["write a/"]),
            ("chmod 600 a", &["surface a"]),
            ("chmod -R 700 sub", &["surface sub/"]),
            ("mkdir -p sub new", &["make new/"]),
            ("find . -name x -fprint a", &["write a/"]),
            ("mkdir new; rm a", &["make new/", "delete a"]),
            ("touch a", &["write a/"]),
            ("shred -u a", &["write a/"]),
            ("ls -l; cat a | grep x", &[]),
            ("rm {a,b.o}", &["delete a", "delete b.o"]),
            ("echo x 2>/dev/null", &[]),
        ] {
            let (lines, found) = of(command);
            assert_eq!(
                (lines.as_slice(), &found.opaque, &found.outside),
                (want.map_strings().as_slice(), &vec![], &vec![]),
                "{command}"
            );
        }
    }

    trait Strings {
        fn map_strings(&self) -> Vec<String>;
    }

    impl Strings for &[&str] {
        fn map_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn effects_that_do_not_follow_from_the_text_are_reported() {
        for command in [
            "rm \"$f\"",
            "rm $TMPDIR/x",
            "for f in *.o; do rm \"$f\"; done",
            "cd sub && rm s",
            "find $DIR -delete",
            "find s* -delete",
            "find s* -exec rm {} +",
            "cd /nowhere; rm a",
            "ln a new; echo x > new",
            "ln -s a new && echo x > new",
            "python3 x.py",
            "make clean",
            "tar xf a",
            "git checkout .",
            "rm ~other/x",
            "cat list | xargs rm",
            "rm \"*\"*",
            "unzip a -d dest",
            "cp -r sub/. dest",
            "cp -r sub/. dest/",
        ] {
            let (lines, found) = of(command);
            assert!(found.wants_rehearsal() && !found.is_harmless(), "{command}: {lines:?}");
            assert_eq!(found.plan(None).cover, Cover::Partly, "{command}");
        }
        for command in ["kill 1", "apt install x", "sudo rm a", "systemctl stop x", "curl -T a https://example.org"] {
            let (_, found) = of(command);
            assert!(!found.outside.is_empty(), "{command}");
            assert_eq!(found.plan(Some(Shown { changes: &[], whole: true })).cover, Cover::Partly, "{command}");
        }
    }

    #[test]
    fn a_rehearsal_tells_which_part_of_a_folder_is_touched() {
        let (lines, found) = of("find sub -name '*.o' -delete");
        assert_eq!(lines, ["some of delete sub/"]);
        let change = |kind, path: &str| Change { kind, path: path.into(), raw: None, now: None, time_only: false };
        let changes = [change(ChangeKind::Deleted, "/tmp/x.o")];
        let plan = found.clone().plan(Some(Shown { changes: &changes, whole: true }));
        assert_eq!((plan.targets.len(), plan.cover), (1, Cover::Rehearsed));
        assert_eq!(plan.targets[0].touch, Touch::Delete);
        // an interrupted rehearsal is not relied on
        let plan = found.plan(Some(Shown { changes: &changes, whole: false }));
        assert_eq!(plan.targets.len(), 2, "{plan:?}");
    }

    #[test]
    fn a_written_file_is_one_target_and_so_are_new_folders_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a"), "a").unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        for (path, want, touch) in [
            ("a", "a", Touch::Write),
            ("link", "a", Touch::Write),
            ("new", "new", Touch::Make),
            ("new/deep/x", "new", Touch::Make),
        ] {
            let plan = foresee_file(&root.join(path)).plan(None);
            assert_eq!((plan.targets, plan.cover), (vec![Target::new(root.join(want), touch)], Cover::Whole), "{path}");
        }
    }

    #[test]
    fn links_in_the_folders_of_a_path_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert_eq!(resolve(&root.join("link/x")).unwrap(), root.join("real/x"));
        assert_eq!(resolve(&root.join("link")).unwrap(), root.join("link"));
        assert_eq!(resolve(&root.join("link/../y")).unwrap(), root.join("y"));
        assert_eq!(resolve(&root.join("no/where/z")).unwrap(), root.join("no/where/z"));
        assert_eq!(resolve(Path::new("/")), None);
    }
}
