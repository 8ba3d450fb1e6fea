//! **A kernel behind a map**, `k(x, z) = k₀(g(x), g(z))`: any kernel on what any map makes of the rows, whose weights are hyperparameters like the others.
//!
//! Source: spec `generalised_variational_inference`, section 6.4, equation (5.2).

use faer::{Mat, MatMut, MatRef};
use posterior_kernels::infinite::ClippedCorrelations;
use posterior_kernels::{Adjoints, Kernel, Pair, Prepared, PreparedBlock, Request};
use posterior_linear::LinearError;
use posterior_linear::embedding::Embedding;
use posterior_optim::{Parameters, Segment, Transform};

/// The kernel. Parameters: those of k₀ under their own names, then `map.weights`, any numbers, which stay as they are where the map is kept.
///
/// Where k₀ is no function of distances, `k(x, x)` depends on the map, and rows that it cannot tell apart are certain together. The rank of its matrices is bounded by what k₀ makes of h numbers: with a linear
/// kernel h, so that more inducing points than that need jitter.
///
/// **Cost.** The map is passed once for the points of a matrix ([`Kernel::prepare`]) and twice more, both ways, for the points of each tile of a pullback; entries cost what those of k₀ cost on h columns. Beside the matrix
/// the embedded points are kept, 8 h bytes each, and the passes of a tile ([`Embedding::bytes_of_row`]).
///
/// **Errors.** Rows of another width than the map takes, and whatever else it may refuse, have values that are not numbers, which factorisations refuse.
#[derive(Debug)]
pub struct MappedKernel {
    base: Box<dyn Kernel<f64>>,
    map: Box<dyn Embedding>,
    kept: bool,
}

impl Clone for MappedKernel {
    fn clone(&self) -> Self {
        Self { base: self.base.clone_box(), map: self.map.clone_box(), kept: self.kept }
    }
}

impl MappedKernel {
    /// `base` on as many columns as the map has outputs.
    pub fn new(base: Box<dyn Kernel<f64>>, map: Box<dyn Embedding>) -> Self {
        Self { base, map, kept: false }
    }

    /// The same with the map's weights as they are.
    pub fn with_map_kept(self) -> Self {
        Self { kept: true, ..self }
    }

    /// Whether the map's weights stay as they are.
    pub fn keeps_map(&self) -> bool {
        self.kept
    }

    /// k₀.
    pub fn base(&self) -> &dyn Kernel<f64> {
        &*self.base
    }

    /// g.
    pub fn map(&self) -> &dyn Embedding {
        &*self.map
    }

    /// What the map makes of the rows, n x h.
    fn mapped(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        let refused = |_| Mat::from_fn(x.nrows(), self.map.width(), |_, _| f64::NAN);
        self.map.embedded(x).unwrap_or_else(refused)
    }

    /// The way back of a tile, through k₀ and through the map.
    fn pull_back(
        &self,
        pair: Pair<'_, f64>,
        adjoint: MatRef<'_, f64>,
        adjoints: &mut Adjoints<f64>,
    ) -> Result<f64, LinearError> {
        let wanted = adjoints.request();
        let weights = wanted.parameters && !self.kept;
        let (x, z) = (self.map.at(pair.x)?, self.map.at(pair.z)?);
        let request = Request { x: weights || wanted.x, z: weights || wanted.z, ..wanted };
        let (n, m, own) = (pair.x.nrows(), pair.z.nrows(), self.base.parameter_count());
        let mut found = Adjoints::zeros(request, own, n, m, self.map.width());
        let embedded = Pair { x: x.embedded(), z: z.embedded(), same: pair.same };
        let value = self.base.pullback_tile(embedded, adjoint, &mut found);
        if wanted.parameters {
            let (of_base, of_map) = adjoints.parameters.split_at_mut(own);
            of_base.iter_mut().zip(&found.parameters).for_each(|(a, f)| *a += f);
            if weights {
                for (side, slopes) in [(&x, &found.x), (&z, &found.z)] {
                    slopes.as_ref().map_or(Ok(()), |slopes| side.pull_back(slopes.as_ref(), of_map))?;
                }
            }
        }
        let sides = [(&x, &found.x, &mut adjoints.x), (&z, &found.z, &mut adjoints.z)];
        for (side, slopes, out) in sides {
            if let (Some(slopes), Some(out)) = (slopes, out) {
                *out += side.pull_back_inputs(slopes.as_ref())?;
            }
        }
        Ok(value)
    }

    /// The way back of `k(x_i, x_i)`.
    fn pull_back_values(
        &self,
        x: MatRef<'_, f64>,
        adjoint: &[f64],
        parameters: &mut [f64],
    ) -> Result<(), LinearError> {
        let (of_base, of_map) = parameters.split_at_mut(self.base.parameter_count());
        if self.kept {
            self.base.pullback_values_at(self.mapped(x).as_ref(), adjoint, of_base);
            return Ok(());
        }
        let traced = self.map.at(x)?;
        self.base.pullback_values_at(traced.embedded(), adjoint, of_base);
        let mut slopes = Mat::zeros(x.nrows(), self.map.width());
        self.base.pullback_values_to_points(traced.embedded(), adjoint, &mut slopes);
        traced.pull_back(slopes.as_ref(), of_map)
    }
}

impl Parameters for MappedKernel {
    fn segments(&self) -> Vec<Segment> {
        let mut all = self.base.segments();
        let transform = if self.kept { Transform::Fixed } else { Transform::Identity };
        let shape = vec![self.map.unconstrained().len()];
        all.push(Segment { name: "map.weights".into(), shape, transform });
        all
    }

    fn values(&self) -> Vec<f64> {
        [self.base.values(), self.map.unconstrained()].concat()
    }

    fn set_values(&mut self, values: &[f64]) {
        let (of_base, of_map) = values.split_at(self.base.parameter_count());
        self.base.set_values(of_base);
        self.map.set_unconstrained(of_map);
    }
}

impl Kernel<f64> for MappedKernel {
    fn cross_tile(&self, pair: Pair<'_, f64>, out: MatMut<'_, f64>) {
        let (x, z) = (self.mapped(pair.x), self.mapped(pair.z));
        self.base.cross_tile(Pair { x: x.as_ref(), z: z.as_ref(), same: pair.same }, out);
    }

    fn diagonal(&self, x: MatRef<'_, f64>, out: &mut [f64]) {
        self.base.diagonal(self.mapped(x).as_ref(), out);
    }

    fn pullback_tile(
        &self,
        pair: Pair<'_, f64>,
        adjoint: MatRef<'_, f64>,
        adjoints: &mut Adjoints<f64>,
    ) -> f64 {
        self.pull_back(pair, adjoint, adjoints).unwrap_or(f64::NAN)
    }

    /// What k₀ prepares of what the map makes of the points.
    fn prepare(&self, x: MatRef<'_, f64>) -> Prepared<f64> {
        self.base.prepare(self.mapped(x).as_ref())
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, f64>,
        z: PreparedBlock<'_, f64>,
        same: Option<(usize, usize)>,
        out: MatMut<'_, f64>,
    ) {
        self.base.prepared_tile(x, z, same, out);
    }

    fn values_at(&self, x: PreparedBlock<'_, f64>, out: &mut [f64]) {
        self.base.values_at(x, out);
    }

    fn pullback_values_at(&self, x: MatRef<'_, f64>, adjoint: &[f64], parameters: &mut [f64]) {
        if self.pull_back_values(x, adjoint, parameters).is_err() {
            parameters.fill(f64::NAN);
        }
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, f64>, adjoint: &[f64], out: &mut Mat<f64>) {
        let mut slopes = Mat::zeros(x.nrows(), self.map.width());
        let back = self.map.at(x).and_then(|traced| {
            self.base.pullback_values_to_points(traced.embedded(), adjoint, &mut slopes);
            traced.pull_back_inputs(slopes.as_ref())
        });
        match back {
            Ok(own) => *out += own,
            Err(_) => out.fill(f64::NAN),
        }
    }

    fn is_noisy(&self) -> bool {
        self.base.is_noisy()
    }

    fn clipped_correlations(&self, x: MatRef<'_, f64>, z: MatRef<'_, f64>) -> ClippedCorrelations {
        self.base.clipped_correlations(self.mapped(x).as_ref(), self.mapped(z).as_ref())
    }

    fn tile(&self) -> usize {
        self.base.tile()
    }

    fn clone_box(&self) -> Box<dyn Kernel<f64>> {
        Box::new(self.clone())
    }
}
