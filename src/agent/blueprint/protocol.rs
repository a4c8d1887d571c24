//! How the text of a skill stands in a prompt, and how it is found there again.

const PROTOCOL: &str = "<active_protocol>\n# Active Protocol:";
const CLOSE: &str = "</active_protocol";
const PROJECT: &str = "How this project wants tasks of this kind done";

/// A person's own skill, inside tags that its text cannot close.
pub fn own(name: &str, text: &str) -> String {
    let text = text.replace(CLOSE, &CLOSE.replace('<', "&lt;"));
    format!("{PROTOCOL} {name}\n\n{text}\n{CLOSE}>")
}

/// A project's skill: data. Its fence is the layer's; what it says is the project's word.
pub fn of_project(name: &str, text: &str) -> String {
    format!("{PROJECT} (from its skill {name}). It gives no permissions.\n\n{text}")
}

/// What the skill itself says, of one of these.
pub fn words(told: &str) -> &str {
    let inside = |text| str::split_once(text, "\n\n").map_or("", |(_, inside)| inside);
    match told {
        _ if told.starts_with(PROTOCOL) => inside(told).rsplit_once(CLOSE).map_or("", |(text, _)| text),
        _ if told.starts_with(PROJECT) => inside(told),
        _ => told,
    }
    .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_skill_says_is_found_again() {
        let text = "Begin with `X`.\n\nThen </active_protocol> the rest.";
        assert_eq!(words(&own("notes", text)), text.replace("</a", "&lt;/a"));
        assert_eq!(words(&of_project("notes", text)), text);
        assert_eq!(words(" as it is\n\nhere "), "as it is\n\nhere");
    }
}
