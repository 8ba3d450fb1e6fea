//! Precision and noise of samples by unseen examples: scores against densities written here, refusals, interruptions.

use crate::common::{data, inverse, jacobian, target};
use crate::sampled::{MEMORY, case, close, options};
use faer::Mat;
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::sampled::{SampledOptions, Space};
use posterior_laplace::{Approximation, Data, FitOptions, LaplaceError, Run};
use posterior_networks::train::Examples;

/// Every score that is told is that of samples drawn for its setting alone, by densities written here.
#[test]
fn unseen_examples_choose_precision_and_noise() {
    let case = case(false);
    let (network, selection) = (&case.network, &case.selection);
    let examples = data(network, &case.likelihood, 60, 900);
    let (x, _) = examples.batch(&(0..60).collect::<Vec<_>>(), None);
    let (j, means) = (jacobian(network, selection, &x), network.forward(&x).unwrap().into_values());
    let trained = selection.flatten(network.parameters());
    for (space, learn_noise) in [(Space::Weights, false), (Space::Functions, false), (Space::Functions, true)]
    {
        let learn_noise = Some(learn_noise);
        let turns = SampledOptions { space: Some(space), learn_noise, ..options() };
        let plain = case.fitted(&turns);
        assert!(plain.held_out.is_none());
        let asked = SampledOptions { validation_tries: 8, ..turns.clone() };
        let found = case.run_by(&asked, Some(&examples), Checkpointer::default(), 0).unwrap();
        let told = found.held_out.unwrap();
        assert_eq!((told.examples, told.at_edge, told.not_finite), (60, false, 0));
        assert_eq!(found.report.turns.len(), plain.report.turns.len());
        assert_eq!(found.precisions, [plain.precisions[0] * told.best.precision_factor]);
        assert_eq!(found.noise_variance, told.best.noise_variance);
        assert!(told.grid.len() > 2 && told.grid.iter().all(|p| p.nll >= told.best.nll));
        assert_eq!(told.grid.iter().any(|p| p.noise_variance != 1.0), learn_noise == Some(true));
        let away = Mat::from_fn(selection.len(), 1, |i, _| plain.mode.as_ref().unwrap()[i] - trained[i]);
        let away = &j * &away;
        for point in told.grid.iter().filter(|p| p.noise_variance == 1.0) {
            let alone = SampledOptions {
                em_steps: 0,
                initial_precision: plain.precisions[0] * point.precision_factor,
                ..turns.clone()
            };
            let draws = case.fitted(&alone).posterior;
            if *point == told.best {
                assert!(close(found.posterior.samples(), draws.samples()) < 1e-8);
            }
            let moved = &j * draws.samples();
            let mut nll = 0.0;
            for n in 0..60 {
                let (k, noise) = (moved.ncols() as f64, [0.5, 1.0, 2.0]);
                let own = moved.subrows(3 * n, 3);
                let second = own * own.transpose();
                let v = Mat::from_fn(3, 3, |a, b| {
                    let beside = away[(3 * n + a, 0)] * away[(3 * n + b, 0)];
                    second[(a, b)] / k + beside + if a == b { noise[a] } else { 0.0 }
                });
                let y = target(&examples, n);
                let r = Mat::from_fn(3, 1, |a, _| y[a] - means[3 * n + a]);
                let square = (r.transpose() * inverse(&v) * &r)[(0, 0)];
                nll += 0.5 * (square + v.determinant().ln() + 3.0 * (2.0 * std::f64::consts::PI).ln());
            }
            assert!((nll / 60.0 - point.nll).abs() < 1e-7, "{} {point:?}", nll / 60.0);
        }
    }
    let none = SampledOptions { validation_tries: 3, ..options() };
    let approximation = Approximation::Sampled(none);
    let options = FitOptions { approximation, memory: MEMORY, ..FitOptions::default() };
    let few = data(network, &case.likelihood, 20, 900);
    for (rows, problem) in
        [(None, "give --validation-data"), (Some(&few as &dyn Examples<f64>), "20 held-out examples")]
    {
        let data = Data { validation: rows, ..Data::new(network, &case.examples, &case.likelihood) };
        let refused = posterior_laplace::fit(&data, &options, &mut Run::default());
        assert!(refused.err().unwrap().to_string().contains(problem));
    }
}

/// Where settings were being tried when it stopped.
#[test]
fn an_interrupted_search_on_unseen_examples_goes_on_with_the_same_numbers() {
    let case = case(true);
    let examples = data(&case.network, &case.likelihood, 60, 900);
    let options = SampledOptions { validation_tries: 6, em_steps: 1, ..options() };
    let whole = case.run_by(&options, Some(&examples), Checkpointer::default(), 0).unwrap();
    let (mut resumed, mut stop) = (0, 1);
    loop {
        let mut kept: Option<SavedState> = None;
        let mut write = |state: &SavedState| {
            kept = Some(state.clone());
            Ok(())
        };
        match case.run_by(&options, Some(&examples), Checkpointer::new(None, Some(&mut write)), stop) {
            Ok(_) => break,
            Err(LaplaceError::Interrupted) => {}
            Err(other) => panic!("{other}"),
        }
        stop += 1;
        let Some(state) = kept else { continue };
        resumed += usize::from(state.facts["scored"].as_array().is_some_and(|all| !all.is_empty()));
        let again = case.run_by(&options, Some(&examples), Checkpointer::new(Some(state), None), 0).unwrap();
        assert_eq!((&again.held_out, &again.precisions), (&whole.held_out, &whole.precisions));
        assert_eq!(again.posterior.samples(), whole.posterior.samples());
        assert_eq!(again.notes, whole.notes);
    }
    assert!(resumed > 3, "{resumed}");
}
