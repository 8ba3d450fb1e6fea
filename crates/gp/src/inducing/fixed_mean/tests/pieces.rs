//! Batches whose rows are prepared a few at a time.

use super::*;
use crate::inducing::fixed_mean::energy;
use faer::MatRef;
use posterior_kernels::{BlockKernel, Directed, LearnedBlockKernel};
use posterior_optim::{Parameters, Segment};
use std::convert::Infallible;
use std::ops::Range;

type Points = <Separable<f64> as BlockKernel<f64>>::Prepared;

/// A kernel that takes so many rows at one time, with what [`LearnedBlockKernel`] provides for several sets.
#[derive(Clone)]
struct InPieces(Separable<f64>, usize);

impl BlockKernel<f64> for InPieces {
    type Points = Mat<f64>;
    type Prepared = Points;
    type Error = Infallible;

    fn outputs(&self) -> usize {
        BlockKernel::outputs(&self.0)
    }

    fn count(&self, x: &Mat<f64>) -> usize {
        self.0.count(x)
    }

    fn points_at_once(&self, width: usize) -> usize {
        self.0.points_at_once(width)
    }

    fn prepare(
        &self,
        x: &Mat<f64>,
        points: Range<usize>,
        along: Option<MatRef<'_, f64>>,
    ) -> Result<Points, Infallible> {
        self.0.prepare(x, points, along)
    }

    fn tile(&self, x: &Points, z: &Points) -> Mat<f64> {
        self.0.tile(x, z)
    }

    fn diagonal(&self, x: &Points) -> Vec<f64> {
        BlockKernel::diagonal(&self.0, x)
    }

    fn pullback(
        &self,
        x: &Points,
        z: &Mat<f64>,
        along: Option<MatRef<'_, f64>>,
        adjoint: MatRef<'_, f64>,
    ) -> Result<Mat<f64>, Infallible> {
        self.0.pullback(x, z, along, adjoint)
    }
}

impl Parameters for InPieces {
    fn segments(&self) -> Vec<Segment> {
        self.0.segments()
    }

    fn values(&self) -> Vec<f64> {
        self.0.values()
    }

    fn set_values(&mut self, values: &[f64]) {
        self.0.set_values(values);
    }
}

impl LearnedBlockKernel for InPieces {
    fn coordinates(&self, points: &Mat<f64>) -> Vec<f64> {
        self.0.coordinates(points)
    }

    fn with_coordinates(&self, points: &Mat<f64>, coordinates: &[f64]) -> Mat<f64> {
        self.0.with_coordinates(points, coordinates)
    }

    fn pull_tile(
        &self,
        x: &Points,
        z: Directed<'_, Mat<f64>>,
        prepared: &Points,
        adjoint: MatRef<'_, f64>,
        points: bool,
        parameters: &mut [f64],
    ) -> Result<Option<Mat<f64>>, Infallible> {
        self.0.pull_tile(x, z, prepared, adjoint, points, parameters)
    }

    fn pulled_at_once(&self, _: usize) -> usize {
        self.1
    }

    fn pull_diagonal(&self, x: &Points, adjoint: &[f64], parameters: &mut [f64]) {
        self.0.pull_diagonal(x, adjoint, parameters);
    }
}

#[test]
fn rows_in_pieces_have_the_loss_and_gradients_of_all() {
    for case in cases() {
        let whole = energy(&case.model, case.batch(), 0.7, None).unwrap();
        // 1: four pieces; 3: two of unequal size; 9: all at one time, by the provided method.
        for each in [1, 3, 9] {
            let own = &case.model;
            let mut model = FixedMeanModel::new(
                InPieces(own.kernel().clone(), each),
                own.likelihood.clone(),
                own.points().clone(),
                own.labels().to_vec(),
                own.amplitude(),
                own.companion().is_some(),
            )
            .unwrap();
            model.set_unconstrained(&own.unconstrained()).unwrap();
            let found = energy(&model, case.batch(), 0.7, None).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() < 1e-11 * (1.0 + b.abs());
            assert!(
                close(found.main, whole.main) && close(found.companion, whole.companion),
                "{}",
                case.name
            );
            let (found, whole) = (model.chain(&found.gradient), own.chain(&whole.gradient));
            assert_eq!(found.len(), whole.len());
            for (i, (a, b)) in found.iter().zip(&whole).enumerate() {
                assert!(close(*a, *b), "{} by {each}, entry {i}: {a} {b}", case.name);
            }
        }
    }
}
