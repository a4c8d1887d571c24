//! `caro mcp`: lists, checks and trusts the servers whose tools an agent may use. `caro mcp serve` makes this program
//! such a server ([`crate::served::stdio`]).
//!
//! [`servers`](crate::harness::servers) reads and opens the configured ones. They are named in `mcp.json` beside the
//! configuration file, and in a project's own `.mcp.json`, which counts only once the user has agreed to it, because
//! it starts programs.

use crate::harness::servers::{PROJECT, load, place, read, record, user_file, warn_untrusted};
use crate::served::stdio;
use crate::setup::project;
use crate::term::typed::agreed;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::mcp::{Config, Hub, Origin, Standing};
use std::path::Path;
use std::time::Duration;

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

/// Runs the chosen subcommand.
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

fn list(root: &Path, json: bool, cx: &Cx) -> Outcome {
    let found = load(root, &[], cx);
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
            (false, false) => "  (not agreed to: `caro mcp trust`)",
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
    // a server that is named is started even if it is disabled
    let mut found = load(root, names, cx);
    found.warnings.iter().for_each(|warning| cx.ui.warn(warning));
    if names.is_empty() {
        warn_untrusted(&found, cx);
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
        // each server has its own timeout: wait for the longest one
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
    // the user agrees to the whole file, so every entry has to be understood and shown
    if let Some(wrong) = warnings.first() {
        return Err(Failure::no(format!("nothing can be agreed to that cannot be shown: {wrong}"))
            .hint("correct or remove that entry"));
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
        let question = format!("may agents start these programs whenever they work in {}? [y/N]", folder.display());
        if !agreed(&question, cx)? {
            cx.ui.note("nothing was agreed to");
            return Ok(Exit::No);
        }
    }
    record.set(&file, Some(&text)).map_err(failed)?;
    cx.ui.note(&format!("agreed, as long as {} stays as it is", file.display()));
    Ok(Exit::Success)
}
