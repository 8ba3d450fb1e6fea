use super::*;
use crate::MetricsError;
use posterior_linalg::random::Streams;
use proptest::prelude::*;
use rand::RngExt;

/// Random distributions, some rounded so that confidences tie and zeros occur, and labels drawn from them.
fn random(n: usize, classes: usize, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let mut rng = Streams::new(seed).stream("metrics/classification");
    let (mut probabilities, mut labels) = (Vec::new(), Vec::new());
    for row in 0..n {
        let sharpness = if row % 2 == 0 { 1.0 } else { 6.0 };
        let mut weights: Vec<f64> = (0..classes).map(|_| (sharpness * rng.random::<f64>()).exp()).collect();
        if row % 3 == 0 {
            weights.iter_mut().for_each(|w| *w = (*w * 2.0).floor() - 1.0);
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
        let mut u = rng.random::<f64>();
        let label = weights.iter().position(|p| {
            u -= p;
            u < 0.0
        });
        labels.push(label.unwrap_or(classes - 1));
        probabilities.extend(weights);
    }
    (probabilities, labels)
}

#[test]
fn a_small_example_by_hand() {
    let probabilities = [0.7, 0.2, 0.1, 0.3, 0.3, 0.4, 0.0, 1.0, 0.0, 0.5, 0.5, 0.0];
    let classes = Classes::new(&probabilities, 3, &[0, 0, 1, 1]).unwrap();
    let scores = classes.scores();
    // Hits: row 0 and row 2; row 3 ties and the first of the equals is wrong.
    assert_eq!((scores.rows, scores.classes, scores.accuracy), (4, 3, 0.5));
    let nll = -(0.7f64.ln() + 0.3f64.ln() + 0.5f64.ln()) / 4.0;
    assert!((scores.nll - nll).abs() < 1e-15);
    // 0.09+0.04+0.01 = 0.14; 0.49+0.09+0.16 = 0.74; 0; 0.25+0.25 = 0.5.
    assert!((scores.brier - (0.14 + 0.74 + 0.5) / 4.0).abs() < 1e-15);
    assert!((scores.mean_confidence - 0.65).abs() < 1e-15);
    let entropies = classes.probabilities().entropies();
    assert_eq!(entropies[2], 0.0);
    assert!((entropies[3] - 2f64.ln()).abs() < 1e-15);
    assert!((scores.mean_entropy - entropies.iter().sum::<f64>() / 4.0).abs() < 1e-15);
    // Each row alone in its bin of 15: |1 - 0.7| + |0 - 0.4| + 0 + |0 - 0.5|, over 4.
    assert!((scores.ece - 0.3).abs() < 1e-15 && (scores.adaptive_ece - 0.3).abs() < 1e-15);
    // Two bins: (0, ½] holds rows 1 and 3 (closed above), (½, 1] rows 0 and 2.
    assert!((classes.expected_calibration_error(2).unwrap() - (0.9 + 0.3) / 4.0).abs() < 1e-15);
    // The same with the middles of the bins, ¼ and ¾: no hit of two, two of two.
    assert!((classes.midpoint_calibration_error(2).unwrap() - (2.0 * 0.25 + 2.0 * 0.25) / 4.0).abs() < 1e-15);
    // One bin: |2 - 2.6| / 4.
    assert!((classes.adaptive_calibration_error(1).unwrap() - 0.15).abs() < 1e-15);
    assert_eq!(classes.confusion().unwrap().counts, [1, 0, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(classes.probabilities().predictions(), [0, 2, 1, 0]);
    assert_eq!(classes.log_likelihoods()[0], 0.7f64.ln());
    assert_eq!(scores.impossible_labels, 0);
    // Of two rows predicted as 0 one is, of one as 1 one is, of one as 2 none is, which does not occur either.
    let third = |a: f64, b: f64| (a + b) / 3.0;
    assert_eq!(
        (scores.precision, scores.recall, scores.f1),
        (third(0.5, 1.0), third(0.5, 0.5), third(0.5, 2.0 / 3.0))
    );
    // A class that neither occurs nor is predicted counts in nothing.
    let rare = Classes::new(&[0.9, 0.1, 0.0, 0.2, 0.8, 0.0], 3, &[0, 1]).unwrap().scores();
    assert_eq!((rare.precision, rare.recall, rare.f1), (1.0, 1.0, 1.0));
}

/// An error of 0.46 % at certainty has 0.045 of midpoint error in ten bins: what makes the published errors of nearly perfect classifiers 0.05.
#[test]
fn certain_and_right_is_half_a_bin_off_by_midpoints() {
    let probabilities: Vec<f64> = (0..1000).flat_map(|_| [1.0, 0.0]).collect();
    let labels: Vec<usize> = (0..1000).map(|i| usize::from(i < 5)).collect();
    let classes = Classes::new(&probabilities, 2, &labels).unwrap();
    assert!((classes.midpoint_calibration_error(10).unwrap() - (0.995 - 0.95)).abs() < 1e-12);
    assert!((classes.expected_calibration_error(10).unwrap() - 0.005).abs() < 1e-12);
}

#[test]
fn a_label_of_probability_zero_is_counted_and_leaves_a_number() {
    let scores = Classes::new(&[0.0, 1.0], 2, &[0]).unwrap().scores();
    assert_eq!((scores.impossible_labels, scores.brier), (1, 2.0));
    assert!((scores.nll - 708.396_418_532_264).abs() < 1e-9);
}

/// The definitions word by word: every bin looks at every row.
#[test]
fn calibration_agrees_with_the_definition() {
    for (n, classes) in [(1, 2), (7, 2), (500, 3), (200, 10)] {
        let (p, labels) = random(n, classes, 5);
        let table = Classes::new(&p, classes, &labels).unwrap();
        for bins in [1, 2, 3, 10, 15, 49] {
            let rows: Vec<(f64, bool)> = (0..n)
                .map(|i| {
                    let row = &p[i * classes..(i + 1) * classes];
                    let top = row.iter().copied().fold(0.0, f64::max);
                    (top, row.iter().position(|v| *v == top) == Some(labels[i]))
                })
                .collect();
            let mut ece = 0.0;
            for b in 0..bins {
                let (low, high) = (b as f64 / bins as f64, (b + 1) as f64 / bins as f64);
                let inside: Vec<_> = rows.iter().filter(|(c, _)| *c > low && *c <= high).collect();
                let hits = inside.iter().filter(|r| r.1).count() as f64;
                ece += (hits - inside.iter().map(|r| r.0).sum::<f64>()).abs() / n as f64;
            }
            assert!((table.expected_calibration_error(bins).unwrap() - ece).abs() < 1e-13, "{n} {bins}");
            let every = table.reliability_of_every_class(bins).unwrap();
            assert_eq!(every.iter().map(|b| b.count).sum::<usize>(), n * classes);
            let happened: f64 = every.iter().map(|b| b.count as f64 * b.frequency).sum();
            assert!((happened - n as f64).abs() < 1e-9, "each row has one label");
            for bin in every.iter().chain(&table.reliability_of_the_top_class(bins).unwrap()) {
                let zeros = bin.lower == 0.0;
                assert!(
                    (bin.confidence > bin.lower || zeros) && bin.confidence <= bin.upper + 1e-15,
                    "{bin:?}"
                );
            }
        }
        // As many bins as rows: every row is its own bin, ties share.
        let mut alone = 0.0;
        let (confidences, hits) = table.top_class();
        for (c, _) in confidences.iter().zip(&hits) {
            let same: Vec<_> = (0..n).filter(|j| confidences[*j] == *c).collect();
            let share = same.iter().filter(|j| hits[**j]).count() as f64 / same.len() as f64;
            alone += (share - c).abs() / n as f64;
        }
        assert!((table.adaptive_calibration_error(n).unwrap() - alone).abs() < 1e-12);
    }
}

#[test]
fn probabilities_on_an_edge_belong_below_it() {
    for bins in 1..200usize {
        for b in 1..=bins {
            let edge = b as f64 / bins as f64;
            let found = calibration::reliability([(edge, true), (edge.next_up(), true)].into_iter(), bins);
            assert_eq!(found[0].upper, edge, "{bins}");
            // Above 1 (rounding of a softmax) there is no further bin.
            assert!(if b == bins { found.len() == 1 } else { found.len() == 2 && found[1].lower == edge });
        }
    }
}

#[test]
fn labels_drawn_from_the_predictions_are_calibrated() {
    let (n, classes) = (40_000, 4);
    let (p, labels) = random(n, classes, 9);
    let table = Classes::new(&p, classes, &labels).unwrap();
    let scores = table.scores();
    // The error of each of 15 bins has deviation at most ½/√n_b; by Cauchy-Schwarz their weighted sum has mean at most
    // ½ √(15/n) = 0.0097, and its deviation is smaller still.
    assert!(scores.ece < 0.0194 && scores.adaptive_ece < 0.0194, "{scores:?}");
    // The expected NLL of a calibrated prediction is its entropy; one row's deviation is below 2 nats here.
    assert!((scores.nll - scores.mean_entropy).abs() < 5.0 * 2.0 / (n as f64).sqrt());
    for bin in table.reliability_of_every_class(10).unwrap().iter().filter(|b| b.count > 100) {
        assert!((bin.frequency - bin.confidence).abs() < 5.0 * 0.5 / (bin.count as f64).sqrt(), "{bin:?}");
    }
}

#[test]
fn many_classes_are_fast_enough() {
    let (n, classes) = (10_000, 1_000);
    let p = vec![1.0 / classes as f64; n * classes];
    let labels: Vec<usize> = (0..n).map(|i| i % classes).collect();
    let table = Classes::new(&p, classes, &labels).unwrap();
    let scores = table.scores();
    assert!((scores.nll - 1000f64.ln()).abs() < 1e-9 && (scores.accuracy - 1e-3).abs() < 1e-15);
    assert!(scores.ece < 1e-9 && scores.adaptive_ece < 1e-9);
    assert_eq!(table.reliability_of_every_class(10).unwrap().len(), 1);
}

#[test]
fn bad_input_is_named() {
    let message =
        |p: &[f64], classes, labels: &[usize]| Classes::new(p, classes, labels).unwrap_err().to_string();
    assert_eq!(
        message(&[0.5, 0.5, f64::NAN, 1.0], 2, &[0, 1]),
        "the probability of class 0 in row 1 is NaN: probabilities lie between 0 and 1"
    );
    assert!(message(&[0.5, 0.5, 0.5, 0.4], 2, &[0, 1]).starts_with("the probabilities of row 1 sum to 0.9"));
    assert!(message(&[0.5, 0.5, 1.5, -0.5], 2, &[0, 1]).contains("class 1 in row 1 is -0.5"));
    assert_eq!(message(&[0.5, 0.5], 2, &[2]), "the label of row 0 is 2, but the classes are 0 to 1");
    assert!(message(&[0.5, 0.5], 2, &[0, 1]).starts_with("2 probabilities do not make 2 rows of 2"));
    assert!(Classes::new(&[], 0, &[]).is_err() && Classes::new(&[], 3, &[]).is_err());
    assert!(Classes::new(&[1.0], usize::MAX, &[0, 0, 0]).is_err());
    assert!(Classes::new(&[f64::INFINITY, 0.0], 2, &[0]).is_err());
    assert!(Classes::new(&[1e308, 1e308], 2, &[0]).is_err());
    let good = Classes::new(&[1.0, 0.0], 2, &[0]).unwrap();
    assert!(matches!(good.expected_calibration_error(0), Err(MetricsError::Setting { value: 0, .. })));
    assert!(good.midpoint_calibration_error(0).is_err());
    assert!(
        good.adaptive_calibration_error(usize::MAX).is_err() && good.reliability_of_every_class(0).is_err()
    );
    let wide = vec![1.0 / 4000.0; 4000];
    assert!(Classes::new(&wide, 4000, &[0]).unwrap().confusion().is_err());
    // A softmax in single precision is accepted.
    assert!(Probabilities::new(&[f64::from(0.3f32), f64::from(0.7f32)], 2).is_ok());
}

proptest! {
    #[test]
    fn scores_are_bounded_and_do_not_see_the_order_of_rows(
        n in 1usize..60, classes in 1usize..6, seed in 0u64..1000, shift in 0usize..60, bins in 1usize..20,
    ) {
        let (p, labels) = random(n, classes, seed);
        let a = Classes::new(&p, classes, &labels).unwrap();
        let order: Vec<usize> = (0..n).map(|i| (i + shift) % n).rev().collect();
        let q: Vec<f64> = order.iter().flat_map(|i| p[i * classes..(i + 1) * classes].to_vec()).collect();
        let moved: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
        let b = Classes::new(&q, classes, &moved).unwrap();
        let (x, y) = (a.scores(), b.scores());
        let close = |u: f64, v: f64| (u - v).abs() <= 1e-12 * (1.0 + u.abs());
        prop_assert!(close(x.nll, y.nll) && close(x.brier, y.brier) && x.accuracy == y.accuracy);
        prop_assert!(close(x.ece, y.ece) && close(x.adaptive_ece, y.adaptive_ece) && close(x.mean_entropy, y.mean_entropy));
        let pair = (a.adaptive_calibration_error(bins).unwrap(), b.adaptive_calibration_error(bins).unwrap());
        prop_assert!(close(pair.0, pair.1));
        for share in [x.accuracy, x.ece, x.adaptive_ece, x.mean_confidence, x.brier / 2.0] {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&share));
        }
        prop_assert!(x.mean_entropy >= 0.0 && x.mean_entropy <= (classes as f64).ln() + 1e-12);
        prop_assert!(x.mean_confidence >= 1.0 / classes as f64 - 1e-12);
        // A calibration error is at least the gap of the averages (triangle inequality).
        prop_assert!(x.ece >= (x.accuracy - x.mean_confidence).abs() - 1e-12);
    }
}

#[test]
fn the_area_under_the_curve_is_that_of_one_class_against_the_rest() {
    // Two classes: three of four pairs are in order.
    let two = [0.9, 0.1, 0.4, 0.6, 0.7, 0.3, 0.2, 0.8];
    let scores = Classes::new(&two, 2, &[0, 0, 1, 1]).unwrap().scores();
    assert_eq!(scores.auc, Some(0.75));
    // Three: perfect for classes 0 and 2, chance for class 1.
    let three = [0.6, 0.2, 0.2, 0.3, 0.2, 0.5, 0.3, 0.2, 0.5, 0.2, 0.2, 0.6];
    let scores = Classes::new(&three, 3, &[0, 1, 1, 2]).unwrap().scores();
    let expected = (1.0 + 0.5 + 1.0) / 3.0;
    assert!((scores.auc.unwrap() - expected).abs() < 1e-15, "{:?}", scores.auc);
    // A class that does not occur has no share in it, and one class alone none at all.
    assert_eq!(Classes::new(&two, 2, &[1; 4]).unwrap().scores().auc, None);
    assert!(Classes::new(&three, 3, &[0, 0, 1, 1]).unwrap().scores().auc.is_some());
}
