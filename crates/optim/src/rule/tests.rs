use super::*;

/// Values after steps along these gradients, one entry, at a rate of 0.1.
fn walk(rule: Rule, start: f64, gradients: &[f64]) -> f64 {
    let (mut v, mut m, mut s) = ([start], [0.0], [0.0]);
    for (k, &g) in gradients.iter().enumerate() {
        rule.step(&mut v, &[g], &mut m, &mut s, 0.1, k + 1);
    }
    v[0]
}

#[test]
fn steps_by_hand() {
    let mut state = (vec![1.0f64], vec![0.0], vec![0.0]);
    let mut step = |rule: Rule, g: f64, taken: usize| {
        rule.step(&mut state.0, &[g], &mut state.1, &mut state.2, 0.1, taken);
        state.0[0]
    };
    // The first step of Adam has the length of the learning rate, whatever the gradient.
    assert!((step(Rule::adam(), 7.0, 1) - 0.9).abs() < 1e-9);
    let (m, s) = (0.9 * 0.7 + 0.1 * 3.0, 0.999 * 0.049 + 0.001 * 9.0);
    let expected = 0.9 - 0.1 * (m / (1.0 - 0.81)) / ((s / (1.0 - 0.999f64.powi(2))).sqrt() + 1e-8);
    assert!((step(Rule::adam(), 3.0, 2) - expected).abs() < 1e-9);
    let mut w = vec![2.0];
    Rule::adamw(0.5).step(&mut w, &[0.0], &mut [0.0], &mut [0.0], 0.1, 1);
    assert!((w[0] - 1.9f64).abs() < 1e-12);
    let (mut w, mut m) = (vec![2.0f64], vec![1.0f64]);
    Rule::nesterov(0.9, 0.01).step(&mut w, &[1.0], &mut m, &mut [], 0.1, 1);
    let g = 1.0 + 0.02;
    assert!((m[0] - (0.9 + g)).abs() < 1e-12 && (w[0] - (2.0 - 0.1 * (g + 0.9 * m[0]))).abs() < 1e-12);
}

/// AdaBelief with one of the two differences and an epsilon within the root that can be seen.
fn adabelief(previous_mean: bool, root_epsilon: f64) -> Rule {
    Rule::AdaBelief {
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-3,
        root_epsilon,
        previous_mean,
        weight_decay: 0.0,
        decoupled: false,
    }
}

#[test]
fn steps_of_adabelief_by_hand() {
    // Gradients 2 and -1: means 0.2 and 0.08; differences 1.8 and -1.08 from the new mean, 2 and -1.2 from the one before.
    for (previous_mean, [first, second]) in [(false, [1.8f64, -1.08]), (true, [2.0, -1.2])] {
        let s1 = 0.001 * first * first + 0.01;
        let s2 = 0.999 * s1 + 0.001 * second * second + 0.01;
        let after_one = 1.0 - 0.1 * 2.0 / ((s1 / 0.001).sqrt() + 1e-3);
        let after_two = after_one - 0.1 * (0.08 / 0.19) / ((s2 / (1.0 - 0.998001)).sqrt() + 1e-3);
        let rule = adabelief(previous_mean, 0.01);
        assert!((walk(rule, 1.0, &[2.0]) - after_one).abs() < 1e-14);
        assert!((walk(rule, 1.0, &[2.0, -1.0]) - after_two).abs() < 1e-14);
    }
    // The published constants: the first step is the rate over beta1, or the rate.
    assert!((walk(Rule::adabelief(), 0.0, &[-5.0]) - 0.1 / 0.9).abs() < 1e-9);
    let Rule::AdaBelief { beta1, beta2, epsilon, root_epsilon, .. } = Rule::adabelief() else { panic!() };
    assert_eq!((beta1, beta2, epsilon, root_epsilon), (0.9, 0.999, 1e-16, 1e-16));
    assert!((walk(adabelief(true, 0.0), 0.0, &[-5.0]) - 0.1 * 5.0 / (5.0 + 1e-3)).abs() < 1e-13);
}

#[test]
fn along_a_constant_gradient_the_second_moment_of_adabelief_is_a_geometric_sum() {
    // g - m_t = g β₁ᵗ, so that s_t = (1 - β₂) g² Σ β₂^(t-k) β₁^(2k) + ε_root Σ β₂^(t-k) over k from 1 to t.
    let (g, root_epsilon, count) = (3.0f64, 1e-6, 200);
    let (b1, b2) = (0.81f64, 0.999f64);
    for previous_mean in [false, true] {
        let (mut v, mut m, mut s) = ([0.0], [0.0], [0.0]);
        for t in 1..=count {
            adabelief(previous_mean, root_epsilon).step(&mut v, &[g], &mut m, &mut s, 0.1, t);
        }
        let shift = if previous_mean { 1.0 } else { b1 };
        let sum = shift * (b2.powi(count as i32) - b1.powi(count as i32)) / (b2 - b1);
        let expected = (1.0 - b2) * g * g * sum + root_epsilon * (1.0 - b2.powi(count as i32)) / (1.0 - b2);
        assert!((s[0] - expected).abs() < 1e-12 * expected, "{} {expected}", s[0]);
        // Far less than that of Adam, which is (1 - β₂ᵗ) g².
        assert!(s[0] < 0.03 * (1.0 - b2.powi(count as i32)) * g * g);
    }
}

#[test]
fn steps_of_rmsprop_by_hand() {
    let first = 1.0 - 0.1 * 2.0 / (0.4f64.sqrt() + 1e-8);
    let second = first + 0.1 / ((0.9 * 0.4f64 + 0.1).sqrt() + 1e-8);
    assert!((walk(Rule::rmsprop(), 1.0, &[2.0]) - first).abs() < 1e-15);
    assert!((walk(Rule::rmsprop(), 1.0, &[2.0, -1.0]) - second).abs() < 1e-15);
    // Without a first moment.
    let (mut v, mut s) = ([1.0, 1.0], [0.0, 0.0]);
    Rule::rmsprop().step(&mut v, &[2.0, 2.0], &mut [], &mut s, 0.1, 1);
    assert!(v.iter().all(|v| (v - first).abs() < 1e-15));
}

/// Every adaptive rule, both differences of AdaBelief.
fn adaptive() -> [Rule; 4] {
    [Rule::adam(), Rule::adabelief(), adabelief(true, 1e-16), Rule::rmsprop()]
}

#[test]
fn decay_joins_the_gradient_or_shrinks_the_weights() {
    for rule in adaptive() {
        // In the gradient it is another gradient.
        let joined = walk(rule.with_weight_decay(0.5), 2.0, &[3.0]);
        assert!((joined - walk(rule, 2.0, &[4.0])).abs() < 1e-14, "{rule:?}");
        // Decoupled it is a factor of the weights, whatever the gradient.
        let decoupled = rule.with_decoupled_decay(0.5);
        assert_eq!(decoupled.weight_decay(), (0.5, true));
        let shrunk = walk(decoupled, 2.0, &[3.0]) - 2.0 * (1.0 - 0.05);
        assert!((shrunk - (walk(rule, 2.0, &[3.0]) - 2.0)).abs() < 1e-14, "{rule:?}");
    }
    let descent = Rule::Sgd { momentum: 0.0, nesterov: false, weight_decay: 0.0 };
    assert_eq!(descent.with_decoupled_decay(0.5).weight_decay(), (0.5, false));
}

/// Values and moments after three steps of many entries.
fn many<T: Real>(rule: Rule, entries: usize) -> [Vec<T>; 3] {
    let mut out = [vec![T::from_f64(0.3); entries], vec![T::ZERO; entries], vec![T::ZERO; entries]];
    for t in 1..=3 {
        let slope = |k: usize| T::from_f64(((k * 7 + t * 3) % 11) as f64 - 4.5);
        let gradient: Vec<T> = (0..entries).map(slope).collect();
        let [v, m, s] = &mut out;
        rule.step(v, &gradient, m, s, 0.1, t);
    }
    out
}

#[test]
fn entries_do_not_know_of_each_other_nor_of_threads() {
    let entries = 2 * PIECE + 37;
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for rule in adaptive() {
        let one: [Vec<f64>; 3] = pool(1).install(|| many(rule, entries));
        assert_eq!(one, pool(3).install(|| many::<f64>(rule, entries)), "{rule:?}");
        // Gradients repeat after eleven entries: those that vectors hold and those of a remainder have the same bits.
        for column in &one {
            assert!((11..entries).all(|k| column[k].to_bits() == column[k - 11].to_bits()), "{rule:?}");
        }
        // Single precision: three steps of some ten roundings, of numbers of about 1.
        let narrow: [Vec<f32>; 3] = many(rule, entries);
        let difference = |k: usize| (f64::from(narrow[0][k]) - one[0][k]).abs();
        assert!((0..entries).all(|k| difference(k) < 60.0 * f64::from(f32::EPSILON)), "{rule:?}");
    }
}

#[test]
fn moments_are_those_that_are_written() {
    for rule in adaptive().into_iter().chain([Rule::nesterov(0.9, 0.0)]) {
        let [_, first, second] = many::<f64>(rule, 5);
        let kept = [first, second].map(|moment| moment.iter().any(|v| *v != 0.0));
        assert_eq!(kept, rule.moments(), "{rule:?}");
    }
}

#[test]
fn constants_out_of_range_are_named() {
    for rule in adaptive().into_iter().chain([Rule::nesterov(0.9, 0.1), adabelief(false, 0.0)]) {
        assert_eq!(rule.problem(), None);
        for decay in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(rule.with_weight_decay(decay).problem().unwrap().contains("weight decay"));
        }
    }
    let belief = |beta1, beta2, epsilon, root_epsilon| {
        let (previous_mean, weight_decay, decoupled) = (false, 0.0, false);
        Rule::AdaBelief { beta1, beta2, epsilon, root_epsilon, previous_mean, weight_decay, decoupled }
            .problem()
            .unwrap()
    };
    assert!(belief(1.0, 0.9, 1.0, 1.0).contains("betas"));
    assert!(belief(0.9, f64::NAN, 1.0, 1.0).contains("betas"));
    assert!(belief(0.9, 0.9, 0.0, 1.0).contains("epsilon must be positive"));
    assert!(belief(0.9, 0.9, 1.0, -1.0).contains("within the root"));
    assert!(belief(0.9, 0.9, 1.0, f64::NAN).contains("within the root"));
    let squares = |decay, epsilon| {
        Rule::RmsProp { decay, epsilon, weight_decay: 0.0, decoupled: false }.problem().unwrap()
    };
    assert!(squares(1.0, 1e-8).contains("squares") && squares(0.9, f64::INFINITY).contains("epsilon"));
}

#[test]
fn rules_are_written_by_their_names() {
    for (rule, name) in
        [(Rule::adam(), "adam"), (Rule::adabelief(), "adabelief"), (Rule::rmsprop(), "rmsprop")]
    {
        let text = serde_json::to_string(&rule).unwrap();
        assert!(text.contains(&format!("\"rule\":\"{name}\"")), "{text}");
        assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
    }
}
