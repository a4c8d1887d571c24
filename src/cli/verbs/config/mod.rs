//! `caro config`: shows the settings in force and where they come from, and changes the settings files.

mod editor;

use crate::setup::change::{own, set, unset};
use crate::setup::config::KEYS;
use crate::setup::settings;
use crate::term::ui::Role;
use crate::{Cx, Exit, Outcome, Settings};
use editor::edit;

/// Arguments of `caro config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show where each value comes from
    #[arg(long, global = true)]
    origin: bool,
    /// Print a JSON document
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the value of one setting
    Get {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
    },
    /// Set a setting in your file
    Set {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
        /// Its new value
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// In the project's file
        #[arg(long)]
        project: bool,
    },
    /// Take a setting out of your file
    Unset {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
        /// Out of the project's file
        #[arg(long)]
        project: bool,
    },
    /// Open your file in $VISUAL or $EDITOR, and write it if it can be read then
    Edit {
        /// The project's file
        #[arg(long)]
        project: bool,
    },
    /// Print where the user's configuration file is, whether it exists or not
    Path,
}

/// Shows the settings in force, or changes a file.
///
/// # Errors
/// If a layer is broken, a file cannot be changed, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.what {
        Some(What::Path) => {
            let path = own(cx)?;
            match args.json {
                true => cx.ui.document(&path)?,
                false => cx.ui.data(&path.display().to_string())?,
            }
            return Ok(Exit::Success);
        }
        Some(What::Set { key, value, project }) => return set(key, value, *project, cx),
        Some(What::Unset { key, project }) => return unset(key, *project, cx),
        Some(What::Edit { project }) => return edit(*project, cx),
        Some(What::Get { .. }) | None => {}
    }
    let config = cx.config(&[])?;
    // an invalid value is shown as well, because its error sends users here to see where it comes from
    let validity = Settings::of(&config).and_then(|_| settings::serve(&config)).map(|_| Exit::Success);
    let with_origin =
        |name: &str, value: &str| serde_json::json!({ "value": value, "origin": config.origin(name).to_string() });
    if let Some(What::Get { key }) = &args.what {
        match (args.json, args.origin) {
            (true, _) => cx.ui.document(&with_origin(key, config.text(key)))?,
            (false, true) => cx.ui.data(&config.origin(key).to_string())?,
            (false, false) => cx.ui.data(config.text(key))?,
        }
    } else if args.json {
        let all: serde_json::Map<_, _> =
            KEYS.iter().map(|k| (k.name.to_string(), with_origin(k.name, &config.shown(k.name)))).collect();
        cx.ui.document(&all)?;
    } else {
        for key in &KEYS {
            let value = toml::Value::String(config.shown(key.name));
            let note = if args.origin { config.origin(key.name).to_string() } else { key.what.to_string() };
            let setting = format!("{} = {value}", key.name);
            cx.ui.line(&format!("{setting:<38} {}", cx.ui.paint(Role::Dim, &format!("# {note}"))))?;
        }
    }
    validity
}
