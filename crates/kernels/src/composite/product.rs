//! `k = Π_i k_i`: all factors must agree that two points are alike.

use super::{cloned, ranges, segments, set_values, smallest_tile, values};
use crate::features::{FeatureError, FeatureRecipe};
use crate::infinite::ClippedCorrelations;
use crate::kernel::{Adjoints, Component, Kernel, Pair, column};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment};

/// A product of kernels.
#[derive(Debug)]
pub struct Product<T: Real> {
    factors: Vec<Box<dyn Kernel<T>>>,
}

impl<T: Real> Product<T> {
    /// The product of at least one factor.
    ///
    /// # Panics
    /// When there is none.
    pub fn new(factors: Vec<Box<dyn Kernel<T>>>) -> Self {
        assert!(!factors.is_empty(), "a product has at least one factor");
        Self { factors }
    }

    /// A component of one factor times the other factors; `labels` are theirs.
    fn multiplied(&self, index: usize, labels: &[String], component: Component<T>) -> Component<T> {
        let Component { kernel, parts, label, .. } = component;
        let mut factors = cloned(&self.factors);
        factors[index] = kernel;
        let mut own: Vec<&str> = labels.iter().map(String::as_str).collect();
        own[index] = &label;
        Component {
            label: own.join("*"),
            kernel: Box::new(Self { factors }),
            parts: parts.into_iter().map(|part| self.multiplied(index, labels, part)).collect(),
            part_of: None,
            ..component
        }
    }

    /// The adjoint of each factor's values, where that of the product's is given.
    fn adjoints_of_values(&self, x: MatRef<'_, T>, adjoint: &[T]) -> Vec<Vec<T>> {
        let of = |factor: &dyn Kernel<T>| {
            let mut own = vec![T::ZERO; adjoint.len()];
            factor.values_at(factor.prepare(x).block(0..adjoint.len()), &mut own);
            own
        };
        let values: Vec<Vec<T>> = self.factors.iter().map(|factor| of(&**factor)).collect();
        let without = |index: usize| {
            let mut mine = adjoint.to_vec();
            for (_, other) in values.iter().enumerate().filter(|(other, _)| *other != index) {
                mine.iter_mut().zip(other).for_each(|(m, &v)| *m *= v);
            }
            mine
        };
        (0..values.len()).map(without).collect()
    }
}

/// `target *= other`, entry by entry.
fn multiply<T: Real>(target: &mut MatMut<'_, T>, other: &Mat<T>) {
    for j in 0..other.ncols() {
        column(target, j).iter_mut().zip(other.col_as_slice(j)).for_each(|(t, &o)| *t *= o);
    }
}

impl<T: Real> Parameters for Product<T> {
    fn segments(&self) -> Vec<Segment> {
        segments(&self.factors)
    }
    fn values(&self) -> Vec<f64> {
        values(&self.factors)
    }
    fn set_values(&mut self, values: &[f64]) {
        set_values(&mut self.factors, values);
    }
}

impl<T: Real> Kernel<T> for Product<T> {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        self.factors[0].cross_tile(pair, out.as_mut());
        let mut other = Mat::zeros(out.nrows(), out.ncols());
        for factor in &self.factors[1..] {
            factor.cross_tile(pair, other.as_mut());
            multiply(&mut out, &other);
        }
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
        let mut other = vec![T::ZERO; out.len()];
        for factor in &self.factors {
            factor.diagonal(x, &mut other);
            out.iter_mut().zip(&other).for_each(|(o, &v)| *o *= v);
        }
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
        let mut other = vec![T::ZERO; out.len()];
        for (i, factor) in self.factors.iter().enumerate() {
            factor.values_at(x.part(i), &mut other);
            out.iter_mut().zip(&other).for_each(|(o, &v)| *o *= v);
        }
    }

    /// As [`Self::pullback_tile`] does it.
    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let each = ranges(&self.factors).zip(self.adjoints_of_values(x, adjoint));
        each.for_each(|((factor, range), mine)| {
            factor.pullback_values_at(x, &mine, &mut parameters[range]);
        });
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        let each = self.factors.iter().zip(self.adjoints_of_values(x, adjoint));
        each.for_each(|(factor, mine)| factor.pullback_values_to_points(x, &mine, out));
    }

    fn is_noisy(&self) -> bool {
        self.factors.iter().any(|factor| factor.is_noisy())
    }

    /// The adjoint of one factor is the adjoint of the product times all other factors (multiplied up from both ends, not divided out, so
    /// that zeros are harmless): `3 F` products of F factors.
    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let matrices: Vec<Mat<T>> = self
            .factors
            .iter()
            .map(|factor| {
                let mut matrix = Mat::zeros(adjoint.nrows(), adjoint.ncols());
                factor.cross_tile(pair, matrix.as_mut());
                matrix
            })
            .collect();
        // Products of the factors behind each, last first; those before it are multiplied up on the way.
        let mut behind: Vec<Mat<T>> = Vec::with_capacity(matrices.len());
        for matrix in matrices[1..].iter().rev() {
            let mut own = matrix.clone();
            if let Some(last) = behind.last() {
                multiply(&mut own.as_mut(), last);
            }
            behind.push(own);
        }
        let mut before = adjoint.to_owned();
        let mut totals = Vec::with_capacity(self.factors.len());
        for ((factor, range), matrix) in ranges(&self.factors).zip(&matrices) {
            let mut mine = before.clone();
            if let Some(others) = behind.pop() {
                multiply(&mut mine.as_mut(), &others);
            }
            totals.push(adjoints.with_parameters(range, |a| factor.pullback_tile(pair, mine.as_ref(), a)));
            multiply(&mut before.as_mut(), matrix);
        }
        // Each of them is the sum of adjoint times product, up to rounding.
        totals[0]
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        Prepared::parts(x.nrows(), self.factors.iter().map(|part| part.prepare(x)).collect())
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        mut out: MatMut<'_, T>,
    ) {
        self.factors[0].prepared_tile(x.part(0), z.part(0), same, out.as_mut());
        let mut other = Mat::zeros(out.nrows(), out.ncols());
        for (i, factor) in self.factors.iter().enumerate().skip(1) {
            factor.prepared_tile(x.part(i), z.part(i), same, other.as_mut());
            multiply(&mut out, &other);
        }
    }

    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        ClippedCorrelations::sum(self.factors.iter().map(|factor| factor.clipped_correlations(x, z)))
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        FeatureRecipe::product(self.factors.iter().map(|factor| factor.features()).collect::<Result<_, _>>()?)
    }

    /// Those of a factor that is a sum, each times the other factors, where one factor is; the product alone otherwise.
    fn components(&self) -> Vec<Component<T>> {
        let mut of_factors: Vec<Vec<Component<T>>> = self.factors.iter().map(|f| f.components()).collect();
        let is_sum = |own: &[Component<T>]| own.len() > 1 || own.iter().any(|c| !c.parts.is_empty());
        let sums: Vec<usize> = (0..of_factors.len()).filter(|&i| is_sum(&of_factors[i])).collect();
        let labels: Vec<String> =
            of_factors.iter().map(|own| own.first().map(|c| c.label.clone()).unwrap_or_default()).collect();
        match sums[..] {
            [index] => {
                let own = std::mem::take(&mut of_factors[index]);
                own.into_iter().map(|component| self.multiplied(index, &labels, component)).collect()
            }
            _ => vec![Component {
                label: labels.join("*"),
                order: None,
                columns: Vec::new(),
                kernel: self.clone_box(),
                parts: Vec::new(),
                part_of: None,
            }],
        }
    }

    fn tile(&self) -> usize {
        smallest_tile(&self.factors)
    }

    fn begin(&mut self, x: MatRef<'_, T>, targets: &[f64]) {
        self.factors.iter_mut().for_each(|factor| factor.begin(x, targets));
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(Self { factors: cloned(&self.factors) })
    }
}
