//! Questions and the state of labelling, for people and as JSON.

use crate::output::{number, table};
use posterior::data::json;
use posterior::decisions::labelling::{Answer, Criterion, Labelling, Pool, PoolDoubt, Question};
use serde_json::{Map, Value};

/// Columns that are shown of a row, and characters of a cell.
const COLUMNS: usize = 6;
const CELL: usize = 60;

/// Classes that are named.
const CLASSES: usize = 12;

/// How many labels there are, by class.
pub(super) fn labels(labelling: &Labelling) -> String {
    let counts = labelling.counts();
    let total: usize = counts.iter().sum();
    if labelling.classes().is_empty() {
        return "no labels".into();
    }
    let each: Vec<String> = labelling
        .classes()
        .iter()
        .zip(&counts)
        .take(CLASSES)
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    let more = counts.len().saturating_sub(CLASSES);
    let more = if more > 0 { format!(", and {more} more classes") } else { String::new() };
    format!("{total} label{} ({}{more})", if total == 1 { "" } else { "s" }, each.join(", "))
}

/// A cell of a table on a screen.
fn clipped(cell: &str) -> String {
    let flat: String = cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match flat.char_indices().nth(CELL) {
        Some((end, _)) => format!("{}...", &flat[..end]),
        None => flat,
    }
}

/// A table of questions: what to look at, what the criterion says, what the model believes.
pub(super) fn questions(labelling: &Labelling, pool: Option<&Pool>, questions: &[&Question]) -> String {
    let all = labelling.pool().shown_columns();
    let columns = if pool.is_some() { all.len().min(COLUMNS) } else { 0 };
    let valued = questions.iter().any(|q| q.value.is_some());
    let believed = questions.iter().any(|q| q.believed.is_some());
    let mut head = vec!["id".to_string(), "row".into()];
    head.extend(all.iter().take(columns).cloned());
    if all.len() > columns && columns > 0 {
        head.push("...".into());
    }
    head.extend(valued.then(|| labelling.settings().criterion.name().to_string()));
    if believed {
        head.extend(["believed".to_string(), "probability".into()]);
    }
    let mut lines = vec![head];
    for question in questions {
        let mut line = vec![question.id.to_string(), question.row.to_string()];
        if let Some(pool) = pool {
            let cells = pool.shown(labelling.pool(), question.row);
            line.extend(cells.iter().take(columns).map(|(_, cell)| clipped(cell)));
            if all.len() > columns && columns > 0 {
                line.push(String::new());
            }
        }
        if valued {
            line.push(question.value.map_or_else(|| "spread".into(), number));
        }
        if believed {
            let guess = question.best_guess();
            let name = |class: usize| labelling.classes().get(class).cloned().unwrap_or_default();
            line.push(guess.map_or_else(String::new, |(class, _)| name(class)));
            line.push(guess.map_or_else(String::new, |(_, p)| format!("{p:.3}")));
        }
        lines.push(line);
    }
    table(&lines)
}

/// A question with everything that is known of it.
pub(super) fn question_json(labelling: &Labelling, pool: Option<&Pool>, question: &Question) -> Value {
    let name = |class: usize| labelling.classes().get(class);
    let mut out = posterior::data::to_shown_value(question).unwrap_or_default();
    let map = out.as_object_mut();
    if let (Some(map), Some((class, probability))) = (map, question.best_guess()) {
        let each = question.believed.iter().flatten().enumerate();
        let all: Map<String, Value> =
            each.filter_map(|(class, p)| Some((name(class)?.clone(), json!(p)))).collect();
        map.insert("believed".into(), Value::Object(all));
        map.insert("guess".into(), json!({ "label": name(class), "probability": probability }));
    }
    if let (Some(map), Some(pool)) = (out.as_object_mut(), pool) {
        let cells = pool.shown(labelling.pool(), question.row).into_iter();
        map.insert("shown".into(), Value::Object(cells.map(|(name, cell)| (name, cell.into())).collect()));
    }
    out
}

/// How far it has come.
pub(super) fn status(labelling: &Labelling, doubt: Option<PoolDoubt>) -> String {
    let of = |wanted: &dyn Fn(&Question) -> bool| labelling.questions().iter().filter(|q| wanted(q)).count();
    let skipped = of(&|q| matches!(q.answer, Answer::Skipped { .. }));
    let mut lines = vec![format!(
        "{}, {} pending, {skipped} skipped, of {} rows; {} rounds by {}",
        labels(labelling),
        of(&Question::is_pending),
        labelling.pool().rows,
        labelling.rounds(),
        labelling.settings().criterion.name(),
    )];
    if let Some(doubt) = doubt {
        lines.push(format!(
            "{} rows without a label: entropy {} nats on average, of which labels would remove {}",
            doubt.rows,
            number(doubt.entropy),
            number(doubt.removable)
        ));
    }
    if let Some(scores) = labelling.scores() {
        let hard = match labelling.settings().criterion {
            Criterion::Random => "rows at random: typical ones",
            _ => "these rows were asked for because they are hard: typical rows are predicted better",
        };
        let unforeseen = match scores.unforeseen {
            0 => String::new(),
            n => format!(", {n} of classes that were not known then"),
        };
        let nll = match scores.nll.is_finite() {
            true => format!(
                ", NLL {} nats (all classes alike: {})",
                number(scores.nll),
                number(scores.uniform_nll)
            ),
            false => String::new(),
        };
        lines.push(format!(
            "{} labels were predicted before they were told: accuracy {:.3}{nll}{unforeseen}; {hard}",
            scores.labels, scores.accuracy
        ));
    }
    lines.join("\n")
}

pub(super) fn status_json(labelling: &Labelling, pool: Option<&Pool>, doubt: Option<PoolDoubt>) -> Value {
    let counts: Map<String, Value> =
        labelling.classes().iter().cloned().zip(labelling.counts().into_iter().map(Value::from)).collect();
    let questions = labelling.questions();
    let pending: Vec<Value> = questions
        .iter()
        .filter(|q| q.is_pending())
        .map(|question| question_json(labelling, pool, question))
        .collect();
    json!({
        "pool": labelling.pool().path,
        "rows": labelling.pool().rows,
        "classes": labelling.classes(),
        "labels": counts,
        "told": questions.iter().filter(|q| q.label().is_some()).count(),
        "skipped": questions.iter().filter(|q| matches!(q.answer, Answer::Skipped { .. })).count(),
        "pending": pending,
        "rounds": labelling.rounds(),
        "criterion": labelling.settings().criterion,
        "left": doubt,
        "scores": labelling.scores(),
        "learned": labelling.learned(),
        "questions": questions,
    })
}
