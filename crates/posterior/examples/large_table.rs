//! Twenty thousand rows, where no n x n matrix is wanted: a method by name with its own options, and samples that are functions.
//!
//! `cargo run --release -p posterior --example large_table`

use posterior::options::{InducingOptions, SgprOptions};
use posterior::{Gp, Method};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let x: Vec<[f64; 2]> = (0..20_000).map(|i| [(i % 200) as f64 / 20.0, (i / 200) as f64 / 20.0]).collect();
    let y: Vec<f64> =
        x.iter().enumerate().map(|(i, [a, b])| a.sin() * b.cos() + 0.1 * (i as f64).sin()).collect();

    // Inducing points stand for the rows: cost n m² instead of n³. Without `method`, rows that are held back choose among several methods.
    let inducing = InducingOptions { inducing: Some(256), ..InducingOptions::default() };
    let method = Method::Sgpr(SgprOptions { inducing, ..SgprOptions::default() });
    let process = Gp::builder().kernel("matern52(ard)").method(method).fit(&x, &y)?;

    let new = [[3.3, 2.2], [3.3, 40.0]];
    let predicted = process.predict(&new)?;
    for (point, (mean, std)) in new.iter().zip(predicted.mean()?.iter().zip(predicted.std()?)) {
        println!("{point:?}: {mean:.2} ± {:.2}", 1.96 * std);
    }

    // One draw is one plausible function: its values at different places belong together.
    let functions = process.functions(200, 0)?;
    let values = functions.values(&[[3.3, 2.2], [3.3, 2.4]])?;
    let falling = (0..functions.count()).filter(|&draw| values[(1, draw)] < values[(0, draw)]).count();
    println!("the function falls between 2.2 and 2.4 in {falling} of {} draws", functions.count());
    Ok(())
}
