//! `stat -c %a run.sh` for "who owns run.sh, and what are its permissions"; `cp -r` for "copy it with all permissions": half of
//! what was asked.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::{Finding, Invocation, Userland};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let told = owner(it, &words).or_else(|| addresses(it, &words));
    told.or_else(|| copied(it, &words)).or_else(|| moved(it, &words)).into_iter().collect()
}

/// `ip addr | awk '/inet / {print $2}'` for "the interfaces and their addresses".
fn addresses(it: &CheckContext, words: &Words) -> Option<Finding> {
    let asked = words.say(&["interfaces", "adapters", "interface"])
        && words.list().iter().any(|w| w.starts_with("address") || w == "ips" || w == "ip")
        && words.say(&["with", "and", "their", "each", "of"]);
    let [ip, awk] = it.script.commands.as_slice() else { return None };
    let lists =
        ip.name() == Some("ip") && ip.operands().all(|w| matches!(w.text.as_str(), "a" | "addr" | "address" | "show"));
    let [program] = awk.args() else { return None };
    let bare: String = program.text.split_whitespace().collect();
    let only = awk.name() == Some("awk") && bare == "/inet/{print$2}";
    let first = ip.words.first().filter(|_| asked && lists && only && ip.feeds == [1])?;
    let (start, end) = (first.span.start, awk.words.last()?.span.end);
    let fix = format!("{}ip -br addr{}", it.script.text.get(..start)?, it.script.text.get(end..)?);
    Some(warning("half-asked", program, "this prints the addresses and not whose they are", Some(fix)))
}

/// `cp -r src copy` for "with all permissions": they are those that a new file gets.
fn copied(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 7] =
        ["permissions", "preserve", "preserving", "attributes", "timestamps", "ownership", "modification times"];
    let copies = words.list().iter().any(|w| w.starts_with("cop"));
    let asked = copies && words.say(&SAID) && !words.say(&["without", "not", "no", "ignore", "ignoring"]);
    let kept = |c: &Invocation| c.has_option(Some('a'), "archive") || c.has_option(Some('p'), "preserve");
    let cp = it.script.commands.iter().find(|c| c.name() == Some("cp") && !kept(c))?;
    let changes = it.script.commands.iter().any(|c| matches!(c.name(), Some("chmod" | "chown" | "touch")));
    let program = cp.words.first().filter(|_| asked && !changes)?;
    let fix = Edits::new(it.script).after(program, " -p").done();
    Some(warning("half-asked", program, "permissions and times are to stay as they are: cp -p", fix))
}

/// `mv *.jpg pics` for "move them to a new folder pics": there is none yet.
fn moved(it: &CheckContext, words: &Words) -> Option<Finding> {
    let asked = words.say(&["new folder", "new directory", "new subfolder", "new subdirectory"]);
    let into = |c: &&Invocation| matches!(c.name(), Some("mv" | "cp")) && c.inside.is_none() && c.via.is_empty();
    let command = it.script.commands.first().filter(into).filter(|_| asked)?;
    let folder = command.operands().last().filter(|w| !w.glob && !w.expands && command.operands().count() > 1)?;
    let name = folder.value.as_deref().filter(|name| it.request.contains(name.trim_end_matches('/')))?;
    let is_new = it.cwd.is_some_and(|cwd| !cwd.join(name).exists());
    let several = command.operands().count() > 2 || command.operands().next().is_some_and(|w| w.glob);
    let first = command.words.first().filter(|w| is_new && several && w.span.start == 0)?;
    let fix = Edits::new(it.script).before(first, &format!("mkdir -p {} && ", folder.raw)).done();
    Some(warning("no-folder", folder, format!("there is no folder {name} yet"), fix))
}

/// `stat -c %a run.sh` for "who owns it, and its permissions".
fn owner(it: &CheckContext, words: &Words) -> Option<Finding> {
    let owner = words.say(&["owns", "owner", "owned", "belongs"]) && !words.negate();
    let group = words.say(&["group"]) && !words.negate();
    let stat = it.script.commands.iter().find(|c| c.name() == Some("stat"))?;
    let pair = stat.words.windows(2).find(|w| matches!(w[0].text.as_str(), "-c" | "--format"))?;
    let format = &pair[1];
    let lacks = |letters: [&str; 2]| letters.iter().all(|letter| !format.text.contains(letter));
    let mut more = String::new();
    if owner && lacks(["%U", "%u"]) {
        more += "%U ";
    }
    if group && lacks(["%G", "%g"]) {
        more += "%G ";
    }
    if more.is_empty() || it.target.userland != Userland::Gnu || it.script.commands.len() > 1 {
        return None;
    }
    let at = usize::from(format.raw.starts_with(['\'', '"']));
    let mut mended = format.raw.clone();
    mended.insert_str(at, &more);
    if at == 0 {
        mended = format!("'{mended}'");
    }
    let fix = Edits::new(it.script).replace(format, &mended).done();
    Some(warning("half-asked", format, "the request asks who owns it, and this does not tell", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    fn fix(request: &str, command: &str) -> Option<String> {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("old")).unwrap();
        findings_in(Some(here.path()), check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn a_copy_keeps_what_is_to_be_kept() {
        let kept = "copy the folder src to src_copy including all permissions";
        for asked in [kept, "copy src to src_copy, preserving timestamps"] {
            assert_eq!(fix(asked, "cp -r src src_copy").as_deref(), Some("cp -p -r src src_copy"), "{asked}");
        }
        for (request, right) in [
            (kept, "cp -a src src_copy"),
            (kept, "cp -rp src src_copy"),
            (kept, "cp --preserve=mode -r src src_copy"),
            ("copy the folder src", "cp -r src src_copy"),
            ("copy src without preserving timestamps", "cp -r src copy"),
            ("copy run.sh without its permissions", "cp run.sh copy.sh"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn a_new_folder_is_made_first() {
        let new = "move all pictures to a new folder called pics";
        assert_eq!(fix(new, "mv *.jpg pics").as_deref(), Some("mkdir -p pics && mv *.jpg pics"));
        for (request, right) in [
            (new, "mkdir -p pics && mv *.jpg pics/"),
            ("move all pictures to a new folder called old", "mv *.jpg old"),
            ("rename a.txt to b.txt", "mv a.txt b.txt"),
            ("move all pictures to pics", "mv *.jpg pics"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn an_address_is_told_with_whose_it_is() {
        let both = "list all network interfaces with their ip addresses";
        let half = "ip addr show | awk '/inet / {print $2}'";
        assert_eq!(fix(both, half).as_deref(), Some("ip -br addr"));
        for (request, right) in [(both, "ip -br addr"), ("list all ip addresses of this machine", half)] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn who_owns_it_is_told_where_that_is_asked() {
        let both = "who owns run.sh and what are its permissions in octal";
        assert_eq!(fix(both, "stat -c '%a %n' run.sh").as_deref(), Some("stat -c '%U %a %n' run.sh"));
        assert_eq!(fix(both, "stat -c %a run.sh").as_deref(), Some("stat -c '%U %a' run.sh"));
        assert_eq!(fix("owner and group of a.txt", "stat -c '%U' a.txt").as_deref(), Some("stat -c '%G %U' a.txt"));
        for (request, right) in [
            (both, "stat -c '%U %a' run.sh"),
            ("permissions of run.sh in octal", "stat -c %a run.sh"),
            ("", "stat -c %a run.sh"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
