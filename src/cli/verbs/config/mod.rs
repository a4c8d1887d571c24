//! `caro config`: shows the settings in force and where they come from, and changes the settings files.

mod editor;

use crate::setup::change::{own, set, unset};
use crate::setup::config::KEYS;
use crate::setup::settings;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome, Settings};
use editor::edit;

/// Arguments of `caro config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    view: View,
    #[command(subcommand)]
    what: Option<What>,
}

/// The form in which values are shown.
#[derive(Debug, Clone, Copy, clap::Args)]
struct View {
    /// Show where a value comes from
    #[arg(long)]
    origin: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the value of one setting
    Get {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
        #[command(flatten)]
        view: View,
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
    Path {
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    /// The form for what is shown, wherever its flags stand: before the name of a subcommand or after it.
    ///
    /// # Errors
    /// If a flag stands before a subcommand that it has no effect on.
    fn view(&self) -> Result<View, Failure> {
        let View { origin, json } = self.view;
        let (shown, flags) = match &self.what {
            None => return Ok(self.view),
            Some(What::Get { view, .. }) => {
                return Ok(View { origin: origin || view.origin, json: json || view.json });
            }
            Some(What::Path { json: own }) => {
                (View { origin: false, json: json || *own }, [(origin, "--origin")].to_vec())
            }
            Some(What::Set { .. } | What::Unset { .. } | What::Edit { .. }) => {
                (self.view, [(origin, "--origin"), (json, "--json")].to_vec())
            }
        };
        match flags.iter().find(|(is_given, _)| *is_given) {
            None => Ok(shown),
            Some((_, flag)) => Err(Failure::usage(format!("`{flag}` has no effect on that part of `caro config`"))
                .hint("`caro config` and `caro config get KEY` take it")),
        }
    }
}

/// Shows the settings in force, or changes a file.
///
/// # Errors
/// If a layer is broken, a file cannot be changed, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let View { origin, json } = args.view()?;
    match &args.what {
        Some(What::Path { .. }) => {
            let path = own(cx)?;
            match json {
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
    if let Some(What::Get { key, .. }) = &args.what {
        match (json, origin) {
            (true, _) => cx.ui.document(&with_origin(key, config.text(key)))?,
            (false, true) => cx.ui.data(&config.origin(key).to_string())?,
            (false, false) => cx.ui.data(config.text(key))?,
        }
    } else if json {
        let all: serde_json::Map<_, _> =
            KEYS.iter().map(|k| (k.name.to_string(), with_origin(k.name, &config.shown(k.name)))).collect();
        cx.ui.document(&all)?;
    } else {
        for key in &KEYS {
            let value = toml::Value::String(config.shown(key.name));
            let note = if origin { config.origin(key.name).to_string() } else { key.what.to_string() };
            let setting = format!("{} = {value}", key.name);
            cx.ui.line(&format!("{setting:<38} {}", cx.ui.paint(Role::Dim, &format!("# {note}"))))?;
        }
    }
    validity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    #[test]
    fn a_flag_is_accepted_only_where_it_has_an_effect() {
        let view = |line: &str| {
            let args: Args = parsed(line.split_whitespace()).map_err(|_| ())?;
            args.view().map(|view| (view.origin, view.json)).map_err(|_| ())
        };
        for (line, wanted) in [
            ("", (false, false)),
            ("--origin", (true, false)),
            ("--json", (false, true)),
            ("get model --origin", (true, false)),
            ("--origin get model --json", (true, true)),
            ("path --json", (false, true)),
            ("--json path", (false, true)),
            ("set model x", (false, false)),
        ] {
            assert_eq!(view(line), Ok(wanted), "{line}");
        }
        for part in ["set model x", "unset model", "edit", "path"] {
            for flag in ["--origin", "--json"].into_iter().filter(|flag| part != "path" || *flag == "--origin") {
                for line in [format!("{flag} {part}"), format!("{part} {flag}")] {
                    assert_eq!(view(&line), Err(()), "{line}");
                }
            }
        }
    }
}
