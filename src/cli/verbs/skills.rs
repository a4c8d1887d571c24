//! `caro skills`: lists, shows, searches, checks and makes skills.
//!
//! Skills lie in `skills` beside the configuration file, and in a project's `.agents/skills`; four come with the
//! program.

use crate::setup::stores::{self, PROJECT_SKILLS};
use crate::term::given;
use crate::term::ui::{Role, in_line};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::skill::{self, Origin, Place, SkillError, choose, front, render};
use caro_base::files;
use std::path::{Path, PathBuf};

/// List, search, check and make skills
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the skills that agents have here
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show a skill as a prompt has it: filled in, with its references
    Show {
        /// The skill
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Rank the skills by how well they fit words
    Search {
        /// What is to be done
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// Show how the rank came about
        #[arg(long)]
        scores: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Say what is wrong in skills
    Check {
        /// Names, or folders; all skills if none is given
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Make a skill to fill in
    New {
        /// Its name: a-z, 0-9 and -
        #[arg(value_name = "NAME")]
        name: String,
        /// What it does and when it is used: it is found by this
        #[arg(long, value_name = "TEXT")]
        description: String,
        /// In the project's folder instead of your own
        #[arg(long)]
        project: bool,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// If there is no such skill, or something cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let root = cx.folder()?;
    match &args.what {
        What::List { json } => list(&root, *json, cx),
        What::Show { name, json } => show(&root, name, *json, cx),
        What::Search { words, scores, json } => search(&root, &given::question(words)?, *scores, *json, cx),
        What::Check { names, json } => check(&root, names, *json, cx),
        What::New { name, description, project } => new(&root, name, description, *project, cx),
    }
}

fn list(root: &Path, json: bool, cx: &Cx) -> Outcome {
    let (skills, _) = stores::skills(root, cx).find();
    skills.wrong.iter().for_each(|wrong| cx.ui.warn(&in_line(&wrong.to_string())));
    if json {
        let all: Vec<_> = skills.all.iter().map(|s| document(s)).collect();
        cx.ui.document(&all)?;
        return Ok(Exit::Success);
    }
    for s in &skills.all {
        line(cx, s, "")?;
    }
    if skills.all.iter().all(|s| s.origin == Origin::Board) {
        let folder = stores::own_skills(cx).map_or_else(|| "skills".into(), |folder| folder.display().to_string());
        cx.ui.note(&format!(
            "no skills of yours; they lie in {folder} or in a project's {PROJECT_SKILLS}, and `caro skills new` makes one"
        ));
    }
    Ok(Exit::Success)
}

fn line(cx: &Cx, s: &skill::Skill, prefix: &str) -> std::io::Result<()> {
    let from = match s.origin {
        Origin::User => "user",
        Origin::Project => "project",
        Origin::Board => "on board",
    };
    let head = cx.ui.entry(Role::Accent, &s.front.name);
    let text = s.front.description.split_whitespace().collect::<Vec<_>>().join(" ");
    cx.ui.line(&format!("{prefix}{head}  {}  {}", cx.ui.paint(Role::Dim, from), cx.ui.entry(Role::Plain, &text)))
}

fn document(s: &skill::Skill) -> serde_json::Value {
    serde_json::json!({
        "name": s.front.name, "description": s.front.description, "from": s.origin, "folder": s.folder,
        "front": s.front.all, "scripts": skill::script::scripts(s)
    })
}

fn show(root: &Path, name: &str, json: bool, cx: &Cx) -> Outcome {
    let (skills, _) = stores::skills(root, cx).find();
    let s = match skills.get(name) {
        Ok(s) => s,
        Err(unknown) => return Err(unusable(name, &stores::skill_places(root, cx)).unwrap_or_else(|| unknown.into())),
    };
    let rendered = render::render(s);
    if let Ok(rendered) = &rendered {
        rendered.missing_refs.iter().for_each(|(r, why)| cx.ui.warn(&in_line(&format!("{r} is left out: {why}"))));
    }
    if json {
        let mut document = document(s);
        match rendered {
            Ok(rendered) => {
                document["text"] = rendered.text.into();
                document["missing_refs"] = rendered.missing_refs.into_iter().map(|(name, _)| name).collect();
            }
            Err(error) => document["error"] = error.to_string().into(),
        }
        cx.ui.document(&document)?;
        return Ok(Exit::Success);
    }
    match rendered {
        Ok(rendered) => cx.ui.data(&rendered.text)?,
        // a skill that is withheld from models is still shown to the user
        Err(error @ SkillError::Withheld { .. }) => {
            cx.ui.warn(&in_line(&error.to_string()));
            let own = skill::Skill { origin: Origin::User, ..(**s).clone() };
            cx.ui.data(&render::render(&own)?.text)?;
        }
        Err(error) => return Err(error.into()),
    }
    let files = s.files(50);
    if !files.is_empty() {
        cx.ui.aside(Role::Dim, &format!("files: {}", in_line(&files.join(", "))));
    }
    Ok(Exit::Success)
}

/// The failure for a skill that has a folder but cannot be used; `None` if there is no such folder or no fatal finding.
fn unusable(name: &str, places: &[Place]) -> Option<Failure> {
    // a path is no name of a skill
    if Path::new(name).file_name().is_none_or(|last| last != name) {
        return None;
    }
    let folder = folder_of(name, places)?;
    let findings = skill::check::check(&folder, &place_of(&folder, places));
    let fatal = findings.into_iter().find(|finding| finding.fatal)?;
    Some(
        Failure::no(in_line(&format!("the skill `{name}` cannot be used: {}", fatal.text)))
            .hint("correct it; `caro skills check` shows all that is wrong"),
    )
}

/// Finds the first folder with that name in the places, whatever it contains.
fn folder_of(name: &str, places: &[Place]) -> Option<PathBuf> {
    places.iter().map(|place| place.folder.join(name)).find(|folder| folder.is_dir())
}

fn search(root: &Path, words: &str, scores: bool, json: bool, cx: &Cx) -> Outcome {
    let shelf = stores::searched_skills(root, cx);
    let (skills, mut index) = shelf.find();
    let hits = choose::search(words, &skills, &mut index, shelf.embedder.as_deref());
    index.save();
    if json {
        let all: Vec<_> = hits
            .iter()
            .map(|hit| {
                serde_json::json!({
                    "name": hit.skill.front.name, "score": hit.score, "words": hit.words, "nearness": hit.nearness,
                    "fits": hit.fits
                })
            })
            .collect();
        cx.ui.document(&all)?;
    } else {
        for hit in &hits {
            let prefix = match scores {
                true => format!("{:.3} (words {:.2}, meaning {:.2})  ", hit.score, hit.words, hit.nearness),
                false => String::new(),
            };
            line(cx, &hit.skill, &prefix)?;
        }
    }
    if hits.is_empty() {
        cx.ui.note("no skill has any of these words");
        return Ok(Exit::No);
    }
    Ok(Exit::Success)
}

fn check(root: &Path, names: &[String], json: bool, cx: &Cx) -> Outcome {
    let mut folders: Vec<PathBuf> = Vec::new();
    let places = stores::skill_places(root, cx);
    if names.is_empty() {
        // the user cannot fix the skills that come with the program
        for place in places.iter().filter(|place| place.origin != Origin::Board) {
            let entries = std::fs::read_dir(&place.folder).into_iter().flatten().flatten().map(|e| e.path());
            // a hidden folder is no skill: `caro forge` keeps what is unfinished in one
            let is_hidden = |p: &Path| p.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            folders.extend(entries.filter(|p| p.is_dir() && !is_hidden(p)));
        }
        folders.sort();
    }
    for name in names {
        let path = root.join(name);
        let folder = folder_of(name, &places).or_else(|| path.is_dir().then_some(path));
        folders.push(folder.ok_or_else(|| {
            Failure::usage(format!("there is no skill and no folder `{name}`"))
                .hint("`caro skills list` shows what there is")
        })?);
    }
    let wrong = stores::skills(root, cx).find().0.wrong;
    let findings = |folder: &PathBuf| {
        let mut findings = skill::check::check(folder, &place_of(folder, &places));
        // of two skills with the same name the second is never used
        let file = folder.join(skill::FILE).display().to_string();
        let duplicate = wrong.iter().find(|error| matches!(error, SkillError::Twice { path, .. } if *path == file));
        findings.extend(duplicate.map(|error| skill::check::Finding { fatal: true, text: error.to_string() }));
        findings
    };
    let all: Vec<_> = folders.iter().map(|folder| (folder, findings(folder))).collect();
    let has_findings = all.iter().any(|(_, findings)| !findings.is_empty());
    if json {
        let all: Vec<_> =
            all.iter().map(|(folder, findings)| serde_json::json!({"folder": folder, "findings": findings})).collect();
        cx.ui.document(&all)?;
        return Ok(if has_findings { Exit::No } else { Exit::Success });
    }
    for (folder, findings) in &all {
        let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let head = cx.ui.entry(Role::Accent, &name);
        if findings.is_empty() {
            cx.ui.line(&format!("{head}  fine"))?;
        }
        for finding in findings {
            let role = if finding.fatal { Role::Danger } else { Role::Caution };
            cx.ui.line(&format!("{head}  {}", cx.ui.entry(role, &finding.text)))?;
        }
    }
    if all.is_empty() {
        cx.ui.note("no skills to check");
    }
    Ok(if has_findings { Exit::No } else { Exit::Success })
}

/// The place that contains the folder; a folder outside all places counts as the user's own.
fn place_of(folder: &Path, places: &[Place]) -> Place {
    let parent = folder.parent().unwrap_or(folder);
    let real = parent.canonicalize().ok();
    let place = places.iter().find(|place| real.is_some() && place.folder.canonicalize().ok() == real);
    place.cloned().unwrap_or_else(|| Place { folder: parent.to_owned(), origin: Origin::User })
}

fn new(root: &Path, name: &str, description: &str, project: bool, cx: &Cx) -> Outcome {
    front::is_name(name)
        .map_err(|why| Failure::usage(why.replace("its `name`", "the name")).hint("for example: release-notes"))?;
    let place = if project { Some(root.join(PROJECT_SKILLS)) } else { stores::own_skills(cx) };
    let place = place.ok_or_else(|| Failure::usage("this user has no home folder").hint("use --project"))?;
    let folder = place.join(name);
    if folder.exists() {
        return Err(Failure::no(format!("{} exists already", folder.display())).hint("take another name, or edit it"));
    }
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if !(1..=1024).contains(&description.chars().count()) {
        return Err(Failure::usage("the description has to have 1 to 1024 characters")
            .hint("say what it does and when it is used: it is found by this"));
    }
    let quoted = serde_json::Value::from(description).to_string();
    let [how, files] = skill::check::TEMPLATE;
    let text = format!(
        "---\nname: {name}\ndescription: {quoted}\nversion: '1'\n---\n# {{{{ skill.name }}}}\n\n1. {how}\n2. {files}\n"
    );
    let failed = |e: std::io::Error| Failure::internal(format!("could not make {}: {e}", folder.display()));
    files::make_folder(&folder, |new| std::fs::write(new.join(skill::FILE), text)).map_err(failed)?;
    cx.ui.data(&folder.join(skill::FILE).display().to_string())?;
    cx.ui.note("fill it in, then `caro skills check`");
    Ok(Exit::Success)
}
