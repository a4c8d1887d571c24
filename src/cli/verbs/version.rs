//! `caro version`: prints the version, the system and the devices that were compiled in, for bug reports.

use crate::{Cx, Exit, Outcome};

/// Arguments of `caro version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// Prints version, system and the devices that were compiled in.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let mut devices = vec!["cpu"];
    if cfg!(feature = "cuda") {
        devices.push("cuda");
    }
    if cfg!(feature = "metal") {
        devices.push("metal");
    }
    if args.json {
        cx.ui.json(&serde_json::json!({ "version": version, "os": os, "arch": arch, "devices": devices }))?;
    } else {
        cx.ui.data(&format!("caro {version} ({os} {arch}, {})", devices.join(", ")))?;
    }
    Ok(Exit::Success)
}
