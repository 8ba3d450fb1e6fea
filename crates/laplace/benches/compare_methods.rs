//! Every curvature against the exact posterior, and every way to average over latent values against Monte Carlo, on a small classifier: the tables of the book's chapter on
//! linearised Laplace.
//!
//! `cargo bench -p posterior-laplace --bench compare_methods`

use posterior_data::synthetic::two_moons;
use posterior_laplace::{
    Approximation, Choice, Data, FisherEstimate, FitOptions, Laplace, Mode, PriorKind, Run, Tune, Wanted,
    Weights, fit,
};
use posterior_likelihoods::{Categorical, Integration, OutputLikelihood, Prediction};
use posterior_linalg::random::Streams;
use posterior_networks::architecture::Perceptron;
use posterior_networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior_networks::{Activation, Architecture, Array, Network};
use posterior_optim::{Rule, Schedule, Signal};

type Failure = Box<dyn std::error::Error>;

fn points(count: usize, seed: u64) -> Result<(Array<f64>, Vec<u32>), Failure> {
    let set = two_moons(count, 0.2, Streams::new(seed))?;
    Ok((Array::new(vec![count, 2], set.features.to_f64()), set.labels))
}

fn main() -> Result<(), Failure> {
    let (x, y) = points(300, 0)?;
    let graph = Architecture::Perceptron(Perceptron::new(2, &[16, 16], 2, Activation::Tanh)).graph()?;
    let examples = Tabular::new(x, Targets::Classes(y));
    let options = TrainOptions {
        loss: Loss::CrossEntropy,
        epochs: 200,
        batch: 50,
        rule: Rule::adamw(1e-2),
        learning_rate: 1e-2,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 0,
    };
    let network: Network<f64> = train(
        Network::initialised(graph, Streams::new(0))?,
        &examples,
        None,
        &options,
        None,
        &mut |_, _| Signal::Continue,
    )?
    .network;
    let likelihood = OutputLikelihood::Categorical(Categorical::new(2)?);
    let base = FitOptions { prior: PriorKind::Scalar, mode: Mode::Trained, ..FitOptions::default() };
    let fitted = |weights: Weights, approximation, tune, precision: f64| -> Result<Laplace<f64>, Failure> {
        let options =
            FitOptions { weights, approximation, tune, initial_precision: precision, ..base.clone() };
        Ok(fit(&Data::new(&network, &examples, &likelihood), &options, &mut Run::default())?)
    };
    let exact = fitted(Weights::All, Approximation::Full, Tune::Evidence, 1.0)?;
    let precision = exact.prior().precisions()[0];
    println!(
        "prior precision by the exact evidence {precision:.3}, log evidence {:.2}",
        exact.summary.evidence.as_ref().map_or(f64::NAN, |e| e.log_evidence)
    );

    // Near the data, and on a ring far from them.
    let (near, _) = points(200, 1)?;
    let ring: Vec<f64> = (0..200)
        .flat_map(|i| {
            let t = i as f64 * 0.031_415_926_5;
            [0.5 + 6.0 * t.cos(), 0.25 + 6.0 * t.sin()]
        })
        .collect();
    let far = Array::new(vec![200, 2], ring);
    let variances = |l: &Laplace<f64>, x: &Array<f64>| -> Result<Vec<f64>, Failure> {
        let latent = l.latent(&network, x, Wanted::Full)?;
        // Of the difference of the two logits: what the probability depends on.
        Ok((0..x.rows())
            .map(|i| {
                let c = &latent.covariance[4 * i..4 * i + 4];
                c[0] + c[3] - c[1] - c[2]
            })
            .collect())
    };
    let (truth_near, truth_far) = (variances(&exact, &near)?, variances(&exact, &far)?);
    let ratio = |a: &[f64], b: &[f64]| {
        (a.iter().zip(b).map(|(a, b)| (a / b).ln()).sum::<f64>() / a.len() as f64).exp()
    };
    let spread = |a: &[f64], b: &[f64]| {
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt().exp()
    };
    let kronecker = |estimate| Approximation::Kronecker(estimate);
    let sub = |choice| Weights::Subnetwork { size: 100, choice };
    let methods: Vec<(&str, Weights, Approximation)> = vec![
        ("full", Weights::All, Approximation::Full),
        ("function space", Weights::All, Approximation::FunctionSpace { points: None }),
        ("function space, 100 points", Weights::All, Approximation::FunctionSpace { points: Some(100) }),
        ("low rank 20 + diagonal", Weights::All, Approximation::LowRank { rank: 20, iterations: 3 }),
        ("block by layer", Weights::All, Approximation::Block),
        ("Kronecker, exact", Weights::All, kronecker(FisherEstimate::Exact)),
        (
            "Kronecker, one sample",
            Weights::All,
            kronecker(FisherEstimate::MonteCarlo { samples: 1, seed: 0 }),
        ),
        ("Kronecker, empirical", Weights::All, kronecker(FisherEstimate::Empirical)),
        ("diagonal", Weights::All, Approximation::Diagonal),
        ("sub-network 100, variance", sub(Choice::Variance), Approximation::Full),
        ("sub-network 100, magnitude", sub(Choice::Magnitude), Approximation::Full),
        ("sub-network 100, random", sub(Choice::Random), Approximation::Full),
        ("last layer, full", Weights::LastLayer, Approximation::Full),
        ("last layer, Kronecker", Weights::LastLayer, kronecker(FisherEstimate::Exact)),
        ("last layer, diagonal", Weights::LastLayer, Approximation::Diagonal),
    ];
    println!(
        "{:<28} {:>8} {:>16} {:>16} {:>14} {:>12}",
        "method (same precision)",
        "weights",
        "ratio near (x/)",
        "ratio far (x/)",
        "own precision",
        "evidence"
    );
    for (name, weights, approximation) in methods {
        let same = fitted(weights.clone(), approximation.clone(), Tune::None, precision)?;
        let own = fitted(weights, approximation, Tune::Evidence, 1.0)?;
        let (n, f) = (variances(&same, &near)?, variances(&same, &far)?);
        println!(
            "{name:<28} {:>8} {:>8.3} ({:>5.2}) {:>8.3} ({:>5.2}) {:>14.3} {:>12.2}",
            same.selection().len(),
            ratio(&n, &truth_near),
            spread(&n, &truth_near),
            ratio(&f, &truth_far),
            spread(&f, &truth_far),
            own.prior().precisions()[0],
            own.summary.evidence.as_ref().map_or(f64::NAN, |e| e.log_evidence),
        );
    }

    println!(
        "\n{:<28} {:>14} {:>14} {:>10}",
        "average over latent values", "largest error", "mean error", "NLL"
    );
    let (test, labels) = points(2000, 2)?;
    let latent = exact.latent(&network, &test, Wanted::Full)?;
    let probabilities = |integration| -> Result<Vec<f64>, Failure> {
        let rule = exact.rule(integration)?;
        let mut out = Vec::new();
        for i in 0..test.rows() {
            if let Prediction::Classes(p) = rule.predict(latent.example(i))? {
                out.push(p[1]);
            }
        }
        Ok(out)
    };
    let reference = probabilities(Integration::MonteCarlo { samples: 200_000, seed: 9 })?;
    for (name, integration) in [
        ("plug-in (the network)", Integration::PlugIn),
        ("probit", Integration::Probit),
        ("Laplace bridge", Integration::LaplaceBridge),
        ("normalised Laplace bridge", Integration::NormalisedLaplaceBridge),
        ("Monte Carlo, 64", Integration::MonteCarlo { samples: 64, seed: 1 }),
        ("Monte Carlo, 512", Integration::MonteCarlo { samples: 512, seed: 1 }),
        ("Monte Carlo, 200,000", Integration::MonteCarlo { samples: 200_000, seed: 9 }),
    ] {
        let p = probabilities(integration)?;
        let errors: Vec<f64> = p.iter().zip(&reference).map(|(a, b)| (a - b).abs()).collect();
        let nll: f64 = p.iter().zip(&labels).map(|(p, y)| -(if *y == 1 { *p } else { 1.0 - p }).ln()).sum();
        println!(
            "{name:<28} {:>14.4} {:>14.4} {:>10.4}",
            errors.iter().fold(0.0f64, |m, e| m.max(*e)),
            errors.iter().sum::<f64>() / errors.len() as f64,
            nll / labels.len() as f64
        );
    }
    Ok(())
}
