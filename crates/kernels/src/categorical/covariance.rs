//! The covariance of categories: its parameters, its matrix, the way back from the matrix to the parameters.

use faer::Mat;

/// How categories are correlated. A category that training did not see comes behind the C known ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// All pairs alike: `exp(-1/ℓ)`.
    Exchangeable {
        /// ℓ.
        lengthscale: f64,
    },
    /// `(A A' + diag κ) / t`, with t the mean of the diagonal of `A A' + diag κ`.
    LowRank {
        /// A, C x rank, row after row.
        loadings: Vec<f64>,
        /// κ (C).
        specific: Vec<f64>,
    },
}

/// The matrix as `L L' + diag s`: what features of categories are made of. All with C + 1 rows.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryFactors {
    /// Columns of L.
    pub shared: Vec<Vec<f64>>,
    /// s.
    pub own: Vec<f64>,
}

impl Form {
    /// Loadings that begin alike for all categories, with a wave of their own for each further column: without it a search would see equal columns and
    /// could not tell them apart.
    pub(super) fn low_rank(categories: usize, rank: usize) -> Self {
        /// Loading on the first column, on the others, and what belongs to each category alone.
        const FIRST: f64 = 0.6;
        const FURTHER: f64 = 0.3;
        const SPECIFIC: f64 = 0.6;
        let loading = |i: usize, k: usize| match k {
            0 => FIRST,
            _ => FURTHER * (std::f64::consts::PI * k as f64 * (i as f64 + 0.5) / categories as f64).cos(),
        };
        let loadings = (0..categories).flat_map(|i| (0..rank).map(move |k| loading(i, k))).collect();
        Self::LowRank { loadings, specific: vec![SPECIFIC; categories] }
    }

    pub(super) fn values(&self) -> Vec<f64> {
        match self {
            Self::Exchangeable { lengthscale } => vec![*lengthscale],
            Self::LowRank { loadings, specific } => [loadings.as_slice(), specific].concat(),
        }
    }

    pub(super) fn set_values(&mut self, values: &[f64]) {
        match self {
            Self::Exchangeable { lengthscale } => {
                assert_eq!(values.len(), 1, "one lengthscale");
                *lengthscale = values[0];
            }
            Self::LowRank { loadings, specific } => {
                let (first, second) = values.split_at(loadings.len());
                loadings.copy_from_slice(first);
                specific.copy_from_slice(second);
            }
        }
    }

    /// `L L' + diag s` for `categories` known ones and the unknown one.
    pub(super) fn factors(&self, categories: usize) -> CategoryFactors {
        match self {
            Self::Exchangeable { lengthscale } => {
                let correlation = (-1.0 / lengthscale).exp();
                CategoryFactors {
                    shared: vec![vec![correlation.sqrt(); categories + 1]],
                    // 1 - exp(-1/ℓ) with all its digits where ℓ is large.
                    own: vec![-(-1.0 / lengthscale).exp_m1(); categories + 1],
                }
            }
            Self::LowRank { loadings, specific } => {
                let rank = loadings.len() / categories;
                let total = total(loadings, specific);
                let root = total.sqrt();
                let column = |k: usize| {
                    let mut out: Vec<f64> = (0..categories).map(|i| loadings[i * rank + k] / root).collect();
                    out.push(out.iter().sum::<f64>() / categories as f64);
                    out
                };
                let shared: Vec<Vec<f64>> = (0..rank).map(column).collect();
                let mut own: Vec<f64> = specific.iter().map(|s| s / total).collect();
                // The mean of squares is no less than the square of the mean, so what is left is positive.
                own.push(1.0 - shared.iter().map(|c| c[categories] * c[categories]).sum::<f64>());
                CategoryFactors { shared, own }
            }
        }
    }

    /// Adds to `parameters` what an `adjoint` of [`CategoryFactors::matrix`] contributes.
    pub(super) fn pull(&self, adjoint: &Mat<f64>, parameters: &mut [f64]) {
        let unknown = adjoint.nrows() - 1;
        match self {
            Self::Exchangeable { lengthscale } => {
                let mut sum = 0.0;
                for j in 0..=unknown {
                    for i in (0..=unknown).filter(|i| *i != j) {
                        sum += adjoint[(i, j)];
                    }
                }
                parameters[0] += sum * (-1.0 / lengthscale).exp() / (lengthscale * lengthscale);
            }
            Self::LowRank { loadings, specific } => {
                let (categories, rank) = (specific.len(), loadings.len() / specific.len());
                let total = total(loadings, specific);
                let matrix = self.factors(categories).matrix();
                // The unknown category's own variance is 1 whatever the parameters.
                let counts = |i: usize, j: usize| i != unknown || j != unknown;
                let mut toward_total = 0.0;
                for j in 0..=unknown {
                    for i in (0..=unknown).filter(|i| counts(*i, j)) {
                        toward_total -= adjoint[(i, j)] * matrix[(i, j)] / total;
                    }
                }
                let both = |i: usize, j: usize| (adjoint[(i, j)] + adjoint[(j, i)]) / total;
                let c = categories as f64;
                let (of_loadings, of_specific) = parameters.split_at_mut(loadings.len());
                for k in 0..rank {
                    let a = |i: usize| loadings[i * rank + k];
                    let mean = (0..categories).map(a).sum::<f64>() / c;
                    let toward_mean: f64 = (0..categories).map(|i| both(i, unknown) * a(i)).sum();
                    for i in 0..categories {
                        let toward: f64 = (0..categories).map(|j| both(i, j) * a(j)).sum();
                        of_loadings[i * rank + k] += toward
                            + both(i, unknown) * mean
                            + toward_mean / c
                            + 2.0 * toward_total * a(i) / c;
                    }
                }
                for (i, own) in of_specific.iter_mut().enumerate() {
                    *own += adjoint[(i, i)] / total + toward_total / c;
                }
            }
        }
    }
}

impl CategoryFactors {
    /// The covariance, (C + 1) x (C + 1).
    pub fn matrix(&self) -> Mat<f64> {
        let count = self.own.len();
        Mat::from_fn(count, count, |i, j| {
            let shared: f64 = self.shared.iter().map(|c| c[i] * c[j]).sum();
            shared + if i == j { self.own[i] } else { 0.0 }
        })
    }
}

/// The mean of the diagonal of `A A' + diag κ`.
fn total(loadings: &[f64], specific: &[f64]) -> f64 {
    (loadings.iter().map(|a| a * a).sum::<f64>() + specific.iter().sum::<f64>()) / specific.len() as f64
}
