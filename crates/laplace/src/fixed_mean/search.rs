//! All of a fit in order.

use super::learn::{Held, Learning};
use super::options::{FixedMeanKernel, FixedMeanOptions};
use super::plan::plan;
use super::posterior::FixedMean;
use super::report::FixedMeanReport;
use super::start::start;
use crate::LaplaceError;
use crate::error::check_memory;
use crate::kernel_inputs::{KernelInputs, as_inputs, separable};
use crate::learned::Found;
use crate::problem::{Data, Problem};
use crate::rows::{Rows, input_matrix, inputs};
use crate::run::Run;
use crate::scores::{no_better, with_values};
use faer::Mat;
use posterior_gp::inducing::fixed_mean::{FixedMeanModel, Learned};
use posterior_kernels::LearnedBlockKernel;
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_networks::Precision;
use posterior_optim::Parameters;
use posterior_tangent::{TangentKernel, check_outputs};

/// A fitted process; its likelihood has all of the noise that was learned.
pub type FixedMeanFit<T> = Found<FixedMean<T>, FixedMeanReport>;

/// Fits a sparse process whose mean is a trained network. The selected weights are those of the tangent kernel, and otherwise not looked at. With validation examples the fit
/// stops early, or chooses the prior variance of a closed form; without it takes all its steps.
///
/// # Errors
/// [`LaplaceError`]: bad inputs or targets, options that do not fit the data, a plan above the memory, a loss that is not finite (which term, at which step), interruption.
pub fn fit<T: Precision>(
    problem: &Problem<'_, T>,
    options: &FixedMeanOptions,
    run: &mut Run<'_>,
) -> Result<FixedMeanFit<T>, LaplaceError> {
    let &Problem { data: Data { network, examples, validation, likelihood }, selection, seed, memory } =
        problem;
    let (c, n) = (check_outputs(network, likelihood)?, examples.len());
    options.check(n, c)?;
    let validation = validation.filter(|v| !v.is_empty());
    let needed = plan(&problem.size(selection), options)?;
    let remedy = "take fewer inducing points or a smaller batch, or allow more memory";
    check_memory(needed.bytes(), memory, format_args!("the sparse process"), remedy)?;
    let kernel_inputs = KernelInputs::of(&options.kernel, network.graph())?;
    let (given, likelihood) = (likelihood, first_noise(likelihood, options)?);
    let data = Data { network, examples, validation, likelihood: &likelihood };
    let rows = Rows::new(&data, &kernel_inputs, run)?;
    let held = Rows::held(&data, &kernel_inputs, run)?;
    let plain_score = held.as_ref().map(|held| held.plain_score(given));
    let classes: Option<Vec<usize>> = matches!(likelihood, OutputLikelihood::Categorical(_))
        .then(|| (0..n).map(|i| rows.targets[(i, 0)] as usize).collect());
    let streams = Streams::new(seed);
    let of_inputs = |rows: &[usize]| input_matrix(examples, rows);
    let of_rows = |chosen: &[usize]| rows.at(chosen);
    let seen: &dyn Fn(&[usize]) -> Mat<f64> =
        if kernel_inputs == KernelInputs::Tangent { &of_inputs } else { &of_rows };
    let (centres, labels) = start(seen, n, c, classes.as_deref(), options.inducing(n, c), streams)?;
    let mut notes = Vec::new();
    if validation.is_none() {
        notes.push(without_validation(options));
    }

    let (posterior, values, mut report) = match &options.kernel {
        FixedMeanKernel::Tangent => {
            let wide = network.cast::<f64>()?;
            let kernel = TangentKernel::new(&wide, selection);
            let of_held = validation.map(|v| inputs(v, &(0..v.len()).collect::<Vec<_>>()));
            let held = held.as_ref().zip(of_held).map(|(rows, points)| Held { rows, points });
            let points = |chosen: &[usize]| inputs(examples, chosen);
            let begin = (as_inputs(&centres, network.graph()), labels);
            learned(
                problem,
                kernel,
                begin,
                Learning { rows: &rows, points: &points, held, options, seed, run },
                &likelihood,
            )?
        }
        FixedMeanKernel::Inputs(text) | FixedMeanKernel::Features(text) => {
            let mut kernel = separable::<f64>(text, centres.ncols(), c, options.correlated(c))?;
            rows.begin_lengthscales(text, &mut kernel, streams);
            let held = held.as_ref().map(|rows| Held { rows, points: rows.points.clone() });
            learned(
                problem,
                kernel,
                (centres, labels),
                Learning { rows: &rows, points: &of_rows, held, options, seed, run },
                &likelihood,
            )?
        }
    };
    report.plain_score = plain_score;
    report.companion &= report.reason.is_some();
    notes.extend(no_better(report.score(), plain_score));
    if report.clipped > 0 {
        notes.push(format!(
            "rounding made {} variances of the fit negative; they counted as zero",
            report.clipped
        ));
    }
    let (likelihood, precision) = (with_values(&likelihood, &values), 1.0 / report.amplitude);
    Ok(Found::new(posterior, likelihood, precision, report, notes))
}

/// The process of one kind of kernel, with the inducing points and labels that it begins at; values of the likelihood's parameters, and how it went.
fn learned<T: Precision, K: LearnedBlockKernel + Clone>(
    problem: &Problem<'_, T>,
    kernel: K,
    (points, labels): (K::Points, Vec<usize>),
    learning: Learning<'_, '_, K>,
    likelihood: &OutputLikelihood,
) -> Result<(FixedMean<T>, Vec<f64>, FixedMeanReport), LaplaceError> {
    let options = learning.options;
    let correlated = options.correlated(likelihood.outputs());
    let amplitude = if correlated { 1.0 } else { options.initial_amplitude };
    let companion = options.with_companion(problem.examples.len());
    let mut model =
        FixedMeanModel::new(kernel, likelihood.clone_box(), points, labels, amplitude, companion)?;
    model.learned = Learned {
        inducing: options.learn_inducing,
        amplitude: options.learn_amplitude && !correlated,
        likelihood: options.learn_noise,
        kernel: options.learn_kernel,
    };
    let (model, covariance, report) = learning.run(model)?;
    let (z, values) = (model.kernel().coordinates(model.points()), model.kernel().values());
    let (network, selection) = (problem.network, problem.selection);
    let posterior = FixedMean::new(network, selection, options, z, model.labels(), values, covariance)?;
    Ok((posterior, model.likelihood().values(), report))
}

fn without_validation(options: &FixedMeanOptions) -> String {
    match (options.closed_form, options.learn_amplitude) {
        (false, _) => format!(
            "no validation rows: the fit took all {} steps, which can make a learned prior variance too large; give rows that the network has not learned from",
            options.steps
        ),
        (true, true) => format!(
            "no validation rows: the prior variance stayed at {}; give rows that the network has not learned from",
            options.initial_amplitude
        ),
        (true, false) => "no validation rows: nothing was chosen by them".into(),
    }
}

/// The likelihood with the noise that a fit begins with.
fn first_noise(
    likelihood: &OutputLikelihood,
    options: &FixedMeanOptions,
) -> Result<OutputLikelihood, LaplaceError> {
    let (OutputLikelihood::Gaussian(own), Some(noise)) = (likelihood, options.initial_noise) else {
        return Ok(likelihood.clone());
    };
    if !(noise > own.floor() && noise.is_finite()) {
        return Err(LaplaceError::Request(format!(
            "the first noise variance is {noise}: give a finite number above {}",
            own.floor()
        )));
    }
    let mut own: Gaussian = own.clone();
    let values = vec![noise; own.values().len()];
    own.set_values(&values);
    Ok(OutputLikelihood::Gaussian(own))
}
