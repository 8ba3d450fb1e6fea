//! The document as a whole: well formed, complete, safe, and unbreakable by odd numbers.

use crate::common::{check_markup, demo, one_input, table};
use posterior_report::*;
use proptest::prelude::*;

fn page(report: RegressionReport) -> String {
    Report::new("t", "", vec![report.into()]).to_html()
}

/// Number of times `needle` occurs.
fn times(html: &str, needle: &str) -> usize {
    html.matches(needle).count()
}

/// Visible text and attributes hold no trace of a number that is not one.
fn no_broken_numbers(html: &str) -> bool {
    let body = &html[html.find("<body>").unwrap()..];
    let words = body.split(|c: char| !c.is_alphanumeric());
    words.into_iter().all(|w| !["NaN", "nan", "inf", "Infinity"].contains(&w))
}

#[test]
fn the_checker_itself_finds_faults() {
    for bad in [
        "<b>",
        "<b></i>",
        "<b><i></b></i>",
        "<b>a & b</b>",
        "<a x=1></a>",
        "<a b=\"1\" b=\"2\"></a>",
        "<line x1=\"NaN\"/>",
        "<path d=\"M1 infL2 3\"/>",
        "</b>",
    ] {
        assert!(check_markup(&format!("<!DOCTYPE html>{bad}")).is_err(), "{bad}");
    }
    assert_eq!(check_markup("<!DOCTYPE html><b c=\"1\">&lt;<line x1=\"-2.5\"/></b>"), Ok(2));
}

#[test]
fn the_demo_is_well_formed_complete_and_repeatable() {
    let html = demo().to_html();
    assert!(check_markup(&html).unwrap() > 1000);
    assert!(no_broken_numbers(&html));
    assert_eq!(html, demo().to_html());
    for text in [
        "What the model believes",
        "Predictions against truth",
        "Calibration",
        "Interval widths",
        "Are the errors as large as predicted?",
        "Do errors depend on the prediction?",
        "Which features matter",
        "no data here",
        "observed sound_level (dB)",
        "time (s)",
        "displacement_thickness",
        "Matérn-3/2",
        "Look at this: ",
        "Lengthscale",
        "always the training mean",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // Two sections with five figures each, one posterior (drawn twice, for wide and narrow), one relevance.
    assert_eq!(times(&html, "<figure"), 12);
    assert_eq!(times(&html, "<svg"), 13);
    assert_eq!(times(&html, "role=\"img\" aria-label=\""), 13);
    assert_eq!(times(&html, "<figcaption>"), 12);
    assert_eq!(times(&html, "class=\"data\""), 2 * 45);
    assert_eq!(times(&html, "class=\"sample\""), 2 * 5);
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    let html = demo().to_html();
    for absent in ["<script", "<link", "<img", "<iframe", "url(", "@import", "src=", "javascript:", "onload"]
    {
        assert!(!html.contains(absent), "{absent}");
    }
    // The only address is the name of the SVG vocabulary, which browsers do not fetch.
    let addresses = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://"));
    assert!(times(&html, "href=") == times(&html, "href=\"#section-"));
}

#[test]
fn every_point_is_drawn_once_per_plot_and_misses_are_diamonds() {
    let report = table(500);
    let p = report.predictions.clone().unwrap();
    let misses = (0..500)
        .filter(|&i| ((p.truth[i] - p.mean[i]) / p.standard_deviation[i]).abs() >= 1.959_963_984_540_054)
        .count();
    assert!(misses > 5);
    let html = page(report);
    // Two scatter plots; the calibration curve has 19 inner dots.
    assert_eq!(times(&html, "<circle class=\"dot\""), 2 * (500 - misses) + 19);
    assert_eq!(times(&html, "<path class=\"dot miss\""), 2 * misses);
    assert!(html.contains(&format!("{misses} of 500 do not; about 25 would be expected.")));
}

#[test]
fn many_points_are_thinned_and_the_caption_says_so() {
    let html = page(table(7_001));
    let drawn = times(&html, "<circle class=\"dot\"") + times(&html, "<path class=\"dot miss\"");
    assert_eq!(drawn, 2 * 2_000 + 19);
    assert_eq!(times(&html, "Shown: 2,000 of 7,001 rows"), 2);
    assert!(html.len() < 600_000, "{}", html.len());
    let mut report = one_input();
    let panel = report.posterior.as_mut().unwrap();
    panel.train_input = (0..5_000).map(f64::from).collect();
    panel.train_target = panel.train_input.clone();
    panel.samples = vec![panel.mean.clone(); 40];
    let html = page(report);
    assert!(
        html.contains("Shown: 2,000 of 5,000 training points.") && html.contains("Shown: 12 of 40 samples.")
    );
}

#[test]
fn text_from_outside_cannot_become_markup() {
    let evil = "<script>alert(\"1\")</script>&'\u{0}";
    let mut report = one_input();
    report.dataset = evil.into();
    report.description = evil.into();
    report.target = evil.into();
    report.target_unit = Some(evil.into());
    report.summary = vec![SummaryRow::new(evil, evil)];
    report.baseline.as_mut().unwrap().name = evil.into();
    report.lengthscales = vec![FeatureLengthscale { feature: evil.into(), lengthscale: 1.0 }];
    report.hyperparameters =
        vec![Hyperparameter { name: evil.into(), value: 1.0, unit: evil.into(), meaning: evil.into() }];
    report.notes = vec![Note::warning(evil), Note::information(evil)];
    let panel = report.posterior.as_mut().unwrap();
    panel.input = evil.into();
    panel.input_unit = Some(evil.into());
    let html = Report::new(evil, evil, vec![report.clone().into(), report.into()]).to_html();
    check_markup(&html).unwrap();
    assert!(!html.contains("<script") && !html.contains('\u{0}'));
    // Title and heading, subtitle, navigation; and in each section everything above at least once.
    assert!(times(&html, "&lt;script&gt;") >= 5 + 2 * 10);
}

#[test]
fn empty_reports_and_sections_are_pages_too() {
    for report in [Report::default(), Report::new("", "", vec![RegressionReport::default().into()])] {
        check_markup(&report.to_html()).unwrap();
    }
    let empty = RegressionReport {
        predictions: Some(Predictions::default()),
        posterior: Some(PosteriorPanel::default()),
        ..RegressionReport::default()
    };
    let html = page(empty);
    check_markup(&html).unwrap();
    assert!(html.contains("nothing to draw") && no_broken_numbers(&html));
}

#[test]
fn unusable_numbers_are_left_out_and_said() {
    let mut report = table(50);
    let p = report.predictions.as_mut().unwrap();
    p.mean[3] = f64::NAN;
    p.truth[4] = f64::INFINITY;
    p.standard_deviation[5] = 0.0;
    p.standard_deviation[6] = f64::NEG_INFINITY;
    let scores = report.scores.as_mut().unwrap();
    scores.rmse = f64::NAN;
    scores.nll = f64::INFINITY;
    report.hyperparameters[0].value = f64::NAN;
    report.lengthscales[0].lengthscale = f64::NAN;
    report.lengthscales[1].lengthscale = f64::INFINITY;
    report.lengthscales[2].lengthscale = 0.0;
    let html = page(report);
    check_markup(&html).unwrap();
    assert!(no_broken_numbers(&html));
    assert!(html.contains("Left out: 4 of 50 rows without usable numbers."));
    assert!(html.contains("Left out: 2 lengthscales that are not positive numbers."));
    assert!(html.contains("not finite") && html.contains('∞'));
}

#[test]
fn named_values_are_bars_from_0_or_dots_with_their_intervals() {
    let rows = [("town", 0.75, [0.7, 0.8]), ("size", 0.25, [f64::NAN; 2]), ("lost", f64::NAN, [0.0, 1.0])];
    let rows = rows.map(|(name, value, interval)| NamedValue { name: name.into(), value, interval });
    let values = |bars| NamedValues {
        title: "Which columns matter".into(),
        x: "share of the variance".into(),
        bars,
        rows: rows.to_vec(),
        caption: "Read it so.".into(),
    };
    let html =
        |bars| page(RegressionReport { more: vec![values(bars).into()], ..RegressionReport::default() });
    let (bars, dots) = (html(true), html(false));
    for html in [&bars, &dots] {
        check_markup(html).unwrap();
        assert!(
            html.contains("Read it so. Left out: 1 without a finite value.") && html.contains(">town</text>")
        );
    }
    let drawn = |html: &str| {
        ["column strong", "whisker", "dot", "mark"].map(|c| times(html, &format!("class=\"{c}\"")))
    };
    assert_eq!((drawn(&bars), drawn(&dots)), ([2, 1, 0, 0], [0, 0, 2, 1]));
    // 75 % is as long as the axis goes, up to the end of its interval.
    let widths: Vec<f64> = bars
        .split("class=\"column strong\"")
        .skip(1)
        .map(|rest| rest.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect();
    assert!((widths[0] / widths[1] - 3.0).abs() < 0.01, "{widths:?}");
    let none = NamedValues { rows: rows[2..].to_vec(), ..values(true) };
    let html = page(RegressionReport { more: vec![none.into()], ..RegressionReport::default() });
    assert!(!html.contains("<figure"));
}

#[test]
fn the_input_round_trips_through_json() {
    let report = demo();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    let minimal = r#"{"title":"t","subtitle":"","sections":[{"regression":{"dataset":"d","target":"y"}}]}"#;
    check_markup(&serde_json::from_str::<Report>(minimal).unwrap().to_html()).unwrap();
}

/// Any double at all, with the awkward ones often.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => -10.0..10.0f64,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324, 1e300]),
    ]
}

fn any_numbers() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![prop::collection::vec(any_number(), 0..30), any_number().prop_map(|v| vec![v; 9])]
}

proptest! {
    #[test]
    fn no_numbers_break_the_page(
        mean in any_numbers(),
        standard_deviation in any_numbers(),
        truth in any_numbers(),
        grid in any_numbers(),
        lengthscales in any_numbers(),
    ) {
        let report = RegressionReport {
            lengthscales: lengthscales
                .iter()
                .map(|&lengthscale| FeatureLengthscale { feature: "f".into(), lengthscale })
                .collect(),
            hyperparameters: truth.iter().map(|&value| Hyperparameter { value, ..Hyperparameter::default() }).collect(),
            posterior: Some(PosteriorPanel {
                grid,
                mean: mean.clone(),
                latent_standard_deviation: standard_deviation.clone(),
                observed_standard_deviation: lengthscales,
                samples: vec![truth.clone(), mean.clone()],
                true_function: standard_deviation.clone(),
                train_input: truth.clone(),
                train_target: mean.clone(),
                ..PosteriorPanel::default()
            }),
            predictions: Some(Predictions { mean, standard_deviation, truth, distribution: None }),
            ..table(3)
        };
        let html = page(report);
        if let Err(fault) = check_markup(&html) {
            return Err(TestCaseError::fail(fault));
        }
        prop_assert!(no_broken_numbers(&html));
    }
}
