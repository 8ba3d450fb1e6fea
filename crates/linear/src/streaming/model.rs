//! Sums over rows, and the posterior that they make.

use crate::LinearError;
use crate::check::{finite_matrix, same};
use crate::structure::StructureError;
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;

/// What is kept of the rows so far: `8 P² (K + 2)` bytes for P features and K functions.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamingModel {
    /// Precision of all priors, P x P.
    prior: Mat<f64>,
    /// Sum of the rows' least precisions, P x P.
    shared: Mat<f64>,
    /// What each function has beyond it, P x P.
    own: Vec<Mat<f64>>,
    /// `P m_k`, P x K.
    prior_shifts: Mat<f64>,
    /// `r_k`, P x K.
    shifts: Mat<f64>,
    rows: u64,
}

/// The posterior of the weights after some rows.
#[derive(Clone, Debug)]
pub struct StreamPosterior {
    factors: Vec<Cholesky>,
    means: Mat<f64>,
}

/// Latent values of some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamLatents {
    /// Means, rows x K.
    pub means: Mat<f64>,
    /// Variances, rows x K, without noise.
    pub variances: Mat<f64>,
}

impl StreamingModel {
    /// Priors `N(m_k, P^-1)` from their precision `P` (P x P, positive definite) and means (P x K).
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::Empty`], [`LinearError::NotFinite`].
    pub fn new(precision: MatRef<'_, f64>, means: MatRef<'_, f64>) -> Result<Self, LinearError> {
        let (p, k) = means.shape();
        same("rows of the prior precision", p, precision.nrows())?;
        same("columns of the prior precision", p, precision.ncols())?;
        if p == 0 || k == 0 {
            return Err(LinearError::Empty { what: if p == 0 { "features" } else { "functions" } });
        }
        finite_matrix("entry of the prior precision", precision)?;
        finite_matrix("entry of the prior mean", means)?;
        let prior_shifts = product(precision, means);
        Ok(Self {
            prior: precision.to_owned(),
            shared: Mat::zeros(p, p),
            own: vec![Mat::zeros(p, p); k],
            shifts: prior_shifts.clone(),
            prior_shifts,
            rows: 0,
        })
    }

    /// The same with observations that are known by their sums only, as another posterior leaves them behind: for each function `sum_n b_nk phi_n phi_n^T` (P x P), and `sum_n b_nk t_nk phi_n` (P x K). They may come
    /// from differences and be a rounding away from positive semi-definite.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn observed(mut self, precisions: &[Mat<f64>], shifts: MatRef<'_, f64>) -> Result<Self, LinearError> {
        same("functions", self.functions(), precisions.len())?;
        same("rows of the shifts", self.features(), shifts.nrows())?;
        same("functions of the shifts", self.functions(), shifts.ncols())?;
        finite_matrix("shift", shifts)?;
        for (own, more) in self.own.iter_mut().zip(precisions) {
            same("rows of a precision", own.nrows(), more.nrows())?;
            same("columns of a precision", own.nrows(), more.ncols())?;
            finite_matrix("entry of a precision", more.as_ref())?;
            *own += more;
        }
        self.shifts += shifts;
        Ok(self)
    }

    /// The same functions with features more that no row so far has seen: their prior is `N(0, I)`, apart from that of the others. Inducing points that are added to others do this to whitened features, and nothing is lost by it
    /// (spec `likelihood_approximations`, section 6.6, where the new points contain the old).
    pub fn widened(&self, more: usize) -> Self {
        let p = self.features();
        let wide = |of: &Mat<f64>, fresh: f64| {
            Mat::from_fn(p + more, p + more, |i, j| match (i < p && j < p, i == j) {
                (true, _) => of[(i, j)],
                (false, true) => fresh,
                (false, false) => 0.0,
            })
        };
        let longer = |of: &Mat<f64>| {
            Mat::from_fn(p + more, self.functions(), |i, j| if i < p { of[(i, j)] } else { 0.0 })
        };
        Self {
            prior: wide(&self.prior, 1.0),
            shared: wide(&self.shared, 0.0),
            own: self.own.iter().map(|own| wide(own, 0.0)).collect(),
            prior_shifts: longer(&self.prior_shifts),
            shifts: longer(&self.shifts),
            rows: self.rows,
        }
    }

    /// The posterior precision `L_k` of one function's weights, P x P.
    pub fn precision(&self, function: usize) -> Mat<f64> {
        &self.prior + &self.shared + &self.own[function]
    }

    /// What the precisions times the posterior means are, `r_k`, P x K.
    pub fn shifts(&self) -> MatRef<'_, f64> {
        self.shifts.as_ref()
    }

    /// The sums as they are kept: of the rows' least precisions, and of what each function has beyond; P x P each.
    pub fn sums(&self) -> (MatRef<'_, f64>, &[Mat<f64>]) {
        (self.shared.as_ref(), &self.own)
    }

    /// Multiplies the precisions of all observations so far: under Gaussian noise whose variance turns out another, the rows that were learned are those that would have been learned under it.
    ///
    /// # Errors
    /// [`LinearError::Option`] unless the factor is positive and finite.
    pub fn reweigh(&mut self, factor: f64) -> Result<(), LinearError> {
        if !(factor > 0.0 && factor.is_finite()) {
            let expected = "a positive, finite number";
            return Err(LinearError::Option { name: "factor", value: factor, expected });
        }
        self.shared *= factor;
        self.own.iter_mut().for_each(|own| *own *= factor);
        self.shifts = &self.prior_shifts + factor * (&self.shifts - &self.prior_shifts);
        Ok(())
    }

    /// Goes on from the prior (precision and means) and sums that were kept ([`Self::sums`], [`Self::shifts`], [`Self::rows`]), to the same bits.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn resumed(
        (prior, means): (MatRef<'_, f64>, MatRef<'_, f64>),
        (shared, own): (Mat<f64>, Vec<Mat<f64>>),
        shifts: Mat<f64>,
        rows: u64,
    ) -> Result<Self, LinearError> {
        let mut out = Self::new(prior, means)?.observed(&own, shifts.as_ref())?;
        same("rows of the shared sum", out.features(), shared.nrows())?;
        same("columns of the shared sum", out.features(), shared.ncols())?;
        finite_matrix("entry of the shared sum", shared.as_ref())?;
        (out.shared, out.own, out.shifts, out.rows) = (shared, own, shifts, rows);
        Ok(out)
    }

    /// Number of features P.
    pub fn features(&self) -> usize {
        self.prior.nrows()
    }

    /// Number of functions K.
    pub fn functions(&self) -> usize {
        self.own.len()
    }

    /// Rows learned so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Learns B rows from their features (B x P), targets and precisions of the observations (B x K each); a precision of 0 is no observation. Cost: `2 B P²` flops for what functions share, and as much for each row
    /// and function whose precision is larger than the row's least. Nothing is learned where something is wrong.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`]; [`LinearError::Option`] for a negative precision.
    pub fn learn(
        &mut self,
        features: MatRef<'_, f64>,
        targets: MatRef<'_, f64>,
        precisions: MatRef<'_, f64>,
    ) -> Result<(), LinearError> {
        let (b, k) = (features.nrows(), self.functions());
        same("features", self.features(), features.ncols())?;
        for (what, matrix) in [("targets", targets), ("precisions", precisions)] {
            same(what, b, matrix.nrows())?;
            same(what, k, matrix.ncols())?;
        }
        finite_matrix("feature", features)?;
        finite_matrix("target", targets)?;
        finite_matrix("precision", precisions)?;
        if let Some(value) = (0..b * k).map(|i| precisions[(i / k, i % k)]).find(|v| *v < 0.0) {
            let expected = "precisions are one over a variance, or 0 for no observation";
            return Err(LinearError::Option { name: "precision", value, expected });
        }
        let least: Vec<f64> =
            (0..b).map(|i| (0..k).map(|c| precisions[(i, c)]).fold(f64::INFINITY, f64::min)).collect();
        let all: Vec<usize> = (0..b).collect();
        self.shared += weighted(features, &all, &least);
        for c in 0..k {
            let more: Vec<usize> = all.iter().copied().filter(|&i| precisions[(i, c)] > least[i]).collect();
            if !more.is_empty() {
                let beyond: Vec<f64> = more.iter().map(|&i| precisions[(i, c)] - least[i]).collect();
                self.own[c] += weighted(features, &more, &beyond);
            }
        }
        let pulls = Mat::from_fn(b, k, |i, c| precisions[(i, c)] * targets[(i, c)]);
        self.shifts += product(features.transpose(), pulls.as_ref());
        self.rows += b as u64;
        Ok(())
    }

    /// The posterior after the rows so far. Cost: `K P³ / 3` flops and `8 K P²` bytes.
    ///
    /// # Errors
    /// [`LinearError::Structure`] where a precision is not positive definite, which only a prior that is not can cause.
    pub fn condition(&self) -> Result<StreamPosterior, LinearError> {
        let mut means = self.shifts.clone();
        let mut factors = Vec::with_capacity(self.functions());
        for c in 0..self.functions() {
            let precision = self.precision(c);
            let factor = Cholesky::of(precision.as_ref(), JitterPolicy::NONE)
                .map_err(|source| StructureError::Factor { block: format!("function {c}"), source })?;
            factor.solve_in_place(means.as_mut().subcols_mut(c, 1));
            factors.push(factor);
        }
        Ok(StreamPosterior { factors, means })
    }
}

impl StreamPosterior {
    /// Means of the weights, P x K.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.means.as_ref()
    }

    /// Latent values of B rows by their features (B x P). Cost: `B K P²` flops.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn latents(&self, features: MatRef<'_, f64>) -> Result<StreamLatents, LinearError> {
        same("features", self.means.nrows(), features.ncols())?;
        finite_matrix("feature", features)?;
        let means = product(features, self.means.as_ref());
        let mut variances = Mat::zeros(features.nrows(), self.factors.len());
        for (c, factor) in self.factors.iter().enumerate() {
            let mut half = features.transpose().to_owned();
            factor.solve_factor_in_place(half.as_mut());
            for i in 0..features.nrows() {
                variances[(i, c)] = half.col(i).squared_norm_l2();
            }
        }
        Ok(StreamLatents { means, variances })
    }
}

/// `sum_i b_i phi_i phi_i^T` over some rows.
fn weighted(features: MatRef<'_, f64>, rows: &[usize], precisions: &[f64]) -> Mat<f64> {
    let scaled =
        Mat::from_fn(rows.len(), features.ncols(), |i, j| precisions[i].sqrt() * features[(rows[i], j)]);
    product(scaled.transpose(), scaled.as_ref())
}
