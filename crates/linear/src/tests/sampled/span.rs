//! Function space against weight space.

use super::*;

/// The case with features `Phi` and the same around `v`: the offset is what the model says there.
fn around(case: &Case, v: &Mat<f64>) -> DenseFeatures {
    DenseFeatures::new(case.features.whole().to_owned(), case.likelihood.outputs())
        .unwrap()
        .with_offset(case.offset.clone())
        .unwrap()
        .with_expansion_point(v.col(0).iter().copied().collect())
        .unwrap()
}

fn kernel(case: &Case) -> Mat<f64> {
    case.features.whole() * case.features.whole().transpose()
}

/// More weights than rows; as many rows as there are, some of them twice; fewer weights than rows.
fn cases() -> [(Case, usize); 4] {
    let mut twice = Case::softmax(8, 40);
    let phi = Mat::from_fn(24, 40, |i, j| twice.features.whole()[(i % 12, j)]);
    twice.features = DenseFeatures::new(phi, 3).unwrap().with_offset(twice.offset.clone()).unwrap();
    [(Case::softmax(5, 40), 15), (Case::gaussian(5, 40), 15), (twice, 12), (Case::softmax(8, 10), 10)]
}

#[test]
fn samples_are_those_of_weight_space_on_the_same_noise() {
    for (case, rank) in cases() {
        let d = case.features.whole().ncols();
        let features = around(&case, &normal(d, 1, "v"));
        let model = SampledModel::new(&features, &case.source, &case.likelihood);
        let span = Span::of(&model, kernel(&case), &mut go).unwrap();
        assert_eq!((span.rank(), span.beyond()), (rank, d - rank));
        // There and back leaves what is in the span.
        let u = normal(rank, 2, "u");
        let lifted = span.lifted(&model, u.as_ref()).unwrap();
        assert_matrix((lifted.transpose() * &lifted).as_ref(), (u.transpose() * &u).as_ref(), 1e-10);
        assert_matrix(span.coordinates(&model, lifted.as_ref()).unwrap().as_ref(), u.as_ref(), 1e-10);
        let own = span.model(&case.likelihood);
        let noise = span.noise(&model, 2..5, 3, &mut go).unwrap();
        let diagonal = own.curvature_diagonal(4, 0, &mut go).unwrap().0;
        let curvature = own.leading_curvature(&diagonal, 2, 0, &mut go).unwrap();
        let solve = Solve::ConjugateGradients(tight());
        let weights = Noise::draw(&model, 2..5, 3, &mut go).unwrap();
        for (a, strength) in [(0.3, 1.0), (7.0, 2.5)] {
            let (m, each) = (&model, vec![a; d]);
            let (n, c, s) = (&noise, &curvature, &solve);
            let mut sampler =
                FunctionSpace { model: m, span: &span, own: &own, noise: n, curvature: c, solve: s };
            let watch = &mut |_: &Progress, _: &dyn Fn() -> SolverState| Signal::Continue;
            let found = sampler.samples(&each, strength, None, None, watch).unwrap();
            let expected = exact(&model, &weights, a, strength);
            assert_matrix(found.samples.as_ref(), expected.as_ref(), 1e-8);
            // From where they are nothing is left to do.
            let again = sampler.samples(&each, strength, Some(&found.samples), None, watch).unwrap();
            assert!(again.steps <= 2, "{}", again.steps);
            let uneven: Vec<f64> = (0..d).map(|i| a + i as f64).collect();
            let refused = sampler.samples(&uneven, strength, None, None, watch).unwrap_err();
            assert!(refused.to_string().contains("one prior precision"), "{refused}");
        }
    }
}

#[test]
fn turns_are_those_of_weight_space_on_the_same_noise() {
    for (case, rank) in cases() {
        let d = case.features.whole().ncols();
        let features = around(&case, &normal(d, 1, "v"));
        let model = SampledModel::new(&features, &case.source, &case.likelihood);
        let span = Span::of(&model, kernel(&case), &mut go).unwrap();
        let own = span.model(&case.likelihood);
        let noise = Noise::draw(&model, 0..3, 3, &mut go).unwrap();
        let within = span.noise(&model, 0..3, 3, &mut go).unwrap().within;
        let solve = Solve::ConjugateGradients(tight());
        for update in [Update::Mackay, Update::DecoupledElbo] {
            let change = |o: &mut EmOptions| o.update = update;
            let watch = &mut |_: Option<&Progress>, _: &dyn Fn() -> EmState<SolverState>| Signal::Continue;
            let begin = || EmState::begin(&Prior::scalar(1, 0.5).unwrap(), 1.0);
            let of_weights = by_noise(&case, (&model, 0), &noise, (begin(), &solve), change, 3, watch);
            let of_span =
                by_noise(&case, (&own, span.beyond()), &within, (begin(), &solve), change, 3, watch);
            // The classical update looks at the norms of samples, whose part across the span is known on average only: exact in the span.
            let exactly = update == Update::Mackay || rank == d;
            for (a, b) in of_weights.turns.iter().zip(&of_span.turns) {
                if exactly {
                    assert_near(b.precisions[0] / a.precisions[0], 1.0, 1e-7);
                    assert_near(b.by_prediction.unwrap(), a.by_prediction.unwrap(), 1e-6);
                    assert_near(b.squared_norms[0], a.squared_norms[0], 1e-6 * a.squared_norms[0]);
                    assert_near(b.log_likelihood, a.log_likelihood, 1e-6);
                }
                // d - r squared normals of each of three samples, five standard deviations.
                let scatter = 5.0 * (2.0 * (d - rank) as f64 / 3.0).sqrt() / b.precisions[0];
                if exactly {
                    assert_near(b.traces[0], a.traces[0], scatter + 1e-6);
                }
            }
            if exactly {
                let mode = |s: &EmState<SolverState>| s.mode.as_ref().unwrap().weights.clone();
                let lifted = span.lifted(&model, column(&mode(&of_span))).unwrap();
                assert_matrix(lifted.as_ref(), column(&mode(&of_weights)), 1e-6);
            } else {
                // One turn from the same precision: the same but for that part.
                let (a, b) = (&of_weights.turns[0], &of_span.turns[0]);
                assert_near(b.squared_norms[0], a.squared_norms[0], 1e-6 * a.squared_norms[0]);
                let next = d as f64 / (b.squared_norms[0] + b.traces[0]);
                assert_near(of_span.turns[1].precisions[0] / next, 1.0, 1e-12);
            }
        }
    }
}

#[test]
fn equal_noise_makes_the_precision_diagonal() {
    let mut case = Case::gaussian(6, 50);
    case.likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.7; 3]).unwrap());
    let model = case.model();
    let span = Span::of(&model, kernel(&case), &mut go).unwrap();
    let own = span.model(&case.likelihood);
    let precisions = vec![0.2; span.rank()];
    let hessian = Hessian::new(&own, &precisions, 1.5, None);
    let mut dense = Mat::zeros(span.rank(), span.rank());
    hessian.apply(identity(span.rank(), 1.0).as_ref(), dense.as_mut());
    let diagonal = own.curvature_diagonal(4, 0, &mut go).unwrap().0;
    for i in 0..span.rank() {
        for j in 0..span.rank() {
            let expected = if i == j { 1.5 * diagonal[i] + 0.2 } else { 0.0 };
            assert_near(dense[(i, j)], expected, 1e-9 * (1.0 + diagonal[i]));
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let case = Case::softmax(5, 40);
    let model = case.model();
    let scaled = case.model().scaled(vec![2.0; 40]).unwrap();
    let refused = Span::of(&scaled, kernel(&case), &mut go).unwrap_err();
    assert!(refused.to_string().contains("not scaled"), "{refused}");
    let refused = Span::of(&model, Mat::zeros(14, 14), &mut go).unwrap_err();
    assert!(refused.to_string().contains("rows of the kernel"), "{refused}");
    let refused = Span::of(&model, Mat::zeros(15, 15), &mut go).unwrap_err();
    assert!(refused.to_string().contains("move an output"), "{refused}");
    let mut infinite = kernel(&case);
    infinite[(3, 3)] = f64::INFINITY;
    assert!(matches!(Span::of(&model, infinite, &mut go), Err(LinearError::Eigen { .. })));
    assert!(matches!(
        Span::of(&model, kernel(&case), &mut |_, _| Signal::Stop),
        Err(LinearError::Interrupted)
    ));
}
