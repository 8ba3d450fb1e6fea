//! The loop's limits and options.

use super::{Problem, normal, normals};
use crate::hyperparameters::{Evidence, GaussianModel, LearnOptions, Limited, Limits, MStep, learn};
use crate::{LinearError, Noise, Prior};

#[test]
fn a_group_that_explains_nothing_runs_into_its_limit_and_says_so() {
    // The second group's features are zero: its weights are zero, and the evidence wants them pinned.
    let mut phi = normal(12, 4, "phi");
    (0..12).for_each(|i| (2..4).for_each(|j| phi[(i, j)] = 0.0));
    let noise = Noise::uniform(1.0, 1).unwrap();
    let targets: Vec<f64> =
        normals(12, "y").iter().enumerate().map(|(i, e)| 2.0 * phi[(i, 0)] - phi[(i, 1)] + 0.5 * e).collect();
    let mut model = GaussianModel::new(phi.as_ref(), &targets, None, &noise).unwrap();
    let prior = Prior::grouped(&[(2, 0), (2, 1)], vec!["a".into(), "b".into()], vec![1.0; 2]).unwrap();
    let limits = Limits { precision: (1e-4, 1e4), ..Default::default() };
    for m_step in [MStep::MacKay, MStep::MaximiseBound] {
        let options = LearnOptions { limits, m_step, ..Default::default() };
        let learned = learn(&mut model, &Evidence::Mode, &prior, &options).unwrap();
        assert!(learned.converged);
        assert_eq!(learned.prior.precisions()[1], 1e4);
        let hits = &learned.trace[learned.trace.len() - 2].hits;
        assert!(hits.iter().any(|h| h.what == Limited::PrecisionHigh(1) && h.wanted > 1e4), "{hits:?}");
        assert!(hits.iter().any(|h| h.what == Limited::EffectiveDimension(1)), "{hits:?}");
        assert!(!hits.iter().any(|h| h.what == Limited::PrecisionHigh(0)));
    }
    // With one group the bisection reports its edge too.
    let mut tight = GaussianModel::new(phi.as_ref(), &[0.0; 12], None, &noise).unwrap();
    let options = LearnOptions { limits, m_step: MStep::MaximiseBound, ..Default::default() };
    let learned = learn(&mut tight, &Evidence::Mode, &Prior::scalar(4, 1.0).unwrap(), &options).unwrap();
    assert_eq!(learned.prior.precisions(), [1e4]);
    assert!(learned.trace[0].hits.iter().any(|h| h.what == Limited::PrecisionHigh(0)));
}

#[test]
fn perfect_fits_keep_the_noise_within_its_limits() {
    // As many weights as rows and hardly any prior: the residual vanishes.
    let phi = normal(3, 3, "phi");
    let noise = Noise::uniform(1.0, 1).unwrap();
    let mut model = GaussianModel::new(phi.as_ref(), &[0.0; 3], None, &noise).unwrap().learning_noise();
    let options = LearnOptions { steps: 5, ..Default::default() };
    let learned = learn(&mut model, &Evidence::Mode, &Prior::scalar(3, 1.0).unwrap(), &options).unwrap();
    assert_eq!(learned.noise_factor, Limits::default().noise.1);
    assert!(learned.trace[0].hits.iter().any(|h| h.what == Limited::Noise && h.wanted.is_infinite()));
}

#[test]
fn options_and_sizes_are_checked() {
    let problem = Problem::new(4, 4);
    let new = |y: &[f64], f0: Option<&[f64]>| GaussianModel::new(problem.phi.as_ref(), y, f0, &problem.noise);
    assert!(new(&[0.0; 7], None).is_err() && new(&[f64::NAN; 8], None).is_err());
    assert!(new(&[0.0; 8], Some(&[0.0])).is_err() && new(&[0.0; 8], Some(&[f64::NAN; 8])).is_err());
    let mut model = new(&problem.targets, None).unwrap();
    let mut try_with = |prior: &Prior, evidence: &Evidence, options: LearnOptions| {
        learn(&mut model, evidence, prior, &options).map(|l| l.trace.len())
    };
    let good = || LearnOptions::default();
    let limits = |precision| Limits { precision, ..Default::default() };
    for options in [
        LearnOptions { inner_steps: 0, ..good() },
        LearnOptions { tolerance: f64::NAN, ..good() },
        LearnOptions { tolerance: -1.0, ..good() },
        LearnOptions { m_step: MStep::Gradient { rate: 0.0 }, ..good() },
        LearnOptions { m_step: MStep::Gradient { rate: f64::INFINITY }, ..good() },
        LearnOptions { limits: limits((0.0, 1.0)), ..good() },
        LearnOptions { limits: limits((2.0, 1.0)), ..good() },
        LearnOptions { limits: limits((1.0, f64::NAN)), ..good() },
        LearnOptions { limits: Limits { dimension: 0.0, ..Default::default() }, ..good() },
    ] {
        let result = try_with(&problem.prior, &Evidence::Mode, options.clone());
        assert!(matches!(result, Err(LinearError::Option { .. })), "{options:?}");
    }
    let small = Prior::scalar(3, 1.0).unwrap();
    assert!(matches!(try_with(&small, &Evidence::Mode, good()), Err(LinearError::Shape { .. })));
    for point in [vec![0.0; 3], vec![f64::NAN; 4]] {
        assert!(try_with(&problem.prior, &Evidence::Linearisation(point), good()).is_err());
    }
    // No steps: the state at the start, and nothing learned.
    let options = LearnOptions { steps: 0, ..good() };
    assert_eq!(try_with(&problem.prior, &Evidence::Mode, options).unwrap(), 1);
    // A group without weights keeps its precision.
    let names = vec!["a".into(), "b".into()];
    let hollow = Prior::grouped(&[(4, 0), (0, 1)], names, vec![1.0, 3.0]).unwrap();
    let learned = learn(&mut model, &Evidence::Mode, &hollow, &good()).unwrap();
    assert_eq!(learned.prior.precisions()[1], 3.0);
}
