//! Timings, for now.
use super::configuration::Configuration;
use super::prior::*;
use super::problem::*;
use super::training::*;
use super::*;
use posterior_gp::generalised::{Family, Mode};
use posterior_linalg::random::Streams;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

fn file(name: &str) -> Settings {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(name);
    let experiment = crate::Experiment::read(&path).unwrap();
    crate::kinds::settings(&experiment.settings).unwrap()
}

#[test]
#[ignore = "timing"]
fn timing() {
    let mut settings = file("generalised_curves.toml");
    settings.training.steps = 500;
    settings.training.patience = Some(100000);
    let streams = Streams::new(0);
    let known = settings.curve(1).unwrap();
    let problem = settings.data.problem(1, &known.blocks.five, streams).unwrap();
    let stop = AtomicBool::new(false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for prior in [PriorKernel::Ard, PriorKernel::Nngp, PriorKernel::MappingLinear] {
            let clock = Instant::now();
            let learned = LearnedPrior::learn(&problem, (prior, 24), &settings.ways[0], streams, &stop).unwrap().unwrap();
            let last = learned.turns.last().unwrap();
            println!("{prior:?}: M = {}, {} turns, settled {}, risks {:?}, values {:?}, {:.2} s", learned.rows.len(), learned.turns.len(), learned.settled, learned.turns.iter().map(|t| t.risk).collect::<Vec<_>>(), last.values, clock.elapsed().as_secs_f64());
            for kernel in [Family::Cholesky, Family::Diagonal, Family::FixedSparsePosterior, Family::Kernelised, Family::SparsePosterior] {
                for mode in [Mode::Prior, Mode::Posterior] {
                    let configuration = Configuration { power: 2, prior, kernel, mode, regulariser: "projected-renyi=0.5".parse().unwrap(), rate: 1e-3 };
                    let reference = learned.reference(&problem, (prior, mode), NoiseIn::Never, streams).unwrap();
                    let clock = Instant::now();
                    match Trained::new(&problem, reference, &settings.training, &configuration, streams, &stop) {
                        Ok(Some(trained)) => {
                            let s = trained.scores(&problem).unwrap();
                            println!("  {kernel:?} {mode:?}: {:.3} ms a step; {} steps, train {:.3} val {:.3} (untempered {:.3}) test {:.3} alpha {:.3e} floored {:.2}", 1e3 * clock.elapsed().as_secs_f64() / s.steps as f64, s.steps, s.train, s.validation, s.untempered, s.test, s.alpha, s.floored);
                        }
                        other => println!("  {kernel:?} {mode:?}: {:?}", other.err()),
                    }
                }
            }
        }
    });
}
