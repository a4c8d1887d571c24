//! Skill calls and their notation as s-expressions.

use serde::{Deserialize, Serialize};

/// One call, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillCall {
    /// The skill's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl SkillCall {
    /// Formats the call as an s-expression.
    pub fn print(&self) -> String {
        let arguments: String = self.arguments.iter().map(|text| format!(" {}", quote(text))).collect();
        format!("({}{arguments})", self.name)
    }
}

/// Quotes a text as a string literal on one line.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
