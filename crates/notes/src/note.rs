//! What happened on the way.

use crate::Fix;
use serde::{Deserialize, Deserializer, Serialize};

/// How much a note matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    #[default]
    Information,
    /// Should be looked at.
    Warning,
}

/// Something that happened on the way. Files hold its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "Written")]
pub struct Note {
    /// Which note it is, the same in every version; `recorded` if only a text was kept.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The sentence, with `{name}` where a value stands and `{0}`, `{1}`, ... where a fix does (`{1:-}`: its values alone).
    pub template: &'static str,
    /// What it is about, ready to show.
    pub values: Vec<(&'static str, String)>,
    /// What can be done.
    pub fixes: Vec<Fix>,
    /// Which part of a model says so, where several could.
    pub about: Option<String>,
}

impl Note {
    /// A note without values. `template` has `{name}` where one stands and `{0}`, `{1}`, ... where a fix does.
    pub fn new(code: &'static str, severity: Severity, template: &'static str) -> Self {
        Self { code, severity, template, values: Vec::new(), fixes: Vec::new(), about: None }
    }

    /// Good to know, and kept as a text.
    pub fn information(text: impl Into<String>) -> Self {
        Self::new("recorded", Severity::Information, "{text}").value("text", text.into())
    }

    /// Should be looked at, and kept as a text.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new("recorded", Severity::Warning, "{text}").value("text", text.into())
    }

    /// The same with one more value.
    pub fn value(mut self, name: &'static str, value: impl ToString) -> Self {
        self.values.push((name, value.to_string()));
        self
    }

    /// The same with one more way out.
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    /// The same, as information about one of several parts.
    pub fn about(self, part: impl Into<String>) -> Self {
        Self { severity: Severity::Information, about: Some(part.into()), ..self }
    }

    /// The sentence.
    pub fn text(&self) -> String {
        let mut out = self.about.iter().map(|part| format!("{part}: ")).collect::<String>();
        let mut rest = self.template;
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            out += before;
            let fix = |number: &str| self.fixes.get(number.parse::<usize>().ok()?);
            if let Some(fix) = fix(name) {
                out += &fix.to_string();
            } else if let Some(fix) = name.strip_suffix(":-").and_then(fix) {
                out += &format!("{fix:-}");
            } else if let Some((_, value)) = self.values.iter().find(|(own, _)| *own == name) {
                out += value;
            } else {
                debug_assert!(false, "`{name}` stands for nothing in {}", self.code);
            }
            rest = after;
        }
        out + rest
    }
}

/// A note in a file.
#[derive(Serialize, Deserialize)]
struct Written {
    level: Severity,
    text: String,
}

// The derived one would want codes that the input lends for ever.
impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        Ok(Self::new("recorded", written.level, "{text}").value("text", written.text))
    }
}

impl From<Note> for Written {
    fn from(note: Note) -> Self {
        Self { level: note.severity, text: note.text() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixes::{MEMORY, SGPR, SVGP};

    #[test]
    fn texts_have_values_and_fixes() {
        let note = Note::new("many-rows", Severity::Warning, "{rows} rows are many: {1}, or {0}")
            .value("rows", 3)
            .fix(SVGP)
            .fix(MEMORY);
        assert_eq!(note.text(), "3 rows are many: --memory GB, or --method svgp");
        assert_eq!(note.about("a").text(), "a: 3 rows are many: --memory GB, or --method svgp");
        let note = Note::new("slow", Severity::Warning, "take {0} or {1:-}").fix(SGPR).fix(SVGP);
        assert_eq!(note.text(), "take --method sgpr or svgp");
        // What stands in values is no template.
        let text = "the column `{rows}` {0";
        assert_eq!(Note::information(text).text(), text);
    }
}
