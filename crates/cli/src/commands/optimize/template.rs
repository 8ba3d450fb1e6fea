//! The command of `optimize run`: checked before anything is tried, then filled in for each point.

use crate::output::Failure;
use posterior::decisions::campaign::Trial;
use std::path::{Path, PathBuf};

/// A program and its arguments with `{NAME}` where coordinates go.
pub(super) struct Template<'a> {
    command: &'a [String],
    names: &'a [String],
}

/// A piece of an argument.
enum Piece<'a> {
    Text(&'a str),
    /// Braces around something.
    Braces(&'a str),
}

impl<'a> Template<'a> {
    /// Checks that all names in braces are axes, that no axis is forgotten, and that there is such a program. What is worth knowing comes as a note.
    pub(super) fn check(
        command: &'a [String],
        names: &'a [String],
        note: impl FnOnce(String),
    ) -> Result<Self, Failure> {
        let template = Self { command, names };
        let known = || names.iter().map(|n| format!("{{{n}}}")).collect::<Vec<_>>().join(", ");
        let mut used = vec![false; names.len()];
        for piece in command.iter().flat_map(|text| pieces(text)) {
            let Piece::Braces(name) = piece else { continue };
            if let Some(j) = names.iter().position(|n| n == name) {
                used[j] = true;
            } else if name != "id" && looks_like_a_name(name) {
                return Err(Failure::usage(format!(
                    "the command has {{{name}}}, which is no axis: the axes are {}, and {{id}} is the trial's number; braces that are meant as they stand take a space, {{ {name} }}",
                    known()
                )));
            }
        }
        // A shell may take the point from the environment, by the names that it has there.
        for (used, name) in used.iter_mut().zip(names) {
            *used |= command.iter().any(|text| text.contains(&variable(name)));
        }
        match used.iter().position(|u| !u) {
            None => {}
            Some(_) if used.iter().all(|u| !u) => {
                let variables = names.iter().map(|n| variable(n)).collect::<Vec<_>>().join(", ");
                note(format!(
                    "the command names no axis: its program has to read {variables} from the environment"
                ));
            }
            Some(missing) => {
                return Err(Failure::usage(format!(
                    "the command leaves the axis {{{}}} out, so it would try points that differ from those that were asked for: the axes are {}",
                    names[missing],
                    known()
                )));
            }
        }
        template.check_program()?;
        Ok(template)
    }

    /// Whether there is such a program; one whose name depends on the point is found out when it is started.
    fn check_program(&self) -> Result<(), Failure> {
        let Some(program) = self.command.first() else {
            return Err(Failure::usage("no command was given".into()));
        };
        if pieces(program).any(|p| matches!(p, Piece::Braces(_))) || found(program) {
            return Ok(());
        }
        let there = Path::new(program).exists();
        let why = match program.contains('/') {
            _ if there && program.contains('/') => "it is not executable (chmod +x)",
            true => "there is no such file",
            false if there => {
                "no folder of PATH has it; for the file in this folder write ./ before its name"
            }
            false => "no folder of PATH has it",
        };
        Err(cannot_start(program, why))
    }

    /// The program and its arguments for a point.
    pub(super) fn filled(&self, trial: &Trial) -> Vec<String> {
        let fill = |text: &String| -> String {
            let one = |piece: Piece<'_>| match piece {
                Piece::Text(text) => text.to_string(),
                Piece::Braces("id") if !self.names.iter().any(|n| n == "id") => trial.id.to_string(),
                Piece::Braces(name) => match self.names.iter().position(|n| n == name) {
                    Some(j) => trial.point[j].to_string(),
                    None => format!("{{{name}}}"),
                },
            };
            pieces(text).map(one).collect()
        };
        self.command.iter().map(fill).collect()
    }

    /// The point as environment variables.
    pub(super) fn variables(&self, trial: &Trial) -> Vec<(String, String)> {
        self.names.iter().zip(&trial.point).map(|(n, v)| (variable(n), v.to_string())).collect()
    }
}

/// Nothing is tried by a program that cannot be started.
pub(super) fn cannot_start(program: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(format!(
        "`{program}` cannot be started: {why}; nothing was told of the points it should have tried"
    ))
}

/// The pieces of an argument, innermost braces apart. `${...}` belongs to the shell.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        let braces = loop {
            let Some(open) = rest[from..].find('{').map(|i| i + from) else { break None };
            let inside = &rest[open + 1..];
            match inside.find(['{', '}']) {
                Some(end) if inside[end..].starts_with('}') && !rest[..open].ends_with('$') => {
                    break Some((open, end));
                }
                Some(_) => from = open + 1,
                None => break None,
            }
        };
        Some(match braces {
            Some((0, end)) => {
                let name = &rest[1..1 + end];
                rest = &rest[end + 2..];
                Piece::Braces(name)
            }
            Some((open, _)) => {
                let (before, after) = rest.split_at(open);
                rest = after;
                Piece::Text(before)
            }
            None => Piece::Text(std::mem::take(&mut rest)),
        })
    })
}

/// Whether braces around this are meant for us: `{rate}` is, `{}`, `{print $1}` and `{"a": 1}` are not.
fn looks_like_a_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}

/// The name of an axis as shells allow it.
fn variable(name: &str) -> String {
    let sign = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("POSTERIOR_{}", name.chars().map(sign).collect::<String>())
}

/// Whether a program of this name would be found.
fn found(program: &str) -> bool {
    if program.contains(std::path::MAIN_SEPARATOR) || program.contains('/') {
        return is_executable(Path::new(program));
    }
    let Some(path) = std::env::var_os("PATH") else { return true };
    std::env::split_paths(&path).any(|folder: PathBuf| {
        is_executable(&folder.join(program))
            || cfg!(windows) && folder.join(format!("{program}.exe")).is_file()
    })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior::decisions::campaign::{Origin, Outcome};

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|t| t.to_string()).collect()
    }

    #[test]
    fn variables_have_names_that_shells_allow() {
        assert_eq!(variable("max depth"), "POSTERIOR_MAX_DEPTH");
        assert_eq!(variable("learning-rate.0"), "POSTERIOR_LEARNING_RATE_0");
    }

    #[test]
    fn points_go_where_their_names_stand_and_other_braces_stay() {
        let trial = Trial {
            id: 7,
            point: vec![0.5, 2.0],
            row: None,
            origin: Origin::Given,
            round: 0,
            outcome: Outcome::Pending,
        };
        let names = words(&["x", "max depth"]);
        for (text, expected) in [
            ("{x}", "0.5"),
            ("--a={x}{max depth}/{id}.json", "--a=0.52/7.json"),
            ("{\"x\":{x},\"d\":{\"k\":{max depth}}}", "{\"x\":0.5,\"d\":{\"k\":2}}"),
            ("awk '{print $1}' ${x} {} { y } {a,b}", "awk '{print $1}' ${x} {} { y } {a,b}"),
            ("{", "{"),
            ("}{x}{", "}0.5{"),
        ] {
            let command = words(&["sh", text]);
            let template = Template { command: &command, names: &names };
            assert_eq!(template.filled(&trial)[1], expected);
        }
    }

    #[test]
    fn templates_are_checked_before_anything_is_tried() {
        let names = words(&["rate", "layers"]);
        let check = |command: &[&str]| {
            let command = words(command);
            let mut notes = Vec::new();
            Template::check(&command, &names, |n| notes.push(n)).map(|_| notes).map_err(|e| format!("{e:?}"))
        };
        for (command, expected) in [
            (&["sh", "{rat}", "{layers}"][..], "{rat}, which is no axis: the axes are {rate}, {layers}"),
            (&["sh", "{rate}", "{layer}"], "{layer}, which is no axis"),
            (&["sh", "{rate}"], "leaves the axis {layers} out"),
            (&["sh", "-c", "echo {rate}"], "leaves the axis {layers} out"),
            (&["no-such-program-anywhere", "{rate}", "{layers}"], "cannot be started: no folder of PATH"),
            (&["./no-such-file", "{rate}", "{layers}"], "cannot be started: there is no such file"),
        ] {
            let error = check(command).unwrap_err();
            assert!(error.contains(expected), "{command:?}: {error}");
        }
        assert!(check(&["sh", "{rate}", "{layers}", "{id}"]).unwrap().is_empty());
        assert!(check(&["sh", "-c", "echo $POSTERIOR_LAYERS {rate}"]).unwrap().is_empty());
        assert!(
            check(&["sh", "-c", "awk '{print $1}' x"]).unwrap()[0]
                .contains("POSTERIOR_RATE, POSTERIOR_LAYERS")
        );
        assert!(check(&["{rate}.sh", "{layers}"]).unwrap().is_empty());
    }
}
