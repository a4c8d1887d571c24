//! `caro self uninstall`: lists everything of caro's on this machine, and removes it after the user has typed a word.
//!
//! - [`inventory`]: lists what is caro's. [`removal`]: removes it.
//!
//! The program itself stays. The command to remove it, which depends on how it was installed, is printed.

pub mod inventory;
pub mod removal;

use crate::setup::rc::{Loading, Shell};
use crate::setup::{download, rc};
use crate::term::typed::typed;
use crate::term::ui::{Role, in_line, plural, size};
use crate::{Cx, Dirs, Env, Exit, Failure, Outcome};
use caro_base::files::{self, Access};
use caro_serve::resident::{self, Ended};
use inventory::{Extent, Item};
use std::path::{Path, PathBuf};

/// Arguments of `caro self`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Remove everything that caro has made on this machine: settings, data, models, lines in the shells' files
    #[command(
        after_help = "It lists everything with its size and asks first. What is removed cannot be put back, and what `caro undo` \
                            keeps goes with it. Of the shells' own files (.bashrc and the like) only the line between caro's marks goes. The program itself stays; how to remove it is told at the end."
    )]
    Uninstall {
        /// List it, and remove nothing
        #[arg(short = 'n', long)]
        dry_run: bool,
        /// Keep settings, sessions, notes, documents and what undo keeps: remove what can be made or fetched again, caro's
        /// lines in the shells' own files among it
        #[arg(long)]
        keep_data: bool,
        /// Remove without asking
        #[arg(short, long, conflicts_with = "dry_run")]
        yes: bool,
    },
}

/// The word that the user must type.
const WORD: &str = "uninstall";

/// Most entries of a folder that are named.
const MAX_NAMED: usize = 8;

/// Runs the chosen subcommand.
///
/// # Errors
/// If the user cannot be asked or does not confirm, or something cannot be removed.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let What::Uninstall { dry_run, keep_data, yes } = args.what;
    let models = download::settings(cx).ok();
    // the folders without caro's own variables; those of the platform count
    let usual = Dirs::find(&Env::default());
    let mut items = inventory::all(&cx.dirs, &usual, models.as_ref());
    items.retain(|item| !(keep_data && item.purpose.is_irreplaceable()));
    let shells = loading_files();
    let copy = rc::nu_script();
    let residents = cx.dirs.runtime.as_deref().and_then(|folder| resident::list(folder).ok()).unwrap_or_default().len();
    if items.is_empty() && shells.is_empty() && copy.is_none() && residents == 0 {
        cx.ui.note("nothing of caro's is here but the program");
        print_remaining(keep_data, &items, cx);
        return Ok(Exit::Success);
    }
    list(&items, &shells, copy.as_deref(), residents, cx)?;
    if dry_run {
        print_remaining(keep_data, &items, cx);
        return Ok(Exit::Success);
    }
    if !yes {
        if !cx.ui.can_ask() {
            return Err(Failure::no("here is nobody to ask").hint("--yes removes without asking, --dry-run only lists"));
        }
        cx.ui.ask(&format!("type {} to remove all of this for good:", cx.ui.paint_err(Role::Danger, WORD)));
        if typed(cx)?.as_deref() != Some(WORD) {
            return Err(Failure::no("nothing was removed"));
        }
    }
    // a resident writes into folders that are removed
    if residents > 0 {
        let folder = cx.dirs.runtime.as_deref().map_or(Ok(Vec::new()), resident::stop);
        for one in folder.map_err(|e| Failure::no(&e).hint(e.hint()))? {
            let (Ended::Asked(pid) | Ended::Killed(pid)) = one;
            cx.ui.note(&format!("process {pid} ended"));
        }
    }
    let mut left: Vec<removal::NotRemoved> = shells.iter().filter_map(|file| remove_line(file).err()).collect();
    if let Some(copy) = copy {
        left.extend(std::fs::remove_file(&copy).err().map(|e| (copy, e.to_string())));
    }
    for item in &items {
        let rest = removal::remove(item);
        if rest.is_empty() {
            cx.ui.note(&format!("removed {}", in_line(&item.path.display().to_string())));
        }
        left.extend(rest);
    }
    for (path, why) in &left {
        cx.ui.warn(&format!("{}: {}", in_line(&path.display().to_string()), in_line(why)));
    }
    print_remaining(keep_data, &items, cx);
    if left.is_empty() {
        return Ok(Exit::Success);
    }
    Err(Failure::no(format!("{} could not be removed", plural(left.len(), "thing")))
        .hint("what was listed above can be removed by hand"))
}

/// The shells' startup files that have caro's line between its marks.
fn loading_files() -> Vec<PathBuf> {
    let files = Shell::ALL.into_iter().filter_map(rc::file);
    files.filter(|file| rc::loading_of(file) == Loading::Block).collect()
}

/// Removes caro's line from a shell's file.
fn remove_line(file: &Path) -> Result<(), removal::NotRemoved> {
    let failed = |why: String| (file.to_owned(), why);
    let text = rc::read(file).map_err(|e| failed(e.to_string()))?;
    let without =
        rc::without(&text).ok_or_else(|| failed("the marks around caro's line do not stand in pairs".into()))?;
    let access = file.metadata().map_or(Access::Umask, |meta| Access::Like(meta.permissions()));
    files::replace(file, without.as_bytes(), access).map_err(|e| failed(e.to_string()))
}

/// A line for each thing.
fn list(items: &[Item], shells: &[PathBuf], copy: Option<&Path>, residents: usize, cx: &Cx) -> Result<(), Failure> {
    let line = |what: &str, place: String, about: String| {
        let place = cx.ui.entry(Role::Plain, &place);
        cx.ui.line(&format!(
            "{}  {place}  {}",
            cx.ui.paint(Role::Accent, &format!("{what:<9}")),
            cx.ui.entry(Role::Dim, &about)
        ))
    };
    if residents > 0 {
        let many = if residents == 1 { "1 resident".to_owned() } else { format!("{residents} residents") };
        line("process", many, "with the model ready; ended first".into())?;
    }
    for file in shells {
        line("shell", file.display().to_string(), "the line between caro's marks".into())?;
    }
    if let Some(copy) = copy {
        line("shell", copy.display().to_string(), "the copy of the script that nushell loads".into())?;
    }
    for item in items {
        let about =
            format!("{}, {}", size(item.bytes), plural(usize::try_from(item.files).unwrap_or(usize::MAX), "file"));
        let about = match &item.extent {
            Extent::Whole => about,
            Extent::Link(target) => format!("the link; {} stays", target.display()),
            Extent::Entries(entries) if entries.contains(&item.path) => about,
            Extent::Entries(entries) => {
                let names = entries.iter().filter_map(|entry| entry.file_name()).map(|name| name.to_string_lossy());
                let named: Vec<_> = names.take(MAX_NAMED).collect();
                let more = if entries.len() > MAX_NAMED { ", ..." } else { "" };
                format!("{about}, what caro made there: {}{more}", named.join(", "))
            }
        };
        line(item.purpose.name(), item.path.display().to_string(), about)?;
    }
    let bytes: u64 = items.iter().map(|item| item.bytes).sum();
    cx.ui.note(&format!("{} in all", size(bytes)));
    Ok(())
}

/// Prints what stays, and how the program is removed.
fn print_remaining(keep_data: bool, items: &[Item], cx: &Cx) {
    if keep_data {
        cx.ui.note("settings and data stay");
    }
    let by_hand = Shell::ALL.into_iter().filter_map(rc::file).filter(|file| rc::loading_of(file) == Loading::ByHand);
    for file in by_hand {
        cx.ui.note(&format!("stays: the line with `caro init` in {}, which was written by hand", file.display()));
    }
    for file in completions().into_iter().filter(|file| file.exists()) {
        cx.ui.note(&format!("stays: {}, a completion script", file.display()));
    }
    if let Some(file) = hub_copy(cx).filter(|file| !items.iter().any(|item| file.starts_with(&item.path))) {
        cx.ui.note(&format!("stays: {}, which the hub's own tools keep", file.display()));
    }
    if let Ok(settings) = cx.settings(&[]) {
        if settings.memory_url.is_some() {
            cx.ui.note("stays: notes and conversations on the server of `memory_url`");
        }
        if settings.workspace_url.is_some() {
            cx.ui.note("stays: files of agents in the bucket of `workspace_url`");
        }
    }
    if let Ok(program) = std::env::current_exe() {
        cx.ui.note(&format!("stays: the program, {}; {}", program.display(), removal_hint(&program)));
    }
}

/// Says how the program is removed, which depends on how it was installed: the files around it show that.
fn removal_hint(program: &Path) -> String {
    let prefix = program.parent().and_then(Path::parent);
    let is_of_cargo = program.parent().is_some_and(|folder| folder.ends_with(".cargo/bin"));
    if is_of_cargo {
        return "`cargo uninstall caro-cli` removes it".into();
    }
    if program.components().any(|part| part.as_os_str() == "Cellar") {
        return "`brew uninstall caro` removes it".into();
    }
    if prefix.is_some_and(|prefix| prefix.join("share/doc/caro/changelog.gz").is_file()) {
        return "`apt remove caro` as root removes it".into();
    }
    if prefix.is_some_and(is_of_pip) {
        return "`pip uninstall caro-cli` removes it".into();
    }
    let installer = prefix.map(|prefix| prefix.join("lib/caro"));
    let installer =
        installer.filter(|folder| folder.join("installed").is_file() && folder.join("install.sh").is_file());
    let parts = match (&installer, prefix) {
        (Some(folder), Some(prefix)) => {
            let script = folder.join("install.sh");
            vec!["sh".into(), script, "--prefix".into(), prefix.to_owned(), "--uninstall".into()]
        }
        _ => vec![PathBuf::from("rm"), program.to_owned()],
    };
    let words: Vec<String> = parts.iter().map(|part| part.display().to_string()).collect();
    shlex::try_join(words.iter().map(String::as_str))
        .map_or_else(|_| "it can be deleted as any file".into(), |line| format!("`{line}` removes it"))
}

/// True if a Python below the prefix has the package that the wheel installs.
fn is_of_pip(prefix: &Path) -> bool {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let libraries = below(&prefix.join("lib")).chain([prefix.join("Lib")]);
    let packages = libraries.flat_map(|folder| ["site-packages", "dist-packages"].map(|name| folder.join(name)));
    packages.flat_map(|folder| below(&folder)).any(|entry| {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("caro_cli-") && name.ends_with(".dist-info")
    })
}

/// The usual places of scripts of `caro completions`.
fn completions() -> Vec<PathBuf> {
    let Some(home) = std::env::home_dir().filter(|home| home.is_absolute()) else { return Vec::new() };
    let usual = [
        ".local/share/bash-completion/completions/caro",
        ".config/fish/completions/caro.fish",
        ".zfunc/_caro",
        ".local/share/zsh/site-functions/_caro",
    ];
    usual.map(|path| home.join(path)).to_vec()
}

/// The model's file, if it is not in our own folder.
fn hub_copy(cx: &Cx) -> Option<PathBuf> {
    let folders = download::settings(cx).ok()?;
    let card = caro_model::fetch::find(&cx.settings(&[]).ok()?.model, &folders).ok()??;
    let file = caro_model::fetch::locate(&card, &folders)?;
    (!card.is_added() && !file.starts_with(&folders.models)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_hint_depends_on_how_the_program_was_installed() {
        assert_eq!(removal_hint(Path::new("/home/u/.cargo/bin/caro")), "`cargo uninstall caro-cli` removes it");
        assert_eq!(removal_hint(Path::new("/usr/local/bin/caro")), "`rm /usr/local/bin/caro` removes it");
        assert_eq!(removal_hint(Path::new("/o p/caro")), "`rm '/o p/caro'` removes it");
        assert_eq!(removal_hint(Path::new("/opt/Cellar/caro/1/bin/caro")), "`brew uninstall caro` removes it");
        let hint_with = |marks: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            for mark in marks {
                let file = dir.path().join(mark);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "").unwrap();
            }
            removal_hint(&dir.path().join("bin/caro")).replace(&dir.path().display().to_string(), "/prefix")
        };
        assert_eq!(hint_with(&["share/doc/caro/changelog.gz"]), "`apt remove caro` as root removes it");
        let record = "lib/python3.11/site-packages/caro_cli-1.2.3.dist-info/RECORD";
        assert_eq!(hint_with(&[record]), "`pip uninstall caro-cli` removes it");
        assert_eq!(
            hint_with(&["lib/python3.11/site-packages/caro_client-1.dist-info/RECORD"]),
            "`rm /prefix/bin/caro` removes it"
        );
        assert_eq!(
            hint_with(&["lib/caro/install.sh", "lib/caro/installed"]),
            "`sh /prefix/lib/caro/install.sh --prefix /prefix --uninstall` removes it"
        );
        assert_eq!(hint_with(&["lib/caro/install.sh"]), "`rm /prefix/bin/caro` removes it");
    }

    #[test]
    fn our_line_is_removed_from_a_shells_file_and_its_mode_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".bashrc");
        std::fs::write(&file, "ls\n# >>> caro >>>\neval \"$(caro init bash)\"\n# <<< caro <<<\nexport A=1\n").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        remove_line(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "ls\nexport A=1\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        }
        std::fs::write(&file, "# >>> caro >>>\n").unwrap();
        assert!(remove_line(&file).unwrap_err().1.contains("pairs"));
    }
}
