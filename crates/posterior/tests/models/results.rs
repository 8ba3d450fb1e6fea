//! One result of all predictions, progress, cancellation, and arrays of any library.

use posterior::data::{ReadOptions, read_table};
use posterior::models::Scores;
use posterior::optim::{CancelToken, Signal};
use posterior::options::MethodName;
use posterior::{Error, Fitted, Gp, GpBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn data(count: usize) -> (Vec<[f64; 2]>, Vec<f64>) {
    let x: Vec<[f64; 2]> =
        (0..count).map(|i| [(i as f64 * 0.618) % 1.0 * 3.0, (i as f64 * 0.414) % 1.0 * 2.0]).collect();
    let noise = |i: usize| 0.1 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
    let y = x.iter().enumerate().map(|(i, [a, b])| (2.0 * a).sin() + 0.5 * b + noise(i)).collect();
    (x, y)
}

#[test]
fn intervals_are_quantiles() {
    let (x, y) = data(80);
    let fitted = Gp::builder().fit(&x, &y).unwrap();
    let predicted = fitted.predict(&x).unwrap();
    let (lower, upper) = (predicted.quantile(0.05).unwrap(), predicted.quantile(0.95).unwrap());
    for (i, (low, high)) in predicted.interval(0.9).unwrap().into_iter().enumerate() {
        assert!((low - lower[i]).abs() < 1e-12 && (high - upper[i]).abs() < 1e-12);
        assert!(low < predicted.mean().unwrap()[i] && predicted.mean().unwrap()[i] < high);
    }
    assert!(matches!(predicted.interval(1.0), Err(Error::Level(_))));
    assert!(matches!(predicted.quantile(f64::NAN), Err(Error::Level(_))));
    assert!(matches!(predicted.probabilities(), Err(Error::NotProbabilities)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("predicted.csv");
    predicted.save(&path).unwrap();
    let table = read_table(&path, &ReadOptions::default()).unwrap();
    assert_eq!(table.rows(), 80);
    assert_eq!(table.columns[0].name, "y_mean");
    // Draws and scores of the same rows.
    assert_eq!(fitted.sample(&x, 3, 1).unwrap().shape(), [3, 80, 1]);
    let Scores::Values { .. } = fitted.evaluate(&x, &y).unwrap().scores else { panic!("numbers") };
    // Validation rows of another noise than that of the fit widen intervals, also in the file.
    let wild: Vec<f64> = y.iter().enumerate().map(|(i, y)| y + (i as f64 * 2.399).sin()).collect();
    let calibrated = fitted.calibrate(&x, &wild).unwrap();
    let wide = calibrated.predict(&x).unwrap();
    assert_eq!(wide.mean().unwrap(), predicted.mean().unwrap());
    assert!(wide.std().unwrap()[0] > 2.0 * predicted.std().unwrap()[0]);
    let model = folder.path().join("calibrated.posterior");
    calibrated.save(&model).unwrap();
    assert_eq!(Fitted::load(&model).unwrap().predict(&x).unwrap().predictive(), wide.predictive());
    assert!(fitted.calibrate(&x[..18], &y[..18]).unwrap_err().to_string().contains("19 rows"));
    assert!(matches!(fitted.evaluate(&x, &y[1..]), Err(Error::Targets { rows: 80, targets: 79 })));
}

#[test]
fn labels_have_the_same_result() {
    let (x, y) = data(60);
    let labels: Vec<&str> = y.iter().map(|y| if *y > 0.8 { "high" } else { "low" }).collect();
    let fitted = Gp::builder().classify(&x, &labels).unwrap();
    let predicted = fitted.predict(&x).unwrap();
    assert_eq!(predicted.probabilities().unwrap().len(), 120);
    assert!(matches!(predicted.mean(), Err(Error::NotNumbers { .. })));
    assert!(matches!(predicted.interval(0.5), Err(Error::NotNumbers { .. })));
    let Scores::Classes(scores) = fitted.evaluate_labels(&x, &labels).unwrap().scores else {
        panic!("classes")
    };
    assert!(scores.nll < 0.5);
    let calibrated = fitted.calibrate_labels(&x, &labels).unwrap();
    assert!(calibrated.model().sets().is_some());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("predicted.csv");
    predicted.save(&path).unwrap();
    let table = read_table(&path, &ReadOptions::default()).unwrap();
    assert_eq!((table.rows(), table.columns[0].name.as_str()), (60, "predicted"));
}

/// A builder that counts its steps.
fn counted(
    steps: &Arc<AtomicUsize>,
    at: usize,
    then: impl Fn() -> Signal + Send + Sync + 'static,
) -> GpBuilder {
    let steps = steps.clone();
    Gp::builder().method(MethodName::Exact).progress(move |_, _| {
        match steps.fetch_add(1, Ordering::Relaxed) + 1 >= at {
            true => then(),
            false => Signal::Continue,
        }
    })
}

#[test]
fn a_token_ends_a_fit_and_a_callback_cuts_it_short() {
    let (x, y) = data(80);
    let (all, cut, stopped) = (Arc::default(), Arc::default(), Arc::default());
    counted(&all, usize::MAX, || Signal::Continue).fit(&x, &y).unwrap();
    let token = CancelToken::new();
    let own = token.clone();
    let cancelling = counted(&stopped, 2, move || {
        own.cancel();
        Signal::Continue
    });
    let error = cancelling.cancel(&token).fit(&x, &y).unwrap_err();
    assert!(error.is_interruption() && token.is_cancelled());
    let kept = counted(&cut, 2, || Signal::Stop).fit(&x, &y).unwrap();
    assert!(kept.model().was_interrupted());
    let [all, cut, stopped] = [all, cut, stopped].map(|steps| steps.load(Ordering::Relaxed));
    assert!(stopped == 2 && cut < all, "{stopped} {cut} {all}");
    // A token that is cancelled before ends the fit as well.
    assert!(Gp::builder().cancel(&token).fit(&x, &y).unwrap_err().is_interruption());
}

#[test]
fn columns_of_faer_are_targets() {
    let (x, y) = data(40);
    let matrix = faer::Mat::from_fn(40, 2, |i, j| x[i][j]);
    let targets = faer::Col::from_fn(40, |i| y[i]);
    let slices = Gp::builder().fit(&x, &y).unwrap().predict(&x).unwrap();
    let views = Gp::builder().fit(&matrix.as_ref(), &targets.as_ref()).unwrap();
    assert_eq!(views.predict(&matrix.as_ref()).unwrap().predictive(), slices.predictive());
    assert!(matches!(Gp::builder().fit(&x, &matrix), Err(Error::TargetColumns { found: 2 })));
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_ndarray_are_slices() {
    let (x, y) = data(40);
    let matrix = ndarray::Array2::from_shape_fn((40, 2), |(i, j)| x[i][j]);
    let targets = ndarray::Array1::from_shape_fn(40, |i| y[i]);
    let slices = Gp::builder().fit(&x, &y).unwrap().predict(&x).unwrap();
    let own = Gp::builder().fit(&matrix, &targets).unwrap();
    assert_eq!(own.predict(&matrix).unwrap().predictive(), slices.predictive());
    let views = Gp::builder().fit(&matrix.view(), &targets.view()).unwrap();
    assert_eq!(views.predict(&matrix.t().t()).unwrap().predictive(), slices.predictive());
}
