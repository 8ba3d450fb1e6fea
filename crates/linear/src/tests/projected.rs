//! Few combinations of features against dense algebra.

use super::{assert_matrix, assert_near, normal};
use crate::curvature::{Accumulator, FisherEstimate, Form};
use crate::features::{DenseFeatures, LandmarkBasis, Numbered, Projected, balanced_landmarks};
use crate::latent::{Posteriors, Wanted};
use crate::{FeatureMap, Prior};
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, Scale};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_optim::Signal;

const CLASSES: usize = 3;
const EXAMPLES: usize = 9;
const WEIGHTS: usize = 7;
const PRECISION: f64 = 0.7;

struct Case {
    features: DenseFeatures,
    source: Numbered,
    likelihood: OutputLikelihood,
    offset: Vec<f64>,
}

fn case() -> Case {
    let rows = EXAMPLES * CLASSES;
    let offset: Vec<f64> = normal(rows, 1, "offset").col(0).iter().copied().collect();
    let features = DenseFeatures::new(normal(rows, WEIGHTS, "phi"), CLASSES).unwrap();
    Case {
        features: features.with_offset(offset.clone()).unwrap(),
        source: Numbered::new(EXAMPLES, (0..EXAMPLES).map(|i| (i % CLASSES) as f64).collect()).unwrap(),
        likelihood: OutputLikelihood::Categorical(Categorical::new(CLASSES).unwrap()),
        offset,
    }
}

impl Case {
    /// `B`, block diagonal.
    fn output_curvature(&self) -> Mat<f64> {
        let (c, mut out) = (CLASSES, Mat::zeros(EXAMPLES * CLASSES, EXAMPLES * CLASSES));
        for i in 0..EXAMPLES {
            let mut b = vec![0.0; c * c];
            self.likelihood.curvature(&[0.0], &self.offset[i * c..(i + 1) * c], &mut b);
            (0..c * c).for_each(|k| out[(i * c + k / c, i * c + k % c)] = b[k]);
        }
        out
    }

    fn landmarks(&self, examples: &[usize], rank: usize) -> LandmarkBasis<f64> {
        let outputs: Vec<usize> = examples.iter().map(|i| i % CLASSES).collect();
        let seen = (examples, &outputs[..]);
        LandmarkBasis::of(&self.features, &self.source, seen, rank, &mut |_, _| Signal::Continue).unwrap()
    }

    /// Joint covariance of all outputs under the projected posterior, by the crate.
    fn covariance(&self, basis: &Mat<f64>) -> Mat<f64> {
        let projected = Projected::new(&self.features, basis).unwrap();
        let mut sums = Accumulator::new(&projected.segments(), Form::Full, FisherEstimate::Exact).unwrap();
        sums.extend(&projected, &self.source, &self.likelihood, 0, &mut |_, _| Signal::Continue).unwrap();
        let prior = Prior::scalar(basis.ncols(), PRECISION).unwrap();
        let posterior = sums.finish().unwrap().condition(&prior, 1.0).unwrap();
        let posteriors = Posteriors::new(&projected.segments(), vec![posterior]).unwrap();
        let at = projected.at(0..EXAMPLES).unwrap();
        let joint = posteriors.joint(&*at).unwrap().remove(0);
        let blocks = posteriors.covariances(&*at, Wanted::Full).unwrap().remove(0);
        for i in 0..EXAMPLES {
            for k in 0..CLASSES * CLASSES {
                let own = joint[(i * CLASSES + k / CLASSES, i * CLASSES + k % CLASSES)];
                assert_near(blocks[i * CLASSES * CLASSES + k], own, 1e-12);
            }
        }
        joint
    }

    /// `Phi (Phi' B Phi + a I)^-1 Phi'`.
    fn exact(&self) -> Mat<f64> {
        let phi = self.features.whole();
        let h = phi.transpose() * self.output_curvature() * phi
            + Mat::<f64>::identity(WEIGHTS, WEIGHTS) * Scale(PRECISION);
        phi * inverse(&h) * phi.transpose()
    }
}

fn inverse(m: &Mat<f64>) -> Mat<f64> {
    m.partial_piv_lu().inverse()
}

#[test]
fn landmarks_give_orthonormal_directions_and_all_of_them_the_exact_posterior() {
    let case = case();
    let all: Vec<usize> = (0..EXAMPLES).collect();
    let found = case.landmarks(&all, 100);
    // Nine rows in seven dimensions: two directions that are not there.
    assert_eq!((found.basis.ncols(), found.dropped), (WEIGHTS, 2));
    let identity = Mat::<f64>::identity(WEIGHTS, WEIGHTS);
    assert_matrix((found.basis.transpose() * &found.basis).as_ref(), identity.as_ref(), 1e-11);
    assert_matrix(case.covariance(&found.basis).as_ref(), case.exact().as_ref(), 1e-11);
    // The eigenvalues are those of the sum over landmarks' rows.
    let phi = case.features.whole();
    let rows = Mat::from_fn(EXAMPLES, WEIGHTS, |i, j| phi[(i * CLASSES + i % CLASSES, j)]);
    let mut moved = rows.transpose() * &rows * &found.basis;
    for j in 0..WEIGHTS {
        let e = found.eigenvalues[j];
        (0..WEIGHTS).for_each(|i| moved[(i, j)] /= e);
    }
    assert_matrix(moved.as_ref(), found.basis.as_ref(), 1e-9);
}

/// Spec `valla`, T6: the optimum of a variational family with the landmarks as inducing points adds what no landmark sees of the prior.
#[test]
fn few_landmarks_are_the_variational_optimum_without_the_unseen_prior() {
    let case = case();
    let (chosen, phi) = ([1, 3, 4, 8], case.features.whole());
    let found = case.landmarks(&chosen, 4);
    let few = case.covariance(&found.basis);
    // Kernels under the prior, kappa = Phi Phi' / a.
    let rows = Mat::from_fn(4, WEIGHTS, |m, j| phi[(chosen[m] * CLASSES + chosen[m] % CLASSES, j)]);
    let kernel = |a: &Mat<f64>, b: &Mat<f64>| a * b.transpose() * Scale(1.0 / PRECISION);
    let whole = phi.to_owned();
    let (kz, kzx) = (kernel(&rows, &rows), kernel(&rows, &whole));
    // A* = Kz^-1 Kzx Lambda Kxz Kz^-1 and Sigma = kappa - Kxz (A*^-1 + Kz)^-1 Kzx.
    let inner = inverse(&kz) * &kzx * case.output_curvature() * kzx.transpose() * inverse(&kz);
    let middle = inverse(&(inverse(&inner) + &kz));
    let optimum = kernel(&whole, &whole) - kzx.transpose() * middle * &kzx;
    let seen = &found.basis * found.basis.transpose();
    let unseen = &whole * (Mat::<f64>::identity(WEIGHTS, WEIGHTS) - seen) * whole.transpose();
    assert_matrix((&few + unseen * Scale(1.0 / PRECISION)).as_ref(), optimum.as_ref(), 1e-9);
    // Never more than the exact posterior.
    let gap = case.exact() - &few;
    let least = posterior_linalg::dense::eigenvalues(gap.as_ref()).unwrap()[0];
    assert!(least > -1e-11 && gap.norm_max() > 1e-2, "{least} {}", gap.norm_max());
}

#[test]
fn products_and_rows_are_those_of_the_combined_features() {
    let case = case();
    let basis = normal(WEIGHTS, 3, "basis");
    let projected = Projected::new(&case.features, &basis).unwrap();
    let whole = case.features.whole() * &basis;
    let at = projected.at(2..6).unwrap();
    let own = whole.subrows(2 * CLASSES, 4 * CLASSES);
    let (w, u) = (normal(3, 2, "w"), normal(4 * CLASSES, 2, "u"));
    assert_matrix(at.apply(w.as_ref()).unwrap().as_ref(), (own * &w).as_ref(), 1e-12);
    assert_matrix(at.apply_transpose(u.as_ref()).unwrap().as_ref(), (own.transpose() * &u).as_ref(), 1e-12);
    assert_eq!(at.outputs(), &case.offset[2 * CLASSES..6 * CLASSES]);
    assert!(at.apply(normal(4, 1, "w").as_ref()).is_err());
    assert!(Projected::new(&case.features, &normal(WEIGHTS + 1, 2, "b")).is_err());
    assert!(Projected::new(&case.features, &Mat::zeros(WEIGHTS, 0)).is_err());
}

#[test]
fn landmarks_are_balanced_and_bad_ones_refused() {
    let classes: Vec<usize> = (0..100).map(|i| usize::from(i >= 90) + usize::from(i >= 97)).collect();
    let drawn = balanced_landmarks(100, Some(&classes), 12, 5);
    assert!(drawn.is_sorted_by(|a, b| a < b) && drawn.len() == 12);
    let count = |class| drawn.iter().filter(|i| classes[**i] == class).count();
    // Three of the last class are all there are.
    assert_eq!((count(0) + count(1), count(2)), (9, 3));
    assert!(count(0).abs_diff(count(1)) <= 1);
    assert_eq!(balanced_landmarks(5, None, 9, 0), [0, 1, 2, 3, 4]);
    let case = case();
    let of = |examples: &[usize], outputs: &[usize], rank| {
        let seen = (examples, outputs);
        LandmarkBasis::<f64>::of(&case.features, &case.source, seen, rank, &mut |_, _| Signal::Continue)
    };
    assert!(of(&[], &[], 2).is_err() && of(&[1], &[0], 0).is_err());
    assert!(of(&[1, 2], &[0], 2).is_err() && of(&[1], &[CLASSES], 2).is_err());
}
