//! `caro agent --shards DIR`: answers a question about a tree of files, or a long text, by reading it in parts.

use crate::harness::{Drive, view, wire};
use crate::setup::wire::Wants;
use crate::term::ui::{Role, in_line, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::shard::{self, Order, Sharded};
use caro_agent::state::Limits;
use std::path::Path;

/// Most unread files that are named.
const MAX_NAMED: usize = 3;

/// Answers the question.
///
/// # Errors
/// If nothing can be read there, there is no model, or it fails for each of the parts.
pub(super) fn run(question: &str, place: &Path, session: Option<&str>, drive: &Drive, cx: &Cx) -> Outcome {
    let root = cx.folder()?;
    let session = wire::session(session, cx)?;
    let harness = wire::open(cx, drive, "agent", drive.options(), &root, Wants::Answers)?;
    let sharded = view::show_during(cx, drive.shows(), drive.verbose(), |signals| {
        let order = Order {
            question: question.to_owned(),
            session,
            place: root.join(place),
            limits: drive.limits(Limits::default()),
            sinks: vec![signals.sink()],
            cancel: cx.interrupt().cancel().clone(),
        };
        Ok::<_, Failure>(cx.block_on(shard::run(&harness, order))??)
    })?;
    print_report(&sharded, drive, cx)
}

fn print_report(sharded: &Sharded, drive: &Drive, cx: &Cx) -> Outcome {
    if let Some(why) = &sharded.error {
        return Err(Failure::internal(why).hint(format!("`caro events {}` shows what was asked", sharded.run_id)));
    }
    if drive.json {
        cx.ui.document(sharded)?;
        return Ok(Exit::Success);
    }
    if drive.events.is_some() {
        return Ok(Exit::Success);
    }
    cx.ui.data(&sharded.answer)?;
    for file in &sharded.files {
        cx.ui.data(&format!("- {}", in_line(file)))?;
    }
    for part in &sharded.shards {
        // a small model may lose files of its parts when it sums them up, so the parts are shown, too
        let finding = match &part.finding {
            None => "no answer".to_owned(),
            Some(finding) if finding.files.is_empty() => finding.answer.clone(),
            Some(finding) => format!("{} [{}]", finding.answer, finding.files.join(", ")),
        };
        cx.ui.aside(Role::Plain, &in_line(&format!("{}, {}: {finding}", part.name, plural(part.items, "item"))));
    }
    if let Some(why) = &sharded.apart {
        cx.ui.warn(&in_line(&format!("{why}: these are the words of its parts, not put together")));
    }
    if sharded.cut > 0 {
        cx.ui.warn(&format!("{} named files that there are not, and were left out", plural(sharded.cut, "sentence")));
    }
    if !sharded.left_out.is_empty() {
        let named: Vec<String> =
            sharded.left_out.iter().take(MAX_NAMED).map(|(name, why)| format!("{name}: {why}")).collect();
        let files = plural(sharded.left_out.len(), "file");
        cx.ui.note(&in_line(&format!("not read: {files} ({})", named.join("; "))));
    }
    Ok(Exit::Success)
}
