//! How far a stream has come, and how good it was.

use crate::args::Cli;
use crate::output::{Failure, number, print, print_json};
use posterior::data::json;
use posterior::models::{PredictedKind, ScoreSums, StreamState, peak_memory_bytes};
use posterior::notes::fixes::LAST_LINE;
use serde_json::Value;

/// In a line.
pub(super) fn text(stream: &StreamState) -> String {
    let counts = &stream.counts;
    let mut out = format!("{} rows read: {} learned", counts.rows, counts.learned);
    for (count, what) in [
        (counts.start, "fitted to first"),
        (counts.unlabelled, "predicted only"),
        (counts.skipped, "passed over"),
    ] {
        if count > 0 {
            out += &format!(", {count} {what}");
        }
    }
    let classes = stream.model.model().predicts() == PredictedKind::Classes;
    let of = |sums: &ScoreSums| {
        let mut text =
            format!("NLL {} nats (without features {})", number(sums.nll), number(sums.baseline_nll));
        text += &match classes {
            true => format!(", accuracy {:.4}, Brier {}", sums.hits, number(sums.squares)),
            false => format!(
                ", RMSE {} (without features {}), {:.1} % in the 90 % interval",
                number(sums.squares.sqrt()),
                number(sums.baseline_squares.sqrt()),
                100.0 * sums.hits
            ),
        };
        text
    };
    if let (Some(all), Some(latest)) = (stream.score.all.averages(), stream.score.latest.averages()) {
        out += &format!("; before they were learned: {}; lately: {}", of(&all), of(&latest));
    }
    if let Some(noise) = stream.model.noise().filter(|noise| noise.rows() > 0) {
        let of = |variance: f64| number(stream.model.deviation_in_units(variance));
        out += &format!(
            "; noise learned from {} rows: standard deviation {}, that of the fit was {}",
            noise.rows(),
            of(noise.variance()),
            of(noise.start())
        );
        if noise.far() > 0 {
            out += &format!(" ({} rows beyond five deviations counted as five)", noise.far());
        }
    }
    out
}

fn noise(stream: &StreamState) -> Value {
    let of = |variance: f64| stream.model.deviation_in_units(variance);
    stream.model.noise().map_or(Value::Null, |noise| {
        json!({
            "rows": noise.rows(), "deviation": of(noise.variance()), "fit_deviation": of(noise.start()),
            "far_rows": noise.far(),
        })
    })
}

fn scores(sums: &ScoreSums, classes: bool) -> Value {
    let Some(a) = sums.averages() else { return Value::Null };
    match classes {
        true => json!({
            "rows": a.weight, "nll": a.nll, "baseline_nll": a.baseline_nll, "accuracy": a.hits,
            "brier": a.squares, "baseline_brier": a.baseline_squares,
        }),
        false => json!({
            "rows": a.weight, "nll": a.nll, "baseline_nll": a.baseline_nll, "coverage_90": a.hits,
            "rmse": a.squares.sqrt(), "baseline_rmse": a.baseline_squares.sqrt(),
        }),
    }
}

/// What was left of the input, behind the rest.
pub(super) fn left(unfinished: usize) -> String {
    match unfinished {
        0 => String::new(),
        _ => format!("; 1 unfinished line left: it has no newline yet ({LAST_LINE} reads it all the same)"),
    }
}

/// With how many last lines were left, by a call that has read something.
pub(super) fn print_status(
    cli: &Cli,
    stream: &StreamState,
    unfinished: Option<usize>,
) -> Result<(), Failure> {
    if !cli.json {
        let input = match &stream.input.file {
            Some(file) => format!("{}, {} bytes of it read", file.display(), stream.input.offset),
            None => "standard input".into(),
        };
        let learned = stream.model.streamed();
        return print(format!(
            "{}\ninput: {input}; {} batches; {} inducing points were added",
            text(stream),
            stream.counts.batches,
            learned.added_inducing
        ));
    }
    let classes = stream.model.model().predicts() == PredictedKind::Classes;
    print_json(&json!({
        "counts": stream.counts,
        "score": scores(&stream.score.all, classes),
        "latest": scores(&stream.score.latest, classes),
        "learned": stream.model.streamed(),
        "noise": noise(stream),
        "input": stream.input,
        // Null where nothing was read.
        "unfinished_lines": unfinished,
        "output": stream.output,
        "target": stream.model.columns().1,
        "peak_memory_bytes": peak_memory_bytes(),
    }))
}
