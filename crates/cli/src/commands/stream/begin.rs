//! The first state of a stream.

use super::source::{Source, kind};
use crate::args::{BadRowsArg, StreamArgs};
use crate::commands::fit::observed_by;
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks};
use posterior::data::arriving::RowFormat;
use posterior::data::{Missing, Selection, Table};
use posterior::models::{
    Observed, ParsedRows, Prepared, RunningScore, StreamCounts, StreamInput, StreamModel, StreamState,
    choose_likelihood,
};
use posterior::notes::fixes::LAST_LINE;
use posterior::options::{
    CalibrateName, InferenceName, LikelihoodName, Limits, OutputRequest, SgprOptions, SvgpOptions,
    TargetTransformName, Validation,
};
use posterior::{FitRequest, Model, Saved};

/// Inducing points that there may be where nothing is said.
const INDUCING: usize = 512;

/// Inducing points that a first model begins with: a quarter of its rows, and no more than these.
const FIRST_INDUCING: usize = 256;

/// From a model, or from one that is fitted to the first rows; None where it was interrupted.
pub(super) fn begin(
    arguments: &StreamArgs,
    source: &mut Source,
    remarks: Remarks,
    interrupt: &Interrupt,
) -> Result<Option<StreamState>, Failure> {
    let most = arguments.inducing_points.unwrap_or(INDUCING);
    if let Some(path) = &arguments.model {
        let model = StreamModel::start(Saved::load(path)?, most)?;
        if let Some(wanted) = arguments.inducing_points.filter(|wanted| *wanted < model.most_inducing()) {
            return Err(Failure::usage(format!(
                "--inducing-points {wanted} is less than the {} that {} has",
                model.most_inducing(),
                path.display()
            )));
        }
        let (needed, target) = model.columns();
        let columns =
            arguments.columns.clone().unwrap_or_else(|| needed.into_iter().chain([target]).collect());
        return Ok(Some(state(model, RowFormat { columns, ..format(arguments) }, source, arguments)));
    }
    let count = arguments.start_rows.unwrap_or(1000);
    remarks.say(format!("waiting for {count} rows, to which a model is fitted first"));
    // With a header it is one line more.
    let mut lines = source.first(count + 1, interrupt)?;
    if interrupt.requested() {
        return Ok(None);
    }
    let Some(first) = lines.first() else {
        return Err(no_rows(source));
    };
    let (format, is_row) = match &arguments.columns {
        Some(columns) => (RowFormat { columns: columns.clone(), ..format(arguments) }, true),
        None => RowFormat::of_first(kind(arguments), arguments.text, &first.text, source.path())?,
    };
    if !is_row {
        lines.remove(0);
    }
    if lines.is_empty() {
        return Err(no_rows(source));
    }
    let rest = if lines.len() > count { lines.split_off(count) } else { Vec::new() };
    let optional: Vec<String> = arguments.target.clone().into_iter().collect();
    let parsed = ParsedRows::of(&format, &lines, &optional, 1);
    let skip = arguments.bad_rows == BadRowsArg::Skip;
    if let (false, Some(bad)) = (skip, parsed.bad.first()) {
        return Err(Failure::new(format!("row {}: {}", bad.row, bad.reason)));
    }
    parsed.bad.iter().for_each(|bad| remarks.say(format!("row {} is passed over: {}", bad.row, bad.reason)));
    let table = format.table(&parsed.rows, None, &[], source.path());
    let rows = table.rows();
    let model = fit(arguments, &table, most, (remarks, interrupt))?;
    if interrupt.requested() {
        return Ok(None);
    }
    let mut stream = state(StreamModel::start(model, most)?, format, source, arguments);
    stream.counts = StreamCounts {
        rows: lines.len() as u64,
        start: rows as u64,
        skipped: parsed.bad.len() as u64,
        ..StreamCounts::default()
    };
    if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
        (stream.input.first_row, stream.input.file_mark) = (first.digest(), first.digest());
        stream.input.offset = last.end;
    }
    source.put_back(rest);
    Ok(Some(stream))
}

/// Nothing to begin with.
fn no_rows(source: &Source) -> Failure {
    let unfinished = match source.unfinished() {
        0 => String::new(),
        _ => {
            format!(": its last line has no newline yet; end the line, or read it all the same ({LAST_LINE})")
        }
    };
    Failure::new(format!("{} has no rows{unfinished}", source.path().display()))
}

fn state(model: StreamModel, format: RowFormat, source: &Source, arguments: &StreamArgs) -> StreamState {
    let format = RowFormat { text: model.reading(format.text), ..format };
    StreamState {
        model,
        counts: StreamCounts::default(),
        score: RunningScore::default(),
        input: StreamInput {
            format,
            file: source.file(arguments),
            offset: 0,
            first_row: String::new(),
            file_mark: String::new(),
        },
        output: None,
    }
}

/// What lines are, before their columns are known.
fn format(arguments: &StreamArgs) -> RowFormat {
    RowFormat::of(kind(arguments), arguments.text)
}

/// A process of inducing points on the first rows.
fn fit(
    arguments: &StreamArgs,
    table: &Table,
    most: usize,
    (remarks, interrupt): (Remarks, &Interrupt),
) -> Result<Saved, Failure> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    let inducing = FIRST_INDUCING.min(most).min((rows.len() / 4).max(1));
    let target = arguments.target.clone().unwrap_or_default();
    let missing = arguments.missing.unwrap_or(Missing::Error);
    let mut request = FitRequest {
        columns: Selection {
            target: target.clone(),
            features: arguments.features.clone(),
            categories: arguments.categories.clone(),
            missing,
            ..Selection::default()
        },
        seed: arguments.seed,
        limits: Limits { memory: arguments.memory, ..Limits::default() },
        output: OutputRequest {
            // Later rows may be such as no map has an image of.
            target_transform: TargetTransformName::None,
            ..OutputRequest::default()
        },
        validation: Validation {
            // Of a model that the next rows change.
            calibrate: CalibrateName::None,
            ..Validation::default()
        },
        ..FitRequest::default()
    };
    if let Some(kernel) = &arguments.kernel {
        request.prior.kernel = kernel.parse()?;
    }
    if let Some(index) = table.index.as_ref().filter(|_| arguments.features.is_none()) {
        remarks.say(format!(
            "note: the first column has no name and is taken for an index (`{index}`): no feature"
        ));
    }
    let asked = arguments.likelihood.unwrap_or_default();
    let chosen = choose_likelihood(table, &target, &rows, asked, &request.columns)?;
    remarks.say(format!("target: {}", chosen.why));
    let gaussian_labels = matches!(
        chosen.name,
        LikelihoodName::Bernoulli | LikelihoodName::Categorical | LikelihoodName::Poisson
    );
    let gaussian = chosen.likelihood.is_none();
    if gaussian || gaussian_labels {
        let mut options = SgprOptions { fixed_inducing: true, ..SgprOptions::default() };
        options.inducing.inducing = Some(inducing);
        request.method = options.into();
    } else {
        let mut options = SvgpOptions::default();
        options.inducing.inducing = Some(inducing);
        request.method = options.into();
    }
    if gaussian {
        let prepared = Prepared::from_table(table, &rows, &request)?;
        let (text, _) = Model::plan_fit(&request, rows.len(), &prepared.schema.feature_names());
        remarks.say(format!("plan of the first fit: {text}"));
        let fitted = observed_by(remarks, interrupt.clone(), |observer| {
            Model::fit_prepared(prepared, &request, observer)
        })?;
        return Ok(Saved::from(fitted));
    }
    // As it was asked: what is left open is compared.
    request.output.likelihood = asked;
    request.output.inference =
        if gaussian_labels { InferenceName::Gaussianised } else { InferenceName::Variational };
    let observed = Observed::from_table(table, &rows, &request, chosen)?;
    remarks.say(format!("plan of the first fit: {}", Model::plan_observed(&observed, &request)?.describe()));
    let fitted = observed_by(remarks, interrupt.clone(), |observer| {
        Model::fit_observed(observed, &request, observer)
    })?;
    Ok(Saved::from(fitted))
}
