//! `k = Σ_i k_i`: the process is a sum of independent processes.

use super::{cloned, ranges, segments, set_values, smallest_tile, values};
use crate::features::{FeatureError, FeatureRecipe};
use crate::infinite::ClippedCorrelations;
use crate::kernel::{Adjoints, Component, Kernel, Pair};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment};

/// A sum of kernels.
#[derive(Debug)]
pub struct Sum<T: Real> {
    terms: Vec<Box<dyn Kernel<T>>>,
}

impl<T: Real> Sum<T> {
    /// The sum of at least one term.
    ///
    /// # Panics
    /// When there is none.
    pub fn new(terms: Vec<Box<dyn Kernel<T>>>) -> Self {
        assert!(!terms.is_empty(), "a sum has at least one term");
        Self { terms }
    }
}

impl<T: Real> Parameters for Sum<T> {
    fn segments(&self) -> Vec<Segment> {
        segments(&self.terms)
    }
    fn values(&self) -> Vec<f64> {
        values(&self.terms)
    }
    fn set_values(&mut self, values: &[f64]) {
        set_values(&mut self.terms, values);
    }
}

impl<T: Real> Kernel<T> for Sum<T> {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        self.terms[0].cross_tile(pair, out.as_mut());
        let mut other = Mat::zeros(out.nrows(), out.ncols());
        for term in &self.terms[1..] {
            term.cross_tile(pair, other.as_mut());
            out += &other;
        }
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::ZERO);
        let mut other = vec![T::ZERO; out.len()];
        for term in &self.terms {
            term.diagonal(x, &mut other);
            out.iter_mut().zip(&other).for_each(|(o, &v)| *o += v);
        }
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::ZERO);
        let mut other = vec![T::ZERO; out.len()];
        for (i, term) in self.terms.iter().enumerate() {
            term.values_at(x.part(i), &mut other);
            out.iter_mut().zip(&other).for_each(|(o, &v)| *o += v);
        }
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        for (term, range) in ranges(&self.terms) {
            term.pullback_values_at(x, adjoint, &mut parameters[range]);
        }
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        self.terms.iter().for_each(|term| term.pullback_values_to_points(x, adjoint, out));
    }

    fn is_noisy(&self) -> bool {
        self.terms.iter().any(|term| term.is_noisy())
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        ranges(&self.terms)
            .map(|(term, range)| {
                adjoints.with_parameters(range, |mine| term.pullback_tile(pair, adjoint, mine))
            })
            .sum()
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        Prepared::parts(x.nrows(), self.terms.iter().map(|part| part.prepare(x)).collect())
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        mut out: MatMut<'_, T>,
    ) {
        self.terms[0].prepared_tile(x.part(0), z.part(0), same, out.as_mut());
        let mut other = Mat::zeros(out.nrows(), out.ncols());
        for (i, term) in self.terms.iter().enumerate().skip(1) {
            term.prepared_tile(x.part(i), z.part(i), same, other.as_mut());
            out += &other;
        }
    }

    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        ClippedCorrelations::sum(self.terms.iter().map(|term| term.clipped_correlations(x, z)))
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Ok(FeatureRecipe::Sum(self.terms.iter().map(|term| term.features()).collect::<Result<_, _>>()?))
    }

    fn components(&self) -> Vec<Component<T>> {
        self.terms.iter().flat_map(|term| term.components()).collect()
    }

    fn tile(&self) -> usize {
        smallest_tile(&self.terms)
    }

    fn begin(&mut self, x: MatRef<'_, T>, targets: &[f64]) {
        self.terms.iter_mut().for_each(|term| term.begin(x, targets));
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(Self { terms: cloned(&self.terms) })
    }
}
