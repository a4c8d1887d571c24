//! Reads the files that name MCP servers, and opens the servers.

use crate::setup::{download, project};
use crate::{Cx, Failure, env};
use caro_agent::mcp::{self, Config, Hub, Origin, Place, Trust};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of a project's file.
pub const PROJECT: &str = ".mcp.json";
/// Most time that an agent waits for servers before it begins without them.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The servers that the files name, and the faults in the files.
#[derive(Default)]
pub struct Found {
    /// The servers that may be used; those of the project only if the user trusts it.
    pub configs: Vec<Config>,
    /// The servers of a project that the user has not agreed to.
    pub untrusted: Vec<Config>,
    /// The names of servers that cannot be used, for the reason given by a warning.
    pub unusable: Vec<String>,
    /// The project's file, if there is one.
    pub project: Option<PathBuf>,
    /// Warnings about faults in the files.
    pub warnings: Vec<String>,
    /// True if a file that is used has a fault.
    pub broken: bool,
}

/// Reads the files. Of two servers with the same name, the user's own counts. Servers named in `tried` are used even
/// if they are disabled.
pub fn load(root: &Path, tried: &[String], cx: &Cx) -> Found {
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
        // a disabled server gets no variables
        let result = if c.disabled { Ok(()) } else { c.fill(&variable) };
        if let Err(fault) = &result {
            warnings.push(format!("{fault}: {}", fault.hint()));
            unusable.push(c.name.clone());
        }
        result.is_ok()
    });
    found.broken |= !found.unusable.is_empty();
    found
}

/// Returns the value that `${NAME}` stands for.
fn variable(name: &str) -> Option<String> {
    let (_, value) = env::everything().find(|(n, _)| n == name)?;
    value.into_string().ok()
}

/// Reads the text of a file and the servers in it; `None` if it does not exist, or cannot be read, which is a warning.
pub fn read(file: &Path, origin: Origin, warnings: &mut Vec<String>) -> Option<(String, Vec<Config>)> {
    let read = mcp::config::text(file)
        .and_then(|text| text.map(|text| Ok((mcp::config::parse(&text, file, origin)?, text))).transpose());
    match read {
        Ok(None) => None,
        Ok(Some(((configs, faults), text))) => {
            warnings.extend(faults.iter().map(|fault| format!("{fault}: {}", fault.hint())));
            Some((text, configs))
        }
        Err(error) => {
            warnings.push(format!("{error}: {}", error.hint()));
            None
        }
    }
}

/// The user's own file, next to the configuration file.
pub fn user_file(cx: &Cx) -> Option<PathBuf> {
    cx.dirs.config_file.as_ref().map(|file| file.with_file_name("mcp.json"))
}

/// The record of the servers that the user has agreed to.
pub fn record(cx: &Cx) -> Option<Trust> {
    cx.dirs.data.as_ref().map(|data| Trust::new(data.join("trusted-mcp.json")))
}

/// Returns the place that servers are opened in.
///
/// # Errors
/// If the settings cannot be read.
pub fn place(root: &Path, cx: &Cx) -> Result<Place, Failure> {
    let authorities = download::settings(cx)?.hub.and_then(|hub| hub.authorities);
    let search = env::everything().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    Ok(Place { root: root.to_owned(), search, authorities })
}

/// Opens the servers that may be used, with their secrets. Prints the warnings, and which servers wait for the user's
/// consent.
///
/// # Errors
/// If the system gives no threads.
pub fn open(root: &Path, cx: &Cx) -> Result<(Hub, Vec<String>), Failure> {
    let found = load(root, &[], cx);
    found.warnings.iter().for_each(|warning| cx.ui.warn(warning));
    warn_untrusted(&found, cx);
    let secrets = found.configs.iter().flat_map(Config::secrets).collect();
    let any = found.configs.iter().any(|c| !c.disabled);
    let hub = {
        let _status = any.then(|| cx.ui.status("starting MCP servers"));
        let place = if any { place(root, cx)? } else { Place { root: root.into(), search: None, authorities: None } };
        Hub::open(found.configs, &place, START_TIMEOUT, cx.interrupt().cancel())
            .map_err(|e| Failure::internal(format!("no MCP servers: {e}")))?
    };
    hub.warnings().iter().for_each(|warning| cx.ui.warn(warning));
    Ok((hub, secrets))
}

/// Warns if servers of the project wait for the user's consent.
pub fn warn_untrusted(found: &Found, cx: &Cx) {
    let servers = match found.untrusted.len() {
        0 => return,
        1 => "an MCP server".to_owned(),
        count => format!("{count} MCP servers"),
    };
    cx.ui.warn(&format!("{PROJECT} names {servers} that you have not agreed to: `caro mcp trust` shows and allows"));
}
