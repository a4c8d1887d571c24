//! Checks the model's file and its checksum, its adapter, the cached start of its prompt, and the speed of this CPU.

use super::finding::Finding;
use crate::setup::settings::AdapterUse;
use crate::setup::{config, resident};
use crate::term::first;
use crate::term::ui::size;
use crate::{Cx, Failure, Settings, env};
use caro_model::adapter::AdapterSource;
use caro_model::catalog::Card;
use caro_model::engine::gguf::Gguf;
use caro_model::engine::{Tier, check_adapter};
use caro_model::fetch::{self, ModelSource};
use std::path::{Path, PathBuf};

/// The state of the model that answers requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Its file is here, and its checksum was right.
    Verified { id: String, file: PathBuf, bytes: u64 },
    /// Its file is here, and its checksum was not verified since it was written.
    Unverified { id: String, file: PathBuf },
    /// Its file does not have the size that the card says.
    Wrong { id: String, file: PathBuf, bytes: u64, wanted: u64 },
    /// It was not fetched, or only in part.
    Missing { id: String, partial: u64, bytes: u64 },
    /// It was added by the user, and its file is gone.
    Gone { id: String, file: PathBuf },
    /// A file that the user names, and what is wrong with it, if anything.
    Named { file: PathBuf, bytes: u64, wrong: Option<String> },
    /// A server, and the variable of the key that it needs, if that is not set.
    Server { name: String, missing_key: Option<&'static str> },
    /// A file of scripted replies.
    Script(PathBuf),
    /// No such model is known.
    Unknown(Failure),
}

/// The state of the model's adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adapter {
    /// The model has none.
    None,
    /// The settings turn it off.
    Off,
    /// It fits the model's file.
    Fits { name: String, rank: usize },
    /// It could not be checked, because the model is not here, or not verified.
    Unchecked { name: String },
    /// It cannot be used. The model runs without it unless the settings name it.
    Wrong { reason: String, is_named: bool },
}

/// The facts about the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The state of the model.
    pub place: Place,
    /// The state of its adapter.
    pub adapter: Adapter,
    /// True if the state of its standing prompt is cached; `None` without a model file or a cache folder.
    pub is_prepared: Option<bool>,
    /// The kernels that this CPU runs.
    pub tier: Tier,
    /// Threads that this process may use.
    pub threads: usize,
}

/// Examines files by their names, sizes and headers; no weights are read.
pub fn look(cx: &Cx, settings: &Settings) -> Facts {
    let (place, adapter, file) = match crate::setup::download::settings(cx) {
        Ok(folders) => {
            let (place, card, file) = place(cx, &settings.model, &folders);
            let adapter = adapter(&settings.adapter, card.as_deref(), file.as_deref(), &folders);
            (place, adapter, file)
        }
        Err(failure) => (Place::Unknown(failure), Adapter::None, None),
    };
    let is_prepared = file.as_deref().zip(cx.dirs.cache.as_ref()).map(|(file, _)| {
        let weights = resident::weights(cx, file, &settings.model, settings, None);
        !first::is_first(&weights)
    });
    Facts {
        place,
        adapter,
        is_prepared,
        tier: Tier::detect(),
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    }
}

/// The state of the model, its card if it has one, and its file if that can be used.
fn place(cx: &Cx, spec: &str, folders: &fetch::Settings) -> (Place, Option<Box<Card>>, Option<PathBuf>) {
    let has = |key: &str| cx.env.get(key).is_some();
    match fetch::resolve(spec, folders) {
        Ok(ModelSource::Card(card)) => {
            let (place, file) = place_of_card(&card, folders);
            (place, Some(card), file)
        }
        Ok(ModelSource::File(file)) => {
            let wrong = Gguf::open(&file).err().map(|e| e.to_string());
            let usable = wrong.is_none().then(|| file.clone());
            (Place::Named { bytes: length(&file), file, wrong }, None, usable)
        }
        Ok(ModelSource::Script(file)) => (Place::Script(file), None, None),
        Ok(ModelSource::Remote { url, name }) => (
            Place::Server { name: format!("{name} at {}", config::shown("model", &url)), missing_key: None },
            None,
            None,
        ),
        Ok(ModelSource::Anthropic { url, name }) => {
            let missing_key = (url.is_none() && !has(env::ANTHROPIC_KEY)).then_some(env::ANTHROPIC_KEY);
            (Place::Server { name: format!("{name} of Anthropic"), missing_key }, None, None)
        }
        Err(error) => (Place::Unknown(error.into()), None, None),
    }
}

fn place_of_card(card: &Card, folders: &fetch::Settings) -> (Place, Option<PathBuf>) {
    let id = card.id.clone();
    if let Some(file) = fetch::locate(card, folders) {
        let bytes = card.files.iter().map(|one| length(&fetch::file_path(card, one, folders))).sum();
        return (Place::Verified { id, file: file.clone(), bytes }, Some(file));
    }
    for one in &card.files {
        let file = fetch::file_path(card, one, folders);
        let Ok(meta) = std::fs::metadata(&file) else {
            if card.is_added() {
                return (Place::Gone { id, file }, None);
            }
            let listed = fetch::list(folders).into_iter().flatten().find(|model| model.card.id == id);
            let bytes = card.files.iter().filter_map(|one| one.bytes).sum();
            return (Place::Missing { id, partial: listed.map_or(0, |model| model.partial), bytes }, None);
        };
        if let Some(wanted) = one.bytes.filter(|wanted| *wanted != meta.len()) {
            return (Place::Wrong { id, file, bytes: meta.len(), wanted }, None);
        }
    }
    let file = card.files.first().map(|one| fetch::file_path(card, one, folders)).unwrap_or_default();
    (Place::Unverified { id, file }, None)
}

fn adapter(wanted: &AdapterUse, card: Option<&Card>, model: Option<&Path>, folders: &fetch::Settings) -> Adapter {
    let is_named = matches!(wanted, AdapterUse::Named(_));
    let source = match (wanted, card) {
        (AdapterUse::Off, _) => return Adapter::Off,
        (AdapterUse::Auto, card) => match card.and_then(|card| fetch::adapter_of_card(card, folders)) {
            Some(source) => source,
            None => return Adapter::None,
        },
        (AdapterUse::Named(spec), _) => match fetch::adapter_of_spec(spec, folders) {
            Ok(source) => source,
            Err(error) => return Adapter::Wrong { reason: error.to_string(), is_named },
        },
    };
    let Some(model) = model else { return Adapter::Unchecked { name: source.name() } };
    let base = card.and_then(|card| fetch::base_sum(card, folders));
    match fits(&source, model, base.as_deref()) {
        Ok(rank) => Adapter::Fits { name: source.name(), rank },
        Err(reason) => Adapter::Wrong { reason, is_named },
    }
}

/// Checks by their headers that an adapter fits a model's file. Returns its rank.
fn fits(source: &AdapterSource, model: &Path, base: Option<&str>) -> Result<usize, String> {
    let file = source.open().map_err(|e| e.to_string())?;
    check_adapter(&file, model, base).map(|info| info.rank).map_err(|e| e.to_string())
}

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |meta| meta.len())
}

/// The findings about the model.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all = vec![place_finding(&facts.place)];
    match &facts.adapter {
        Adapter::None => {}
        Adapter::Off => all.push(Finding::ok("adapter", "turned off (adapter = off)")),
        Adapter::Fits { name, rank } => {
            all.push(Finding::ok("adapter", format!("{name}, rank {rank}, fits the model")))
        }
        Adapter::Unchecked { name } => {
            let why = match facts.place {
                Place::Unverified { .. } => "it is held against the model once that is verified",
                _ => "the model is not here to hold it against",
            };
            all.push(Finding::ok("adapter", format!("{name}; {why}")));
        }
        Adapter::Wrong { reason, is_named: true } => {
            let remedy = "`caro model adapter list` shows those that are here; `caro config set adapter auto` takes the model's own";
            all.push(Finding::fail("adapter", reason, remedy));
        }
        Adapter::Wrong { reason, is_named: false } => {
            let remedy = "requests are answered without it, and worse: `caro model adapter verify` says more";
            all.push(Finding::warn("adapter", reason, remedy));
        }
    }
    if facts.is_prepared == Some(false) {
        let fact =
            "what every prompt begins with has not been computed yet: the first request takes up to half a minute";
        all.push(Finding::ok("first call", fact).with("`caro doctor --test` does it now"));
    }
    if computes_here(&facts.place) {
        all.push(speed_finding(facts.tier, facts.threads));
    }
    all
}

fn computes_here(place: &Place) -> bool {
    !matches!(place, Place::Server { .. } | Place::Script(_))
}

fn place_finding(place: &Place) -> Finding {
    const CHECK: &str = "model";
    match place {
        Place::Verified { id, file, bytes } => {
            Finding::ok(CHECK, format!("{id}, {}, its sum was verified ({})", size(*bytes), file.display()))
        }
        Place::Unverified { id, file } => Finding::warn(
            CHECK,
            format!("{id} is at {}, and its sum has not been checked since it was written", file.display()),
            format!("`caro model verify {id}`; else the next request does it, once"),
        ),
        Place::Wrong { id, file, bytes, wanted } => Finding::fail(
            CHECK,
            format!("{} has {bytes} bytes and not {wanted}", file.display()),
            format!("`caro model pull {id}` fetches it anew"),
        ),
        Place::Missing { id, partial, bytes } => {
            let fetched = if *partial > 0 { format!(", {} of it are", size(*partial)) } else { String::new() };
            let of = if *bytes > 0 { format!(" ({})", size(*bytes)) } else { String::new() };
            let remedy = format!("`caro model pull {id}` fetches it; else the first request does");
            Finding::warn(CHECK, format!("{id}{of} is not here{fetched}"), remedy)
        }
        Place::Gone { id, file } => Finding::fail(
            CHECK,
            format!("{id} was added from {}, which is gone", file.display()),
            format!("put the file back, or `caro model rm {id}` and choose another one: `caro model list`"),
        ),
        Place::Named { file, bytes, wrong: None } => {
            Finding::ok(CHECK, format!("{}, {}", file.display(), size(*bytes)))
        }
        Place::Named { file, wrong: Some(wrong), .. } => Finding::fail(
            CHECK,
            format!("{}: {wrong}", file.display()),
            "`caro config set model ID` takes another one; `caro model list` shows which there are",
        ),
        Place::Server { name, missing_key: None } => {
            Finding::ok(CHECK, format!("{name}; it was not asked (`--test` asks it)"))
        }
        Place::Server { name, missing_key: Some(key) } => {
            Finding::fail(CHECK, format!("{name} wants a key, and {key} is not set"), format!("set {key} to your key"))
        }
        Place::Script(file) => Finding::ok(CHECK, format!("the script {}", file.display())),
        Place::Unknown(failure) => Finding::fail(
            CHECK,
            &failure.message,
            failure.hint.clone().unwrap_or_else(|| "`caro model list` shows which there are".into()),
        ),
    }
}

fn speed_finding(tier: Tier, threads: usize) -> Finding {
    let cores = crate::term::ui::plural(threads, "thread");
    if tier == Tier::Portable {
        let remedy = "a CPU with AVX2 (2013 and later) or NEON dot products is several times faster; \
                      `--model openai:URL#NAME` asks a server instead";
        return Finding::warn("speed", format!("portable kernels, {cores}: the slow kind, for any CPU"), remedy);
    }
    Finding::ok("speed", format!("{tier} kernels, {cores}"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn facts(place: Place) -> Facts {
        Facts { place, adapter: Adapter::None, is_prepared: Some(true), tier: Tier::Portable, threads: 2 }
    }

    fn verified() -> Place {
        Place::Verified { id: "m".into(), file: "/m.gguf".into(), bytes: 1_100_000_000 }
    }

    #[test]
    fn each_state_of_the_model_has_its_remedy() {
        let id = || "m".to_owned();
        let file = || PathBuf::from("/m.gguf");
        for (place, state, remedy) in [
            (verified(), State::Ok, ""),
            (Place::Unverified { id: id(), file: file() }, State::Warn, "caro model verify m"),
            (Place::Wrong { id: id(), file: file(), bytes: 1, wanted: 2 }, State::Fail, "caro model pull m"),
            (Place::Missing { id: id(), partial: 5, bytes: 9 }, State::Warn, "caro model pull m"),
            (Place::Gone { id: id(), file: file() }, State::Fail, "caro model rm m"),
            (Place::Named { file: file(), bytes: 1, wrong: None }, State::Ok, ""),
            (Place::Named { file: file(), bytes: 1, wrong: Some("no".into()) }, State::Fail, "caro model list"),
            (Place::Server { name: id(), missing_key: None }, State::Ok, ""),
            (Place::Server { name: id(), missing_key: Some("K") }, State::Fail, "set K"),
            (Place::Unknown(Failure::usage("no").hint("try x")), State::Fail, "try x"),
        ] {
            let finding = &findings(&facts(place.clone()))[0];
            assert_eq!((finding.check, finding.state), ("model", state), "{place:?}");
            assert!(finding.remedy.as_deref().unwrap_or_default().contains(remedy), "{finding:?}");
            assert_eq!(finding.remedy.is_some(), state != State::Ok, "{finding:?}");
        }
    }

    #[test]
    fn a_slow_cpu_is_reported_only_if_it_computes_the_answers() {
        let slow = findings(&facts(verified()));
        assert_eq!((slow[1].check, slow[1].state), ("speed", State::Warn));
        let elsewhere = findings(&facts(Place::Server { name: "m".into(), missing_key: None }));
        assert!(elsewhere.iter().all(|finding| finding.check != "speed"), "{elsewhere:?}");
    }

    #[test]
    fn a_named_adapter_that_does_not_fit_fails_and_the_models_own_only_warns() {
        let state = |is_named| {
            let adapter = Adapter::Wrong { reason: "it is another model's".into(), is_named };
            findings(&Facts { adapter, ..facts(verified()) })[1].state
        };
        assert_eq!((state(true), state(false)), (State::Fail, State::Warn));
    }

    #[test]
    fn an_adapter_is_not_told_that_a_model_is_missing_which_is_here() {
        let fact = |place| {
            let adapter = Adapter::Unchecked { name: "a".into() };
            findings(&Facts { adapter, ..facts(place) })[1].fact.clone()
        };
        let unverified = fact(Place::Unverified { id: "m".into(), file: "/m.gguf".into() });
        assert!(unverified.contains("once that is verified") && !unverified.contains("not here"), "{unverified}");
        assert!(fact(Place::Missing { id: "m".into(), partial: 0, bytes: 9 }).contains("not here"));
    }

    #[test]
    fn a_slow_first_call_is_reported_until_the_prompt_is_cached() {
        let with = |is_prepared| findings(&Facts { is_prepared, ..facts(verified()) });
        assert!(with(Some(false)).iter().any(|f| f.check == "first call" && f.state == State::Ok));
        assert!([Some(true), None].into_iter().map(with).all(|all| all.iter().all(|f| f.check != "first call")));
    }
}
