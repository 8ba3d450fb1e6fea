//! Curvatures and predictions of any feature map: a stored matrix, in pieces of a few examples.

use super::{normal, normals};
use crate::curvature::{Accumulator, BlockSum, FisherEstimate, Form, Roots, Segment, SumMatrix, low_rank};
use crate::features::{BatchSource, DenseFeatures, Numbered};
use crate::latent::{Latent, Posteriors, Wanted};
use crate::{FeatureMap, LinearError, Linearised, Prior};
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, MatRef};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_optim::Signal;
use std::ops::Range;

/// Weights of two layers, three examples at a time.
struct Layers(DenseFeatures);

impl FeatureMap<f64> for Layers {
    type Inputs = Range<usize>;

    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn examples_at_once(&self, _vectors: usize) -> usize {
        3
    }

    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, layer: &str, range| Segment {
            name: name.into(),
            layer: layer.into(),
            range,
            whole: true,
            matrix: None,
        };
        vec![segment("a", "first", 0..2), segment("b", "first", 2..4), segment("c", "second", 4..7)]
    }

    fn at<'a>(&'a self, inputs: Range<usize>) -> Result<Box<dyn Linearised<f64> + 'a>, LinearError> {
        self.0.at(inputs)
    }
}

const EXAMPLES: usize = 301;

fn problem() -> (Layers, Numbered, OutputLikelihood) {
    let features = DenseFeatures::new(normal(3 * EXAMPLES, 7, "phi"), 3).unwrap();
    let features = features.with_offset(normals(3 * EXAMPLES, "g")).unwrap();
    let classes = (0..EXAMPLES).map(|i| (i * 7 % 3) as f64).collect();
    let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    (Layers(features), Numbered::new(EXAMPLES, classes).unwrap(), likelihood)
}

fn summed(form: Form) -> Accumulator {
    let (features, source, likelihood) = problem();
    let mut sums = Accumulator::new(&features.segments(), form, FisherEstimate::Exact).unwrap();
    sums.extend(&features, &source, &likelihood, 0, &mut |_, _| Signal::Continue).unwrap();
    sums
}

/// `Phi' B Phi` from the definition.
fn exact() -> Mat<f64> {
    let (features, source, likelihood) = problem();
    let mut sum = Mat::zeros(7, 7);
    let g = features.at(0..EXAMPLES).unwrap().outputs();
    let (_, y) = source.batch(0..EXAMPLES).unwrap();
    for i in 0..EXAMPLES {
        let phi = features.0.whole().subrows(3 * i, 3);
        let mut b = vec![0.0; 9];
        likelihood.curvature(&y[i..=i], &g[3 * i..3 * i + 3], &mut b);
        sum += phi.transpose() * MatRef::from_row_major_slice(&b, 3, 3) * phi;
    }
    sum
}

const FORMS: [Form; 4] = [Form::Full, Form::Block, Form::Diagonal, Form::Kronecker];

fn same_block(form: Form, i: usize, j: usize) -> bool {
    match form {
        Form::Full => true,
        Form::Block => (i < 4) == (j < 4),
        Form::Diagonal => i == j,
        // Vectors have dense blocks of their own.
        Form::Kronecker => [0, 0, 1, 1, 2, 2, 2][i] == [0, 0, 1, 1, 2, 2, 2][j],
    }
}

#[test]
fn every_form_and_its_predictions_are_those_of_the_matrix() {
    let exact = exact();
    let (features, _, _) = problem();
    for form in FORMS {
        let structure = summed(form).finish().unwrap();
        let kept = Mat::from_fn(7, 7, |i, j| if same_block(form, i, j) { exact[(i, j)] } else { 0.0 });
        for j in 0..7 {
            let mut unit = vec![0.0; 7];
            unit[j] = 1.0;
            for (i, v) in structure.apply(&unit).into_iter().enumerate() {
                assert!((v - kept[(i, j)]).abs() < 1e-12 * exact.norm_max(), "{form:?}");
            }
        }
        let prior = Prior::scalar(7, 0.5).unwrap();
        let posterior = structure.condition(&prior, 1.0).unwrap();
        let posteriors = Posteriors::new(&features.segments(), vec![posterior]).unwrap();
        let inverse = (&kept + Mat::<f64>::identity(7, 7) * faer::Scale(0.5)).partial_piv_lu().inverse();
        let (phi, batch) = (features.0.whole().subrows(6, 12), features.at(2..6).unwrap());
        let covariance = phi * inverse * phi.transpose();
        let joint = posteriors.joint(&*batch).unwrap().remove(0);
        assert!((&joint - &covariance).norm_max() < 1e-12, "{form:?}");
        for wanted in [Wanted::Diagonal, Wanted::Full] {
            let found = posteriors.covariances(&*batch, wanted).unwrap().remove(0);
            for (n, own) in found.chunks(Latent::size(3, wanted)).enumerate() {
                for (k, v) in own.iter().enumerate() {
                    let (i, j) = if wanted == Wanted::Full { (k / 3, k % 3) } else { (k, k) };
                    assert!((v - covariance[(3 * n + i, 3 * n + j)]).abs() < 1e-12, "{form:?}");
                }
            }
        }
    }
}

#[test]
fn leading_eigenvectors_and_the_diagonal_follow_from_products() {
    let (features, source, likelihood) = problem();
    let (structure, fit) =
        low_rank(&features, &source, &likelihood, (7, 2), 1, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!((fit.examples, &fit), (EXAMPLES, summed(Form::Diagonal).fit()));
    let exact = exact();
    for j in 0..7 {
        let mut unit = vec![0.0; 7];
        unit[j] = 1.0;
        let column = structure.apply(&unit);
        assert!((0..7).all(|i| (column[i] - exact[(i, j)]).abs() < 1e-10 * exact.norm_max()));
    }
}

/// The bits of all sums.
fn bits(blocks: &[BlockSum]) -> Vec<u64> {
    let of = |m: &Mat<f64>| m.col_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>()).collect();
    let numbers = |b: &BlockSum| match &b.matrix {
        SumMatrix::Dense(m) => of(m),
        SumMatrix::Diagonal(v) => v.clone(),
        SumMatrix::Kronecker { outputs, inputs, .. } => [of(outputs), of(inputs)].concat(),
    };
    blocks.iter().flat_map(numbers).map(f64::to_bits).collect()
}

#[test]
fn sums_have_the_same_bits_on_any_number_of_threads_and_after_an_interruption() {
    for form in FORMS {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| summed(form))
        };
        let one = on(1);
        for threads in [2, 3, 4] {
            let more = on(threads);
            assert_eq!(bits(one.blocks()), bits(more.blocks()), "{form:?} {threads}");
            assert_eq!(one.fit().log_likelihood.to_bits(), more.fit().log_likelihood.to_bits());
        }
        let (features, source, likelihood) = problem();
        let mut parts = Accumulator::new(&features.segments(), form, FisherEstimate::Exact).unwrap();
        while parts.fit().examples < EXAMPLES {
            let from = parts.fit().examples;
            let stop = &mut |_, _| Signal::Stop;
            let told = parts.extend(&features, &source, &likelihood, from, stop);
            let done = parts.fit().examples == EXAMPLES;
            assert!(done || matches!(told, Err(LinearError::Interrupted)));
        }
        assert_eq!(bits(one.blocks()), bits(parts.blocks()), "{form:?} interrupted");
    }
}

#[test]
fn what_cannot_be_summed_is_said() {
    let (features, source, likelihood) = problem();
    let new = |segments: &[Segment], form| Accumulator::new(segments, form, FisherEstimate::Exact);
    let mut segments = features.segments();
    assert!(matches!(new(&[], Form::Full), Err(LinearError::Empty { .. })));
    assert!(matches!(new(&segments, Form::Full).unwrap().finish(), Err(LinearError::Empty { .. })));
    segments[1].whole = false;
    assert!(matches!(new(&segments, Form::Kronecker), Err(LinearError::Factors)));
    let none = FisherEstimate::MonteCarlo { samples: 0, seed: 0 };
    let mut sums = Accumulator::new(&features.segments(), Form::Full, none).unwrap();
    let told = sums.extend(&features, &source, &likelihood, 0, &mut |_, _| Signal::Continue);
    assert!(matches!(told, Err(LinearError::Option { name: "samples", .. })));
    let mut other = new(&features.segments(), Form::Block).unwrap();
    let told = other.restore(summed(Form::Full).blocks().to_vec(), Default::default());
    assert!(matches!(told, Err(LinearError::Foreign { .. })));
    // Directions: rows of R' Phi.
    let batch = features.at(1..2).unwrap();
    let along = Roots { width: 1, values: vec![1.0, -2.0, 0.5] };
    let phi = features.0.whole().subrows(3, 3);
    let check = &mut |examples: Range<usize>, rows: MatRef<'_, f64>| {
        assert_eq!((examples, rows.nrows(), rows.ncols()), (0..1, 1, 2));
        let expected = phi[(0, 4)] - 2.0 * phi[(1, 4)] + 0.5 * phi[(2, 4)];
        assert!((rows[(0, 0)] - expected).abs() < 1e-14);
    };
    batch.rows(Some(&along), 4..6, check).unwrap();
    assert!(batch.rows(None, 4..9, &mut |_, _| ()).is_err());
}
