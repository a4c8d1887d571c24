//! The servers that are configured: read from the files that name them, and opened.

use crate::setup::{download, project};
use crate::{Cx, Failure, env};
use caro_agent::mcp::{self, Config, Hub, Origin, Place, Trust};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The project's file.
pub const PROJECT: &str = ".mcp.json";
/// How long an agent waits for servers before it begins without them.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The servers that the files name.
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
    /// The faults that were found.
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

/// The value that `${NAME}` stands for.
fn variable(name: &str) -> Option<String> {
    let (_, value) = env::everything().find(|(n, _)| n == name)?;
    value.into_string().ok()
}

/// The text of a file and the servers in it; `None` where there is none, or where it cannot be read, which is told.
pub fn read(file: &Path, origin: Origin, warnings: &mut Vec<String>) -> Option<(String, Vec<Config>)> {
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
pub fn user_file(cx: &Cx) -> Option<PathBuf> {
    cx.dirs.config_file.as_ref().map(|file| file.with_file_name("mcp.json"))
}

/// The record of the servers that the person has agreed to.
pub fn record(cx: &Cx) -> Option<Trust> {
    cx.dirs.data.as_ref().map(|data| Trust::new(data.join("trusted-mcp.json")))
}

/// The place that servers are opened in.
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

/// Tells which servers of the project wait for the person's word.
pub fn tell_untrusted(found: &Found, cx: &Cx) {
    let servers = match found.untrusted.len() {
        0 => return,
        1 => "an MCP server".to_owned(),
        count => format!("{count} MCP servers"),
    };
    cx.ui.warn(&format!("{PROJECT} names {servers} that you have not agreed to: `caro mcp trust` shows and allows"));
}
