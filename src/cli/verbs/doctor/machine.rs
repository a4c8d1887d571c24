//! Checks the machine: the sandbox, rehearsals, graphics cards, manual pages.

use super::finding::Finding;
use crate::setup::wire;
use crate::term::ui;
use crate::{Cx, Settings};
use caro_exec::rehearse::{RehearsalJob, rehearse};
use caro_exec::{self as exec, Support};
use caro_model::engine::Device;
use std::path::Path;

/// The facts about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The parts of the read-only sandbox that this system supports.
    pub sandbox: Support,
    /// The reason why no command can be rehearsed, and what to do; `None` if a rehearsal worked.
    pub no_rehearsal: Option<(String, &'static str)>,
    /// True if the settings turn rehearsals on.
    pub rehearse: bool,
    /// The devices that this build computes on, beside the CPU.
    pub built: Vec<&'static str>,
    /// The device of the settings.
    pub device: Device,
    /// True if the driver of an NVIDIA card is loaded.
    pub has_card: bool,
    /// True if `man` is on PATH.
    pub has_man: bool,
    /// The number of manuals read; `None` if there is no index yet, or it cannot be read.
    pub manuals: Option<usize>,
}

/// The file that the NVIDIA driver makes.
const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";

/// The index of manuals, in the cache folder.
const INDEX: &str = "manual.db";

/// Examines the machine, and rehearses once a script that does nothing.
pub fn look(cx: &Cx, settings: &Settings) -> Facts {
    let index = cx.dirs.cache.as_ref().map(|cache| cache.join(INDEX));
    // opening an index that does not exist would make it
    let manuals = if index.is_some_and(|index| index.is_file()) { wire::manual(cx).count().ok() } else { None };
    Facts {
        sandbox: exec::support(),
        no_rehearsal: no_rehearsal(cx),
        rehearse: settings.rehearse,
        built: [("cuda", cfg!(feature = "cuda")), ("metal", cfg!(feature = "metal"))]
            .into_iter()
            .filter_map(|(name, is_built)| is_built.then_some(name))
            .collect(),
        device: settings.device,
        has_card: Path::new(NVIDIA_DRIVER).exists(),
        has_man: exec::find("man").is_some(),
        manuals,
    }
}

fn no_rehearsal(cx: &Cx) -> Option<(String, &'static str)> {
    let Some(shell) = exec::find("sh") else {
        return Some(("there is no sh here to try one with".into(), "commands are shown without having been tried"));
    };
    let runtime = match cx.runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return Some((failure.message, "close something: the system gives no threads")),
    };
    let result = runtime.block_on(rehearse(&RehearsalJob::new(&shell, "exit 0", "/")));
    let why = match result {
        Ok(result) if result.status.success() => return None,
        Ok(result) => (
            format!("a script that does nothing ended with {}", result.status),
            "`caro check --rehearse true` says more",
        ),
        Err(error) => (error.to_string(), error.hint()),
    };
    Some(why)
}

/// The findings about the machine.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all = vec![sandbox(facts.sandbox)];
    all.push(match &facts.no_rehearsal {
        None if facts.rehearse => {
            Finding::ok("rehearsal", "commands are tried in a throw-away view before they are shown")
        }
        None => Finding::ok("rehearsal", "it would work, and is turned off (rehearse = off)"),
        Some((why, remedy)) => Finding::warn("rehearsal", why, *remedy),
    });
    all.extend(gpu(facts));
    let read = facts.manuals.map(|count| format!("{} read", ui::plural(count, "manual")));
    all.push(match (facts.has_man, read) {
        (false, read) => Finding::warn(
            "manuals",
            format!("there is no `man` here{}", read.map_or(String::new(), |read| format!("; {read}"))),
            "install man-db (or the system's own manual pages): flags are then looked up there, too",
        ),
        (true, Some(read)) => Finding::ok("manuals", read),
        (true, None) => Finding::ok("manuals", "none was read yet: each is when it is first needed")
            .with("`caro manual warm` reads those of the commonest programs now"),
    });
    all
}

fn sandbox(sandbox: Support) -> Finding {
    let parts = [("writes", sandbox.writes), ("network", sandbox.network), ("signals", sandbox.processes)];
    let of = |wanted: bool| -> Vec<&str> {
        parts.iter().filter(|(_, holds)| *holds == wanted).map(|(name, _)| *name).collect()
    };
    let (supported, missing) = (of(true), of(false));
    if missing.is_empty() {
        return Finding::ok("sandbox", format!("holds back {}", supported.join(", ")));
    }
    let fact = match supported.is_empty() {
        true => "this system grants none".to_owned(),
        false => format!("holds back {}, and not {}", supported.join(", "), missing.join(", ")),
    };
    if sandbox.holds_to_reading() {
        return Finding::ok("sandbox", fact);
    }
    let remedy = "Linux 5.13 or newer with Landlock in the kernel's list (`cat /sys/kernel/security/lsm`) has it, and macOS; \
                  without it programs are not asked for their help, and the agent asks before it looks at anything";
    Finding::warn("sandbox", fact, remedy)
}

fn gpu(facts: &Facts) -> Option<Finding> {
    let wanted = match facts.device {
        Device::Cuda => Some("cuda"),
        Device::Metal => Some("metal"),
        Device::Auto | Device::Cpu => None,
    };
    let built = if facts.built.is_empty() { "none".to_owned() } else { facts.built.join(", ") };
    if let Some(wanted) = wanted.filter(|wanted| !facts.built.contains(wanted)) {
        return Some(Finding::fail(
            "graphics",
            format!("device = {wanted}, and this build computes on no such device (built in: {built})"),
            format!("`caro config set device auto`, or `cargo build --release --features {wanted}`"),
        ));
    }
    if facts.has_card && facts.built.is_empty() && facts.device != Device::Cpu {
        return Some(
            Finding::ok("graphics", "there is an NVIDIA card, and this build computes on the CPU")
                .with("`cargo build --release --features cuda` builds for it"),
        );
    }
    Some(Finding::ok(
        "graphics",
        match facts.built.is_empty() {
            true => "this build computes on the CPU alone".to_owned(),
            false => format!("built in: {built}"),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    const ALL: Support = Support { writes: true, network: true, processes: true };

    fn facts() -> Facts {
        Facts {
            sandbox: ALL,
            no_rehearsal: None,
            rehearse: true,
            built: Vec::new(),
            device: Device::Auto,
            has_card: false,
            has_man: true,
            manuals: Some(3),
        }
    }

    fn of(facts: &Facts, check: &str) -> Finding {
        findings(facts).into_iter().find(|finding| finding.check == check).unwrap()
    }

    #[test]
    fn a_machine_that_supports_everything_has_no_warnings() {
        let all = findings(&facts());
        assert!(all.iter().all(|finding| finding.state == State::Ok && finding.remedy.is_none()), "{all:?}");
        assert_eq!(of(&facts(), "manuals").fact, "3 manuals read");
    }

    #[test]
    fn a_sandbox_with_a_gap_says_which() {
        let gap = of(&Facts { sandbox: Support { writes: false, ..ALL }, ..facts() }, "sandbox");
        assert_eq!((gap.state, gap.fact.as_str()), (State::Warn, "holds back network, signals, and not writes"));
        let none = Support { writes: false, network: false, processes: false };
        assert_eq!(of(&Facts { sandbox: none, ..facts() }, "sandbox").fact, "this system grants none");
        // programs that only read do not need protection from signals
        let macos = of(&Facts { sandbox: Support { processes: false, ..ALL }, ..facts() }, "sandbox");
        assert_eq!(macos.state, State::Ok);
    }

    #[test]
    fn a_rehearsal_that_does_not_work_says_why() {
        let none = of(&Facts { no_rehearsal: Some(("no namespaces".into(), "have some")), ..facts() }, "rehearsal");
        assert_eq!(
            (none.state, none.fact.as_str(), none.remedy.as_deref()),
            (State::Warn, "no namespaces", Some("have some"))
        );
        assert!(of(&Facts { rehearse: false, ..facts() }, "rehearsal").fact.contains("turned off"));
    }

    #[test]
    fn a_device_that_is_not_built_in_fails() {
        let cuda = of(&Facts { device: Device::Cuda, ..facts() }, "graphics");
        assert_eq!(cuda.state, State::Fail);
        assert!(cuda.remedy.unwrap().contains("--features cuda"));
        assert_eq!(of(&Facts { device: Device::Cuda, built: vec!["cuda"], ..facts() }, "graphics").state, State::Ok);
        let card = of(&Facts { has_card: true, ..facts() }, "graphics");
        assert_eq!((card.state, card.remedy.is_some()), (State::Ok, true));
    }

    #[test]
    fn missing_manuals_are_reported() {
        assert_eq!(of(&Facts { has_man: false, ..facts() }, "manuals").state, State::Warn);
        assert!(of(&Facts { manuals: None, ..facts() }, "manuals").remedy.unwrap().contains("caro manual warm"));
    }
}
