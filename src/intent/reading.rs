//! Recognizes, by their words alone, tasks that only ask for information: about the content of files that they name
//! or of the user's documents, or about general knowledge. What a command finds out better (counts, sums, the
//! largest) is excluded.

use super::courtesy::without_politeness;
use super::split::parts;
use super::targets::files_to_write;
use super::tokens::is_in;
use super::verbs::{BEGINS, TELLS, THINKS, asks, changes};
use std::path::Path;

/// Verbs for opening a text.
const LOOKS: &str = "check go have look open read see study take view";

/// Words that may stand around file names after such a verb: `take a look at the two letters a.txt and b.txt`.
const AROUND_FILES: &str = "a all an and at both carefully chapter chapters document documents email emails file files \
first four in into letter letters list log logs look manual minutes my note notes our page pages please \
report reports text texts the these this three through to two";

/// First words of questions.
const QUESTIONS: &str = "am are can could did do does has have how is may must should was were what what's when when's where \
where's which who who's whom whose why will";

/// First words that begin a question in any clause.
const ASKS: &str = "how what what's when when's where where's which who who's whom whose why";

/// File extensions of prose: a question that names such a file is about its content.
const PROSE: &str = "adoc markdown md org rst tex text txt";

/// File extensions of settings.
const SETTINGS: &str = "cfg conf config eml ini json properties toml xml yaml yml";
/// First words of questions about the content of settings; other questions are left to commands.
const ASK_SETTINGS: &str = "does is what what's when where which who who's whom whose why";
/// File extensions of logs.
const LOGS: &str = "err log out";
/// First words of questions about the content of logs.
const ASK_LOGS: &str = "when who who's whom whose why";

/// Words for what is computed and not read.
const COMPUTED: &str = "alphabetical altogether average biggest earliest frequent fewest highest largest latest \
least longest lowest maximum median minimum most newest oldest percent percentage shortest smallest \
sum total weekday";

/// Things that a command counts.
const COUNTED: &str = "bytes characters columns commits directories entries errors files folders letters lines matches \
occurrences often processes rows times users words";

/// Words about this machine and its state, which no document knows.
const HERE: &str = "computer cpu currently directory disk file files folder folders here installed kernel laptop machine \
now processes ram running";

/// Words about the user's own things, or about the present.
const PERSONAL: &str = "he her here his i it its latest me mine my now our ours she that their them these they this those today \
tomorrow us we yesterday you your";

/// Words after `what is` that begin no name of a thing.
const NO_THING: &str = "at behind from in inside left missing new next on under up with wrong";

/// Parts of a machine: with `the` before them, those of this machine.
const MACHINE: &str = "account address app backup battery branch cache cluster code command commit config configuration \
connection container database date dependency desktop device directory disk display document domain driver email entry \
environment error file firewall folder function gateway git gpu group home host hostname image index interface ip job \
kernel key line link load locale log machine memory module mount network note owner package partition password path \
permission pipeline port printer process program project proxy queue ram readme release repo repository route router \
schedule screen script server service session setting shell site size socket space status swap system table task terminal \
test time timezone token umask uptime usage user variable version volume warning website wifi window";

/// True if the task asks about the content of `files`, which are all files that it names.
pub fn reads(task: &str, files: &[&str]) -> bool {
    let (mut looks, mut tells) = (false, false);
    if files.is_empty() || !files_to_write(task).is_empty() {
        return false;
    }
    let all_are = |ends: &str| {
        let end = |file: &&str| Path::new(file).extension().map(|end| end.to_string_lossy().to_lowercase());
        files.iter().all(|file| end(file).is_some_and(|end| is_in(ends, &end)))
    };
    let prose = all_are(PROSE);
    let begins = |words: &str| is_in(words, &first(without_politeness(task.trim())));
    let structured = all_are(SETTINGS) && begins(ASK_SETTINGS) || all_are(LOGS) && begins(ASK_LOGS);
    for part in parts(task) {
        let verb = first(&part);
        let explains = asks(&verb, THINKS) && asks(&verb, TELLS) || is_about_saying(&part, ABOUT_CONTENT);
        let asked = (looks || prose || structured) && (asks(&verb, TELLS) || is_question(&part, task));
        if is_look(&part, files) {
            looks = true;
        } else if !changes(&part) && !computes(&part) && (explains || asked || looks && verb == "compare") {
            tells = true;
        } else {
            return false;
        }
    }
    tells
}

/// True if the task asks about documents, and not about this machine.
pub fn asks_documents(task: &str) -> bool {
    let whole = without_politeness(task.trim());
    // `how do I restart the printer` is a question, not an order to restart it
    let how = first(whole) == "how";
    let here = words(whole).any(|word| is_in(HERE, &word));
    let all = parts(task);
    let told = |part: &String| how || is_question(part, task) || asks(&first(part), TELLS) && !changes(part);
    !here && !computes(whole) && files_to_write(task).is_empty() && !all.is_empty() && all.iter().all(told)
}

/// True if the answer to the task is a text of the model's own, such as a summary or a comparison, and no fact.
pub fn is_told_at_length(task: &str) -> bool {
    parts(task).iter().any(|part| {
        let verb = first(part);
        let of_all = || words(part).last().is_some_and(|last| is_in("about for", &last));
        asks(&verb, THINKS) || verb == "compare" || is_about_saying(part, "do mean") || of_all()
    })
}

/// True for a question about general knowledge: the meaning of things and words, reasons, who did what. Nothing on
/// this machine can answer it. Questions that could be about this machine or its owner are excluded.
pub fn asks_world(task: &str) -> bool {
    let whole = without_politeness(task.trim().trim_end_matches(['?', '.', '!']));
    let spoken: Vec<String> = words(whole).collect();
    let at = |i: usize| spoken.get(i).map(String::as_str).unwrap_or_default();
    let ours = || spoken.iter().any(|word| is_in(PERSONAL, word));
    let is_named = || whole.split_whitespace().skip(1).any(|word| word.starts_with(char::is_uppercase));
    // `a process` is any process, `the process` is one of this machine
    let is_any = |i: usize| i > 0 && is_in("a an", at(i - 1));
    let machine = || (0..spoken.len()).any(|i| is_in(MACHINE, at(i).trim_end_matches('s')) && !is_any(i));
    let path = || {
        whole.contains(['/', '~', '_'])
            || whole.split_whitespace().any(|word| word.trim_start_matches('.').contains('.'))
    };
    let form = match (at(0), at(1)) {
        ("explain" | "describe" | "why", _) => true,
        ("who", "was" | "wrote" | "invented" | "painted" | "discovered" | "composed" | "founded") => true,
        ("when" | "where", "was" | "did") => is_named(),
        ("what", "does" | "do") => at(spoken.len() - 1) == "mean",
        ("what", "is" | "are" | "was" | "were") | ("what's", _) => {
            let third = if at(0) == "what" { at(2) } else { at(1) };
            let difference = spoken.iter().any(|word| word == "between");
            let goes_on = spoken.iter().any(|word| word.len() > 4 && word.ends_with("ing"));
            !goes_on && !is_in(NO_THING, third) && (third != "the" || is_named() || difference)
        }
        _ => false,
    };
    form && spoken.len() > 2 && parts(task).len() == 1 && asks_documents(task) && !ours() && !machine() && !path()
}

/// True if the first word of the part is a question word, or a later clause begins with one; or if the task has a
/// single part and ends with a question mark, in any language. After a verb that begins an order, the mark is
/// ignored.
fn is_question(part: &str, task: &str) -> bool {
    let verb = first(part);
    let marked = || task.trim_end().ends_with(['?', '？', '؟']) && parts(task).len() == 1;
    // `pump stall - which firmware mends it`
    let behind =
        || [" - ", ": ", ", "].iter().any(|mark| part.split(mark).skip(1).any(|rest| is_in(ASKS, &first(rest))));
    is_in(QUESTIONS, &verb)
        || behind() && !changes(part) && !asks(&verb, BEGINS)
        || marked() && !changes(part) && !asks(&verb, BEGINS)
}

/// True if the part asks for nothing but to open these files.
fn is_look(part: &str, files: &[&str]) -> bool {
    let mut rest = part.to_lowercase();
    if !is_in(LOOKS, &first(part)) {
        return false;
    }
    let mut names: Vec<&&str> = files.iter().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let before = rest.len();
    for name in names {
        rest = rest.replace(&name.to_lowercase(), " ");
    }
    rest.len() < before && words(&rest).skip(1).all(|word| is_in(AROUND_FILES, &word))
}

/// Words in a question about the content of a file.
const ABOUT_CONTENT: &str = "about do for mean mention say state tell";

/// True for `what does FILE say about ...`, `what is FILE about`, `what does script.sh do`, with one of the words of
/// `says`.
fn is_about_saying(part: &str, says: &str) -> bool {
    let words: Vec<String> = words(part).collect();
    let asks = words.first().is_some_and(|word| matches!(word.as_str(), "what" | "what's"));
    let does = words.get(1).is_some_and(|word| matches!(word.as_str(), "do" | "does" | "did" | "is"));
    asks && does && words.iter().skip(2).any(|word| is_in(says, word))
}

fn computes(part: &str) -> bool {
    let words: Vec<String> = words(part).collect();
    let has = |list: &str| words.iter().any(|word| is_in(list, word));
    let pair = |a: &str, b: &str| words.windows(2).any(|pair| pair[0] == a && pair[1] == b);
    has(COMPUTED)
        || words.first().is_some_and(|word| word == "count")
        || (pair("how", "many") || pair("how", "often") || pair("number", "of")) && has(COUNTED)
        || pair("day", "of") && has("week")
        || pair("how", "long") && has("until till")
}

fn first(part: &str) -> String {
    words(part).next().unwrap_or_default()
}

/// Returns the words of a text in lower case; `who's` is one word.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let inside = |c: char| c.is_alphanumeric() || c == '\'';
    text.split(move |c| !inside(c)).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_files_are_recognized() {
        for (task, files, want) in [
            ("read notes.md and tell me the name of the owner", &["notes.md"][..], true),
            (
                "Please read the two letters a.txt and b.txt, and tell me which of them is angrier.",
                &["a.txt", "b.txt"],
                true,
            ),
            (
                "look at the logs north.log and west.log, and tell me which of them has a line with FIRE",
                &["north.log", "west.log"],
                true,
            ),
            ("what does contract.txt say about pets?", &["contract.txt"], true),
            ("who signed contract.txt?", &["contract.txt"], true),
            ("summarize letter.txt", &["letter.txt"], true),
            ("could you explain what backup.sh does?", &["backup.sh"], true),
            ("what does backup.sh do?", &["backup.sh"], true),
            ("read jan.md and feb.md and compare them", &["jan.md", "feb.md"], true),
            ("how many guests may I bring by rules.md?", &["rules.md"], true),
            ("Wer hat vertrag.txt unterschrieben?", &["vertrag.txt"], true),
            ("which port is smtp on in mail.ini?", &["mail.ini"], true),
            ("why did the backup fail? it's in server.log", &["server.log"], true),
            ("which requests in access.log were slow?", &["access.log"], false),
            ("how do I change the port in mail.ini?", &["mail.ini"], false),
            // these create files
            ("summarize letter.txt and write the summary to sum.txt", &["letter.txt"], false),
            ("read a.txt and save the second line to b.txt", &["a.txt"], false),
            // these are better answered by a command
            ("how many lines has notes.txt?", &["notes.txt"], false),
            ("what is the largest number in values.txt?", &["values.txt"], false),
            ("my appointment is in appointments.txt, what day of the week is that?", &["appointments.txt"], false),
            ("who bought the boat in sales.csv?", &["sales.csv"], false),
            ("read the first two lines of notes.txt and tell me what they say", &["notes.txt"], false),
            // these change something, or ask nothing
            ("read notes.md and delete it", &["notes.md"], false),
            ("translate letter.txt to French", &["letter.txt"], false),
            ("read notes.md", &["notes.md"], false),
            ("what is the name of the owner?", &[], false),
        ] {
            assert_eq!(reads(task, files), want, "{task}");
        }
    }

    #[test]
    fn long_answers_are_recognized() {
        for task in [
            "summarize letter.txt",
            "read jan.md and feb.md and compare them",
            "please explain what backup.sh does",
            "what does backup.sh do?",
            "what is letter.txt about?",
        ] {
            assert!(is_told_at_length(task), "{task}");
        }
        for task in [
            "who signed contract.txt?",
            "what does contract.txt say about pets?",
            "read notes.md and tell me whose boat it is",
            "wer hat die Schlüssel?",
            "",
        ] {
            assert!(!is_told_at_length(task), "{task}");
        }
    }

    #[test]
    fn general_knowledge_is_recognized() {
        for task in [
            "explain what a symlink is",
            "What is the capital of France?",
            "who wrote Faust?",
            "what is a process?",
            "what is docker",
            "please explain the difference between TCP and UDP",
            "what does idempotent mean?",
            "why is the sky blue?",
        ] {
            assert!(asks_world(task), "{task}");
        }
        for task in [
            "what is the default gateway?",
            "what is my name?",
            "what is listening on 8080?",
            "who is logged in?",
            "where is python?",
            "explain the error in the log",
            "explain what /etc/hosts is for",
            "explain main.rs",
            "why did the build server restart? show the last lines",
            "what is in src?",
            "why do the tests fail?",
            "what is it?",
            "what is nginx doing?",
            "explain",
            "describe the users of this system",
            "what is the largest file?",
            "é",
            "explain é .",
        ] {
            assert!(!asks_world(task), "{task}");
        }
    }

    #[test]
    fn questions_about_documents_are_recognized() {
        for task in [
            "what is the guest network of the office called?",
            "how do I restart the label printer?",
            "explain how to restart the label printer",
            "please tell me when the spring report is due",
            "Is it allowed to bring a dog?",
            "who's in charge of the keys",
            "how many guests may a member bring?",
            "label printer hangs - which button is it",
            "¿quién tiene las llaves del taller?",
            "鍵は誰が持っていますか？",
        ] {
            assert!(asks_documents(task), "{task}");
        }
        for task in [
            "how many files are in docs?",
            "which files here are larger than 1 MB?",
            "what is the kernel version?",
            "how much disk space is left",
            "what is running on port 80?",
            "restart the label printer",
            "delete the list of keys?",
            "find the list of keys?",
            "what is in the folder?",
            "delete the old logs",
            "tell me the guest network and write it to wifi.txt",
            "find the handbook",
            "",
        ] {
            assert!(!asks_documents(task), "{task}");
        }
    }
}
