//! Designs against dense mutual information, brute force over sets, and Monte Carlo.

mod first_angles;

use super::*;
use crate::priors::Matern;
use crate::test_problem::{detectors, normal, projector};
use faer::Mat;
use posterior_linalg::dense::eigenvalues;
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::solve::Estimate;

const EXACT: DesignMethod = DesignMethod::Exact;

fn settings(acquisition: Acquisition, method: DesignMethod, noise_variance: f64) -> DesignSettings {
    DesignSettings { acquisition, method, noise_variance, stabiliser: 0.0, seed: 3 }
}

/// Greedy steps.
fn steps(designer: &mut Designer<'_>, count: usize) {
    for _ in 0..count {
        designer.step().unwrap();
    }
}

/// 6 x 5 pixels, 12 angles, a root of 17 weights.
fn problem() -> (DenseScanner, Dense<f64>) {
    let scanner = DenseScanner::new(projector(6, 5, detectors(6, 5), 12), 12).unwrap();
    (scanner, Dense::new(normal(30, 17, 4)))
}

/// `T K Tᵀ` of some angles.
fn signal(scanner: &DenseScanner, root: &Dense<f64>, angles: &[usize]) -> Mat<f64> {
    let seen = scanner.at(angles).to_dense() * root.matrix();
    &seen * seen.transpose()
}

/// `½ log det (I + T K Tᵀ / σ²)` by eigenvalues: the information of a set of angles.
fn information(scanner: &DenseScanner, root: &Dense<f64>, angles: &[usize], noise: f64) -> f64 {
    let values = eigenvalues(signal(scanner, root, angles).as_ref()).unwrap();
    values.iter().map(|value| 0.5 * (value.max(0.0) / noise).ln_1p()).sum()
}

/// Σ of an angle after others, by a Schur complement of `T_all K T_allᵀ`.
fn schur(scanner: &DenseScanner, root: &Dense<f64>, before: &[usize], angle: usize, noise: f64) -> Mat<f64> {
    use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
    let mut all = before.to_vec();
    all.push(angle);
    let joint = signal(scanner, root, &all);
    let (c, n) = (before.len() * scanner.per_angle(), scanner.per_angle());
    let mut seen = joint.submatrix(0, 0, c, c).to_owned();
    (0..c).for_each(|i| seen[(i, i)] += noise);
    let cross = joint.submatrix(0, c, c, n);
    let solved = Cholesky::of(seen.as_ref(), JitterPolicy::NONE).unwrap().solve(cross);
    joint.submatrix(c, c, n, n) - cross.transpose() * solved
}

#[test]
fn exact_scores_are_mutual_information_and_schur_complements() {
    let (scanner, root) = problem();
    let noise = 0.4;
    let mut designer =
        Designer::new(&scanner, &root, settings(Acquisition::Information, EXACT, noise), &[0, 7]).unwrap();
    for _ in 0..4 {
        let before = designer.chosen().to_vec();
        let known = information(&scanner, &root, &before, noise);
        let scores = designer.scores().unwrap();
        assert_eq!(scores.len(), 12 - before.len());
        for score in &scores {
            let mut with = before.clone();
            with.push(score.angle);
            let expected = information(&scanner, &root, &with, noise) - known;
            assert!((score.value - expected).abs() < 1e-8 && score.value >= 0.0, "{score:?} {expected}");
        }
        for acquisition in [Acquisition::Variance, Acquisition::DiagonalInformation] {
            let other = settings(acquisition, EXACT, noise);
            let other = Designer::new(&scanner, &root, other, &before).unwrap().scores().unwrap();
            for (score, information) in other.iter().zip(&scores) {
                let covariance = schur(&scanner, &root, &before, score.angle, noise);
                let diagonal = (0..scanner.per_angle()).map(|i| covariance[(i, i)]);
                let expected: f64 = match acquisition {
                    Acquisition::Variance => diagonal.sum(),
                    _ => diagonal.map(|d| 0.5 * (d / noise).ln_1p()).sum(),
                };
                assert!((score.value - expected).abs() < 1e-8 * expected);
                // Hadamard.
                let bounded = acquisition == Acquisition::Variance || score.value >= information.value;
                assert!(bounded);
            }
        }
        designer.step().unwrap();
    }
}

#[test]
fn of_one_detector_element_all_acquisitions_rank_alike() {
    let (_, root) = problem();
    let scanner = DenseScanner::new(normal(20, 30, 9), 20).unwrap();
    let order = |acquisition| {
        let mut designer = Designer::new(&scanner, &root, settings(acquisition, EXACT, 0.2), &[4]).unwrap();
        let mut ranking: Vec<Score> = designer.scores().unwrap();
        ranking.sort_by(|a, b| b.value.total_cmp(&a.value));
        steps(&mut designer, 8);
        let ranking: Vec<usize> = ranking.iter().map(|score| score.angle).collect();
        (ranking, designer.chosen().to_vec())
    };
    let information = order(Acquisition::Information);
    assert_eq!(information, order(Acquisition::Variance));
    assert_eq!(information, order(Acquisition::DiagonalInformation));
}

/// Of m draws the trace has variance `2 tr Σ² / m`. The information is too low by at most `n (n + 1) / 4m` on average, with a variance of at most `n / 2m` (that of a Wishart log-determinant, `Σ 2/(m - i)` over 4, to first order): both are
/// those without noise, which only makes them smaller. Five deviations.
#[test]
fn sampled_scores_converge_to_exact_ones() {
    let (scanner, root) = problem();
    let (noise, n) = (0.4, scanner.per_angle() as f64);
    for samples in [1000, 16_000] {
        let m = samples as f64;
        for pilot in [&[][..], &[0, 7]] {
            // The second time with angles added one by one, by conditioning.
            for added in [&[][..], &[3, 10]] {
                let all = [pilot, added].concat();
                for acquisition in [Acquisition::Variance, Acquisition::Information] {
                    let sampled = settings(acquisition, DesignMethod::Sampled { samples }, noise);
                    let mut designer = Designer::new(&scanner, &root, sampled, pilot).unwrap();
                    added.iter().for_each(|&angle| designer.add(angle).unwrap());
                    let exact =
                        Designer::new(&scanner, &root, settings(acquisition, EXACT, noise), &all).unwrap();
                    for (a, b) in designer.scores().unwrap().iter().zip(exact.scores().unwrap()) {
                        let covariance = schur(&scanner, &root, &all, a.angle, noise);
                        let tolerance = match acquisition {
                            Acquisition::Variance => 5.0 * (2.0 / m).sqrt() * covariance.norm_l2(),
                            _ => n * (n + 1.0) / (4.0 * m) + 5.0 * (0.5 * n / m).sqrt(),
                        };
                        assert_eq!(a.angle, b.angle);
                        assert!((a.value - b.value).abs() < tolerance, "{acquisition:?} {m} {a:?} {b:?}");
                    }
                }
            }
        }
    }
}

/// Draws that were conditioned step by step have the covariance of the posterior: as those drawn anew. An entry of m draws has variance `(S_ij² + S_ii S_jj) / m`; 465 entries are within 5 deviations with probability 1 - 3e-4.
#[test]
fn conditioned_draws_are_draws_of_the_posterior() {
    let (scanner, root) = problem();
    let samples = 8000;
    let sampled = settings(Acquisition::Variance, DesignMethod::Sampled { samples }, 0.4);
    let mut designer = Designer::new(&scanner, &root, sampled, &[0]).unwrap();
    [5, 2, 9].iter().for_each(|&angle| designer.add(angle).unwrap());
    let (f, t) = (root.matrix(), scanner.at(&[0, 5, 2, 9]).to_dense());
    let seen = &t * f;
    let precision = seen.transpose() * &seen * faer::Scale(1.0 / 0.4) + Mat::<f64>::identity(17, 17);
    use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
    let exact = f * Cholesky::of(precision.as_ref(), JitterPolicy::NONE).unwrap().solve(f.transpose());
    let images = designer.images().unwrap();
    let empirical = images * images.transpose() * faer::Scale(1.0 / samples as f64);
    for j in 0..30 {
        for i in 0..=j {
            let deviation = ((exact[(i, j)].powi(2) + exact[(i, i)] * exact[(j, j)]) / samples as f64).sqrt();
            assert!((empirical[(i, j)] - exact[(i, j)]).abs() < 5.0 * deviation);
        }
    }
    // And no mean: each pixel's has a standard error of its deviation over √m.
    for pixel in 0..30 {
        let values: Vec<f64> = (0..samples).map(|j| images[(pixel, j)]).collect();
        let mean = Estimate::of(&values);
        assert!(mean.mean.abs() < 5.0 * mean.standard_error);
    }
}

/// All sets of 3 of 12 angles.
#[test]
fn greedy_information_is_near_the_best_sets() {
    let (scanner, root) = problem();
    for noise in [0.05, 5.0] {
        let mut designer =
            Designer::new(&scanner, &root, settings(Acquisition::Information, EXACT, noise), &[]).unwrap();
        let gained: f64 = (0..3).map(|_| designer.step().unwrap().value).sum();
        let own = information(&scanner, &root, designer.chosen(), noise);
        assert!((gained - own).abs() < 1e-8);
        let mut best = 0.0f64;
        for a in 0..12 {
            for b in a + 1..12 {
                (b + 1..12).for_each(|c| best = best.max(information(&scanner, &root, &[a, b, c], noise)));
            }
        }
        println!("noise {noise}: greedy {own:.4}, best {best:.4}");
        assert!(own <= best + 1e-9 && own >= (1.0 - (-1.0f64).exp()) * best);
    }
}

/// Fix F10: the thesis says designs do not depend on the prior variance and the noise; only their ratio is without effect.
#[test]
fn only_scaling_prior_and_noise_together_leaves_a_design() {
    let (scanner, root) = problem();
    let design = |factor: f64, noise: f64, acquisition| {
        let root = Dense::new(root.matrix() * faer::Scale(factor.sqrt()));
        let mut designer =
            Designer::new(&scanner, &root, settings(acquisition, EXACT, noise), &[0, 4, 8]).unwrap();
        steps(&mut designer, 6);
        designer.chosen().to_vec()
    };
    let mut changed = 0;
    for acquisition in [Acquisition::Information, Acquisition::Variance] {
        let own = design(1.0, 0.4, acquisition);
        // A power of four, so that not even rounding differs.
        assert_eq!(own, design(4096.0, 0.4 * 4096.0, acquisition));
        for factor in [1e-4, 1e-2, 100.0] {
            changed += usize::from(own != design(factor, 0.4, acquisition));
        }
    }
    println!("{changed} of 6 designs changed");
    assert!(changed > 0);
}

#[test]
fn states_resume_bit_for_bit_and_refreshes_rebuild() {
    let (scanner, root) = problem();
    let other = Dense::new(normal(30, 9, 5));
    for method in [EXACT, DesignMethod::Sampled { samples: 200 }] {
        let mut own = settings(Acquisition::Variance, method, 0.3);
        own.stabiliser = 0.05;
        let mut whole = Designer::new(&scanner, &root, own, &[0, 6]).unwrap();
        assert!(whole.jitter() > 0.0 && (whole.noise_variance() - whole.jitter() - 0.3).abs() < 1e-15);
        steps(&mut whole, 2);
        for refreshed in [false, true] {
            let current = if refreshed { &other } else { &root };
            if refreshed {
                let before = whole.scores().unwrap();
                whole = whole.refresh(&other).unwrap();
                assert_ne!(before, whole.scores().unwrap());
            }
            whole.step().unwrap();
            let text = serde_json::to_string(whole.state()).unwrap();
            let state: DesignState = serde_json::from_str(&text).unwrap();
            let mut resumed = Designer::resume(&scanner, current, state).unwrap();
            assert_eq!(whole.scores().unwrap(), resumed.scores().unwrap());
            assert_eq!(whole.noise_variance(), resumed.noise_variance());
            assert_eq!(whole.step().unwrap(), resumed.step().unwrap());
            assert_eq!(whole.state(), resumed.state());
        }
    }
}

/// Bits do not depend on the number of threads.
#[test]
fn any_number_of_threads_makes_the_same_design() {
    let scanner = DenseScanner::new(projector(16, 15, detectors(16, 15), 12), 12).unwrap();
    let root = Matern { height: 16, width: 15, lengthscale: 4.0, variance: 1.0 }.root(4.0).unwrap();
    let design = |threads: usize, method| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let own = settings(Acquisition::Information, method, 0.1);
            let mut designer = Designer::new(&scanner, &root, own, &[0, 6]).unwrap();
            steps(&mut designer, 4);
            let scores = designer.scores().unwrap();
            scores.iter().map(|score| (score.angle, score.value.to_bits())).collect::<Vec<_>>()
        })
    };
    for method in [EXACT, DesignMethod::Sampled { samples: 300 }] {
        let alone = design(1, method);
        assert_eq!(alone, design(2, method));
        assert_eq!(alone, design(5, method));
    }
}

#[test]
fn what_cannot_be_is_said_and_changes_nothing() {
    let (scanner, root) = problem();
    let own = settings(Acquisition::Information, EXACT, 0.3);
    let mut designer = Designer::new(&scanner, &root, own.clone(), &[1]).unwrap();
    assert_eq!(designer.add(12), Err(DesignError::Angle { angle: 12, angles: 12 }));
    assert_eq!(designer.add(1), Err(DesignError::Repeated { angle: 1 }));
    assert_eq!(designer.chosen(), [1]);
    steps(&mut designer, 11);
    assert_eq!(designer.step(), Err(DesignError::Exhausted { angles: 12 }));
    let fails =
        |settings: DesignSettings, pilot: &[usize]| Designer::new(&scanner, &root, settings, pilot).is_err();
    assert!(fails(DesignSettings { noise_variance: 0.0, ..own.clone() }, &[]));
    assert!(fails(DesignSettings { stabiliser: 0.1, ..own.clone() }, &[]));
    assert!(fails(DesignSettings { method: DesignMethod::Sampled { samples: 0 }, ..own.clone() }, &[]));
    assert!(fails(own.clone(), &[2, 2]) && fails(own.clone(), &[12]));
    let small = Dense::new(normal(29, 3, 1));
    assert!(Designer::new(&scanner, &small, own.clone(), &[]).is_err());
    let broken = Dense::new(Mat::from_fn(30, 2, |_, _| f64::NAN));
    let broken = Designer::new(&scanner, &broken, own, &[]).unwrap();
    assert!(matches!(broken.choose().unwrap_err(), DesignError::Cholesky { .. } | DesignError::Score { .. }));
    assert!(DenseScanner::new(normal(7, 3, 1), 2).is_err() && DenseScanner::new(normal(7, 3, 1), 0).is_err());
}

/// The published size: 128 x 128, 200 angles of 183, from 5 to 40, 3,000 draws.
#[test]
fn a_plan_says_what_the_published_design_needs() {
    struct Large;
    impl Scanner for Large {
        fn pixels(&self) -> usize {
            128 * 128
        }
        fn angles(&self) -> usize {
            200
        }
        fn per_angle(&self) -> usize {
            183
        }
        fn at<'a>(&'a self, _: &[usize]) -> Box<dyn LinearOperator<f64> + 'a> {
            unimplemented!("a plan projects nothing")
        }
    }
    let sampled = DesignPlan::of(&Large, 77_000, DesignMethod::Sampled { samples: 3000 }, 5, 40);
    let exact = DesignPlan::of(&Large, 77_000, EXACT, 5, 40);
    println!("{sampled:?} {exact:?}");
    // Draws 393 MB, factors 857 MB, projections 49 MB, a block of sets of weights 161 MB.
    assert!((1.3e9..1.7e9).contains(&sampled.bytes), "{:e}", sampled.bytes);
    // c R: 2.1 GB.
    assert!((2.1e9..2.8e9).contains(&exact.bytes), "{:e}", exact.bytes);
    assert!(sampled.root_columns < exact.root_columns);
}
