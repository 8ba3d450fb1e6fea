//! `posterior label tell`

use super::{say_all, shown};
use crate::args::{Cli, LabelTellArgs};
use crate::commands::state::update;
use crate::commands::{read, remarks};
use crate::interrupt::Interrupt;
use crate::output::{Failure, print_json};
use posterior::data::json;
use posterior::decisions::campaign::TellOutcome;
use posterior::decisions::labelling::{Answer, Labelling, Which};
use std::path::Path;

pub(super) fn tell(cli: &Cli, arguments: &LabelTellArgs) -> Result<(), Failure> {
    let which = match (arguments.id, arguments.row) {
        (Some(id), _) => Some(Which::Id(id)),
        (None, row) => row.map(Which::Row),
    };
    let answer = match (&arguments.label, &arguments.skip) {
        (Some(label), _) => Some(Answer::Labelled { label: label.clone() }),
        (None, reason) => reason.as_ref().map(|reason| Answer::Skipped { reason: reason.clone() }),
    };
    // Read before the lock is taken.
    let told = match (&arguments.results, which, answer) {
        (Some(path), ..) => results(cli, path, arguments.memory)?,
        (None, Some(which), Some(answer)) => vec![(which, answer)],
        _ => {
            return Err(Failure::usage(
                "--id or --row with --label or --skip, or --results, is needed".into(),
            ));
        }
    };
    let ((news, notes), labelling) = update(
        cli,
        &arguments.state,
        &arguments.lock,
        &Interrupt::default(),
        |labelling: &mut Labelling| {
            let (mut news, mut notes) = (0, Vec::new());
            for (which, answer) in told {
                let (done, noted) = labelling.tell(which, answer, arguments.replace)?;
                news += usize::from(done == TellOutcome::Recorded);
                notes.extend(noted);
            }
            Ok((news, notes))
        },
    )?;
    if cli.json {
        let mut out = shown::status_json(&labelling, None, None);
        if let Some(map) = out.as_object_mut() {
            map.insert("new".into(), json!(news));
            map.insert("notes".into(), json!(notes));
        }
        return print_json(&out);
    }
    say_all(remarks(cli), &notes);
    let pending = labelling.questions().iter().filter(|q| q.is_pending()).count();
    remarks(cli).say(format!("{news} new; {}, {pending} pending", shown::labels(&labelling)));
    Ok(())
}

/// Ids (or rows) and labels, from a table.
fn results(cli: &Cli, path: &Path, limit: u64) -> Result<Vec<(Which, Answer)>, Failure> {
    let table = read(path, limit, remarks(cli))?;
    let named = |name: &str| table.columns.iter().find(|c| c.name == name);
    let by_id = named("id").is_some();
    let (Some(keys), Some(labels)) = (named("id").or_else(|| named("row")), named("label")) else {
        return Err(Failure::new(format!(
            "{} needs a column `id` (or `row`) and a column `label`; it has {}",
            path.display(),
            table.names().join(", ")
        )));
    };
    let mut out = Vec::new();
    for row in 0..table.rows() {
        let label = labels.cell(row);
        if label.is_empty() {
            continue;
        }
        // As it stands: one cell that is no number makes text of a column.
        let key = keys.cell(row).trim().parse::<f64>().ok().filter(|v| *v >= 1.0 && v.fract() == 0.0);
        let Some(key) = key else {
            let problem =
                format!("`{}` is no number of a {}", keys.cell(row), if by_id { "question" } else { "row" });
            return Err(Failure::new(format!("{}, row {}: {problem}", path.display(), row + 1)));
        };
        let which = if by_id { Which::Id(key as usize) } else { Which::Row(key as usize) };
        out.push((which, Answer::Labelled { label }));
    }
    Ok(out)
}
