//! ELLA against the whole linearised model.

use crate::common::{brute_curvature, data, difference, inverse, jacobian, network, targets};
use faer::{Mat, Scale};
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::ella::{Ella, EllaOptions, EllaReport, plan};
use posterior_laplace::{Data, LaplaceError, Learned, Problem, Run, Size, Wanted};
use posterior_likelihoods::{Categorical, Gaussian, OutputLikelihood};
use posterior_linear::Prior;
use posterior_linear::evidence::{DataFit, LaplaceEvidence};
use posterior_networks::train::{Examples, Tabular};
use posterior_networks::{Network, Selection};
use posterior_optim::Signal;
use posterior_store::Tensors;

const SMALL: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = [3]\noutputs = 3\nactivation = \"tanh\"";
const MEMORY: u64 = 4 << 30;

fn softmax() -> OutputLikelihood {
    OutputLikelihood::Categorical(Categorical::new(3).unwrap())
}

fn case() -> (Network<f64>, Selection, Tabular<f64>) {
    let network = network(SMALL, 4);
    let selection = Selection::all(network.graph());
    let examples = data(&network, &softmax(), 70, 6);
    (network, selection, examples)
}

fn fit(
    (network, selection, examples): &(Network<f64>, Selection, Tabular<f64>),
    validation: Option<&dyn Examples<f64>>,
    options: &EllaOptions,
    checkpointer: Checkpointer<'_>,
    stop: usize,
) -> Result<(Ella<f64>, EllaReport), LaplaceError> {
    let mut told = 0;
    let observer = |_, _, _| {
        told += 1;
        if stop > 0 && told >= stop { Signal::Stop } else { Signal::Continue }
    };
    let data = Data { network, examples, validation, likelihood: &softmax() };
    let problem = Problem { data, selection, seed: 5, memory: MEMORY };
    let found = Ella::fit(&problem, options, &mut Run::new(observer).keeping(checkpointer))?;
    Ok((found.0, found.2))
}

/// `J (M + a I)^-1 J'` of some inputs.
fn exact(case: &(Network<f64>, Selection, Tabular<f64>), j: &Mat<f64>, precision: f64) -> Mat<f64> {
    let (network, selection, examples) = case;
    let d = selection.len();
    let m = brute_curvature(network, selection, &softmax(), examples);
    j * inverse(&(m + Mat::<f64>::identity(d, d) * Scale(precision))) * j.transpose()
}

#[test]
fn with_all_directions_it_is_the_whole_linearised_model() {
    let case = case();
    let (network, selection, examples) = &case;
    let options = EllaOptions { landmarks: Some(70), features: 70, ..EllaOptions::default() };
    let (ella, report) = fit(&case, None, &options, Checkpointer::default(), 0).unwrap();
    // 70 rows of at most 21 directions.
    assert_eq!((report.landmarks, report.examples, ella.basis().ncols()), (70, 70, 21));
    assert_eq!(report.dropped, 49);
    let gram = ella.basis().transpose() * ella.basis();
    assert!((gram - Mat::<f64>::identity(21, 21)).norm_max() < 1e-8);
    let x = crate::common::inputs(network, 6, 90);
    let expected = exact(&case, &jacobian(network, selection, &x), 0.4);
    let posterior = ella.condition(&[(0.4, 1.0)]).unwrap();
    let joint = posterior.joint(network, &x, MEMORY).unwrap();
    assert!(difference(&joint, &expected) < 1e-7, "{}", difference(&joint, &expected));
    let latent = posterior.latent(network, &x, Wanted::Full).unwrap();
    assert_eq!(latent.mean, network.forward(&x).unwrap().values());
    for i in 0..6 {
        for k in 0..9 {
            let own = joint[(3 * i + k / 3, 3 * i + k % 3)];
            assert!((latent.covariance[9 * i + k] - own).abs() < 1e-12);
        }
    }
    // Draws are functions: those of some inputs are those of all, however alike inputs are, and have the covariance.
    let count = 4000;
    let draws = posterior.function_samples(network, &x, count, 3).unwrap().unwrap();
    let few = posterior.function_samples(network, &x.slice_rows(2..4), 5, 3).unwrap().unwrap();
    (0..5).for_each(|k| assert_eq!(few[6 * k..6 * (k + 1)], draws[18 * k + 6..18 * k + 12]));
    for i in 0..18 {
        for k in 0..18 {
            let product = |s: usize| {
                (draws[18 * s + i] - latent.mean[i]) * (draws[18 * s + k] - latent.mean[k]) / count as f64
            };
            let spread = (joint[(i, i)] * joint[(k, k)] + joint[(i, k)].powi(2)) / count as f64;
            let found = (0..count).map(product).sum::<f64>();
            assert!((found - joint[(i, k)]).abs() < 5.0 * spread.sqrt(), "{i} {k}");
        }
    }
    assert!(matches!(posterior.joint(network, &x, 100), Err(LaplaceError::Memory { .. })));
    // The evidence of the spectrum is that of the dense curvature.
    let m = brute_curvature(network, selection, &softmax(), examples);
    let weights = vec![0.3; selection.len()];
    let prior = Prior::scalar(selection.len(), 0.4).unwrap();
    let fit = DataFit::LogLikelihood { value: -3.0 };
    let spectrum = ella.spectrum().unwrap();
    let value = LaplaceEvidence::new(&spectrum, prior, &weights, fit).unwrap().at(&[0.4], 1.0).unwrap();
    let eigenvalues = posterior_linalg::dense::eigenvalues(m.as_ref()).unwrap();
    let determinant: f64 = eigenvalues.iter().map(|l| (l.max(0.0) / 0.4).ln_1p()).sum();
    let expected = -3.0 - 0.5 * (0.4 * 0.09 * selection.len() as f64 + determinant);
    assert!((value.log_evidence - expected).abs() < 1e-7, "{} {expected}", value.log_evidence);
}

#[test]
fn few_directions_are_never_surer_and_survive_a_file() {
    let case = case();
    let (network, selection, _) = &case;
    for random_classes in [false, true] {
        let options =
            EllaOptions { landmarks: Some(30), features: 6, random_classes, ..EllaOptions::default() };
        let (ella, report) = fit(&case, None, &options, Checkpointer::default(), 0).unwrap();
        assert_eq!((report.eigenvalues.len(), report.dropped), (6, 0));
        assert!(report.eigenvalues.is_sorted_by(|a, b| a >= b));
        let x = crate::common::inputs(network, 5, 91);
        let few = ella.condition(&[(0.4, 1.0)]).unwrap().joint(network, &x, MEMORY).unwrap();
        let gap = exact(&case, &jacobian(network, selection, &x), 0.4) - &few;
        assert!(posterior_linalg::dense::eigenvalues(gap.as_ref()).unwrap()[0] > -1e-9);
        // Several posteriors at once are those one by one.
        let both = ella.condition(&[(2.0, 1.0), (0.4, 1.0)]).unwrap();
        let latents = both.latents(network, &x, Wanted::Diagonal).unwrap();
        assert!((0..15).all(|i| (latents[1].covariance[i] - few[(i, i)]).abs() < 1e-12));
        assert!((0..15).all(|i| latents[0].covariance[i] < latents[1].covariance[i] + 1e-12));
        let mut tensors = Tensors::default();
        ella.write(&mut tensors);
        let again = Ella::<f64>::read(selection, &mut tensors.clone()).unwrap();
        let same = again.condition(&[(0.4, 1.0)]).unwrap().joint(network, &x, MEMORY).unwrap();
        assert_eq!(same, few);
        let other = Selection::last_layer(network.graph()).unwrap();
        assert!(Ella::<f64>::read(&other, &mut tensors).unwrap_err().to_string().contains("weights"));
    }
}

#[test]
fn held_out_examples_may_end_the_pass() {
    let case = case();
    let validation = data(&case.0, &softmax(), 40, 60);
    let options = EllaOptions {
        landmarks: Some(30),
        features: 8,
        val_every: Some(10),
        patience: 2,
        ..EllaOptions::default()
    };
    let (ella, report) = fit(&case, Some(&validation), &options, Checkpointer::default(), 0).unwrap();
    let best = report.scores.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(report.examples, best.0);
    let last = report.scores.last().unwrap().0;
    assert!(if report.stopped_early { last == best.0 + 20 && last < 70 } else { last == 70 });
    // What is kept has the score that was best.
    let (whole, _) =
        fit(&case, None, &EllaOptions { val_every: None, ..options.clone() }, Checkpointer::default(), 0)
            .unwrap();
    if report.examples < 70 {
        assert_ne!(whole.structure().unwrap().diagonal(), ella.structure().unwrap().diagonal());
    }
    assert!(fit(&case, None, &options, Checkpointer::default(), 0).is_err());
}

#[test]
fn an_interrupted_fit_goes_on_with_the_same_numbers() {
    let case = case();
    let validation = data(&case.0, &softmax(), 40, 60);
    let options = EllaOptions {
        landmarks: Some(20),
        features: 8,
        val_every: Some(15),
        patience: 9,
        ..EllaOptions::default()
    };
    let (whole, report) = fit(&case, Some(&validation), &options, Checkpointer::default(), 0).unwrap();
    let mut resumed = 0;
    for stop in 1..14 {
        let mut kept: Option<SavedState> = None;
        let mut write = |state: &SavedState| {
            kept = Some(state.clone());
            Ok(())
        };
        let stopped =
            fit(&case, Some(&validation), &options, Checkpointer::new(None, Some(&mut write)), stop);
        if stopped.is_ok() {
            break;
        }
        let Some(state) = kept else { continue };
        resumed += 1;
        let (again, own) =
            fit(&case, Some(&validation), &options, Checkpointer::new(Some(state), None), 0).unwrap();
        assert_eq!(again.structure().unwrap().diagonal(), whole.structure().unwrap().diagonal());
        assert_eq!(own, report);
    }
    assert!(resumed > 0, "no interruption left anything to go on from");
}

#[test]
fn bad_options_are_refused_and_the_plan_grows_with_them() {
    let case = case();
    let refused = |options: EllaOptions| {
        fit(&case, None, &options, Checkpointer::default(), 0).err().unwrap().to_string()
    };
    let base = EllaOptions { landmarks: Some(10), features: 3, ..EllaOptions::default() };
    assert!(refused(EllaOptions { landmarks: Some(71), ..base.clone() }).contains("70 examples"));
    assert!(refused(EllaOptions { features: 0, ..base.clone() }).contains("at least one"));
    assert!(refused(EllaOptions { val_every: Some(0), ..base.clone() }).contains("at least one"));
    assert!(refused(EllaOptions { val_precision: f64::NAN, ..base.clone() }).contains("positive"));
    let (network, selection, examples) = &case;
    let likelihood = softmax();
    let all = |options: &EllaOptions| {
        let size = Size { network, selection, examples: 70, unseen: 0, likelihood: &likelihood };
        plan(&size, options)
    };
    let more = all(&EllaOptions { landmarks: Some(40), features: 9, ..base.clone() });
    assert!(all(&base).curvature_bytes < more.curvature_bytes && all(&base).flops < more.flops);
    let data = Data::new(network, examples, &likelihood);
    let problem = Problem { data, selection, seed: 0, memory: 1000 };
    let tight = Ella::fit(&problem, &base, &mut Run::default());
    assert!(matches!(tight, Err(LaplaceError::Memory { .. })));
    // Values instead of classes: outputs at random.
    let gaussian = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.5, 1.0, 2.0]).unwrap());
    let values = Tabular::new(crate::common::inputs(network, 20, 3), targets(&gaussian, 20, 4));
    let data = Data::new(network, &values, &gaussian);
    let found = Ella::fit(&Problem { data, memory: MEMORY, ..problem }, &base, &mut Run::default());
    assert_eq!(found.unwrap().2.landmarks, 10);
}
