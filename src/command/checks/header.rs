//! `ps --sort ... | head -n 5` shows the header and four processes where five were asked for.

use super::Inspected;
use crate::shell::{Finding, Severity};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    header(it).into_iter().collect()
}

fn header(it: &Inspected) -> Option<Finding> {
    let commands = &it.script.commands;
    let source = commands.iter().find(|c| c.name() == Some("ps"))?;
    // after `| sort` the header is wherever its text sorts, after `| grep` it is gone: only ps straight into head counts
    let head = it.script.reader(source).filter(|c| c.name() == Some("head"))?;
    let sorted = source.args().iter().any(|w| w.text.starts_with("--sort"));
    let headless =
        source.args().iter().any(|w| w.text.starts_with("--no-head") || w.text.ends_with('=') || w.text == "h");
    if !sorted || headless {
        return None;
    }
    let (word, count) = head.args().iter().find_map(|w| {
        let digits = w.text.trim_start_matches("--lines=").trim_start_matches("-n").trim_start_matches('-');
        digits.parse::<u32>().ok().map(|n| (w, n))
    })?;
    let asked = it.request.split(|c: char| !c.is_ascii_digit()).any(|n| n.parse() == Ok(count));
    let more = count.checked_add(1)?;
    let (before, after) = (it.script.text.get(..word.span.start)?, it.script.text.get(word.span.end..)?);
    asked.then(|| Finding {
        id: "header-line".into(),
        severity: Severity::Warning,
        token: word.raw.clone(),
        why: format!("the first line of ps is its header: take {more} lines to see {count} processes"),
        evidence: Vec::new(),
        fix: Some(format!("{before}{}{after}", word.raw.replace(&count.to_string(), &more.to_string()))),
        span: Some(word.span.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn one_more_line_where_the_header_takes_one() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let top5 = "top 5 processes";
        let mended = Some("ps aux --sort=-%cpu | head -n 6".to_owned());
        assert_eq!(fix(top5, "ps aux --sort=-%cpu | head -n 5"), mended);
        assert_eq!(fix(top5, "ps aux --sort=-%cpu | head -5").as_deref(), Some("ps aux --sort=-%cpu | head -6"));
        for right in [
            "ps aux --sort=-%cpu | head -n 6",
            "ps aux | sort -nrk 3 | head -n 5",
            "ps -eo pid= --sort=-%cpu | head -n 5",
            "ps aux --sort=-%cpu --no-headers | head -n 5",
            "ls | head -n 5",
        ] {
            assert_eq!(fix(top5, right), None, "{right}");
        }
        assert_eq!(fix("busiest processes", "ps aux --sort=-%cpu | head -n 5"), None);
    }
}
