//! Further data for a posterior that is made of sums: the old examples are not needed.

use super::choices::{Choices, LARGEST};
use super::conjugate::{inner, mean_displacement, residual_slope, square, without_prior};
use super::curvature::Curvature;
use super::fitting::Solved;
use super::options::{AT_REST, FitOptions, NoiseModel, Tune};
use super::result::{Chosen, Laplace, Origin};
use super::solve::{KEPT_FREE, almost_exactly, effective_dimensions, ended_at, largest_evidence};
use super::summary::{FitSummary, LearnedReport, ModeSummary};
use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::mode::Mode;
use crate::plan::Plan;
use crate::predict::between;
use crate::prior::PriorKind;
use crate::problem::{Data, Size};
use crate::run::{Run, Stage};
use faer::MatRef;
use posterior_linalg::compiled_here;
use posterior_linalg::dense::product;
use posterior_linear::Prior;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::{DataFit, EvidenceOptions, MOST_FITTED, PrimalModel};
use posterior_linear::structure::{Block, BlockMatrix, Structure};
use posterior_networks::train::Examples;
use posterior_networks::{Network, PerNetworkPrecision, Precision};
use posterior_notes::fixes::{CURVATURE_FULL, MODE_TRAINED, TUNE_EVIDENCE, TUNE_MACKAY, TUNE_NONE};
use posterior_tangent::{Tangent, doubles};
use std::f64::consts::PI;
use std::time::Instant;

impl<T: Precision> Laplace<T> {
    /// The same posterior with further examples added to its sums, and hyperparameters chosen again by the evidence where they were chosen so before.
    /// The old examples are not needed.
    ///
    /// # Errors
    /// For curvatures that are not sums, an optimum of the linearised model that needs all data (in closed form it does not), tuning on held-out data, and as for a fit.
    pub fn extended(
        &self,
        network: &Network<T>,
        examples: &dyn Examples<T>,
        options: &FitOptions,
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'r: 'a] extended, (
            laplace: &'a Laplace<T> = self,
            data: Data<'a, T> = Data::new(network, examples, &self.base_likelihood),
            options: &'a FitOptions = options,
            run: &'a mut Run<'r> = run,
        ) -> Result<Laplace<T>, LaplaceError>)
    }

    /// A posterior that was found by a search of its own, with more of what it is made of, as the options ask: further samples of [`Approximation::Sampled`](super::Approximation::Sampled). `examples` are those of the fit.
    ///
    /// # Errors
    /// For posteriors that nothing can be added to, and as for a fit.
    pub fn improved(
        &self,
        network: &Network<T>,
        examples: &dyn Examples<T>,
        options: &FitOptions,
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        if self.curvature.is_some() {
            return Err(LaplaceError::Request("this posterior is continued with further data".into()));
        }
        let (clock, data) = (Instant::now(), Data::new(network, examples, &self.base_likelihood));
        let (posterior, own) = self.posterior.improved(&data, options, run)?;
        let mut summary = FitSummary { notes: Vec::new(), unseen: None, ..self.summary.clone() };
        summary.plan = Plan::new(&data.size(&self.selection), options)?;
        if let Some(LearnedReport::Sampled { header, .. }) = &mut summary.learned {
            *header = own;
        }
        summary.seconds = [0.0, 0.0, 0.0, clock.elapsed().as_secs_f64()];
        let chosen = Chosen {
            origin: Origin::Search(posterior),
            selection: self.selection.clone(),
            likelihood: self.base_likelihood.clone(),
            noise_variance: self.noise_variance,
            prior: self.prior.clone(),
            mode: self.mode.clone(),
            integration: options.integration,
            summary,
        };
        Self::of(network, chosen)
    }

    /// The curvature, where the linearised model's optimum follows from sums: dense, under Gaussian noise, with its displacement counted.
    fn conjugate_curvature(&self) -> Option<MatRef<'_, f64>> {
        let summary = self.summary.mode.as_ref()?;
        if summary.displacement.is_none() || !summary.at_hyperparameters {
            return None;
        }
        match self.structure()?.blocks() {
            [Block { matrix: BlockMatrix::Dense(m), range, .. }] if range.len() <= LARGEST => {
                Some(m.matrix())
            }
            _ => None,
        }
    }

    /// The evidence's hyperparameters for the old weights and all data.
    fn further_evidence(
        &self,
        structure: &Structure,
        fit: &FitSums,
        options: &FitOptions,
    ) -> Result<(Solved, DataFit), LaplaceError> {
        let data_fit = fit.data_fit(&self.base_likelihood);
        let hyperparameters = (&self.prior, self.noise_variance);
        let maximised = largest_evidence(structure, (&self.mode, data_fit), hyperparameters, options)?;
        let (prior, noise_variance) = match &maximised {
            Some(found) => (found.prior.clone(), found.noise_variance),
            None => (self.prior.clone(), self.noise_variance),
        };
        let solved = Solved { maximised, ..Solved::at(self.mode.clone(), prior, noise_variance) };
        Ok((solved, data_fit))
    }

    /// The optimum of the linearised model for old and new data, of the old ones' curvature and everybody's. What the old targets said is in the old optimum, `J^T B t = (M + a s) w*`, and so is how badly other
    /// weights fit them: `RSS(w) = RSS(w*) - 2 a s (w - w*)^T w* + (w - w*)^T M (w - w*)`, without a difference of large numbers.
    fn further_optimum(
        &self,
        data: &Data<'_, T>,
        old: MatRef<'_, f64>,
        (structure, fit): (&Structure, &FitSums),
        options: &FitOptions,
        run: &mut Run<'_>,
    ) -> Result<(Solved, DataFit), LaplaceError> {
        let gaussian = |fit: &FitSums| match fit.data_fit(&self.base_likelihood) {
            DataFit::Gaussian { residual_sum, values, log_relative_precision } => {
                Some((residual_sum, values, log_relative_precision))
            }
            DataFit::LogLikelihood { .. } => None,
        };
        let (Some(all), Some(before), Some(found), [Block { matrix: BlockMatrix::Dense(new), .. }]) =
            (gaussian(fit), gaussian(&self.summary.fit), &self.summary.mode, structure.blocks())
        else {
            return self.further_evidence(structure, fit, options);
        };
        // From a log likelihood at unit noise to the sum of squares in it.
        let squares = |log_likelihood: f64, values: usize, log_relative_precision: f64| {
            log_relative_precision - values as f64 * (2.0 * PI).ln() - 2.0 * log_likelihood
        };
        let (residual_sum, values, log_relative_precision) = all;
        let trained = doubles(&self.selection.flatten(data.network.parameters()));
        let count = self.selection.len();
        let (tangent, observed) = (Tangent::new(data.network, &self.selection), data.observed());
        let problem = without_prior(&tangent, &observed);
        let added = residual_slope(&problem, run)?;
        fn column(v: &[f64]) -> MatRef<'_, f64> {
            MatRef::from_column_major_slice(v, v.len(), 1)
        }
        let (mut prior, mut noise_variance) = (self.prior.clone(), self.noise_variance);
        let ratio = prior.precisions()[0] * noise_variance;
        // J^T B r of all data: the old targets' share without J^T B J v, and the new residuals'.
        let (curved, through) = (product(old, column(&self.mode)), product(old, column(&trained)));
        let slope: Vec<f64> =
            (0..count).map(|i| curved[(i, 0)] + ratio * self.mode[i] - through[(i, 0)] + added[i]).collect();
        let precision = T::EPSILON.to_f64();
        let primal = PrimalModel::new(new.matrix(), &slope, residual_sum, &trained, values, precision)?;
        let tuned = options.tune == Tune::Evidence;
        if tuned
            && let Some((precision, noise)) =
                primal.evidence().largest(&EvidenceOptions::default(), f64::INFINITY)
        {
            (prior, noise_variance) = (prior.with_precisions(&[precision])?, noise);
        }
        let mut optimum = |prior: &Prior, noise: f64| -> Result<(Vec<f64>, DataFit), LaplaceError> {
            let mode = primal.weights(prior.precisions()[0], noise);
            let moved: Vec<f64> = mode.iter().zip(&self.mode).map(|(w, o)| w - o).collect();
            let of_old = squares(found.log_likelihood, before.1, before.2)
                - 2.0 * ratio * inner(&moved, &self.mode)
                + inner(&moved, product(old, column(&moved)).col_as_slice(0));
            let log_likelihood = problem.log_likelihood(&mode, &mut run.stage(Stage::Mode))?;
            let of_new = squares(log_likelihood, values - before.1, log_relative_precision - before.2);
            let residual_sum = of_old.max(0.0) + of_new.max(0.0);
            Ok((mode, DataFit::Gaussian { residual_sum, values, log_relative_precision }))
        };
        let (mut maximised, mut rounds, mut rested) = (None, 0, !tuned);
        while !rested && rounds < options.alternations.max(1) {
            let (mode, data_fit) = optimum(&prior, noise_variance)?;
            let at = (&prior, noise_variance);
            let Some(best) = largest_evidence(structure, (&mode, data_fit), at, options)? else { break };
            let change = (best.prior.precisions()[0] / prior.precisions()[0]).ln().abs();
            let change = change.max((best.noise_variance / noise_variance).ln().abs());
            (prior, noise_variance) = (best.prior.clone(), best.noise_variance);
            maximised = Some(best);
            rounds += 1;
            rested = change < AT_REST;
        }
        let fitted = maximised.as_ref().map_or(0.0, effective_dimensions);
        let mut notes = Vec::new();
        if fitted > MOST_FITTED * values as f64
            && let Some((precision, noise)) =
                primal.evidence().largest(&EvidenceOptions::default(), KEPT_FREE * values as f64)
        {
            (prior, noise_variance) = (prior.with_precisions(&[precision])?, noise);
            notes.push(almost_exactly(fitted, values, true));
        }
        let (mode, data_fit) = optimum(&prior, noise_variance)?;
        if !notes.is_empty() {
            maximised = Some(ended_at(structure, (&mode, data_fit), (&prior, noise_variance))?);
        }
        let direction = between(&trained, &mode);
        let distance = mean_displacement(data, &self.selection, &direction, run)?;
        let summary = ModeSummary {
            alternations: rounds + 1,
            newton_steps: rounds + 1,
            products: 0,
            converged: rested,
            squared_norms: (square(&mode), square(&trained)),
            offset: found.offset,
            log_likelihood: data_fit.log_likelihood(1.0),
            displacement: Some(distance),
            at_hyperparameters: true,
        };
        let solved = Solved::at(mode, prior, noise_variance);
        Ok((Solved { maximised, summary: Some(summary), remarks: notes, ..solved }, data_fit))
    }
}

/// See [`Laplace::extended`].
fn extended<T: Precision>(
    laplace: &Laplace<T>,
    data: Data<'_, T>,
    options: &FitOptions,
    run: &mut Run<'_>,
) -> Result<Laplace<T>, LaplaceError> {
    let (network, likelihood) = (data.network, data.likelihood);
    let refuse = |problem: &str| Err(LaplaceError::Request(problem.into()));
    let Some(before) = laplace.sums() else {
        return refuse(
            "only curvatures made of sums can be continued (full, block, diagonal, kronecker): fit again with all data",
        );
    };
    let linearised =
        laplace.summary.mode.is_some() || matches!(options.mode, Mode::Linearised | Mode::LinearisedSimple);
    let kind = Choices::of(network.graph(), &laplace.selection, options).prior;
    let conjugate = laplace.conjugate_curvature().filter(|_| {
        kind == PriorKind::Scalar
            && options.noise == NoiseModel::Scale
            && matches!(options.tune, Tune::Evidence | Tune::None)
    });
    if linearised && conjugate.is_none() {
        return refuse(&format!(
            "the mode of the linearised model depends on all data: fit again with all of them, or make a model that can be continued ({MODE_TRAINED}, or one precision and {CURVATURE_FULL})"
        ));
    }
    if matches!(options.tune, Tune::Validation | Tune::CrossValidation { .. }) {
        return refuse(&format!(
            "a continued fit is tuned by the evidence or not at all: choose {TUNE_EVIDENCE}, {TUNE_MACKAY:-} or {TUNE_NONE:-}"
        ));
    }
    let examples = laplace.summary.fit.examples + data.examples.len();
    let plan = Plan::new(&Size { examples, ..data.size(&laplace.selection) }, options)?;
    plan.check(options)?;
    let clock = Instant::now();
    let mut sums = before.clone();
    sums.extend(&data, 0, run)?;
    let structure = kind.scaled(sums.finish()?)?;
    let curvature_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let fit = *sums.fit();
    let (solved, data_fit) = match conjugate {
        Some(old) => laplace.further_optimum(&data, old, (&structure, &fit), options, run)?,
        None => laplace.further_evidence(&structure, &fit, options)?,
    };
    let Solved { mode, prior, noise_variance, maximised, summary, remarks: mut notes, .. } = solved;
    let evidence = ended_at(&structure, (&mode, data_fit), (&prior, noise_variance))?;
    if matches!(options.noise, NoiseModel::PerOutput | NoiseModel::Full) && is_gaussian(likelihood) {
        notes.push("the noise of each output was learned from the earlier data and kept".into());
    }
    let summary = FitSummary {
        mode: summary,
        plan,
        fit,
        evidence: Some(evidence.value),
        maximised,
        corrections: structure.corrections(),
        scale_invariant: laplace.summary.scale_invariant.clone(),
        g_prior: kind == PriorKind::GPrior,
        notes,
        seconds: [0.0, curvature_seconds, 0.0, clock.elapsed().as_secs_f64()],
        ..FitSummary::default()
    };
    let chosen = Chosen {
        origin: Origin::Curvature(Box::new(Curvature::Structure { structure, sums: Some(sums) })),
        selection: laplace.selection.clone(),
        likelihood: likelihood.clone(),
        noise_variance,
        prior,
        mode,
        integration: options.integration,
        summary,
    };
    Laplace::of(network, chosen)
}
