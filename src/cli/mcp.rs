//! `caro mcp`: the servers whose tools an agent may use, and what is wrong with them; and this program as such a server, which is
//! [`super::serve::stdio`].
//!
//! They are named in `mcp.json` beside the configuration file, and in a project's own `.mcp.json`, which counts once the
//! person has agreed to it: it starts programs.

use super::request::typed;
use super::serve::stdio;
use super::ui::{Role, plural};
use super::{Cx, Exit, Failure, Outcome, download, env, project};
use caro_agent::mcp::{self, Config, Hub, Origin, Place, Standing, Trust};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The project's file.
const PROJECT: &str = ".mcp.json";
/// How long an agent waits for servers before it begins without them.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Show and check the MCP servers whose tools agents use, or be one
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the configured servers; starts none
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Start the servers and show their tools
    Check {
        /// Only these
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show what the project's .mcp.json would start, and agree to it
    Trust {
        /// Agree without being asked
        #[arg(short, long)]
        yes: bool,
        /// Take the agreement back
        #[arg(long, conflicts_with = "yes")]
        revoke: bool,
    },
    Serve(stdio::Args),
}

/// Does what was asked for.
///
/// # Errors
/// If a file cannot be read; of `check`, if a server does not work.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let root = cx.folder()?;
    match &args.what {
        What::Serve(args) => stdio::run(args, &root, cx),
        What::List { json } => list(&root, *json, cx),
        What::Check { names, json } => check(&root, names, *json, cx),
        What::Trust { yes, revoke } => trust(&root, *yes, *revoke, cx),
    }
}

/// What the files name.
#[derive(Default)]
pub struct Found {
    /// Servers that may be used, those of the project only if it is trusted.
    pub configs: Vec<Config>,
    /// Servers of a project that nobody has agreed to.
    pub untrusted: Vec<Config>,
    /// Names of those that cannot be used, as a warning says.
    pub unusable: Vec<String>,
    /// The project's file, if there is one.
    pub project: Option<PathBuf>,
    /// What is wrong.
    pub warnings: Vec<String>,
    /// True if some of that is wrong with files that are used.
    pub broken: bool,
}

/// Reads the files. Of two servers with one name the person's own counts. Those that are `tried` by name are not disabled.
pub fn found(root: &Path, tried: &[String], cx: &Cx) -> Found {
    let mut found = Found::default();
    if let Some(file) = user_file(cx) {
        let configs = read(&file, Origin::User, &mut found.warnings).map(|(_, configs)| configs);
        found.configs = configs.unwrap_or_default();
        found.broken = !found.warnings.is_empty();
    }
    if let Some(file) = project::nearest(root, PROJECT) {
        let mut warnings = Vec::new();
        if let Some((text, mut configs)) = read(&file, Origin::Project, &mut warnings) {
            configs.retain(|c| found.configs.iter().all(|own| own.name != c.name));
            match record(cx).is_some_and(|trust| trust.holds(&file, &text)) {
                true => {
                    found.configs.extend(configs);
                    found.broken |= !warnings.is_empty();
                }
                false => found.untrusted = configs,
            }
        }
        found.warnings.extend(warnings);
        found.project = Some(file);
    }
    let (warnings, unusable) = (&mut found.warnings, &mut found.unusable);
    found.configs.retain_mut(|c| {
        c.disabled &= !tried.contains(&c.name);
        // one that is not used is given nothing
        let filled = if c.disabled { Ok(()) } else { c.fill(&variable) };
        if let Err(wrong) = &filled {
            warnings.push(format!("{wrong}: {}", wrong.hint()));
            unusable.push(c.name.clone());
        }
        filled.is_ok()
    });
    found.broken |= !found.unusable.is_empty();
    found
}

/// What `${NAME}` stands for.
fn variable(name: &str) -> Option<String> {
    let (_, value) = env::everything().find(|(n, _)| n == name)?;
    value.into_string().ok()
}

fn read(file: &Path, origin: Origin, warnings: &mut Vec<String>) -> Option<(String, Vec<Config>)> {
    let read = mcp::config::text(file)
        .and_then(|text| text.map(|text| Ok((mcp::config::parse(&text, file, origin)?, text))).transpose());
    match read {
        Ok(None) => None,
        Ok(Some(((configs, wrong), text))) => {
            warnings.extend(wrong.iter().map(|w| format!("{w}: {}", w.hint())));
            Some((text, configs))
        }
        Err(error) => {
            warnings.push(format!("{error}: {}", error.hint()));
            None
        }
    }
}

/// The person's own file, beside the configuration file.
fn user_file(cx: &Cx) -> Option<PathBuf> {
    cx.dirs.config_file.as_ref().map(|file| file.with_file_name("mcp.json"))
}

fn record(cx: &Cx) -> Option<Trust> {
    cx.dirs.data.as_ref().map(|data| Trust::new(data.join("trusted-mcp.json")))
}

/// What servers are opened with.
///
/// # Errors
/// If the settings cannot be read.
pub fn place(root: &Path, cx: &Cx) -> Result<Place, Failure> {
    let authorities = download::settings(cx)?.hub.and_then(|hub| hub.authorities);
    let search = env::everything().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    Ok(Place { root: root.to_owned(), search, authorities })
}

/// Opens what may be used, and tells what is wrong and what waits for the person's word.
///
/// # Errors
/// If the system gives no threads.
pub fn open(root: &Path, cx: &Cx) -> Result<(Hub, Vec<String>), Failure> {
    let found = found(root, &[], cx);
    found.warnings.iter().for_each(|warning| cx.ui.warn(warning));
    tell_untrusted(&found, cx);
    let secrets = found.configs.iter().flat_map(Config::secrets).collect();
    let any = found.configs.iter().any(|c| !c.disabled);
    let hub = {
        let _status = any.then(|| cx.ui.status("starting MCP servers"));
        let place = if any { place(root, cx)? } else { Place { root: root.into(), search: None, authorities: None } };
        Hub::open(found.configs, &place, PATIENCE, cx.interrupt().cancel())
            .map_err(|e| Failure::internal(format!("no MCP servers: {e}")))?
    };
    hub.warnings().iter().for_each(|warning| cx.ui.warn(warning));
    Ok((hub, secrets))
}

fn tell_untrusted(found: &Found, cx: &Cx) {
    let servers = match found.untrusted.len() {
        0 => return,
        1 => "an MCP server".to_owned(),
        count => format!("{count} MCP servers"),
    };
    cx.ui.warn(&format!("{PROJECT} names {servers} that you have not agreed to: `caro mcp trust` shows and allows"));
}

fn list(root: &Path, json: bool, cx: &Cx) -> Outcome {
    let found = found(root, &[], cx);
    found.warnings.iter().for_each(|warning| cx.ui.warn(warning));
    let all = found.configs.iter().map(|c| (c, true)).chain(found.untrusted.iter().map(|c| (c, false)));
    let origin = |c: &Config| if c.origin == Origin::User { "user" } else { "project" };
    if json {
        let all: Vec<_> = all
            .map(|(c, trusted)| {
                serde_json::json!({
                    "name": c.name, "from": origin(c), "reach": c.shown(), "disabled": c.disabled, "trusted": trusted,
                    "timeout": c.timeout.as_secs_f64(), "auto_approve": c.approved, "given": c.given()
                })
            })
            .collect();
        cx.ui.document(&all)?;
        return Ok(Exit::Success);
    }
    let mut any = false;
    for (c, trusted) in all {
        any = true;
        let state = match (c.disabled, trusted) {
            (true, _) => "  (disabled)",
            (false, false) => "  (not agreed to: caro mcp trust)",
            _ => "",
        };
        let head = cx.ui.entry(Role::Accent, &c.name);
        let state = cx.ui.paint(Role::Caution, state);
        cx.ui.line(&format!("{head}  {}  {}{state}", origin(c), cx.ui.entry(Role::Plain, &c.shown())))?;
    }
    if !any {
        let file = user_file(cx).map_or_else(|| "mcp.json".into(), |file| file.display().to_string());
        cx.ui.note(&format!("no servers; they are named in {file} or in a project's {PROJECT}"));
    }
    Ok(Exit::Success)
}

fn check(root: &Path, names: &[String], json: bool, cx: &Cx) -> Outcome {
    // whoever names a server wants it tried
    let mut found = found(root, names, cx);
    found.warnings.iter().for_each(|warning| cx.ui.warn(warning));
    if names.is_empty() {
        tell_untrusted(&found, cx);
    }
    for name in names {
        let known = found.configs.iter().chain(&found.untrusted).find(|c| c.name == *name);
        match known {
            None if found.unusable.contains(name) => return Err(Failure::silent(Exit::No)),
            None => {
                return Err(
                    Failure::usage(format!("there is no MCP server `{name}`")).hint("`caro mcp list` shows them")
                );
            }
            Some(_) if found.untrusted.iter().any(|c| c.name == *name) => {
                return Err(Failure::no(format!("you have not agreed to the project's server `{name}`"))
                    .hint("`caro mcp trust` shows what it starts"));
            }
            Some(_) => {}
        }
    }
    if !names.is_empty() {
        found.configs.retain(|c| names.contains(&c.name));
    }
    let hub = {
        let _status = cx.ui.status("starting MCP servers");
        // each has its own limit, and is waited for as long
        let longest = found.configs.iter().map(|c| c.timeout).max().unwrap_or_default() + Duration::from_secs(1);
        Hub::open(found.configs, &place(root, cx)?, longest, cx.interrupt().cancel())
            .map_err(|e| Failure::internal(format!("no MCP servers: {e}")))?
    };
    let all = hub.standing();
    let failed = found.broken || all.iter().any(|s| s.took.is_none() || s.error.is_some());
    let exit = if failed { Exit::No } else { Exit::Success };
    if json {
        cx.ui.document(&all.iter().map(document).collect::<Vec<_>>())?;
        return Ok(exit);
    }
    for standing in &all {
        let name = cx.ui.entry(Role::Accent, &standing.name);
        match (&standing.error, standing.took) {
            (None, Some(took)) => {
                let usable = standing.tools.iter().filter(|(_, why)| why.is_none()).count();
                let rest = standing.tools.len() - usable;
                let rest = if rest > 0 { format!(", {rest} left out") } else { String::new() };
                let (tools, took) = (plural(usable, "tool"), took.as_secs_f64());
                let title = cx.ui.entry(Role::Dim, &standing.title);
                cx.ui.line(&format!("{name}  {tools}{rest}, {took:.1} s  {title}"))?;
                for (tool, why) in &standing.tools {
                    let tool = cx.ui.entry(Role::Plain, tool);
                    match why {
                        None => cx.ui.line(&format!("  {tool}"))?,
                        Some(why) => cx.ui.line(&format!("  {tool}  {}", cx.ui.entry(Role::Caution, why)))?,
                    }
                }
            }
            (Some(error), _) => {
                cx.ui.line(&format!("{name}  {}", cx.ui.paint(Role::Caution, &error.to_string())))?;
                cx.ui.hint(error.hint());
            }
            (None, None) => {
                cx.ui.line(&format!("{name}  {}", cx.ui.paint(Role::Caution, "stopped before it was ready")))?
            }
        }
    }
    if all.is_empty() {
        cx.ui.note("no servers to check");
    }
    Ok(exit)
}

fn document(s: &Standing) -> serde_json::Value {
    let usable: Vec<&str> = s.tools.iter().filter(|(_, why)| why.is_none()).map(|(tool, _)| tool.as_str()).collect();
    let left_out: Vec<_> = s
        .tools
        .iter()
        .filter_map(|(tool, why)| Some(serde_json::json!({"name": tool, "reason": why.as_ref()?})))
        .collect();
    serde_json::json!({
        "name": s.name, "title": s.title, "seconds": s.took.map(|t| t.as_secs_f64()),
        "error": s.error.as_ref().map(ToString::to_string), "tools": usable, "left_out": left_out
    })
}

fn trust(root: &Path, yes: bool, revoke: bool, cx: &Cx) -> Outcome {
    let file = project::nearest(root, PROJECT).ok_or_else(|| {
        Failure::no(format!("there is no {PROJECT} here")).hint("your own servers, in mcp.json, need no agreement")
    })?;
    let record =
        record(cx).ok_or_else(|| Failure::internal("this user has no home folder to keep the agreement in"))?;
    let failed = |e: std::io::Error| Failure::internal(format!("the agreement could not be kept: {e}"));
    if revoke {
        record.set(&file, None).map_err(failed)?;
        cx.ui.note(&format!("{} is not agreed to any more", file.display()));
        return Ok(Exit::Success);
    }
    let mut warnings = Vec::new();
    let Some((text, configs)) = read(&file, Origin::Project, &mut warnings) else {
        return Err(Failure::no(warnings.pop().unwrap_or_else(|| format!("{} is gone", file.display()))));
    };
    // what one agrees to is the whole file, and what is not understood cannot be shown
    if let Some(wrong) = warnings.first() {
        return Err(Failure::no(format!("nothing can be agreed to that cannot be shown: {wrong}"))
            .hint("mend or remove that entry"));
    }
    for c in &configs {
        let head = cx.ui.paint_err(Role::Accent, &c.name);
        cx.ui.tell(&format!("  {head}  {}", cx.ui.paint_err(Role::Command, &c.shown())));
        if !c.given().is_empty() {
            let given = format!("is given your variables {}", c.given().join(", "));
            cx.ui.tell(&format!("  {}  {}", c.name, cx.ui.paint_err(Role::Caution, &given)));
        }
    }
    if !yes {
        if !cx.ui.can_ask() {
            return Err(Failure::no("an agreement needs your word, and here is nobody to ask")
                .hint("call it from a terminal, or with --yes"));
        }
        let folder = file.parent().unwrap_or(root);
        cx.ui.ask(&format!("may agents start these programs whenever they work in {}? [y/N]", folder.display()));
        let reply = typed(cx)?.unwrap_or_default().to_lowercase();
        if !["y", "yes"].contains(&reply.as_str()) {
            cx.ui.note("nothing was agreed to");
            return Ok(Exit::No);
        }
    }
    record.set(&file, Some(&text)).map_err(failed)?;
    cx.ui.note(&format!("agreed, as long as {} stays as it is", file.display()));
    Ok(Exit::Success)
}
