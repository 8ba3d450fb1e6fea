//! From a table to predictions with intervals, and a model file that predicts the same.
//!
//! `cargo run --release -p posterior --example table`

use posterior::data::{Selection, Split, synthetic};
use posterior::linalg::random::Streams;
use posterior::optim::Signal;
use posterior::options::PriorSettings;
use posterior::{FitRequest, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = synthetic::friedman(300, Streams::new(1));
    let split = Split::random(table.rows(), 0.3, Streams::new(1));
    let request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        prior: PriorSettings { kernel: "se(ard)".parse()?, ..PriorSettings::default() },
        ..Default::default()
    };
    let model = Model::fit(&table, &split.train, &request, &mut |progress, _| {
        eprintln!("step {}: {:.4}", progress.step, progress.value.unwrap_or(f64::NAN));
        Signal::Continue
    })?;

    let predictions = model.process().unwrap().predict_with_truth(&table, Some(&split.test))?;
    let scores = predictions.scores(model.process().unwrap().inputs().standardisation.target_in_units().1)?;
    println!(
        "RMSE {:.3}, 95 % intervals hold {:.1} % of the truths",
        scores.rmse,
        100.0 * scores.coverage_95
    );
    for (i, row) in predictions.rows.iter().take(3).enumerate() {
        println!("row {}: {:.2} ± {:.2}", row + 1, predictions.mean[i], 1.96 * predictions.deviation[i]);
    }

    let file = std::env::temp_dir().join("friedman.posterior");
    model.save(&file)?;
    assert_eq!(
        Model::load(&file)?.process().unwrap().predict_with_truth(&table, Some(&split.test))?,
        predictions
    );
    println!("the same from {}", file.display());
    Ok(())
}
