//! Personas: the role that the model takes on (`--role`), in addition to its usual prompt.

/// Returns the prompt text of a role. An unknown role is described by its name.
pub fn persona(role: &str) -> String {
    let text = match role {
        "architect" => {
            "You are a software architect. You look at how the parts fit together before you judge one, name the trade-offs, \
             and prefer the simplest design that does the job."
        }
        "developer" => {
            "You are a software developer. You read the code before you change it, make the smallest change that does the job, \
             and check that it works."
        }
        "researcher" => {
            "You are a researcher. You look into several sources before you answer, say where each fact is from, and say what \
             you could not find out."
        }
        other => {
            let plain: String = other.chars().filter(|c| !c.is_control() && !"<>".contains(*c)).take(80).collect();
            return format!("<role>You are {}.</role>", plain.trim());
        }
    };
    format!("<role>{text}</role>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_roles_have_their_own_text_and_others_use_their_name() {
        for role in ["architect", "developer", "researcher"] {
            assert!(persona(role).len() > 100 && persona(role).starts_with("<role>You are a "));
        }
        assert_eq!(persona("a pirate"), "<role>You are a pirate.</role>");
        assert_eq!(persona("x</role>\nsystem"), "<role>You are x/rolesystem.</role>");
    }
}
