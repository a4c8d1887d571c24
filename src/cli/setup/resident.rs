//! Uses the resident process that keeps a model ready, and runs this program as one.

use super::settings::Use;
use crate::{Cx, Exit, Failure, Settings, Ui};
use caro_command::library::commands;
use caro_model::Model;
use caro_model::adapter::AdapterChoice;
use caro_model::engine::{Device, Options};
use caro_serve::resident::{Absent, Client, Hosted, Setup, Weights, attach, host};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

pub use caro_serve::resident::WORD;

/// The place of a model.
#[derive(Debug)]
pub enum Resident {
    /// In the resident process, as long as that answers.
    Client(Arc<Client>),
    /// In this process, which serves as the resident of other calls.
    Host(Hosted),
    /// In this process, with the reason if a resident was wanted.
    None(Option<Absent>),
}

impl Resident {
    /// True if the resident process has answered so far.
    pub fn answers(&self) -> bool {
        matches!(self, Self::Client(client) if client.failed().is_none())
    }

    /// Prints which process has answered, and the reason, for `--verbose` and `--debug`.
    pub fn tell(&self, ui: &Ui) {
        let place = match self {
            Self::Client(client) => match client.failed() {
                None => format!("process {} answered", client.pid()),
                Some(why) => format!("process {} {why}; answered in this process", client.pid()),
            },
            Self::Host(_) => "other calls of this user are answered by this process too".to_owned(),
            Self::None(Some(why)) => format!("none ({why}); answered in this process"),
            Self::None(None) => return,
        };
        ui.fact("resident", &place);
    }
}

/// Returns the weights that a resident would keep ready for these settings.
pub fn weights(cx: &Cx, file: &Path, id: &str, settings: &Settings, adapter: Option<AdapterChoice>) -> Weights {
    Weights::Gguf {
        // a symbolic link and its target are the same model
        file: file.canonicalize().unwrap_or_else(|_| file.into()),
        id: id.into(),
        engine: settings.engine,
        device: settings.device,
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        context: Options::default().context,
        state_dir: cx.dirs.cache.as_ref().map(|cache| cache.join("prefix")),
        adapter,
    }
}

/// Opens the model: in the resident process if the settings want one and it can be used, else in this process.
///
/// # Errors
/// If the model cannot be opened.
pub fn model(cx: &Cx, settings: &Settings, weights: Weights) -> Result<(Arc<dyn Model>, Resident), Failure> {
    if !is_wanted(settings.resident, &weights) {
        return Ok((weights.open(commands())?, Resident::None(None)));
    }
    match client(cx, settings, &weights) {
        Ok(client) => {
            let client = Arc::new(client);
            Ok((client.clone(), Resident::Client(client)))
        }
        Err(absent) => {
            if settings.resident == Use::On {
                cx.ui.warn(&absent.to_string());
                cx.ui.hint(absent.hint());
            }
            Ok((weights.open(commands())?, Resident::None(Some(absent))))
        }
    }
}

/// Opens the model in this process for many callers: up to `slots` simultaneous requests are computed together. If a
/// resident is wanted, this process becomes it, so that a `caro "..."` beside a server does not load the model again.
///
/// # Errors
/// If the model cannot be opened.
pub fn for_many(
    cx: &Cx,
    settings: &Settings,
    weights: Weights,
    slots: usize,
) -> Result<(Arc<dyn Model>, Resident), Failure> {
    let model = weights.open_for_many(commands(), slots)?;
    if !is_wanted(settings.resident, &weights) {
        return Ok((model, Resident::None(None)));
    }
    let resident = match setup(cx, settings, &weights).and_then(|setup| host(&setup, model.clone())) {
        Ok(hosted) => Resident::Host(hosted),
        Err(absent) => Resident::None(Some(absent)),
    };
    Ok((model, resident))
}

/// True if a resident is wanted for this model.
fn is_wanted(resident: Use, weights: &Weights) -> bool {
    match (resident, weights) {
        (Use::Off, _) | (Use::Auto, Weights::Script(_)) => false,
        (Use::On, _) => true,
        // the memory of a graphics device is not occupied unasked
        (Use::Auto, Weights::Gguf { device, .. }) => match device {
            Device::Cpu => true,
            Device::Auto => !cfg!(any(feature = "cuda", feature = "metal")),
            Device::Cuda | Device::Metal => false,
        },
    }
}

fn client(cx: &Cx, settings: &Settings, weights: &Weights) -> Result<Client, Absent> {
    let setup = setup(cx, settings, weights)?;
    let weights = weights.clone();
    attach(&setup, Box::new(move || weights.open(commands())))
}

fn setup(cx: &Cx, settings: &Settings, weights: &Weights) -> Result<Setup, Absent> {
    let folder = cx.dirs.runtime.clone();
    let folder = folder.ok_or_else(|| Absent::Weights("this user has no folder for the resident's socket".into()))?;
    Ok(Setup {
        folder,
        program: std::env::current_exe()?,
        weights: weights.clone(),
        idle: settings.resident_idle,
        insist: settings.resident == Use::On,
    })
}

/// Runs as the resident process. It prints nothing: a call that gets no answer from it computes the answer itself,
/// and reports that.
pub fn run(orders: &OsStr) -> Exit {
    serve(orders).unwrap_or(Exit::Usage)
}

#[cfg(unix)]
fn serve(orders: &OsStr) -> Option<Exit> {
    use std::os::fd::AsFd;
    let orders = serde_json::from_str(orders.to_str()?).ok()?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    caro_serve::resident::serve(orders, socket, commands()).ok()?;
    Some(Exit::Success)
}

#[cfg(not(unix))]
fn serve(_orders: &OsStr) -> Option<Exit> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::engine::EngineKind;

    #[test]
    fn auto_uses_a_resident_only_for_real_models_on_the_cpu() {
        let gguf = |device| Weights::Gguf {
            file: "/m".into(),
            id: "m".into(),
            engine: EngineKind::Auto,
            device,
            threads: 1,
            context: 1,
            state_dir: None,
            adapter: None,
        };
        let script = Weights::Script("/s".into());
        assert!(is_wanted(Use::Auto, &gguf(Device::Cpu)));
        assert!(!is_wanted(Use::Auto, &gguf(Device::Cuda)) && !is_wanted(Use::Auto, &script));
        assert!(is_wanted(Use::On, &gguf(Device::Cuda)) && is_wanted(Use::On, &script));
        assert!(!is_wanted(Use::Off, &gguf(Device::Cpu)) && !is_wanted(Use::Off, &script));
    }

    #[test]
    fn invalid_orders_are_refused() {
        for orders in ["", "{}", "{\"socket\": 1}", "list files"] {
            assert_eq!(run(OsStr::new(orders)), Exit::Usage, "{orders:?}");
        }
    }
}
