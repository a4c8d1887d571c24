//! `convert a.png jpg` makes a file called `jpg`: what comes of a conversion has a name, and the format is its ending.

use super::edit::{Edits, warning};
use super::{CheckContext, only};
use crate::shell::{Finding, Invocation, Word};

/// Programs whose last operand is the file that they write.
const CONVERTERS: [&str; 6] = ["convert", "ffmpeg", "gm", "magick", "rsvg-convert", "sox"];

/// Formats that are written without a name.
const FORMATS: [&str; 18] = [
    "avi", "bmp", "flac", "gif", "heic", "jpeg", "jpg", "mkv", "mov", "mp3", "mp4", "ogg", "pdf", "png", "svg", "tiff",
    "wav", "webp",
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script.commands.iter().filter_map(|c| of_command(it, c)).collect()
}

fn of_command(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let (last, before) = command.args().split_last()?;
    let converts = command.name().is_some_and(|name| CONVERTERS.contains(&name));
    let bare = FORMATS.contains(&last.text.to_lowercase().as_str());
    // behind an option it is that option's value
    let valued = before.last().is_some_and(|w| w.text.starts_with('-'));
    if !converts || !bare || valued || it.cwd.is_some_and(|cwd| cwd.join(&last.text).exists()) {
        return None;
    }
    let stem = |word: &Word| {
        let (stem, end) = word.raw.rsplit_once('.')?;
        let plain = !stem.is_empty() && !word.glob && !word.quoted && FORMATS.contains(&end.to_lowercase().as_str());
        plain.then(|| stem.to_owned())
    };
    let fix = only(before.iter().filter_map(stem))
        .and_then(|stem| Edits::new(it.script).replace(last, &format!("{stem}.{}", last.raw)).done());
    Some(warning("bare-format", last, format!("that would be a file called {}", last.text), fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_format_is_no_name() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().map(|f| f.fix);
        assert_eq!(fix("convert a.png jpg"), Some(Some("convert a.png a.jpg".into())));
        assert_eq!(
            fix("magick img/a.b.png -quality 80 webp"),
            Some(Some("magick img/a.b.png -quality 80 img/a.b.webp".into()))
        );
        assert_eq!(fix("ffmpeg -i \"$f\" mp3"), Some(None), "its name is not known");
        for right in [
            "convert a.png a.jpg",
            "convert a.png jpg:-",
            "sox a.wav -t mp3",
            "cp a.png jpg",
            "convert *.jpg album.pdf",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
