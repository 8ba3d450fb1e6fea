//! The closed form beside ELLA, and after an interruption.

use crate::common::*;
use faer::{Mat, Scale};
use posterior_gp::inducing::fixed_mean::{FixedMeanData, FixedMeanModel, ProjectedCurvature};
use posterior_kernels::BlockKernel;
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::ella::{Ella, EllaOptions};
use posterior_laplace::fixed_mean::{FixedMeanFit, FixedMeanOptions, fit};
use posterior_laplace::{Data, LaplaceError, Learned, Problem, Run, Stage, Wanted};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_networks::train::{Examples, Tabular};
use posterior_networks::{Array, Network, Selection};
use posterior_optim::Signal;
use posterior_tangent::TangentKernel;

fn classes() -> OutputLikelihood {
    OutputLikelihood::Categorical(Categorical::new(3).unwrap())
}

/// Spec `valla`, test T6: with the same directions, all of them, VaLLA's optimum is ELLA and what the prior has outside their span.
#[test]
fn the_optimum_is_ella_and_the_prior_across_its_span() {
    let (network, likelihood) = (network(PERCEPTRON, 6), classes());
    let selection = Selection::all(network.graph());
    let n = 8;
    let examples = data(&network, &likelihood, n, 12);
    let numbers: Vec<usize> = (0..n).collect();
    let (x, _): (Array<f64>, _) = examples.batch(&numbers, None);
    let labels: Vec<usize> = (0..n).map(|i| target(&examples, i)[0] as usize).collect();
    let precision = 0.7;
    // Each row is a landmark, which looks at the output of its class.
    let options = EllaOptions { landmarks: Some(n), features: n, ..EllaOptions::default() };
    let data = Data::new(&network, &examples, &likelihood);
    let problem = Problem { data, selection: &selection, seed: 5, memory: 1 << 30 };
    let (ella, _, report) = Ella::fit(&problem, &options, &mut Run::default()).unwrap();
    assert_eq!((report.landmarks, report.dropped), (n, 0));
    let there = inputs(&network, 5, 30);
    let of_ella = ella.condition(&[(precision, 1.0)]).unwrap().joint(&network, &there, 1 << 30).unwrap();

    let kernel = TangentKernel::new(&network, &selection);
    let amplitude = 1.0 / precision;
    let mut model =
        FixedMeanModel::new(kernel, likelihood.clone_box(), x.clone(), labels.clone(), amplitude, false)
            .unwrap();
    let g = network.forward(&x).unwrap();
    let means = Mat::from_fn(n, 3, |i, c| g.row(i)[c]);
    let targets = Mat::from_fn(n, 1, |i, _| labels[i] as f64);
    let at = |chosen: &[usize]| {
        Array::new(vec![chosen.len(), 3], chosen.iter().flat_map(|i| x.row(*i).to_vec()).collect())
    };
    let data = FixedMeanData { points: &at, means: means.as_ref(), targets: targets.as_ref() };
    let pass = ProjectedCurvature::new(&model, data, 3, None, &mut |_, _| Signal::Continue);
    let found = pass.unwrap().unwrap().condition(&mut model).unwrap();
    let of_valla = found.covariance.joint(&kernel, &model.prepared_points().unwrap(), &there).unwrap();

    let along = Mat::from_fn(n, 3, |i, c| f64::from(u8::from(labels[i] == c)));
    let own = kernel.gram(&there, None).unwrap();
    let cross = kernel.cross((&there, None), (&x, Some(along.as_ref()))).unwrap();
    let gram = kernel.gram(&x, Some(along.as_ref())).unwrap();
    let across = (own - &cross * inverse(&gram) * cross.transpose()) * Scale(amplitude);
    // Both parts are there, and the closed form adds a hundred-millionth of its mean to the diagonal of the kernel.
    let scale = of_valla.norm_max();
    assert!(across.norm_max() > 0.05 * scale && of_ella.norm_max() > 0.05 * scale);
    assert!((&of_valla - (&of_ella + &across)).norm_max() < 1e-6 * scale);
}

fn learn(
    network: &Network<f64>,
    (examples, held): (&Tabular<f64>, &Tabular<f64>),
    options: &FixedMeanOptions,
    checkpointer: Checkpointer<'_>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<FixedMeanFit<f64>, LaplaceError> {
    let data = Data { network, examples, validation: Some(held), likelihood: &classes() };
    let selection = &Selection::all(network.graph());
    let problem = Problem { data, selection, seed: 3, memory: u64::MAX };
    fit(&problem, options, &mut Run::new(observer).keeping(checkpointer))
}

/// Alone, and as the beginning of steps.
#[test]
fn an_interrupted_pass_goes_on_to_the_same_numbers() {
    let network = network(PERCEPTRON, 2);
    // More rows than one piece of the pass.
    let (examples, held) = (data(&network, &classes(), 600, 4), data(&network, &classes(), 12, 40));
    let x = inputs(&network, 9, 77);
    let short =
        FixedMeanOptions { inducing_points: Some(6), steps: 12, val_every: 6, ..FixedMeanOptions::valla() };
    for options in [FixedMeanOptions { closed_form: true, closed_form_start: false, ..short.clone() }, short]
    {
        let go = &mut |_, _, _| Signal::Continue;
        let whole = learn(&network, (&examples, &held), &options, Checkpointer::default(), go).unwrap();
        let mut kept: Option<SavedState> = None;
        let mut write = |state: &SavedState| {
            kept = Some(state.clone());
            Ok(())
        };
        let mut stop = |stage, done, all| match (stage, all) {
            (Stage::Process, 600) if done > 256 => Signal::Stop,
            _ => Signal::Continue,
        };
        let checkpointer = Checkpointer::new(None, Some(&mut write));
        let error = learn(&network, (&examples, &held), &options, checkpointer, &mut stop).unwrap_err();
        assert!(matches!(error, LaplaceError::Interrupted));
        let kept = kept.unwrap();
        assert!(kept.progress == "after example 512", "{}", kept.progress);
        // What had been summed is not summed again.
        let mut first = None;
        let mut watch = |stage, done, all| {
            if (stage, all) == (Stage::Process, 600) {
                first.get_or_insert(done);
            }
            Signal::Continue
        };
        let rest =
            learn(&network, (&examples, &held), &options, Checkpointer::new(Some(kept), None), &mut watch)
                .unwrap();
        assert_eq!(first, Some(600));
        let latent = |fit: &FixedMeanFit<f64>| fit.posterior.latent(&network, &x, Wanted::Full).unwrap();
        assert_eq!(latent(&rest), latent(&whole));
        assert_eq!(rest.report.amplitudes, whole.report.amplitudes);
        assert_eq!(rest.report.scores, whole.report.scores);
    }
}
