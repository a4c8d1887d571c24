//! A hard link was asked for and `ln -s` makes a symbolic one, or the other way round.

use super::CheckContext;
use super::edit::{Edits, is_cluster, warning, without};
use super::words::Words;
use crate::shell::Finding;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    const HARD: [&str; 4] = ["hard link", "hard links", "hardlink", "hardlinks"];
    const SYMBOLIC: [&str; 8] =
        ["symbolic link", "symbolic links", "symlink", "symlinks", "soft link", "soft links", "softlink", "sym link"];
    let words = Words::of(it.request);
    let (hard, symbolic) = (words.say(&HARD), words.say(&SYMBOLIC));
    let mut links = it.script.commands.iter().filter(|c| c.name() == Some("ln"));
    let ln = links.next().filter(|_| links.next().is_none() && hard != symbolic && !words.negate())?;
    let program = ln.words.first()?;
    let edits = Edits::new(it.script);
    match ln.option(Some('s'), "symbolic") {
        Some(word) if hard => {
            let fix = is_cluster(word).then(|| edits.replace(word, &without(&word.raw, 's')).done()).flatten();
            Some(warning("link-kind", word, "a hard link is asked for, and this makes a symbolic one", fix))
        }
        None if symbolic => {
            let fix = edits.after(program, " -s").done();
            Some(warning("link-kind", program, "a symbolic link is asked for, and this makes a hard one", fix))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::check;

    #[test]
    fn the_kind_that_was_asked_for_is_made() {
        let fixed = |request, command| findings(check, request, command).first().and_then(|f| f.fix.clone());
        assert_eq!(fixed("make a hard link b for a", "ln -s a b").as_deref(), Some("ln a b"));
        assert_eq!(fixed("make a hard link b for a", "ln -sf a b").as_deref(), Some("ln -f a b"));
        assert_eq!(fixed("create a symlink b to a", "ln a b").as_deref(), Some("ln -s a b"));
        for (request, right) in [
            ("make a hard link b for a", "ln a b"),
            ("create a symlink b to a", "ln -s a b"),
            ("link b to a", "ln -s a b"),
            ("replace the symlink b by a hard link", "ln -f a b"),
        ] {
            assert_eq!(fixed(request, right), None, "{right}");
        }
    }
}
