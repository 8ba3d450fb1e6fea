//! Time and memory of evidence-and-gradient evaluations on a real table, as one JSON line: the counterpart of a peer's optimiser
//! steps, to be run beside it.
//!
//! `cargo bench -p posterior --bench evidence_step -- FILE.csv.gz TARGET ROWS STEPS [KERNEL]`

use posterior::data::{ReadOptions, Schema, Selection, Standardisation, read_table};
use posterior::gp::exact::{ExactGp, log_evidence_and_gradient};
use posterior::gp::{MeanForm, Observations};
use posterior::kernels::KernelExpression;
use posterior::likelihoods::Gaussian;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [file, target, rows, steps, rest @ ..] = &arguments[..] else {
        return Err("usage: evidence_step FILE TARGET ROWS STEPS [KERNEL]".into());
    };
    let (count, steps): (usize, usize) = (rows.parse()?, steps.parse()?);
    let kernel: KernelExpression = rest.first().map_or("matern32(ard)", String::as_str).parse()?;
    let table = read_table(Path::new(file), &ReadOptions::default())?;
    let chosen: Vec<usize> = (0..table.rows().min(count)).collect();
    let schema = Schema::learn(&table, &Selection { target: target.clone(), ..Default::default() }, &chosen)?;
    let extracted = schema.extract(&table, &chosen, true)?;
    let y = extracted.y.unwrap_or_default();
    let standard = Standardisation::learn(extracted.x.as_ref(), &y);
    let x = standard.features(extracted.x.as_ref());
    let targets = faer::Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i]));
    let inputs = x.ncols();
    let model = ExactGp::new(
        kernel.build(&schema.feature_names())?,
        MeanForm::Constant,
        Gaussian::new(0.5, 1e-6),
        inputs,
        1,
    );
    let data = Observations::new(x, targets, None)?;
    let mut buffer = None;
    let mut seconds = Vec::new();
    let mut value = 0.0;
    for _ in 0..steps {
        let started = Instant::now();
        let evaluation = log_evidence_and_gradient(&model, &data, buffer.take())?;
        seconds.push(started.elapsed().as_secs_f64());
        value = evaluation.value;
        buffer = Some(evaluation.buffer);
    }
    seconds.sort_by(f64::total_cmp);
    println!(
        "{{\"n\": {}, \"d\": {inputs}, \"log_evidence\": {value}, \"seconds_min\": {:.4}, \"seconds_median\": {:.4}, \"peak_memory_bytes\": {}}}",
        chosen.len(),
        seconds[0],
        seconds[seconds.len() / 2],
        posterior::models::peak_memory_bytes().unwrap_or_default()
    );
    Ok(())
}
