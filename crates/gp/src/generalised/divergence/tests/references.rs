//! Reference values: those of the spec (section 20), and some with many digits.

use super::{all, normal, value};
use crate::generalised::divergence::{Divergence, DivergenceError};

/// At `N(0.4, 2.25)` and `N(-0.3, 0.49)`: value, slopes in mean and variance.
const SPEC: [(&str, f64, f64, f64); 8] = [
    ("bhattacharyya", 0.177718317032, -0.127737226, -0.344039129),
    ("wasserstein", 1.13, -1.4, -1.142857143),
    ("hellinger", 0.162821790879, -0.106938822, -0.288022062),
    ("kullback-leibler", 1.533778315300, -1.428571429, -4.685547688),
    ("kullback-leibler=posterior-to-prior", 0.479917829825, -0.311111111, -0.798185941),
    ("renyi", 0.355436634065, -0.255474453, -0.688078258),
    ("renyi=1.4", 0.537966336257, -0.331753555, -0.835423228),
    ("squared-difference", 3.5876, -1.4, -3.52),
];

#[test]
fn the_values_of_the_spec_are_met() {
    let (prior, posterior) = (normal((0.4, 2.25)), normal((-0.3, 0.49)));
    for (name, expected, mean, variance) in SPEC {
        let found = name.parse::<Divergence>().unwrap().between(prior, posterior);
        assert!((found.value - expected).abs() < 1e-12, "{name}: {}", found.value);
        assert!((found.mean - mean).abs() < 5.1e-10, "{name}: {}", found.mean);
        assert!((found.variance - variance).abs() < 5.1e-10, "{name}: {}", found.variance);
    }
    let root = value(Divergence::SymmetricKullbackLeibler, (0.4, 2.25), (-0.3, 0.49));
    assert!((root - 1.419047619048).abs() < 1e-12);
}

/// Divergence, (Δ, P, Q), value with slopes in mean and variance.
type Exact = (&'static str, (f64, f64, f64), [f64; 3]);

/// Computed with 80 digits.
const EXACT: [Exact; 64] = [
    (
        "kullback-leibler=prior-to-posterior",
        (1e-09, 2.25, 2.250000002095476),
        [4.390626562430981e-19, 4.4444444403052335e-10, 2.0696057165251347e-10],
    ),
    (
        "kullback-leibler=prior-to-posterior",
        (-3e-05, 0.5, 0.4999995231628418),
        [9.002282322722675e-10, -6.000005722051355e-05, -9.55476138831488e-07],
    ),
    (
        "kullback-leibler=prior-to-posterior",
        (2.0, 0.001, 0.0017),
        [1176.530020007884, 1176.4705882352941, -691920.4152249136],
    ),
    (
        "kullback-leibler=prior-to-posterior",
        (1e-151, 1e-300, 1.5e-300),
        [0.03939922072074887, 6.666666666666666e+148, 1.088888888888889e+299],
    ),
    (
        "kullback-leibler=prior-to-posterior",
        (-0.5, 40.0, 1e-08),
        [2012499988.4452198, -50000000.0, -2.0124999995e+17],
    ),
    (
        "kullback-leibler=prior-to-posterior",
        (0.25, 1e-08, 4e-08),
        [781250.3181471805, 6250000.0, -19531240625000.0],
    ),
    (
        "kullback-leibler=posterior-to-prior",
        (1e-09, 2.25, 2.250000002095476),
        [4.390626565846909e-19, 4.444444444444445e-10, 2.0696057194402595e-10],
    ),
    (
        "kullback-leibler=posterior-to-prior",
        (-3e-05, 0.5, 0.4999995231628418),
        [9.002273738200037e-10, -6e-05, -9.536752259018191e-07],
    ),
    (
        "kullback-leibler=posterior-to-prior",
        (2.0, 0.001, 0.0017),
        [2000.084685874469, 2000.0, 205.88235294117644],
    ),
    (
        "kullback-leibler=posterior-to-prior",
        (1e-151, 1e-300, 1.5e-300),
        [0.05226744594591782, 9.999999999999999e+148, 1.6666666666666668e+299],
    ),
    (
        "kullback-leibler=posterior-to-prior",
        (-0.5, 40.0, 1e-08),
        [10.55790509915815, -0.0125, -49999999.9875],
    ),
    (
        "kullback-leibler=posterior-to-prior",
        (0.25, 1e-08, 4e-08),
        [3125000.8068528194, 25000000.0, 37500000.0],
    ),
    (
        "bhattacharyya",
        (1e-09, 2.25, 2.250000002095476),
        [1.097656641034736e-19, 1.1111111105937097e-10, 5.1740142949567424e-11],
    ),
    (
        "bhattacharyya",
        (-3e-05, 0.5, 0.4999995231628418),
        [2.2505695076148273e-10, -1.5000007152560784e-05, -2.38643920377032e-07],
    ),
    ("bhattacharyya", (2.0, 0.001, 0.0017), [370.38776560383, 370.3703703703704, -137136.08488662957]),
    (
        "bhattacharyya",
        (1e-151, 1e-300, 1.5e-300),
        [0.011205498630063785, 1.9999999999999998e+148, 3.2933333333333335e+298],
    ),
    ("bhattacharyya", (-0.5, 40.0, 1e-08), [5.182378959361212, -0.0062499999984375, -24999999.98753906]),
    ("bhattacharyya", (0.25, 1e-08, 4e-08), [312500.11157177563, 2500000.0, -6249996250000.0]),
    (
        "hellinger",
        (1e-09, 2.25, 2.250000002095476),
        [1.097656641034736e-19, 1.1111111105937097e-10, 5.1740142949567424e-11],
    ),
    (
        "hellinger",
        (-3e-05, 0.5, 0.4999995231628418),
        [2.250569507361574e-10, -1.5000007149184928e-05, -2.3864392032332354e-07],
    ),
    (
        "hellinger",
        (1e-151, 1e-300, 1.5e-300),
        [0.01114295087454763, 1.9777140982509044e+148, 3.25663588178649e+298],
    ),
    ("hellinger", (-0.5, 40.0, 1e-08), [0.994385366471058, -3.509145954711471e-05, -140365.8381535867]),
    ("hellinger", (0.25, 1e-08, 4e-08), [1.0, 0.0, 0.0]),
    ("wasserstein", (1e-09, 2.25, 2.250000002095476), [1.4878909773912851e-18, 2e-09, 4.656612869824786e-10]),
    (
        "wasserstein",
        (-3e-05, 0.5, 0.4999995231628418),
        [9.001136868919318e-10, -6e-05, -4.768374992639092e-07],
    ),
    ("wasserstein", (2.0, 0.001, 0.0017), [4.000092319037919, 4.0, 0.23303501115262953]),
    ("wasserstein", (1e-151, 1e-300, 1.5e-300), [6.051025721682192e-302, 2e-151, 0.183503419072274]),
    ("wasserstein", (-0.5, 40.0, 1e-08), [40.24873509893593, -1.0, -63244.553203367585]),
    ("wasserstein", (0.25, 1e-08, 4e-08), [0.06250001, 0.5, 0.5]),
    (
        "squared-difference",
        (1e-09, 2.25, 2.250000002095476),
        [5.391018798566293e-18, 2e-09, 4.190951585769653e-09],
    ),
    (
        "squared-difference",
        (-3e-05, 0.5, 0.4999995231628418),
        [9.002273736754432e-10, -6e-05, -9.5367431640625e-07],
    ),
    ("squared-difference", (2.0, 0.001, 0.0017), [4.00000049, 4.0, 0.0013999999999999998]),
    ("squared-difference", (-0.5, 40.0, 1e-08), [1600.2499992, -1.0, -79.99999998]),
    ("squared-difference", (0.25, 1e-08, 4e-08), [0.0625000000000009, 0.5, 6.000000000000001e-08]),
    (
        "symmetric-kullback-leibler",
        (1e-09, 2.25, 2.250000002095476),
        [9.370834076152395e-10, 0.4742848295313858, 0.22085608401173018],
    ),
    (
        "symmetric-kullback-leibler",
        (-3e-05, 0.5, 0.4999995231628418),
        [4.2431775900759455e-05, -1.4140352916311212, -0.02249671766270731],
    ),
    (
        "symmetric-kullback-leibler",
        (2.0, 0.001, 0.0017),
        [56.361464724422774, 28.17945384995338, -6136.413738128384],
    ),
    (
        "symmetric-kullback-leibler",
        (1e-151, 1e-300, 1.5e-300),
        [0.3027650354097492, 2.752409412815901e+149, 4.5506502291889566e+299],
    ),
    (
        "symmetric-kullback-leibler",
        (-0.5, 40.0, 1e-08),
        [44860.896101205166, -557.2782128526939, -2243044806171.3315],
    ),
    (
        "symmetric-kullback-leibler",
        (0.25, 1e-08, 4e-08),
        [1976.423822210206, 7905.693012001237, -4941046273.961255],
    ),
    (
        "renyi=0.01",
        (1e-09, 2.25, 2.250000002095476),
        [4.39062656246514e-21, 4.444444440346626e-12, 2.069605716554286e-12],
    ),
    (
        "renyi=0.01",
        (-3e-05, 0.5, 0.4999995231628418),
        [9.002282236877368e-12, -6.000005664830788e-07, -9.554581296681938e-09],
    ),
    ("renyi=0.01", (2.0, 0.001, 0.0017), [11.813945112040926, 11.813349084465447, -6906.767141223498]),
    (
        "renyi=0.01",
        (1e-151, 1e-300, 1.5e-300),
        [0.0003949346218954367, 6.688963210702341e+146, 1.0926797985108295e+297],
    ),
    ("renyi=0.01", (-0.5, 40.0, 1e-08), [8.732061583178993, -0.012499999690625008, -49999998.7577344]),
    ("renyi=0.01", (0.25, 1e-08, 4e-08), [7871.539723261385, 62972.292191435765, -196292629941.81805]),
    (
        "renyi=0.9",
        (1e-09, 2.25, 2.250000002095476),
        [3.9515639089547843e-19, 3.999999999627471e-10, 1.8626451472338725e-10],
    ),
    (
        "renyi=0.9",
        (-3e-05, 0.5, 0.4999995231628418),
        [8.102047136986408e-10, -5.40000051498418e-05, -8.584697851971453e-07],
    ),
    ("renyi=0.9", (2.0, 0.001, 0.0017), [1682.3159697710437, 1682.2429906542056, -157045.79901661072]),
    (
        "renyi=0.9",
        (1e-151, 1e-300, 1.5e-300),
        [0.045503981078792125, 8.571428571428571e+148, 1.4244897959183674e+299],
    ),
    ("renyi=0.9", (-0.5, 40.0, 1e-08), [10.531102520882822, -0.012499999999652778, -49999999.98611979]),
    ("renyi=0.9", (0.25, 1e-08, 4e-08), [2163462.1571356803, 17307692.307692308, -16641985872781.062]),
    (
        "renyi=1.0000001",
        (1e-09, 2.25, 2.250000002095476),
        [4.390627004909566e-19, 4.44444488888889e-10, 2.069605926400832e-10],
    ),
    (
        "renyi=1.0000001",
        (-3e-05, 0.5, 0.4999995231628418),
        [9.002274638426553e-10, -6.0000005999994285e-05, -9.536753210892508e-07],
    ),
    ("renyi=1.0000001", (2.0, 0.001, 0.0017), [2000.0850258867429, 2000.000340000024, 206.08238798929568]),
    (
        "renyi=1.0000001",
        (1e-151, 1e-300, 1.5e-300),
        [0.05226745294591807, 1.0000001500000075e+149, 1.6666669216666804e+299],
    ),
    ("renyi=1.0000001", (-0.5, 40.0, 1e-08), [10.557905124158149, -0.0125, -49999999.9875]),
    ("renyi=1.0000001", (0.25, 1e-08, 4e-08), [3125002.05685342, 25000010.000003006, 68750036.89326069]),
    (
        "renyi=1.25",
        (1e-09, 2.25, 2.250000002095476),
        [5.488283208376114e-19, 5.555555556849059e-10, 2.587007150211301e-10],
    ),
    (
        "renyi=1.25",
        (-3e-05, 0.5, 0.4999995231628418),
        [1.125283949008992e-09, -7.499998211861083e-05, -1.1915312484281972e-06],
    ),
    ("renyi=1.25", (2.0, 0.001, 0.0017), [3030.422459962794, 3030.30303030303, 918585.5885053745]),
    (
        "renyi=1.25",
        (1e-151, 1e-300, 1.5e-300),
        [0.07147308833782022, 1.4285714285714284e+149, 2.4013605442176873e+299],
    ),
    ("renyi=1.25", (-0.5, 40.0, 1e-08), [10.611617996504888, -0.012500000000625, -49999999.98998437]),
    ("renyi=1.25", (0.25, 1e-08, 4e-08), [15625002.079441542, 125000000.0, 1562500187500000.0]),
];

#[test]
fn digits_are_kept_near_the_prior_and_far_from_it() {
    for (name, (delta, prior, posterior), [expected, mean, variance]) in EXACT {
        let divergence: Divergence = name.parse().unwrap();
        let found = divergence.between(normal((0.0, prior)), normal((delta, posterior)));
        for (part, found, expected) in [
            ("value", found.value, expected),
            ("mean", found.mean, mean),
            ("variance", found.variance, variance),
        ] {
            // A slope is a sum of two terms, of which one may be twenty times the sum.
            let error = (found - expected).abs();
            assert!(
                error <= 100.0 * f64::EPSILON * expected.abs(),
                "{name}, {part} at {delta:e}, {prior:e}, {posterior:e}: {found:e}, not {expected:e}"
            );
        }
    }
}

#[test]
fn names_are_read_and_written() {
    for divergence in all() {
        assert_eq!(divergence.to_string().parse::<Divergence>().unwrap(), divergence);
        let json = serde_json::to_string(&divergence).unwrap();
        assert_eq!(json, format!("\"{divergence}\""));
        assert_eq!(serde_json::from_str::<Divergence>(&json).unwrap(), divergence);
    }
    assert_eq!(" renyi = 2 ".parse::<Divergence>().unwrap(), Divergence::Renyi { order: 2.0 });
    for wrong in ["", "kl", "renyi=", "renyi=half", "hellinger=2", "kullback-leibler=both", "Wasserstein"] {
        assert_eq!(wrong.parse::<Divergence>(), Err(DivergenceError::Unknown(wrong.into())), "{wrong}");
    }
    for wrong in ["renyi=1", "renyi=0", "renyi=-0.5", "renyi=inf", "renyi=nan"] {
        assert!(matches!(wrong.parse::<Divergence>(), Err(DivergenceError::Order { .. })), "{wrong}");
    }
}

#[test]
fn divergences_are_zero_at_the_prior_and_positive_elsewhere() {
    for divergence in all() {
        for prior in [(0.0, 1.0), (-3.0, 1e-12), (1e5, 40.0)] {
            let there = divergence.between(normal(prior), normal(prior));
            assert_eq!((there.value, there.mean, there.variance), (0.0, 0.0, 0.0), "{divergence}");
            for (mean, scale) in [(1e-7, 1.0), (0.0, 1.0 + 1e-12), (0.3, 0.5), (-2.0, 1.9), (0.0, 0.01)] {
                let posterior = (prior.0 + mean * prior.1.sqrt(), scale * prior.1);
                assert!(value(divergence, prior, posterior) > 0.0, "{divergence} at {mean}, {scale}");
            }
        }
    }
}

#[test]
fn divergences_are_related_as_they_should_be() {
    for (prior, posterior) in
        [((0.4, 2.25), (-0.3, 0.49)), ((0.0, 1e-6), (0.1, 2e-4)), ((1.0, 1.0), (1.0 + 1e-8, 1.0 + 1e-9))]
    {
        let of = |name: &str| value(name.parse().unwrap(), prior, posterior);
        let back = |name: &str| value(name.parse().unwrap(), posterior, prior);
        let same = |a: f64, b: f64| assert!((a - b).abs() <= 1e-13 * b, "{a:e}, {b:e}");
        same(of("hellinger"), -(-of("bhattacharyya")).exp_m1());
        // Erratum E17.
        same(of("renyi=0.5"), 2.0 * of("bhattacharyya"));
        // Erratum E16: what is printed as the divergence of Q from P is that of P from Q.
        same(of("kullback-leibler=prior-to-posterior"), back("kullback-leibler=posterior-to-prior"));
        let both = of("kullback-leibler=prior-to-posterior") + of("kullback-leibler=posterior-to-prior");
        same(of("symmetric-kullback-leibler"), both.sqrt());
        // Skew symmetry, and the same through the other way to write it.
        same(of("renyi=0.25"), 0.25 / 0.75 * back("renyi=0.75"));
        // The order tends to 1 from both sides, linearly in what is left, with no digits lost.
        let limit = of("kullback-leibler=posterior-to-prior");
        for left in [1e-3, 1e-6, 1e-10, f64::EPSILON] {
            for order in [1.0 - left, 1.0 + left] {
                let found = value(Divergence::Renyi { order }, prior, posterior);
                assert!(
                    (found - limit).abs() <= (1e3 * left + 1e-14) * limit * (1.0 + limit),
                    "{order}: {found:e}"
                );
            }
        }
        // And to 0 with the divergence the other way round as its slope.
        let order = 1e-12;
        let small = value(Divergence::Renyi { order }, prior, posterior) / order;
        let limit = of("kullback-leibler=prior-to-posterior");
        assert!((small - limit).abs() <= 1e-8 * limit);
    }
}

#[test]
fn units_matter_where_it_is_said() {
    for divergence in all() {
        let (here, there) =
            (value(divergence, (0.4, 2.25), (-0.3, 0.49)), value(divergence, (4e2, 2.25e6), (-3e2, 0.49e6)));
        let same = (here - there).abs() < 1e-13 * here;
        assert_eq!(same, divergence.is_invariant(), "{divergence}");
    }
}
