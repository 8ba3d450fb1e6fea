//! A command line that is recommended.

use std::fmt;

/// A command of the program with the flags that a text recommends. Those that exist are the constants of [`fixes`](crate::fixes).
///
/// As text it is its flags, `--memory GB`; with `{:-}` their values alone, behind another value of the same flag; with `{:#}` the whole command
/// line, `posterior fit --memory GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The command, without the name of the program.
    pub command: &'static str,
    /// Other commands to which the same flags are recommended, with commas between them.
    pub also: &'static str,
    /// Flags and values as they are shown. A value that is to be chosen is in capitals or left out.
    pub arguments: &'static str,
    /// The same with every value chosen, where it differs.
    pub example: Option<&'static str>,
}

impl Fix {
    pub(crate) const fn new(command: &'static str, arguments: &'static str) -> Self {
        Self { command, also: "", arguments, example: None }
    }

    pub(crate) const fn example(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
    }

    pub(crate) const fn also(self, also: &'static str) -> Self {
        Self { also, ..self }
    }

    /// Every command line that it stands for, word by word, with values chosen: the words of the command, and the flags behind it.
    pub fn examples(self) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        let words: Vec<&str> = self.example.unwrap_or(self.arguments).split_whitespace().collect();
        let also = self.also.split(", ").filter(|command| !command.is_empty());
        std::iter::once(self.command).chain(also).map(move |command| (command, words.clone()))
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.arguments.split_once(' ').map_or("", |(_, values)| values);
        match (out.alternate(), out.sign_minus()) {
            (true, _) if self.arguments.is_empty() => write!(out, "posterior {}", self.command),
            (true, _) => write!(out, "posterior {} {}", self.command, self.arguments),
            (false, true) => out.write_str(values),
            (false, false) => out.write_str(self.arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Fix = Fix::new("fit", "--method sgpr");
    const B: Fix = Fix::new("fit", "--method svgp");
    const C: Fix = Fix::new("fit", "--inducing N").example("--inducing 10").also("compress");

    #[test]
    fn texts_are_flags_or_command_lines() {
        assert_eq!(format!("{A}; {C:#}"), "--method sgpr; posterior fit --inducing N");
        assert_eq!(format!("{:#}", Fix::new("label export", "")), "posterior label export");
        assert_eq!(format!("{A} or {B:-}"), "--method sgpr or svgp");
    }

    #[test]
    fn examples_are_of_every_command() {
        let words = vec!["--inducing", "10"];
        assert_eq!(C.examples().collect::<Vec<_>>(), [("fit", words.clone()), ("compress", words)]);
    }
}
