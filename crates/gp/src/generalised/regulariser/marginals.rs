//! Regularisers of both marginals at each row: divergences of them, and distances of the class probabilities that they lead to.

use super::{Regularisation, Regulariser};
use crate::GpError;
use crate::generalised::divergence::{self, Normal, Normals};
use crate::generalised::model::GeneralisedGp;
use crate::generalised::objective::Batch;
use crate::generalised::variational::Evaluated;
use faer::Mat;
use posterior_likelihoods::Slopes;

impl Regulariser {
    /// Regularisers of both marginals at each row.
    pub(super) fn of_marginals(
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

/// Of class probabilities, whose slopes are those of the likelihood's energies: `p_j = exp(-E_j)`.
pub(super) fn multinomial(
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
