//! `sum_n J_n^T m_n(J_n v)`: forwards, through a map of the outputs, and back.

use super::Outputs;
use super::features::{Feature, Group, TangentFeatures, groups, tangent_feature_size};
use super::normal_range::normal_range;
use crate::PerNetworkPrecision;
use crate::array::products::product_here;
use crate::array::{Array, Matrix, Precision, Sets, add_to, batch_shape, product, products, transpose_rows};
use crate::graph::{Graph, Network, NetworkError, Selection, Trace};
use crate::operation::Operation;
use posterior_linalg::compiled_here;
use posterior_linalg::parallel;
use posterior_linalg::tiles::pieces;
use std::borrow::Cow;
use std::ops::Range;

/// Values of features that are held at one time (128 MB in single precision): enough examples for every layer's products to be large ones.
pub const HELD: usize = 1 << 25;

/// Which way products with `k` vectors in both directions take, and the operations for one example beside its forward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProductsThrough {
    /// Whether by way of features: they fit [`HELD`], and cost less.
    pub by_features: bool,
    /// Multiplications and additions.
    pub flops: f64,
}

impl ProductsThrough {
    /// By products each vector takes four passes. By features each of C outputs takes two, a fully connected layer half of that and half of the products' work, and all other weights `4 C k` operations each.
    pub fn plan(graph: &Graph, selection: &Selection, k: usize) -> Self {
        Self::within(graph, selection, k, HELD)
    }

    fn within(graph: &Graph, selection: &Selection, k: usize, held: usize) -> Self {
        let (c, vectors) = (graph.output_shape().iter().product::<usize>(), k as f64);
        let (whole, mut connected, mut others) = (graph.flops() as f64, 0.0, 0.0);
        for group in groups(graph, selection) {
            match group {
                Group::Dense { node, .. } => connected += graph.nodes()[node].flops as f64,
                Group::Rows { part } => others += selection.parts()[part].length as f64,
            }
        }
        let by_products = 4.0 * vectors * whole;
        let by_outputs = c as f64 * (2.0 * whole - connected);
        let by_features = by_outputs + vectors * (2.0 * connected + 4.0 * c as f64 * others);
        let fits = c.saturating_mul(tangent_feature_size(graph, selection)) <= held;
        let flops = if fits { by_features.min(by_products) } else { by_products };
        Self { by_features: flops < by_products, flops }
    }
}

/// What stands between the two products: `map(outputs, examples, moved)` sees some examples' outputs `[examples, outputs...]` and `J_n v_k`, `[examples * k, outputs...]`, and says what goes back in its place.
pub type OutputMap<'a, T> = dyn FnMut(&Array<T>, Range<usize>, Array<T>) -> Array<T> + 'a;

/// Values that the widest fully connected layer makes of an example; 0 without one.
pub fn widest_connected(graph: &Graph) -> usize {
    let connected = graph.nodes().iter().filter(|n| matches!(n.operation, Operation::Linear(_)));
    connected.map(|n| n.shape.iter().product()).max().unwrap_or(0)
}

impl<T: Precision> Network<T> {
    /// `sum_n J_n^T m_n(J_n v_k)` for `k` vectors, `[k, selection] -> [k, selection]`.
    ///
    /// Cost: four forward passes for each vector and example, or less by way of the Jacobian of a few examples at a time, used in both directions: see [`ProductsThrough`]. Memory: `k` or `C` times what is alive of a
    /// piece of the examples at one time, and at most [`HELD`] values of features.
    ///
    /// # Errors
    /// When inputs, vectors or what the map returns do not fit, or the network is in training mode.
    pub fn products_through(
        &self,
        x: &Array<T>,
        selection: &Selection,
        vectors: &Array<T>,
        map: &mut OutputMap<'_, T>,
    ) -> Result<Array<T>, NetworkError> {
        self.through(x, None, selection, vectors, map, HELD)
    }

    /// Which way products with `k` vectors in both directions take, and how many examples make a piece: of features as many as are held at one time, whatever the number of vectors, as long as what fully connected
    /// layers make of the vectors is no more than the activations of a piece may be.
    pub fn products_through_at_once(&self, selection: &Selection, k: usize) -> (ProductsThrough, usize) {
        self.pieces_through(selection, k, HELD)
    }

    fn pieces_through(&self, selection: &Selection, k: usize, held: usize) -> (ProductsThrough, usize) {
        let (graph, each) = (self.graph(), self.examples_at_once());
        let (c, k) = (graph.output_shape().iter().product::<usize>().max(1), k.max(1));
        let way = ProductsThrough::within(graph, selection, k, held);
        if !way.by_features {
            return (way, (each / k).max(1));
        }
        let held = held / (c * tangent_feature_size(graph, selection)).max(1);
        let made = k * widest_connected(graph);
        let connected = each * graph.activations() / made.max(1);
        (way, held.min(each / c).min(connected).max(1))
    }

    /// The same, holding so many values of features; where all examples are one piece, a trace of them that is there already serves.
    #[inline(never)]
    pub(super) fn through(
        &self,
        x: &Array<T>,
        traced: Option<&Trace<'_, T>>,
        selection: &Selection,
        vectors: &Array<T>,
        map: &mut OutputMap<'_, T>,
        held: usize,
    ) -> Result<Array<T>, NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a, 'c: 'a] Network::through_here, (
            network: &'a Network<T> = self,
            x: &'a Array<T> = x,
            traced: Option<&'a Trace<'b, T>> = traced,
            selection: &'a Selection = selection,
            vectors: &'a Array<T> = vectors,
            map: &'a mut OutputMap<'c, T> = map,
            held: usize = held,
        ) -> Result<Array<T>, NetworkError>)
    }

    fn through_here(
        &self,
        x: &Array<T>,
        traced: Option<&Trace<'_, T>>,
        selection: &Selection,
        vectors: &Array<T>,
        map: &mut OutputMap<'_, T>,
        held: usize,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("products with Jacobians")?;
        if vectors.shape().len() != 2 || vectors.row_len() != selection.len() {
            let (expected, found) = (vec![vectors.rows(), selection.len()], vectors.shape().to_vec());
            return Err(NetworkError::Shape { what: "tangents", expected, found });
        }
        let graph = self.graph();
        let k = vectors.rows();
        if k == 0 {
            return Ok(Array::zeros(vec![0, selection.len()]));
        }
        let (way, each) = self.pieces_through(selection, k, held);
        let grouped = way.by_features.then(|| Grouped::of(graph, selection, vectors));
        let mut products = Array::zeros(vec![k, if grouped.is_some() { 0 } else { selection.len() }]);
        let mut by_group = grouped.as_ref().map(Grouped::zeros);
        for range in pieces(x.rows(), each) {
            let own;
            let trace = match traced.filter(|trace| trace.rows() == range.len()) {
                Some(trace) => trace,
                None => {
                    own = self.trace(x.slice_rows(range.clone()))?;
                    &own
                }
            };
            match (&grouped, &mut by_group) {
                (Some(vectors), Some(sum)) => trace.through_features(range, selection, vectors, map, sum)?,
                _ => {
                    let moved = trace.jvp(selection, vectors)?;
                    let back = trace.vjp(selection, &map(trace.output(), range, moved))?;
                    add_to(products.values_mut(), back.values());
                }
            }
        }
        Ok(by_group.map_or(products, |sum| sum.joined(graph, selection)))
    }
}

impl<T: Precision> Trace<'_, T> {
    /// [`Network::products_through`] at the examples of this trace.
    ///
    /// # Errors
    /// As there.
    pub fn products_through(
        &self,
        selection: &Selection,
        vectors: &Array<T>,
        map: &mut OutputMap<'_, T>,
    ) -> Result<Array<T>, NetworkError> {
        self.network().through(self.input(), Some(self), selection, vectors, map, HELD)
    }

    /// One piece by way of its features, added to `sum`.
    #[inline(never)]
    fn through_features(
        &self,
        range: Range<usize>,
        selection: &Selection,
        vectors: &Grouped<T>,
        map: &mut OutputMap<'_, T>,
        sum: &mut Grouped<T>,
    ) -> Result<(), NetworkError> {
        let (examples, k, shape) = (range.len(), vectors.width, &self.output().shape()[1..]);
        let c: usize = shape.iter().product();
        let features = self.features(selection, Outputs::All.cotangents(examples, shape)?);
        // Features come by example and output, a network's blocks by example and vector.
        let moved = transpose_rows(&features.apply(vectors).reshaped(vec![examples, c * k]), c, k);
        let expected = batch_shape(examples * k, shape);
        let back = map(self.output(), range, moved.reshaped(expected.clone()));
        if back.shape() != expected {
            let found = back.shape().to_vec();
            return Err(NetworkError::Shape { what: "cotangents", expected, found });
        }
        // Sums go on from piece to piece: a scale would have to be the same for all of them.
        let (settled, scales) = normal_range(Cow::Borrowed(&back), Sets::Tangents(k));
        let settled = scales.are_one().then(|| settled.into_owned());
        let back = settled.unwrap_or(back);
        let back = transpose_rows(&back.reshaped(vec![examples, k * c]), k, c);
        features.add_transpose(&back.reshaped(vec![examples * c, k]), sum);
        Ok(())
    }
}

/// Vectors of the selected parameters, cut up by the groups of features.
struct Grouped<T> {
    width: usize,
    groups: Vec<Group>,
    /// For each group `[width, entries]`: of a fully connected layer its weight and, where it is in the group, its bias.
    parts: Vec<Vec<Array<T>>>,
}

/// Positions in the selection of what a group consists of.
fn members(graph: &Graph, selection: &Selection, group: &Group) -> Vec<usize> {
    let of = |parameter: usize| selection.parts().iter().position(|part| part.parameter == parameter);
    match group {
        Group::Rows { part } => vec![*part],
        Group::Dense { node, bias } => {
            let parameters = &graph.nodes()[*node].parameters[..1 + usize::from(*bias)];
            parameters.iter().filter_map(|&p| of(p)).collect()
        }
    }
}

impl<T: Precision> Grouped<T> {
    fn of(graph: &Graph, selection: &Selection, vectors: &Array<T>) -> Self {
        let groups = groups(graph, selection);
        let cut = |part: usize| {
            let part = &selection.parts()[part];
            let mut own = Array::any(vec![vectors.rows(), part.length]);
            for (k, own) in own.values_mut().chunks_exact_mut(part.length.max(1)).enumerate() {
                own.copy_from_slice(&vectors.row(k)[part.offset..part.offset + part.length]);
            }
            own
        };
        let parts = groups.iter().map(|g| members(graph, selection, g).into_iter().map(cut).collect());
        Self { width: vectors.rows(), parts: parts.collect(), groups }
    }

    fn zeros(&self) -> Self {
        let parts = self.parts.iter().map(|p| p.iter().map(|a| Array::zeros(a.shape().to_vec())).collect());
        Self { width: self.width, groups: self.groups.clone(), parts: parts.collect() }
    }

    /// `[width, selection]`.
    fn joined(&self, graph: &Graph, selection: &Selection) -> Array<T> {
        let mut out = Array::zeros(vec![self.width, selection.len()]);
        for (group, parts) in self.groups.iter().zip(&self.parts) {
            for (part, values) in members(graph, selection, group).into_iter().zip(parts) {
                let part = &selection.parts()[part];
                for (k, row) in out.values_mut().chunks_exact_mut(selection.len()).enumerate() {
                    row[part.offset..part.offset + part.length].copy_from_slice(values.row(k));
                }
            }
        }
        out
    }

    /// Where a group stands.
    fn position(&self, group: &Group) -> usize {
        self.groups.iter().position(|g| g == group).expect("features of the selection that was cut up")
    }
}

impl<T: Precision> TangentFeatures<T> {
    /// `J v` for each vector, `[rows, width]`.
    fn apply(&self, vectors: &Grouped<T>) -> Array<T> {
        let (rows, k) = (self.rows(), vectors.width);
        let of = |group: &Group| &vectors.parts[vectors.position(group)];
        let mut sum = Array::zeros(vec![rows, k]);
        let gradients: Vec<_> = self.groups.iter().zip(&self.features).collect();
        let parts: Vec<Option<Vec<T>>> = parallel::map(gradients.len(), 1, |i| {
            let (group, feature) = gradients[i];
            let Feature::Rows(values) = feature else { return None };
            let (mut own, length) = (vec![T::ZERO; rows * k], values.row_len());
            let vectors = Matrix::new(of(group)[0].values(), k, length).transposed();
            product_here(&mut own, k, false, Matrix::new(values.values(), rows, length), vectors);
            Some(own)
        });
        parts.iter().flatten().for_each(|own| add_to(sum.values_mut(), own));
        for (group, feature) in gradients {
            let Feature::Dense { inputs, sensitivities, .. } = feature else { continue };
            let (parts, outputs, columns) = (of(group), sensitivities.row_len(), inputs.row_len());
            // What each vector's layer makes of the inputs, `[examples, width, outputs]`.
            let mut made = Array::<T>::zeros(vec![self.examples, k * outputs]);
            let weights = Matrix::new(parts[0].values(), k * outputs, columns).transposed();
            if let Some(bias) = parts.get(1) {
                made.values_mut()
                    .chunks_exact_mut(k * outputs)
                    .for_each(|m| m.copy_from_slice(bias.values()));
            }
            product(made.values_mut(), true, Matrix::new(inputs.values(), self.examples, columns), weights);
            products(sum.values_mut(), self.examples, true, |n| {
                let own = &sensitivities.values()[n * self.width * outputs..][..self.width * outputs];
                (Matrix::new(own, self.width, outputs), Matrix::new(made.row(n), k, outputs).transposed())
            });
        }
        sum
    }

    /// Adds `J^T u` of `[rows, width]` to vectors.
    fn add_transpose(&self, u: &Array<T>, sum: &mut Grouped<T>) {
        let (rows, k) = (self.rows(), sum.width);
        let places: Vec<usize> = self.groups.iter().map(|group| sum.position(group)).collect();
        let mut features: Vec<Option<&Feature<T>>> = vec![None; sum.groups.len()];
        places.iter().zip(&self.features).for_each(|(&place, feature)| features[place] = Some(feature));
        parallel::chunks(&mut sum.parts, 1, 1, |place, parts| {
            let (parts, Some(Feature::Rows(values))) = (&mut parts[0], features[place]) else { return };
            let length = values.row_len();
            let (u, values) = (Matrix::new(u.values(), rows, k), Matrix::new(values.values(), rows, length));
            product_here(parts[0].values_mut(), length, true, u.transposed(), values);
        });
        for (parts, feature) in sum.parts.iter_mut().zip(&features) {
            let Some(Feature::Dense { inputs, sensitivities, .. }) = feature else { continue };
            let (outputs, columns) = (sensitivities.row_len(), inputs.row_len());
            let mut back = Array::<T>::zeros(vec![self.examples, k * outputs]);
            products(back.values_mut(), self.examples, false, |n| {
                let own = &sensitivities.values()[n * self.width * outputs..][..self.width * outputs];
                let u = &u.values()[n * self.width * k..][..self.width * k];
                (Matrix::new(u, self.width, k).transposed(), Matrix::new(own, self.width, outputs))
            });
            if let Some(bias) = parts.get_mut(1) {
                (0..self.examples).for_each(|n| add_to(bias.values_mut(), back.row(n)));
            }
            let back = Matrix::new(back.values(), self.examples, k * outputs).transposed();
            product(parts[0].values_mut(), true, back, Matrix::new(inputs.values(), self.examples, columns));
        }
    }
}
