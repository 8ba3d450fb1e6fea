//! **Additive** kernels: sums of functions of few columns each.
//!
//! `k = Σ_q v_q e_q(k_1 .. k_D) / C(D, q)` with `e_q` the elementary symmetric polynomial of order q of one-dimensional kernels `k_d(x_d, z_d)`, one for each column: all products of q of
//! them. Order 1 is a sum of functions of one column each, order 2 of functions of all pairs, and so on. There are `C(D, q)` sets of q columns, each with value 1 at a point with itself, so
//! `v_q` is the prior variance of all functions of order q together.
//!
//! Source: D. Duvenaud, H. Nickisch, C. E. Rasmussen, "Additive Gaussian processes", NIPS 2011, sections 2 and 3 (there the variances are those of single sets, and polynomials come from
//! Newton's identities; here from a recursion that subtracts nothing: the file `polynomials`).

mod anova;
mod polynomials;

pub use anova::{Anova, Decomposed, Effect};

use crate::composite::{Product, Scaled};
use crate::features::{FeatureError, FeatureRecipe, Spectrum};
use crate::inputs::{Columns, LANES, Points, add_column, fold};
use crate::kernel::{Adjoints, Component, Kernel, Pair, column, entries};
use crate::stationary::{Form, FormLoops, Stationary};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use polynomials::{LANE, Lane, Room, sets};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};
use std::sync::Arc;

/// An additive kernel up to some order. An entry costs D values of the one-dimensional kernel and `2 D Q` flops; its way back three times that.
#[derive(Clone, Debug)]
pub struct Additive<F> {
    label: String,
    form: F,
    scales: Scales,
}

/// All of an additive kernel but its form.
#[derive(Clone, Debug)]
struct Scales {
    columns: Columns,
    lengthscales: Vec<f64>,
    /// Of the orders from 1 on.
    variances: Vec<f64>,
}

impl<F: Form> Additive<F> {
    /// Orders from 1 to `order` of kernels of this form on `columns`, with one lengthscale each when `ard`; each order begins with `variance` over the number of orders.
    ///
    /// # Panics
    /// When `order` is 0 or above the number of columns.
    pub fn new(
        label: impl Into<String>,
        form: F,
        columns: Columns,
        ard: bool,
        lengthscale: f64,
        (order, variance): (usize, f64),
    ) -> Self {
        assert!((1..=columns.count()).contains(&order), "an order is between 1 and the number of columns");
        let count = if ard { columns.count() } else { 1 };
        let variances = vec![variance / order as f64; order];
        let scales = Scales { columns, lengthscales: vec![lengthscale; count], variances };
        Self { label: label.into(), form, scales }
    }

    /// The kernel of order q (from 1 on) alone.
    fn of_order(&self, q: usize) -> Self {
        let variances =
            self.scales.variances.iter().enumerate().map(|(p, &v)| if p + 1 == q { v } else { 0.0 });
        let scales = Scales { variances: variances.take(q).collect(), ..self.scales.clone() };
        Self { scales, ..self.clone() }
    }

    /// The function of some columns together, by their places among those of this kernel.
    fn of_set<T: Real>(&self, set: &[usize]) -> Component<T> {
        let columns: Vec<usize> = set.iter().map(|&d| self.scales.columns.indices()[d]).collect();
        let factor = |&d: &usize| -> Box<dyn Kernel<T>> {
            let column = Columns::some(vec![self.scales.columns.indices()[d]]);
            let form = self.form.clone();
            Box::new(Stationary::new(self.label.clone(), form, column, false, self.scales.lengthscale(d)))
        };
        let variance = self.scales.variances[set.len() - 1] / sets(self.scales.columns.count(), set.len());
        let product = Box::new(Product::new(set.iter().map(factor).collect()));
        Component {
            label: self.label.clone(),
            order: Some(set.len()),
            columns,
            kernel: Box::new(Scaled::new(self.label.clone(), variance, product)),
            parts: Vec::new(),
            part_of: None,
        }
    }

    /// The functions of single columns, or of pairs, that an order is the sum of; of larger sets, and of pairs among more than 64 columns, there are too many to be told apart.
    fn sets_of_order<T: Real>(&self, order: usize) -> Vec<Component<T>> {
        /// Columns of which all pairs are formed (2,016 of them).
        const MOST_PAIRED: usize = 64;
        let count = self.scales.columns.count();
        match order {
            2 if count > MOST_PAIRED => Vec::new(),
            1 => (0..count).map(|d| self.of_set(&[d])).collect(),
            2 => (0..count)
                .flat_map(|a| (a + 1..count).map(move |b| [a, b]))
                .map(|p| self.of_set(&p))
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl Scales {
    fn lengthscale(&self, d: usize) -> f64 {
        self.lengthscales[if self.lengthscales.len() == 1 { 0 } else { d }]
    }

    fn order(&self) -> usize {
        self.variances.len()
    }

    /// `v_q / C(D, q)`, for q from 1 on.
    fn weights<T: Real>(&self) -> Vec<T> {
        let weight = |(q, v): (usize, &f64)| T::from_f64(v / sets(self.columns.count(), q + 1));
        self.variances.iter().enumerate().map(weight).collect()
    }

    fn points<T: Real>(&self, x: MatRef<'_, T>) -> Points<T> {
        Points::new(x, &self.columns, |d| T::from_f64(1.0 / self.lengthscale(d)))
    }

    /// Squared distances of rows `i..` (up to a lane) from a point along each column, which no form finds too large.
    #[inline(always)]
    fn squares<T: Real>(x: &[&[T]], z: &[T], i: usize, out: &mut [Lane<T>]) {
        let most = T::from_f64(if size_of::<T>() == 4 { 1e37 } else { 1e300 });
        for (d, out) in out.iter_mut().enumerate() {
            let own = &x[d][i..];
            *out = [T::ZERO; LANE];
            for (o, &v) in out.iter_mut().zip(own) {
                let difference = v - z[d];
                let square = difference * difference;
                // In this order NaN stays.
                *o = if most < square { most } else { square };
            }
        }
    }

    fn tile<T: Real>(&self, form: &dyn FormLoops<T>, x: &[&[T]], z: &[&[T]], mut out: MatMut<'_, T>) {
        let (dimension, orders) = (self.columns.count(), self.order());
        let weights: Vec<T> = self.weights();
        let mut room = Room::new(dimension, orders);
        let mut factors = vec![[T::ZERO; LANE]; dimension];
        let mut point = vec![T::ZERO; dimension];
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    point.iter_mut().zip(z).for_each(|(p, z)| *p = z[j]);
                    for (block, values) in column(&mut out, j).chunks_mut(LANE).enumerate() {
                        Self::squares(x, &point, block * LANE, &mut factors);
                        form.values(factors.as_flattened_mut());
                        let sums = room.forward(&factors);
                        let mut total = [T::ZERO; LANE];
                        for (q, &weight) in weights.iter().enumerate() {
                            for i in 0..LANE {
                                total[i] = weight.mul_add(sums[q + 1][i], total[i]);
                            }
                        }
                        values.copy_from_slice(&total[..values.len()]);
                    }
                }
            },
        );
    }

    fn pullback_tile<T: Real>(
        &self,
        (form, has_shape): (&dyn FormLoops<T>, bool),
        pair: Pair<'_, T>,
        adjoint: MatRef<'_, T>,
        adjoints: &mut Adjoints<T>,
    ) -> f64 {
        let request = adjoints.request();
        let (x, z) = (self.points(pair.x), self.points(pair.z));
        let (n, m, dimension, orders) =
            (adjoint.nrows(), adjoint.ncols(), self.columns.count(), self.order());
        let weights: Vec<T> = self.weights();
        let of_x: Vec<&[T]> = (0..dimension).map(|d| x.column(d)).collect();
        let mut room = Room::new(dimension, orders);
        let zeros = || vec![[T::ZERO; LANE]; dimension];
        let (mut factors, mut slopes, mut shapes, mut toward, mut squares) =
            (zeros(), zeros(), zeros(), zeros(), zeros());
        let ones = vec![T::ONE; dimension * LANE];
        // Sums over the tile, in doubles: of adjoint times polynomial by order, of the stretch of each column, of the shape's slope.
        let mut by_order = vec![0.0; orders];
        let mut stretch = vec![0.0; dimension];
        let mut toward_shape = 0.0;
        let mut toward_x = vec![T::ZERO; if request.x { n * dimension } else { 0 }];
        let mut toward_z = vec![T::ZERO; if request.z { m * dimension } else { 0 }];
        let mut point = vec![T::ZERO; dimension];
        dispatch(
            #[inline(always)]
            || {
                for j in 0..m {
                    (0..dimension).for_each(|d| point[d] = z.column(d)[j]);
                    for (block, g) in entries(adjoint, j).chunks(LANE).enumerate() {
                        let first = block * LANE;
                        let mut own = [T::ZERO; LANE];
                        own[..g.len()].copy_from_slice(g);
                        Self::squares(&of_x, &point, first, &mut squares);
                        let parts = [&mut slopes, &mut factors, &mut shapes].map(|p| p.as_flattened_mut());
                        form.parts_times(squares.as_flattened(), &ones, parts);
                        let sums = room.forward(&factors);
                        for (q, total) in by_order.iter_mut().enumerate() {
                            let mut products = [T::ZERO; LANES];
                            for i in 0..LANE {
                                products[i] = own[i] * sums[q + 1][i];
                            }
                            *total += fold(&products);
                        }
                        if !(request.parameters || request.x || request.z) {
                            continue;
                        }
                        room.backward(
                            &factors,
                            #[inline(always)]
                            |q| own.map(|g| g * weights[q - 1]),
                            &mut toward,
                        );
                        for d in 0..dimension {
                            let (mut w, mut pulled) = ([T::ZERO; LANE], [T::ZERO; LANE]);
                            for i in 0..LANE {
                                w[i] = toward[d][i] * slopes[d][i];
                                pulled[i] = w[i] * squares[d][i];
                                toward[d][i] *= shapes[d][i];
                            }
                            stretch[d] += fold(&pulled);
                            toward_shape += fold(&toward[d]);
                            if request.x || request.z {
                                let xs = &of_x[d][first..first + g.len()];
                                let mut sum = T::ZERO;
                                for (i, &v) in xs.iter().enumerate() {
                                    let pull = w[i] * (v - point[d]);
                                    sum += pull;
                                    if request.x {
                                        toward_x[d * n + first + i] -= pull;
                                    }
                                }
                                if request.z {
                                    toward_z[d * m + j] += sum;
                                }
                            }
                        }
                    }
                }
            },
        );
        let total = by_order.iter().zip(&weights).map(|(s, w)| s * w.to_f64()).sum();
        if request.parameters {
            for (q, sum) in by_order.iter().enumerate() {
                adjoints.parameters[q] += sum / sets(dimension, q + 1);
            }
            for (d, sum) in stretch.iter().enumerate() {
                let index = if self.lengthscales.len() == 1 { 0 } else { d };
                adjoints.parameters[orders + index] += sum / self.lengthscales[index];
            }
            if has_shape {
                adjoints.parameters[orders + self.lengthscales.len()] += toward_shape;
            }
        }
        for (target, values, rows) in
            [(&mut adjoints.x, &mut toward_x, n), (&mut adjoints.z, &mut toward_z, m)]
        {
            if let Some(target) = target {
                for (d, &c) in self.columns.indices().iter().enumerate() {
                    let scale = T::from_f64(1.0 / self.lengthscale(d));
                    let values = &mut values[d * rows..(d + 1) * rows];
                    values.iter_mut().for_each(|v| *v *= scale);
                    add_column(target, c, values);
                }
            }
        }
        total
    }
}

impl<F: Form> Parameters for Additive<F> {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, count| Segment {
            name: format!("{}.{name}", self.label),
            shape: vec![count],
            transform: Transform::Log,
        };
        let mut out = vec![
            segment("variance", self.scales.order()),
            segment("lengthscale", self.scales.lengthscales.len()),
        ];
        out.extend(self.form.shape().map(|(name, _)| segment(name, 1)));
        out
    }

    fn values(&self) -> Vec<f64> {
        let mut out = [self.scales.variances.as_slice(), &self.scales.lengthscales].concat();
        out.extend(self.form.shape().map(|(_, value)| value));
        out
    }

    fn set_values(&mut self, values: &[f64]) {
        let (variances, rest) = values.split_at(self.scales.variances.len());
        let (lengthscales, shape) = rest.split_at(self.scales.lengthscales.len());
        self.scales.variances.copy_from_slice(variances);
        self.scales.lengthscales.copy_from_slice(lengthscales);
        assert_eq!(shape.len(), usize::from(self.form.shape().is_some()), "one number for each parameter");
        if let [value] = shape {
            self.form.set_shape(*value);
        }
    }
}

impl<T: Real, F: Form> Kernel<T> for Additive<F> {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z) = (self.scales.points(pair.x), self.scales.points(pair.z));
        let columns = 0..self.scales.columns.count();
        let (x, z): (Vec<&[T]>, Vec<&[T]>) = columns.map(|d| (x.column(d), z.column(d))).unzip();
        self.scales.tile(&self.form, &x, &z, out);
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        Prepared::own(self.scales.points(x).matrix().to_owned())
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        _same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        let (x, z): (Vec<&[T]>, Vec<&[T]>) = (0..x.columns()).map(|d| (x.column(d), z.column(d))).unzip();
        self.scales.tile(&self.form, &x, &z, out);
    }

    fn diagonal(&self, _x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::from_f64(self.scales.variances.iter().sum()));
    }

    fn values_at(&self, _x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::from_f64(self.scales.variances.iter().sum()));
    }

    fn pullback_values_at(&self, _x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let sum: f64 = adjoint.iter().map(|a| a.to_f64()).sum();
        parameters.iter_mut().take(self.scales.order()).for_each(|p| *p += sum);
    }

    /// Nothing: it is the sum of the variances everywhere.
    fn pullback_values_to_points(&self, _x: MatRef<'_, T>, _adjoint: &[T], _out: &mut Mat<T>) {}

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let form = (&self.form as &dyn FormLoops<T>, self.form.shape().is_some());
        self.scales.pullback_tile(form, pair, adjoint, adjoints)
    }

    /// Of order q: frequencies on q columns by chance, each with its own law, whose cosines have `e_q / C(D, q)` as their mean.
    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        let of_order = |(q, &variance): (usize, &f64)| {
            let spectrum = Spectrum {
                support: Some(q + 1),
                ..Spectrum::new(
                    self.scales.columns.indices().to_vec(),
                    (0..self.scales.columns.count()).map(|d| self.scales.lengthscale(d)).collect(),
                    self.form.spectral_law(),
                )
            };
            let waves = FeatureRecipe::Waves { spectra: vec![spectrum], categories: Vec::new() };
            FeatureRecipe::Scaled(variance, Box::new(waves))
        };
        Ok(FeatureRecipe::Sum(self.scales.variances.iter().enumerate().map(of_order).collect()))
    }

    /// One for each order; that of order 1 has one for each column, that of order 2 one for each pair.
    fn components(&self) -> Vec<Component<T>> {
        let whole: Arc<dyn Decomposed<T>> = Arc::new(self.clone());
        let of_order = |q: usize| Component {
            label: self.label.clone(),
            order: Some(q),
            columns: Vec::new(),
            kernel: Box::new(self.of_order(q)),
            parts: self.sets_of_order(q),
            part_of: Some(whole.clone()),
        };
        (1..=self.scales.order()).map(of_order).collect()
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
