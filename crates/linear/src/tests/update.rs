//! Data taken in piece by piece equal data taken in at once.

use super::{Problem, assert_near, normal};
use crate::LinearError;
use crate::exact::{ExactOptions, ExactPosterior, Form};
use crate::noise::Noise;
use faer::Mat;
use posterior_optim::check::assert_close;

/// Feeds examples to a posterior that begins with `first`, in pieces.
fn recursive(problem: &Problem, form: Form, first: usize, pieces: &[usize]) -> ExactPosterior {
    let part = |from: usize, to: usize| {
        let rows = problem.phi.as_ref().subrows(2 * from, 2 * (to - from));
        let noise = Noise::from_blocks(2, &problem.blocks[4 * from..4 * to]).unwrap();
        (rows, &problem.targets[2 * from..2 * to], noise)
    };
    let options = ExactOptions { form: Some(form), ..Default::default() };
    let (rows, y, noise) = part(0, first);
    let mut posterior = ExactPosterior::new(rows, y, &noise, &problem.precisions(), options).unwrap();
    let mut from = first;
    for &size in pieces {
        let (rows, y, noise) = part(from, from + size);
        posterior.update(rows, y, &noise).unwrap();
        from += size;
    }
    posterior
}

#[test]
fn recursive_equals_batch() {
    // 40 weights and single examples take the rank-one path (2 rows, 8 * 2 <= 40), pieces of 8 the other one.
    for dimension in [5, 40] {
        let problem = Problem::new(20, dimension);
        let test = normal(6, dimension, "test");
        for form in [Form::Primal, Form::Dual] {
            let batch = recursive(&problem, form, 20, &[]);
            for (first, pieces) in [(0, vec![1; 20]), (7, vec![1, 8, 4]), (19, vec![1]), (20, vec![0])] {
                let online = recursive(&problem, form, first, &pieces);
                assert_eq!(online.examples(), 20);
                assert_close(online.mean(), batch.mean(), 1e-9, 1e-11);
                let (a, b) = (online.predict(test.as_ref()).unwrap(), batch.predict(test.as_ref()).unwrap());
                assert_close(&a.covariance, &b.covariance, 1e-9, 1e-11);
                assert_near(online.log_evidence().unwrap(), batch.log_evidence().unwrap(), 1e-9);
                assert_near(online.effective_dimension(), batch.effective_dimension(), 1e-9);
            }
        }
    }
}

#[test]
fn the_evidence_grows_by_the_predictive_density() {
    // log p(y1, y2) = log p(y1) + log p(y2 | y1), for one new number.
    let phi = normal(9, 4, "phi");
    let y = super::normals(9, "y");
    let noise = Noise::uniform(3.0, 1).unwrap();
    for form in [Form::Primal, Form::Dual] {
        let options = ExactOptions { form: Some(form), ..Default::default() };
        let mut posterior =
            ExactPosterior::new(phi.as_ref().subrows(0, 8), &y[..8], &noise, &[1.0; 4], options).unwrap();
        let before = posterior.log_evidence().unwrap();
        let row = phi.as_ref().subrows(8, 1);
        let prediction = posterior.predict(row).unwrap();
        let variance = prediction.covariance[0] + 1.0 / 3.0;
        let density =
            -0.5 * ((y[8] - prediction.mean[0]).powi(2) / variance + (std::f64::consts::TAU * variance).ln());
        posterior.update(row, &y[8..], &noise).unwrap();
        assert_near(posterior.log_evidence().unwrap(), before + density, 1e-12);
    }
}

#[test]
fn a_refused_update_changes_nothing() {
    let problem = Problem::new(6, 20);
    for form in [Form::Primal, Form::Dual] {
        let mut posterior = recursive(&problem, form, 6, &[]);
        let (mean, evidence) = (posterior.mean().to_vec(), posterior.log_evidence().unwrap());
        let good = Noise::uniform(1.0, 2).unwrap();
        let mut features = normal(2, 20, "new");
        assert!(matches!(posterior.update(features.as_ref(), &[1.0], &good), Err(LinearError::Shape { .. })));
        assert!(matches!(
            posterior.update(features.as_ref(), &[1.0, f64::NAN], &good),
            Err(LinearError::NotFinite { .. })
        ));
        let narrow = Noise::uniform(1.0, 1).unwrap();
        assert!(matches!(
            posterior.update(features.as_ref(), &[1.0, 2.0], &narrow),
            Err(LinearError::Shape { .. })
        ));
        features[(1, 3)] = f64::INFINITY;
        assert!(matches!(
            posterior.update(features.as_ref(), &[1.0, 2.0], &good),
            Err(LinearError::NotFinite { .. })
        ));
        if form == Form::Dual {
            // A finite number whose square overflows in the corner of the matrix; rotations of the primal factor survive it.
            features[(1, 3)] = 1e200;
            assert!(posterior.update(features.as_ref(), &[1.0, 2.0], &good).is_err());
        }
        assert_eq!((posterior.mean(), posterior.examples()), (mean.as_slice(), 6));
        assert_eq!(posterior.log_evidence().unwrap(), evidence);
    }
    let phi = Mat::<f64>::identity(2, 2);
    let noise = Noise::uniform(1.0, 1).unwrap();
    let mut around =
        ExactPosterior::around_mode(phi.as_ref(), &[0.0; 2], &noise, &[1.0; 2], ExactOptions::default())
            .unwrap();
    assert!(matches!(around.update(phi.as_ref(), &[1.0; 2], &noise), Err(LinearError::NoTargets { .. })));
    assert!(matches!(around.log_evidence(), Err(LinearError::NoTargets { .. })));
}
