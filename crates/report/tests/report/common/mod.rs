//! A report with realistic numbers, and a check that markup is well formed.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "shared with the example, which uses a part of it"
)]

mod markup;
mod networks;

pub use markup::check_markup;
pub use networks::*;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_metrics::Gaussians;
use posterior_report::*;
use rand::RngExt;
use rand_distr::StandardNormal;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    rng.sample(StandardNormal)
}

/// Two sections: a function of one input with a gap, and a table of 500 held-out rows.
pub fn demo() -> Report {
    Report::new(
        "Two problems, two models",
        "A function of one input with a gap in the data, and a table of five columns. Made-up data, seed 7.",
        vec![one_input().into(), table(500).into()],
    )
}

/// Lower Cholesky factor, row-major.
fn cholesky(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            a[i][j] = if i == j { (a[i][i] - dot).sqrt() } else { (a[i][j] - dot) / a[j][j] };
        }
        for j in i + 1..n {
            a[i][j] = 0.0;
        }
    }
    a
}

fn forward(l: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for i in 0..b.len() {
        let dot: f64 = (0..i).map(|k| l[i][k] * x[k]).sum();
        x[i] = (x[i] - dot) / l[i][i];
    }
    x
}

/// An exact Gaussian process on 45 noisy points of a known function, without points between 4 and 6.5.
pub fn one_input() -> RegressionReport {
    let mut rng = Streams::new(7).stream("report/one-input");
    let function = |x: f64| (1.3 * x).sin() + 0.3 * x;
    let noise = 0.2;
    let draw = |rng: &mut ChaCha8Rng| {
        let u = 7.5 * rng.random::<f64>();
        if u < 4.0 { u } else { u + 2.5 }
    };
    let x: Vec<f64> = (0..45).map(|_| draw(&mut rng)).collect();
    let y: Vec<f64> = x.iter().map(|&x| function(x) + noise * normal(&mut rng)).collect();
    let kernel = |a: f64, b: f64| 1.8 * (-0.5 * ((a - b) / 1.1f64).powi(2)).exp();
    let gram: Vec<Vec<f64>> = (0..45)
        .map(|i| (0..45).map(|j| kernel(x[i], x[j]) + if i == j { noise * noise } else { 0.0 }).collect())
        .collect();
    let l = cholesky(gram);
    let centre = y.iter().sum::<f64>() / 45.0;
    let white = forward(&l, &y.iter().map(|y| y - centre).collect::<Vec<_>>());
    let posterior = |at: f64| {
        let c = forward(&l, &x.iter().map(|&x| kernel(x, at)).collect::<Vec<_>>());
        let mean = centre + c.iter().zip(&white).map(|(a, b)| a * b).sum::<f64>();
        (mean, c)
    };
    let covariance = |a: f64, ca: &[f64], b: f64, cb: &[f64]| {
        kernel(a, b) - ca.iter().zip(cb).map(|(a, b)| a * b).sum::<f64>()
    };
    let grid: Vec<f64> = (0..181).map(|i| -0.5 + 11.0 * f64::from(i) / 180.0).collect();
    let at: Vec<(f64, Vec<f64>)> = grid.iter().map(|&g| posterior(g)).collect();
    let joint: Vec<Vec<f64>> = (0..181)
        .map(|i| {
            (0..181)
                .map(|j| covariance(grid[i], &at[i].1, grid[j], &at[j].1) + if i == j { 1e-8 } else { 0.0 })
                .collect()
        })
        .collect();
    let deviation: Vec<f64> = (0..181).map(|i| joint[i][i].sqrt()).collect();
    let factor = cholesky(joint);
    let samples = (0..5)
        .map(|_| {
            let e: Vec<f64> = (0..181).map(|_| normal(&mut rng)).collect();
            (0..181).map(|i| at[i].0 + (0..=i).map(|k| factor[i][k] * e[k]).sum::<f64>()).collect()
        })
        .collect();
    let mut held_out = Predictions::default();
    for _ in 0..120 {
        let input = draw(&mut rng);
        let (mean, c) = posterior(input);
        held_out.mean.push(mean);
        held_out.standard_deviation.push((covariance(input, &c, input, &c) + noise * noise).sqrt());
        held_out.truth.push(function(input) + noise * normal(&mut rng));
    }
    let mut report = RegressionReport {
        dataset: "A curve with a gap".into(),
        description: "45 noisy points of a function of one input; nothing was measured between 4 and 6.5."
            .into(),
        target: "height".into(),
        target_unit: Some("cm".into()),
        summary: vec![
            SummaryRow::new("method", "exact Gaussian process"),
            SummaryRow::new("kernel", "squared exponential"),
            SummaryRow::new("training rows", "45"),
            SummaryRow::new("log evidence", "\u{2212}12.31"),
        ],
        hyperparameters: vec![
            parameter(
                "lengthscale",
                1.1,
                "s",
                "How far apart two inputs are before their values hardly agree.",
            ),
            parameter("signal deviation", 1.34, "cm", "How far the function strays from its mean."),
            parameter("noise deviation", 0.2, "cm", "Scatter of observations around the function."),
        ],
        notes: vec![Note::information("The kernel matrix was factorised without jitter.")],
        posterior: Some(PosteriorPanel {
            target: None,
            input: "time".into(),
            input_unit: Some("s".into()),
            true_function: grid.iter().map(|&g| function(g)).collect(),
            mean: at.iter().map(|a| a.0).collect(),
            observed_standard_deviation: deviation.iter().map(|s| s.hypot(noise)).collect(),
            latent_standard_deviation: deviation,
            grid,
            samples,
            train_input: x,
            train_target: y,
        }),
        predictions: Some(held_out),
        ..RegressionReport::default()
    };
    score(&mut report, centre, 1.2);
    report
}

/// `n` held-out rows of a table with five features; errors a little larger than predicted.
pub fn table(n: usize) -> RegressionReport {
    let mut rng = Streams::new(7).stream("report/table");
    let mut p = Predictions::default();
    for _ in 0..n {
        let mean = 124.0 + 6.5 * normal(&mut rng) - 2.0 * rng.random::<f64>().powi(4) * 5.0;
        let deviation =
            1.1 + 1.6 * rng.random::<f64>().powi(3) + if rng.random::<f64>() < 0.05 { 2.0 } else { 0.0 };
        p.truth.push(mean + 1.05 * deviation * normal(&mut rng));
        p.standard_deviation.push(deviation);
        p.mean.push(mean);
    }
    let mut report = RegressionReport {
        dataset: "Noise of a wing".into(),
        description: "Sound pressure of an aerofoil in a wind tunnel, from five measured quantities.".into(),
        target: "sound_level".into(),
        target_unit: Some("dB".into()),
        summary: vec![
            SummaryRow::new("method", "exact Gaussian process"),
            SummaryRow::new("kernel", "Matérn-3/2, one lengthscale per feature"),
            SummaryRow::new("training rows", "1,003"),
            SummaryRow::new("features", "5"),
            SummaryRow::new("log evidence", "\u{2212}412.7"),
            SummaryRow::new("optimiser", "L-BFGS, 61 steps, converged"),
            SummaryRow::new("fitted in", "4.2 s"),
        ],
        hyperparameters: vec![
            parameter("signal deviation", 6.21, "dB", "How far the function strays from its mean."),
            parameter("noise deviation", 1.03, "dB", "Scatter of repeated observations around the function."),
            parameter("mean", 124.8, "dB", "Value to which predictions return far from all data."),
        ],
        lengthscales: [
            ("frequency", 0.42),
            ("attack_angle", 1.9),
            ("chord_length", 1.1),
            ("velocity", 6.3),
            ("displacement_thickness", 0.93),
        ]
        .map(|(feature, lengthscale)| FeatureLengthscale { feature: feature.into(), lengthscale })
        .to_vec(),
        notes: vec![
            Note::information("Jitter of 1.0×10⁻⁸ was added to factorise the kernel matrix."),
            Note::warning("3 rows with missing cells were dropped (--missing drop)."),
            Note::information("Column site_id is constant in the training rows and was left out."),
        ],
        predictions: Some(p),
        ..RegressionReport::default()
    };
    score(&mut report, 124.8, 6.9);
    report
}

fn parameter(name: &str, value: f64, unit: &str, meaning: &str) -> Hyperparameter {
    Hyperparameter { name: name.into(), value, unit: unit.into(), meaning: meaning.into() }
}

fn score(report: &mut RegressionReport, mean: f64, scale: f64) {
    let Some(p) = &report.predictions else { return };
    let variance: Vec<f64> = p.standard_deviation.iter().map(|s| s * s).collect();
    let n = p.truth.len();
    report.scores = Some(Gaussians::new(&p.mean, &variance, &p.truth).unwrap().scores(scale).unwrap());
    let (means, variances) = (vec![mean; n], vec![scale * scale; n]);
    let scores = Gaussians::new(&means, &variances, &p.truth).unwrap().scores(scale).unwrap();
    report.baseline = Some(Baseline { name: "always the training mean".into(), scores });
}
