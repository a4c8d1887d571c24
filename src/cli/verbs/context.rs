//! `caro context`: shows what caro knows about this machine.

use crate::term::ui::Role;
use crate::{Cx, Exit, Outcome};
use caro_host::ExecutionContext;
use std::time::Instant;

/// Arguments of `caro context`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
    /// Show how long the detection took (on stderr)
    #[arg(long)]
    timing: bool,
}

/// Detects the context and shows it.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let started = Instant::now();
    let context = ExecutionContext::detect(cx.dirs.cache.as_deref());
    let took = started.elapsed();
    if args.json {
        cx.ui.document(&document(&context))?;
    } else {
        for (name, value) in summary(&context) {
            cx.ui.line(&format!(
                "{}  {}",
                cx.ui.paint(Role::Dim, &format!("{name:<12}")),
                cx.ui.paint(Role::Plain, &value)
            ))?;
        }
    }
    if args.timing {
        cx.ui.tell(&format!("detected in {:.1} ms", took.as_secs_f64() * 1e3));
    }
    Ok(Exit::Success)
}

/// The facts for the lines of text: name and value.
fn summary(context: &ExecutionContext) -> [(&'static str, String); 8] {
    let shell = match &context.shell.path {
        Some(path) => format!("{} ({})", context.shell.name, path.display()),
        None => context.shell.name.clone(),
    };
    [
        ("system", format!("{} {}", context.os, context.os_version).trim().to_string()),
        ("distribution", context.distribution.clone().unwrap_or_else(|| "unknown".into())),
        ("architecture", context.arch.clone()),
        ("target", context.target.name().to_string()),
        ("shell", shell),
        ("user", context.user.clone()),
        ("directory", context.cwd.display().to_string()),
        ("commands", format!("{} on PATH", context.available_commands.len())),
    ]
}

/// The document: every field of the specification, with the name of the target and the path of each command.
fn document(context: &ExecutionContext) -> serde_json::Value {
    let commands: serde_json::Map<_, _> = context
        .available_commands
        .iter()
        .map(|(name, path)| (name.clone(), serde_json::json!({ "path": path.to_string_lossy() })))
        .collect();
    serde_json::json!({
        "os": context.os,
        "arch": context.arch,
        "os_version": context.os_version,
        "distribution": context.distribution,
        "cwd": context.cwd.to_string_lossy(),
        "shell": context.shell.name,
        "shell_path": context.shell.path.as_ref().map(|p| p.to_string_lossy()),
        "dialect": context.shell.dialect.name(),
        "user": context.user,
        "target": context.target.name(),
        "available_commands": commands,
    })
}
