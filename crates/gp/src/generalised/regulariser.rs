//! **Regularisers** `D[Q, P]`: what keeps the variational process near its reference.
//!
//! | regulariser | looks at | admits | a step costs |
//! |---|---|---|---|
//! | projected divergences (6.2) | both marginals at each row | every kernel and mean | O(b) |
//! | divergences of inducing values | the weights of inducing points | kernels of weights, means of weights or of the prior, the prior as reference | O(M³) |
//! | squared Wasserstein distance (5.11) | both covariances of some rows together | every kernel and mean | O(b³) |
//! | its part without the eigenvalues | marginals | every kernel and mean | O(b) |
//! | squared difference of covariances | the same | every kernel and mean | O(b²) |
//! | distance of class probabilities | probabilities at each row | several functions, the posterior as reference | O(b C) likelihoods |
//!
//! Divergences of inducing values are those of the whole processes, which share what inducing points leave (the Kullback-Leibler divergence is that of variational inference); the distances of Wasserstein and of squares are
//! not, so they are not offered there.
//!
//! Source: spec `generalised_variational_inference`, sections 3.2, 10 and 11.

use super::divergence::{
    self, BatchDistance, Direction, Divergence, DivergenceError, FidelityForm, JointNormal, Normal, Normals,
    SameBatch, SquaredDifference,
};
use super::error::GeneralisedError;
use super::mean::VariationalMean;
use super::model::{GeneralisedGp, KnownRows};
use super::objective::Batch;
use super::reference::{Mode, ReferenceProcess};
use super::variational::{Coordinates, Evaluated, Family, VariationalKernel, residual_covariance};
use crate::GpError;
use faer::{Mat, MatRef};
use posterior_likelihoods::Slopes;
use posterior_linalg::dense::{qr, solve_upper};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What keeps the variational process near its reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Regulariser {
    /// A divergence of both marginals, averaged over rows and functions.
    Projected(Divergence),
    /// A divergence of the distributions of inducing values, summed over functions.
    Inducing(Divergence),
    /// The squared Wasserstein distance of rows together, averaged over functions.
    Wasserstein(FidelityForm),
    /// The same from two batches, the halves of the rows together: noisy, and it may be negative (erratum E14). A last batch of one row goes without it, and is counted.
    WassersteinOfTwo,
    /// The same without the term of eigenvalues.
    PartialWasserstein,
    /// Squared differences of means and of covariances of rows together, averaged over functions.
    SquaredDifference,
    /// `Σ_j (ǀp_j - q_jǀ^a)^(1/a)` of class probabilities, averaged over rows.
    Multinomial {
        /// a, at least 1.
        power: f64,
    },
}

impl Default for Regulariser {
    fn default() -> Self {
        Self::Projected(Divergence::Renyi { order: 0.5 })
    }
}

/// The regulariser with its slopes.
#[derive(Debug, Default)]
pub(super) struct Regularisation {
    pub(super) value: f64,
    /// In the variational means, b x C.
    pub(super) means: Option<Mat<f64>>,
    /// In the variational variances, b x C.
    pub(super) variances: Option<Mat<f64>>,
    /// In the covariances of the rows together, one symmetric adjoint for each function.
    pub(super) covariances: Vec<Mat<f64>>,
    /// In the distribution of the weights.
    pub(super) weights: Option<WeightSlopes>,
    /// Eigenvalues that were clipped.
    pub(super) clipped: usize,
    /// Roots that drown in rounding.
    pub(super) unresolved: usize,
    /// Largest amount added to the diagonal of a covariance, relative to its mean.
    pub(super) relative_jitter: f64,
    /// Whether it was left out, because rows are too few.
    pub(super) left_out: bool,
}

/// Rows that a regulariser of matrices looks at together.
pub(super) struct Together<'a> {
    /// Their places in the batch; None for all in their order.
    pub(super) rows: Option<&'a [usize]>,
    /// Their inputs.
    pub(super) x: MatRef<'a, f64>,
    pub(super) known: &'a KnownRows,
    /// One kernel for each function there.
    pub(super) kernels: &'a [Evaluated<'a>],
}

/// Slopes in the weights of inducing points, in the coordinates of the process.
#[derive(Debug)]
pub(super) struct WeightSlopes {
    /// In the mean's weights, one column for each function; empty where the mean has none.
    pub(super) mean: Vec<Vec<f64>>,
    /// In the roots of their covariances.
    pub(super) roots: Vec<Mat<f64>>,
}

impl Regulariser {
    /// Refuses kernels, means and references that it does not admit.
    ///
    /// # Errors
    /// [`GeneralisedError::Regulariser`], with what it admits.
    pub fn check(&self, model: &GeneralisedGp) -> Result<(), GpError> {
        let refuse = |what: String, remedy| {
            Err(GeneralisedError::Regulariser { regulariser: self.to_string(), what, remedy }.into())
        };
        match self {
            Self::Projected(divergence) => divergence.check()?,
            Self::Inducing(divergence) => {
                divergence.check()?;
                if matches!(divergence, Divergence::Wasserstein | Divergence::SquaredDifference) {
                    return refuse(
                        "inducing values, of which it is not the distance of the processes".into(),
                        "take its projected form",
                    );
                }
                for kernel in model.kernels() {
                    if !kernel.family().is_of_weights() {
                        return refuse(
                            format!("the {:?} variational kernel", kernel.family()),
                            "between such processes it is infinite: take a cholesky, diagonal or log kernel, a projected regulariser, or wasserstein",
                        );
                    }
                }
                if !matches!(model.mean(), VariationalMean::Prior | VariationalMean::Inducing(_)) {
                    return refuse(
                        model.mean().name().into(),
                        "between such processes it is infinite: take the mean of inducing points, a projected regulariser, or wasserstein",
                    );
                }
                if model.references().iter().any(|reference| reference.mode() == Mode::Posterior) {
                    return refuse(
                        "the posterior as reference".into(),
                        "take the prior as reference, or a projected regulariser",
                    );
                }
            }
            Self::Multinomial { power } => {
                if !(*power >= 1.0 && power.is_finite()) {
                    return Err(GeneralisedError::Option {
                        option: "the power of the multinomial distance",
                        value: *power,
                        remedy: "take at least 1",
                    }
                    .into());
                }
                if model.functions() < 2 || model.likelihood().target_width() != 1 {
                    return refuse("targets that are no classes".into(), "take a projected regulariser");
                }
                if model.references().iter().any(|reference| reference.mode() == Mode::Prior) {
                    return refuse(
                        "the prior as reference, under which all classes are alike".into(),
                        "take the posterior as reference",
                    );
                }
            }
            Self::Wasserstein(FidelityForm::NuclearNorm) => {
                let fixed = |kernel: &VariationalKernel| kernel.family() == Family::FixedSparsePosterior;
                if model.kernels().iter().any(fixed) {
                    return refuse(
                        "the FixedSparsePosterior variational kernel".into(),
                        "it need not be a covariance, and has no Cholesky factor then: take wasserstein-symmetric-roots, which clips and counts, a projected regulariser, or another kernel",
                    );
                }
            }
            Self::Wasserstein(FidelityForm::SymmetricRoots)
            | Self::WassersteinOfTwo
            | Self::PartialWasserstein
            | Self::SquaredDifference => {}
        }
        Ok(())
    }

    /// Whether it looks at covariances of rows together.
    pub(super) fn is_of_matrices(&self) -> bool {
        matches!(self, Self::Wasserstein(_) | Self::WassersteinOfTwo | Self::SquaredDifference)
    }

    /// At a batch, given means (b x C) and kernels there, and those of the rows together.
    pub(super) fn evaluate(
        &self,
        model: &GeneralisedGp,
        batch: &Batch<'_>,
        (means, kernels): (&Mat<f64>, &[Evaluated<'_>]),
        together: &Together<'_>,
    ) -> Result<Regularisation, GpError> {
        match self {
            Self::Projected(_) | Self::PartialWasserstein => {
                self.of_marginals(model, batch, (means, kernels))
            }
            Self::Inducing(divergence) => inducing(*divergence, model),
            Self::Wasserstein(_) | Self::WassersteinOfTwo | Self::SquaredDifference => {
                self.together(model, means, together)
            }
            Self::Multinomial { power } => multinomial(*power, model, batch, means, kernels),
        }
    }

    /// Regularisers of matrices, at some rows of a batch with these means (b x C).
    fn together(
        &self,
        model: &GeneralisedGp,
        means: &Mat<f64>,
        together: &Together<'_>,
    ) -> Result<Regularisation, GpError> {
        let (b, functions) = means.shape();
        let rows = together.x.nrows();
        if matches!(self, Self::WassersteinOfTwo) && rows < 2 {
            return Ok(Regularisation { left_out: true, ..Regularisation::default() });
        }
        let place = |i: usize| together.rows.map_or(i, |rows| rows[i]);
        let share = 1.0 / functions as f64;
        let mut out = Regularisation { means: Some(Mat::zeros(b, functions)), ..Regularisation::default() };
        let references: Vec<Mat<f64>> = model
            .references()
            .iter()
            .map(|reference| reference.covariance(together.x))
            .collect::<Result<_, _>>()?;
        // What does not depend on a function is there once for each reference.
        let residual = |(place, reference): (usize, &ReferenceProcess)| {
            let is_needed = |c: usize| model.place(c) == place && together.kernels[c].has_residual();
            (0..functions).any(is_needed).then(|| residual_covariance(reference, together.x))
        };
        let residuals: Vec<Option<Mat<f64>>> = model.references().iter().enumerate().map(residual).collect();
        for c in 0..functions {
            let residual = residuals[model.place(c)].as_ref().filter(|_| together.kernels[c].has_residual());
            let covariance = together.kernels[c].covariance_beside(residual);
            let marginals = &together.known.marginals[model.place(c)].means;
            let prior_means: Vec<f64> = (0..rows).map(|i| marginals[(i, model.column(c))]).collect();
            let own: Vec<f64> = (0..rows).map(|i| means[(place(i), c)]).collect();
            let prior = JointNormal { means: &prior_means, covariance: references[model.place(c)].as_ref() };
            let posterior = JointNormal { means: &own, covariance: covariance.as_ref() };
            let found = self.of_matrices(prior, posterior)?;
            out.value += share * found.value;
            if let Some(of_means) = &mut out.means {
                (0..found.means.len()).for_each(|i| of_means[(place(i), c)] = share * found.means[i]);
            }
            out.covariances.push(found.covariance * faer::Scale(share));
            out.clipped += found.clipped;
            out.unresolved += found.unresolved;
            out.relative_jitter = out.relative_jitter.max(found.relative_jitter);
        }
        Ok(out)
    }
}

/// A distance of matrices with its slopes, those in the diagonal within the matrix.
struct OfMatrices {
    value: f64,
    means: Vec<f64>,
    covariance: Mat<f64>,
    clipped: usize,
    unresolved: usize,
    relative_jitter: f64,
}

impl Regulariser {
    fn of_matrices(&self, prior: JointNormal<'_>, posterior: JointNormal<'_>) -> Result<OfMatrices, GpError> {
        let rows = posterior.means.len();
        if let Self::Wasserstein(form) = self {
            let options = SameBatch { form: *form, ..SameBatch::default() };
            let found = divergence::same_batch(prior, posterior, options)?;
            let BatchDistance { value, means, variances, mut covariance, clipped, unresolved, .. } = found;
            let relative = |jitter: f64, of: MatRef<'_, f64>| match jitter {
                0.0 => 0.0,
                jitter => jitter * rows as f64 / (0..rows).map(|i| of[(i, i)]).sum::<f64>(),
            };
            let relative_jitter = relative(found.prior_jitter, prior.covariance)
                .max(relative(found.posterior_jitter, posterior.covariance));
            variances.iter().enumerate().for_each(|(i, v)| covariance[(i, i)] += v);
            return Ok(OfMatrices { value, means, covariance, clipped, unresolved, relative_jitter });
        }
        if matches!(self, Self::SquaredDifference) {
            let SquaredDifference { value, means, covariance } =
                divergence::squared_difference(prior, posterior)?;
            let (clipped, unresolved, relative_jitter) = (0, 0, 0.0);
            return Ok(OfMatrices { value, means, covariance, clipped, unresolved, relative_jitter });
        }
        // Rows of the first batch, then those of the second.
        let first = rows.div_ceil(2);
        let diagonal = |matrix: MatRef<'_, f64>| (0..first).map(|i| matrix[(i, i)]).collect::<Vec<_>>();
        let (k, r) = (diagonal(prior.covariance), diagonal(posterior.covariance));
        let BatchDistance {
            value, means, variances, covariance: between, clipped, complex, unresolved, ..
        } = divergence::two_batches(
            Normals { means: &prior.means[..first], variances: &k },
            Normals { means: &posterior.means[..first], variances: &r },
            prior.covariance.submatrix(0, first, first, rows - first),
            posterior.covariance.submatrix(first, 0, rows - first, first),
        )?;
        let mut covariance = Mat::zeros(rows, rows);
        variances.iter().enumerate().for_each(|(i, v)| covariance[(i, i)] = *v);
        for s in first..rows {
            for b in 0..first {
                // The block and its mirror image are one argument.
                let half = 0.5 * between[(s - first, b)];
                (covariance[(s, b)], covariance[(b, s)]) = (half, half);
            }
        }
        let clipped = clipped + complex;
        Ok(OfMatrices { value, means, covariance, clipped, unresolved, relative_jitter: 0.0 })
    }

    /// Regularisers of both marginals at each row.
    fn of_marginals(
        &self,
        model: &GeneralisedGp,
        batch: &Batch<'_>,
        (means, kernels): (&Mat<f64>, &[Evaluated<'_>]),
    ) -> Result<Regularisation, GpError> {
        let (b, functions) = means.shape();
        let share = 1.0 / functions as f64;
        let (mut of_means, mut of_variances) = (Mat::zeros(b, functions), Mat::zeros(b, functions));
        let mut value = 0.0;
        for c in 0..functions {
            let reference = &batch.known.marginals[model.place(c)];
            let prior = Normals {
                means: reference.means.col_as_slice(model.column(c)),
                variances: &reference.variances,
            };
            let posterior = Normals { means: means.col_as_slice(c), variances: &kernels[c].variances };
            let slopes = (of_means.col_as_slice_mut(c), of_variances.col_as_slice_mut(c));
            value += share
                * match self {
                    Self::Projected(divergence) => {
                        divergence.mean_over(prior, posterior, slopes.0, slopes.1)?
                    }
                    _ => divergence::partial(prior, posterior, slopes.0, slopes.1)?,
                };
        }
        if functions > 1 {
            of_means *= faer::Scale(share);
            of_variances *= faer::Scale(share);
        }
        Ok(Regularisation {
            value,
            means: Some(of_means),
            variances: Some(of_variances),
            ..Regularisation::default()
        })
    }
}

/// Both marginals at row i of function c.
fn normals(
    model: &GeneralisedGp,
    batch: &Batch<'_>,
    means: &Mat<f64>,
    kernels: &[Evaluated<'_>],
    (i, c): (usize, usize),
) -> (Normal, Normal) {
    let reference = &batch.known.marginals[model.place(c)];
    let prior = Normal { mean: reference.means[(i, model.column(c))], variance: reference.variances[i] };
    (prior, Normal { mean: means[(i, c)], variance: kernels[c].variances[i] })
}

/// Of inducing values, whitened: there the prior is `N(0, I)`.
pub(super) fn inducing(divergence: Divergence, model: &GeneralisedGp) -> Result<Regularisation, GpError> {
    let mut out = Regularisation::default();
    let mut slopes = WeightSlopes { mean: Vec::new(), roots: Vec::new() };
    for c in 0..model.functions() {
        let reference = model.reference(c);
        let m = reference.rank();
        let factor = lower(reference.whitening().cholesky.factor());
        let whiten = |matrix: Mat<f64>| match model.coordinates() {
            Coordinates::Whitened => matrix,
            // Weights w of k(Z, x) are Lᵀ w of L⁻¹ k(Z, x).
            Coordinates::Kernel => factor.transpose() * matrix,
        };
        let back = |matrix: Mat<f64>| match model.coordinates() {
            Coordinates::Whitened => matrix,
            Coordinates::Kernel => &factor * matrix,
        };
        let mean = match model.mean() {
            VariationalMean::Inducing(weights) => weights.col(c).as_mat().to_owned(),
            _ => Mat::zeros(m, 1),
        };
        let root = model.kernels()[c].weight_root().unwrap_or_else(|| Mat::zeros(m, m));
        let (mean, root) = (whiten(mean), Root::new(whiten(root)));
        let own = divergence.of_whitened(&vec![0.0; m], mean.col_as_slice(0), root.lower.as_ref())?;
        out.value += own.value;
        if matches!(model.mean(), VariationalMean::Inducing(_)) {
            let of_mean = back(Mat::from_fn(m, 1, |i, _| own.mean[i]));
            slopes.mean.push(of_mean.col_as_slice(0).to_vec());
        }
        slopes.roots.push(back(root.pull_back(own.root)));
    }
    out.weights = Some(slopes);
    Ok(out)
}

/// A root of a covariance, and the lower-triangular one of the same: `G = V Qᵀ`.
struct Root {
    /// V; its diagonal may have either sign.
    lower: Mat<f64>,
    /// Q, where G is not triangular itself.
    turn: Option<Mat<f64>>,
}

impl Root {
    /// Cost `4m³/3` flops where G is not triangular.
    fn new(root: Mat<f64>) -> Self {
        let m = root.nrows();
        if (0..m).all(|j| (0..j).all(|i| root[(i, j)] == 0.0)) {
            return Self { lower: root, turn: None };
        }
        let (turn, upper) = qr(root.transpose());
        Self { lower: upper.transpose().to_owned(), turn: Some(turn) }
    }

    /// Slopes in G from those in the lower triangle of V: through the covariance, as a Cholesky factor goes back (`½ V⁻ᵀ (P + Pᵀ) V⁻¹`, P the lower triangle of `Vᵀ V̄` with half its diagonal).
    fn pull_back(&self, slopes: Mat<f64>) -> Mat<f64> {
        let Some(turn) = &self.turn else { return slopes };
        let m = slopes.nrows();
        let inner = self.lower.transpose() * &slopes;
        let mut both = Mat::from_fn(m, m, |i, j| if i >= j { inner[(i, j)] } else { inner[(j, i)] });
        solve_upper(self.lower.transpose(), both.as_mut());
        both * turn.transpose()
    }
}

fn lower(factor: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(factor.nrows(), factor.nrows(), |i, j| if i >= j { factor[(i, j)] } else { 0.0 })
}

/// Of class probabilities, whose slopes are those of the likelihood's energies: `p_j = exp(-E_j)`.
fn multinomial(
    power: f64,
    model: &GeneralisedGp,
    batch: &Batch<'_>,
    means: &Mat<f64>,
    kernels: &[Evaluated<'_>],
) -> Result<Regularisation, GpError> {
    let (b, functions) = means.shape();
    let likelihood = model.likelihood();
    let mut unused = vec![0.0; likelihood.values().len()];
    let (mut p, mut q) = (Vec::with_capacity(b * functions), Vec::with_capacity(b * functions));
    let mut behind = Vec::with_capacity(b * functions);
    for i in 0..b {
        let each: Vec<(Normal, Normal)> =
            (0..functions).map(|c| normals(model, batch, means, kernels, (i, c))).collect();
        let moments = |of: &dyn Fn(&(Normal, Normal)) -> Normal| -> (Vec<f64>, Vec<f64>) {
            each.iter().map(|pair| (of(pair).mean, of(pair).variance)).unzip()
        };
        let (prior, posterior) = (moments(&|pair| pair.0), moments(&|pair| pair.1));
        for j in 0..functions {
            let mut energy = |(m, v): &(Vec<f64>, Vec<f64>)| {
                let (mut in_means, mut in_variances) = (vec![0.0; functions], vec![0.0; functions]);
                let slopes =
                    Slopes { means: &mut in_means, variances: &mut in_variances, parameters: &mut unused };
                let energy = likelihood.alpha_energy(1.0, &[j as f64], m, v, slopes);
                ((-energy).exp(), in_means, in_variances)
            };
            p.push(energy(&prior).0);
            let own = energy(&posterior);
            q.push(own.0);
            behind.push(own);
        }
    }
    let mut slopes = vec![0.0; q.len()];
    let value = divergence::multinomial(power, functions, &p, &q, &mut slopes)?;
    let (mut of_means, mut of_variances) = (Mat::zeros(b, functions), Mat::zeros(b, functions));
    for (place, (slope, (q, in_means, in_variances))) in slopes.iter().zip(&behind).enumerate() {
        let i = place / functions;
        for c in 0..functions {
            of_means[(i, c)] -= slope * q * in_means[c];
            of_variances[(i, c)] -= slope * q * in_variances[c];
        }
    }
    Ok(Regularisation {
        value,
        means: Some(of_means),
        variances: Some(of_variances),
        ..Regularisation::default()
    })
}

/// Text that says no regulariser.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnknownRegulariser {
    /// A name that none has.
    #[error(
        "`{0}` is no regulariser: take kl, kl-pq, symmetric-kullback-leibler, renyi, hellinger or bhattacharyya (of inducing values); the same after `projected-`, and projected-wasserstein or projected-squared-difference (of marginals); wasserstein, wasserstein-symmetric-roots, wasserstein-two-batches, wasserstein-partial, squared-difference or multinomial. Orders stand behind `=`, as in projected-renyi=0.5 or multinomial=2"
    )]
    Name(String),
    /// An order at which it does not exist.
    #[error(
        "`{text}`: the order of the Rényi divergence is {order}: give a positive number that is not 1, such as {name}=0.5; at 1 it is {}", .name.replace("renyi", "kl")
    )]
    Order {
        /// The whole text.
        text: String,
        /// Its name.
        name: String,
        /// Its order.
        order: f64,
    },
}

/// The usual names of both Kullback-Leibler divergences, of which the second is the one that the report prints.
const KL: (&str, &str) = ("kl", "kl-pq");

fn write_divergence(divergence: &Divergence, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match divergence {
        Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior } => f.write_str(KL.0),
        Divergence::KullbackLeibler { direction: Direction::PriorToPosterior } => f.write_str(KL.1),
        other => write!(f, "{other}"),
    }
}

/// A divergence whose name stands at the end of `text`.
fn read_divergence(name: &str, text: &str) -> Result<Divergence, UnknownRegulariser> {
    Ok(match name {
        _ if name == KL.0 => Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior },
        _ if name == KL.1 => Divergence::KullbackLeibler { direction: Direction::PriorToPosterior },
        _ => name.parse().map_err(|error| match error {
            DivergenceError::Order { value: order, .. } => {
                let name = text.split('=').next().unwrap_or(text).trim().into();
                UnknownRegulariser::Order { text: text.into(), name, order }
            }
            _ => UnknownRegulariser::Name(text.into()),
        })?,
    })
}

impl fmt::Display for Regulariser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Projected(divergence) => {
                f.write_str("projected-")?;
                write_divergence(divergence, f)
            }
            Self::Inducing(divergence) => write_divergence(divergence, f),
            Self::Wasserstein(FidelityForm::NuclearNorm) => f.write_str("wasserstein"),
            Self::Wasserstein(FidelityForm::SymmetricRoots) => f.write_str("wasserstein-symmetric-roots"),
            Self::WassersteinOfTwo => f.write_str("wasserstein-two-batches"),
            Self::PartialWasserstein => f.write_str("wasserstein-partial"),
            Self::SquaredDifference => f.write_str("squared-difference"),
            Self::Multinomial { power } => write!(f, "multinomial={power}"),
        }
    }
}

impl FromStr for Regulariser {
    type Err = UnknownRegulariser;

    fn from_str(text: &str) -> Result<Self, UnknownRegulariser> {
        let unknown = || UnknownRegulariser::Name(text.into());
        let text = text.trim();
        if let Some(name) = text.strip_prefix("projected-") {
            return read_divergence(name, text).map(Self::Projected);
        }
        Ok(match text {
            "wasserstein" => Self::Wasserstein(FidelityForm::NuclearNorm),
            "wasserstein-symmetric-roots" => Self::Wasserstein(FidelityForm::SymmetricRoots),
            "wasserstein-two-batches" => Self::WassersteinOfTwo,
            "wasserstein-partial" => Self::PartialWasserstein,
            "squared-difference" => Self::SquaredDifference,
            "multinomial" => Self::Multinomial { power: 2.0 },
            _ => match text.strip_prefix("multinomial=") {
                Some(power) => Self::Multinomial { power: power.parse().map_err(|_| unknown())? },
                None => Self::Inducing(read_divergence(text, text)?),
            },
        })
    }
}

impl TryFrom<String> for Regulariser {
    type Error = UnknownRegulariser;

    fn try_from(text: String) -> Result<Self, UnknownRegulariser> {
        text.parse()
    }
}

impl From<Regulariser> for String {
    fn from(regulariser: Regulariser) -> Self {
        regulariser.to_string()
    }
}
