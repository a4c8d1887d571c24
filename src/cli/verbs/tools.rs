//! `caro tools`: lists and searches the tools that an agent has here, whatever provides them.

use crate::harness::{servers, wire};
use crate::term::given;
use crate::term::ui::Role;
use crate::{Cx, Exit, Outcome};
use caro_agent::retrieve;
use caro_agent::tool::{Provider, ToolSpec};

/// Most characters of a description that are shown.
const MAX_DESCRIPTION: usize = 90;

/// List and search the tools that agents have
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Default, clap::Args)]
struct Common {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Start no MCP servers
    #[arg(long)]
    no_mcp: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Rank the tools by how well they fit words
    Search {
        /// What is to be done
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// The most tools
        #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
        #[command(flatten)]
        common: Common,
    },
}

/// Lists or searches the tools.
///
/// # Errors
/// If two tools have one name, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let common = match &args.what {
        Some(What::Search { common, .. }) => common,
        None => &args.common,
    };
    let root = cx.folder()?;
    let hub = if common.no_mcp { None } else { Some(servers::open(&root, cx)?.0) };
    let registry = wire::all_tools(cx, &root, hub.as_ref())?;
    let specs: Vec<ToolSpec> = registry.specs().cloned().collect();
    match &args.what {
        None => {
            if common.json {
                let all: Vec<_> = specs.iter().map(|spec| document(spec, None)).collect();
                cx.ui.document(&serde_json::json!({"total": all.len(), "tools": all}))?;
            } else {
                specs.iter().try_for_each(|spec| line(cx, spec, None))?;
            }
        }
        Some(What::Search { words, limit, .. }) => {
            let words = given::question(words)?;
            let scores = retrieve::bm25(&words, &specs.iter().map(ToolSpec::search_text).collect::<Vec<_>>());
            let mut ranked: Vec<(f64, &ToolSpec)> = scores.into_iter().zip(&specs).filter(|(s, _)| *s > 0.0).collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
            ranked.truncate(usize::from(*limit));
            if common.json {
                let all: Vec<_> = ranked.iter().map(|(score, spec)| document(spec, Some(*score))).collect();
                cx.ui.document(&serde_json::json!({"total": all.len(), "tools": all}))?;
            } else {
                ranked.iter().try_for_each(|(score, spec)| line(cx, spec, Some(*score)))?;
            }
            if ranked.is_empty() {
                cx.ui.note("no tool has any of these words");
                return Ok(Exit::No);
            }
        }
    }
    Ok(Exit::Success)
}

/// The origin of a tool, as it is printed.
fn source(spec: &ToolSpec) -> String {
    match &spec.provider {
        Provider::Builtin => "built in".into(),
        Provider::Workspace => "workspace".into(),
        Provider::Mcp(server) => format!("mcp: {server}"),
        Provider::Skill(skill) => format!("skill: {skill}"),
        Provider::Subagent => "subagent".into(),
    }
}

fn line(cx: &Cx, spec: &ToolSpec, score: Option<f64>) -> std::io::Result<()> {
    let score = score.map(|s| format!("{s:5.2}  ")).unwrap_or_default();
    let head = cx.ui.entry(Role::Accent, &spec.name);
    let from = cx.ui.entry(Role::Dim, &source(spec));
    let mut text: String = spec.description.chars().take(MAX_DESCRIPTION).collect();
    if text.len() < spec.description.len() {
        text.push_str("...");
    }
    cx.ui.line(&format!("{score}{head}  {from}  {}", cx.ui.entry(Role::Plain, &text)))
}

fn document(spec: &ToolSpec, score: Option<f64>) -> serde_json::Value {
    let mut document = serde_json::json!({
        "name": spec.name, "description": spec.description, "inputSchema": spec.parameters, "type": source(spec)
    });
    if let Some(score) = score {
        document["score"] = score.into();
    }
    document
}
