//! The tables of spec `likelihood_approximations`, sections 4.1, 4.2 and 6.1, to every digit that is printed.

use super::*;

/// To half a unit of the last printed decimal.
fn printed(found: f64, expected: f64, decimals: i32) {
    assert!((found - expected).abs() <= 0.500_001 * 10f64.powi(-decimals), "{found} for {expected}");
}

/// `(pseudo-count, observed, (m, v) for moment-original, moment, Laplace, variational)`.
type Row = (f64, bool, [(f64, f64); 4]);

#[rustfmt::skip]
#[expect(clippy::approx_constant, reason = "as printed")]
const CLASSES: [Row; 14] = [
    (0.001, true, [(-0.345324, 0.692648), (-0.575572, 1.642533), (0.001000, 0.999001), (-0.498501, 0.999001)]),
    (0.001, false, [(-10.362133, 6.908755), (-1000.575572, 1000001.642533), (-6.907755, 1000.0), (-506.907755, 1000.0)]),
    (0.01, true, [(-0.334142, 0.688184), (-0.560885, 1.621214), (0.009950, 0.990099), (-0.485099, 0.990099)]),
    (0.01, false, [(-6.912730, 4.615121), (-100.560885, 10001.621214), (-4.605170, 100.0), (-54.605170, 100.0)]),
    (0.05, true, [(-0.285735, 0.669050), (-0.497845, 1.532357), (0.048790, 0.952381), (-0.427400, 0.952381)]),
    (0.05, false, [(-4.517993, 3.044522), (-20.497845, 401.532357), (-2.995732, 20.0), (-12.995732, 20.0)]),
    (0.1, true, [(-0.228003, 0.646627), (-0.423755, 1.433299), (0.095310, 0.909091), (-0.359235, 0.909091)]),
    (0.1, false, [(-3.501533, 2.397895), (-10.423755, 101.433299), (-2.302585, 10.0), (-7.302585, 10.0)]),
    (0.2, true, [(-0.120746, 0.606136), (-0.289040, 1.267377), (0.182322, 0.833333), (-0.234345, 0.833333)]),
    (0.2, false, [(-2.505318, 1.791759), (-5.289040, 26.267377), (-1.609438, 5.0), (-4.109438, 5.0)]),
    (0.5, true, [(0.150052, 0.510826), (0.036490, 0.934802), (0.405465, 0.666667), (0.072132, 0.666667)]),
    (0.5, false, [(-1.242453, 1.098612), (-1.963510, 4.934802), (-0.693147, 2.0), (-1.693147, 2.0)]),
    (1.0, true, [(0.490415, 0.405465), (0.422784, 0.644934), (0.693147, 0.5), (0.443147, 0.5)]),
    (1.0, false, [(-0.346574, 0.693147), (-0.577216, 1.644934), (0.0, 1.0), (-0.5, 1.0)]),
];

#[test]
fn classes() {
    for (pseudo_count, observed, row) in CLASSES {
        for (matching, (target, variance)) in ALL.into_iter().zip(row) {
            let found = Gaussianised::new(matching, pseudo_count).unwrap().class(observed);
            printed(found.target, target, 6);
            printed(found.variance, variance, 6);
        }
    }
}

/// `(pseudo-count, (m, v) for moment, Laplace, variational, decimals of the last)` of an event that happened.
type EventRow = (f64, [(f64, f64); 3], [i32; 2]);

#[rustfmt::skip]
#[expect(clippy::approx_constant, reason = "as printed")]
const EVENTS: [EventRow; 7] = [
    (0.001, [(1000.0, 1000003.285066), (6.908755, 1000.999001), (917.835, 88178.77)], [3, 2]),
    (0.01, [(100.0, 10003.242427), (4.615121, 100.990099), (87.549374, 1404.020657)], [6, 6]),
    (0.05, [(20.0, 403.064715), (3.044522, 20.952381), (16.653453, 93.744233)], [6, 6]),
    (0.1, [(10.0, 102.866598), (2.397895, 10.909091), (8.280619, 32.592530)], [6, 6]),
    (0.2, [(5.0, 27.534754), (1.791759, 5.833333), (4.244953, 12.636494)], [6, 6]),
    (0.5, [(2.0, 5.869604), (1.098612, 2.666667), (1.817384, 4.265231)], [6, 6]),
    // Printed as 2.037238; the root with 25 digits is 2.03723852377...
    (1.0, [(1.0, 2.289868), (0.693147, 1.5), (0.952551, 2.037239)], [6, 6]),
];

#[test]
fn events() {
    for (pseudo_count, row, last) in EVENTS {
        for (matching, (target, variance)) in COMMON.into_iter().zip(row) {
            let decimals = if matching == Matching::Variational { last } else { [6, 6] };
            let events = Gaussianised::new(matching, pseudo_count).unwrap();
            let (yes, no) = (events.event(true).unwrap(), events.event(false).unwrap());
            printed(yes.target, target, decimals[0]);
            printed(yes.variance, variance, decimals[1]);
            assert_eq!((no.target, no.variance), (-yes.target, yes.variance));
        }
        // The variance of moments is 2 ψ₁(a) - 1/a², because ψ₁(a + 1) = ψ₁(a) - 1/a².
        let twice = 2.0 * gamma(Matching::Moment, pseudo_count, 1.0).unwrap().observation.variance;
        let moments = Gaussianised::new(Matching::Moment, pseudo_count).unwrap().event(true).unwrap();
        assert_close(&[moments.variance], &[twice - pseudo_count.powi(-2)], 1e-12, 0.0);
        assert_close(&[moments.target], &[1.0 / pseudo_count], 1e-12, 0.0);
    }
}

#[test]
fn gaps_between_classes() {
    for pseudo_count in [0.001, 0.01, 0.1, 0.2, 1.0, 7.0] {
        let gap = |matching| {
            let labels = Gaussianised::new(matching, pseudo_count).unwrap();
            labels.class(true).target - labels.class(false).target
        };
        let laplace = (1.0 / pseudo_count).ln_1p();
        let further = 0.5 / pseudo_count - 0.5 / (1.0 + pseudo_count);
        let found = [Matching::Laplace, Matching::Variational, Matching::Moment].map(gap);
        assert_close(&found, &[laplace, laplace + further, 1.0 / pseudo_count], 1e-12, 0.0);
    }
}

/// `(pseudo-count, ceilings with 2 and 10 classes for moment-original, moment, Laplace, variational)`.
#[rustfmt::skip]
const CEILINGS: [(f64, [(f64, f64); 4]); 4] = [
    (0.01, [(0.9986, 0.9876), (1.0, 1.0), (0.9902, 0.9182), (1.0, 1.0)]),
    (0.05, [(0.9857, 0.8844), (1.0, 1.0), (0.9545, 0.7000), (1.0, 1.0)]),
    (0.1, [(0.9635, 0.7458), (1.0000, 0.9996), (0.9167, 0.5500), (0.9990, 0.9914)]),
    (0.2, [(0.9156, 0.5467), (0.9933, 0.9428), (0.8571, 0.4000), (0.9797, 0.8426)]),
];

#[test]
fn confidence_ceilings() {
    for (pseudo_count, row) in CEILINGS {
        for (matching, (two, ten)) in ALL.into_iter().zip(row) {
            let labels = Gaussianised::new(matching, pseudo_count).unwrap();
            printed(labels.confidence_ceiling(2), two, 4);
            printed(labels.confidence_ceiling(10), ten, 4);
            // It is the softmax of the pseudo-targets.
            let mut targets = [labels.class(false).target; 10];
            targets[3] = labels.class(true).target;
            let total: f64 = targets.iter().map(|t| t.exp()).sum();
            assert_close(&[labels.confidence_ceiling(10)], &[targets[3].exp() / total], 1e-13, 0.0);
            assert_eq!((labels.confidence_ceiling(1), labels.confidence_ceiling(0)), (1.0, 1.0));
        }
        // Laplace: (1 + a) / (K a + 1).
        let laplace = Gaussianised::new(Matching::Laplace, pseudo_count).unwrap();
        let exact = (1.0 + pseudo_count) / (26.0 * pseudo_count + 1.0);
        assert_close(&[laplace.confidence_ceiling(26)], &[exact], 1e-14, 0.0);
    }
}
