//! Repairs by the command that the failed program itself says to run.

use super::{Case, Class, Repair, complaint};

pub(super) fn advised_command(case: &Case) -> Option<Repair> {
    let advice = complaint::advice(case.stderr)?;
    let program = case.commands().next().and_then(|command| command.name()).unwrap_or("the program");
    if advice.run.contains(['<', '>', '|', ';', '&']) {
        return None;
    }
    let command = match advice.first {
        true => format!("{} && {}", advice.run, case.text()),
        false => advice.run.clone(),
    };
    Some(Repair { command, why: format!("{program} itself says so: `{}`", advice.run), class: Class::Advice })
}
