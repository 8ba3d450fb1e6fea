//! Sections on classification and on experiments: complete, well formed, safe, repeatable, and honest in words.

use crate::common::{check_markup, digits, experiment, moons, networks, picture, posteriors};
use posterior_metrics::{Average, ConfusionMatrix, ReliabilityBin};
use posterior_report::*;
use proptest::prelude::*;

fn page(section: impl Into<Section>) -> String {
    let html = Report::new("t", "", vec![section.into()]).to_html();
    check_markup(&html).unwrap();
    html
}

fn items(items: Vec<Item>) -> String {
    page(FiguresReport { items, ..FiguresReport::default() })
}

fn times(html: &str, needle: &str) -> usize {
    html.matches(needle).count()
}

/// Text and attributes, without the letters of pictures, hold no trace of a number that is not one.
fn no_broken_numbers(html: &str) -> bool {
    let body = &html[html.find("<body>").unwrap()..html.find("<footer>").unwrap()];
    let mut words = body
        .split('"')
        .filter(|part| !part.starts_with("data:image"))
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric()));
    words.all(|w| !["NaN", "nan", "inf", "Infinity"].contains(&w))
}

#[test]
fn the_demo_is_well_formed_complete_and_repeatable() {
    let html = networks().to_html();
    assert!(check_markup(&html).unwrap() > 1000);
    assert!(no_broken_numbers(&html));
    assert_eq!(html, networks().to_html());
    for text in [
        "The methods side by side",
        "Reliability",
        "How sure it is",
        "What is taken for what",
        "Most certain",
        "Least certain",
        "NLL under shift",
        "ECE under shift",
        "Accuracy under shift",
        "Mean entropy under shift",
        "Familiar or strange? full Laplace, AUC",
        "Evidence along the prior precision",
        "Two moons",
        "Joint log-likelihood",
        "1 point, 1 label<",
        "5 points, 40 labels",
        "Dots are of the first class, diamonds of the others, each in its colour.",
        "Four approximations",
        "Nothing else was tried.",
        "Shown: 12 of 14 pictures.",
        "On one core.",
        "Look at this: ",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // Ten figures of numbers, two galleries and the plane; one of each of the eight kinds of pictures.
    assert_eq!(times(&html, "<figure"), 13 + 8);
    assert_eq!(times(&html, "class=\"pixels\""), 37);
    assert_eq!(times(&html, "class=\"map\""), 4);
    assert_eq!(times(&html, "class=\"best h"), 6);
    assert_eq!(times(&html, "class=\"ring h0\""), 21);
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    let html = networks().to_html();
    for absent in ["<script", "<link", "<img", "<iframe", "url(", "@import", "src=", "javascript:", "onload"]
    {
        assert!(!html.contains(absent), "{absent}");
    }
    let inside = times(&html, "href=\"#section-") + times(&html, "href=\"data:image/png;base64,");
    assert_eq!(times(&html, "href="), inside);
    assert!(html.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:\""));
}

#[test]
fn the_verdict_is_plain_about_no_gain() {
    let better = digits(600);
    assert!(page(better.clone()).contains("its probabilities are better"));
    let mut worse = better.clone();
    let (own, plain) = (better.scores.unwrap(), better.plain.clone().unwrap().scores);
    worse.scores = Some(plain);
    worse.plain.as_mut().unwrap().scores = own;
    worse.nll_difference = None;
    let html = page(worse);
    assert!(html.contains("the error bars did not help here") && html.contains("it is overconfident"));
    let mut chance = better.clone();
    chance.nll_difference = Some(Average { mean: -0.01, standard_error: Some(0.02) });
    assert!(page(chance).contains("no larger than chance explains: it is not better"));
    let mut same = better.clone();
    same.plain.as_mut().unwrap().scores = own;
    same.nll_difference = None;
    assert!(page(same).contains("to within half a percent: it is not better"));
    let mut impossible = better;
    impossible.scores.as_mut().unwrap().impossible_labels = 3;
    assert!(page(impossible).contains("probability 0 in 3 rows"));
}

#[test]
fn the_best_of_each_column_is_bold_and_unknowns_are_dashes() {
    let html = page(digits(100));
    let table = &html[html.find("The methods side by side").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    assert!(table.contains("<td>–</td>") && table.contains("memory (MiB)"));
    // NLL, ECE, Brier, AUC and seconds differ, accuracy is shared and memory known for one only.
    assert_eq!(times(table, "<b>"), 5, "{table}");
    let mut short = digits(100);
    short.methods.clear();
    let html = page(short);
    assert!(html.contains("plain network") && !html.contains("OOD AUC</th>"));
}

#[test]
fn text_from_outside_cannot_become_markup() {
    let evil = "<script>alert(\"1\")</script>&'\u{0}";
    let name = || evil.to_owned();
    let mut report = digits(60);
    report.dataset = name();
    report.description = name();
    report.model = name();
    report.class_names = vec![name(); 10];
    report.plain.as_mut().unwrap().name = name();
    report.methods[0].name = name();
    report.reliability.as_mut().unwrap().series[0].name = name();
    report.confidences[0].name = name();
    report.shifts[0].parameter = name();
    report.shifts[0].methods[0].method = name();
    report.out_of_distribution.as_mut().unwrap().inside = name();
    report.out_of_distribution.as_mut().unwrap().methods[0].name = name();
    report.joint[0].method = name();
    let plane = report.plane.as_mut().unwrap();
    (plane.title, plane.x, plane.y, plane.caption) = (name(), name(), name(), name());
    plane.panels[0].title = name();
    let curves = &mut report.evidence[0];
    (curves.title, curves.x, curves.y, curves.caption) = (name(), name(), name(), name());
    curves.lines[0].name = name();
    report.more.push(Item::Text(name()));
    let html = page(report);
    assert!(!html.contains("<script") && !html.contains('\u{0}'));
    assert!(times(&html, "&lt;script&gt;") >= 24);

    let mut report = experiment();
    (report.title, report.text) = (name(), name());
    for item in &mut report.items {
        match item {
            Item::Text(text) => *text = name(),
            Item::Table(t) => {
                *t = Table {
                    title: name(),
                    head: vec![name(); 2],
                    rows: vec![vec![name(); 3]],
                    caption: name(),
                }
            }
            Item::Posteriors(p) => {
                (p.title, p.target, p.caption) = (name(), name(), name());
                (p.panels[0].title, p.panels[0].posterior.input) = (name(), name());
            }
            Item::Picture(p) => (p.title, p.caption) = (name(), name()),
            Item::Images(g) => (g.title, g.caption, g.class_names) = (name(), name(), vec![name(); 10]),
            Item::Distributions(d) => (d.title, d.x, d.caption) = (name(), name(), name()),
            _ => {}
        }
    }
    let html = page(report);
    assert!(!html.contains("<script") && times(&html, "&lt;script&gt;") >= 15);
}

#[test]
fn empty_sections_and_empty_items_are_pages_too() {
    page(ClassificationReport::default());
    page(FiguresReport::default());
    let html = items(vec![
        Item::Text(String::new()),
        Item::Table(Table::default()),
        Item::Curves(Curves::default()),
        Item::Distributions(Distributions::default()),
        Item::Reliability(Reliability::default()),
        Item::Confusion(ConfusionFigure::default()),
        Item::Images(ImageGallery::default()),
        Item::Picture(Picture::default()),
        Item::Plane(Plane::default()),
        Item::Posteriors(PosteriorPanels::default()),
    ]);
    assert_eq!(times(&html, "nothing to draw"), 3);
    assert_eq!(times(&html, "<figure"), 3);
    let minimal = r#"{"title":"t","subtitle":"","sections":[{"classification":{"dataset":"d"}},{"figures":{"items":[{"text":"x"}]}}]}"#;
    check_markup(&serde_json::from_str::<Report>(minimal).unwrap().to_html()).unwrap();
}

#[test]
fn what_cannot_be_drawn_is_left_out_and_said() {
    let mut plane = moons();
    plane.panels[0].values[3] = f64::NAN;
    plane.panels[1].values.pop();
    plane.points_x[0] = f64::INFINITY;
    plane.points_y[1] = 99.0;
    let html = items(vec![Item::Plane(plane)]);
    assert!(html.contains("Left out: 1 maps whose values do not fit"));
    assert!(html.contains("Left out: 1 cells") && html.contains("Left out: 2 points"));
    assert_eq!(times(&html, "class=\"map\""), 1);
    assert_eq!(times(&html, "class=\"spot h"), 78);

    let mut regions = moons();
    let both: Vec<f64> = regions.panels[1].values.iter().flat_map(|p| [1.0 - p, *p]).collect();
    let panel = PlanePanel::decisions("regions", &both, 2);
    let short = PlanePanel { strengths: vec![1.0], ..panel.clone() };
    regions.panels = vec![panel.clone().marked(0.0, 0.0), panel.marked(f64::NAN, 0.0), short];
    let html = items(vec![Item::Plane(regions)]);
    assert!(html.contains("Left out: 1 maps whose values do not fit") && html.contains("Left out: 1 marks"));
    assert!(no_broken_numbers(&html) && check_markup(&html).is_ok());
    assert_eq!((times(&html, "class=\"map\""), times(&html, "class=\"best h6\"")), (2, 1));

    let mut panels = posteriors();
    panels.panels[0].posterior.train_input[0] = f64::NAN;
    panels.panels[1].posterior.latent_standard_deviation[5] = -1.0;
    let html = items(vec![Item::Posteriors(panels)]);
    assert!(html.contains("Left out: 1 training points") && no_broken_numbers(&html));

    let good = ImagePrediction { image: picture(1, ImageLayout::Grey), ..ImagePrediction::default() };
    let mut bad = good.clone();
    bad.image.width = usize::MAX;
    let odd = ImagePrediction { probabilities: vec![f64::NAN, 0.2, -1.0], label: Some(7), ..good.clone() };
    let gallery = ImageGallery { images: vec![good, bad, odd], ..ImageGallery::default() };
    let html = items(vec![Item::Images(gallery)]);
    assert!(html.contains("Left out: 1 pictures") && html.contains("✗ is 7") && html.contains("20.0 %"));
    assert_eq!(times(&html, "class=\"pixels\""), 2);

    let drawn = Picture { title: "digits".into(), image: picture(1, ImageLayout::Grey), caption: "c".into() };
    let mut long = drawn.clone();
    long.image.height = 513;
    let html = items(vec![Item::Picture(drawn), Item::Picture(long)]);
    assert_eq!((times(&html, "class=\"pixels\""), times(&html, "Not drawn: its sides")), (1, 1));
    assert!(html.contains("aria-label=\"digits\"") && check_markup(&html).is_ok());

    let bin =
        |confidence, frequency| ReliabilityBin { lower: 0.0, upper: 1.0, count: 1, confidence, frequency };
    let series =
        ReliabilitySeries { name: "m".into(), bins: vec![bin(0.5, 0.5), bin(f64::NAN, 0.5), bin(0.5, 2.0)] };
    let html = items(vec![Item::Reliability(Reliability { series: vec![series], ..Reliability::default() })]);
    assert!(html.contains("Left out: 2 groups that cannot be drawn."));

    let line = Line { x: vec![1.0, -1.0, 2.0], y: vec![1.0, 2.0, f64::NAN], ..Line::default() };
    let curves = Curves { x_logarithmic: true, lines: vec![line; 10], ..Curves::default() };
    let html = items(vec![Item::Curves(curves)]);
    assert!(
        html.contains("Shown: the first 8 of 10.")
            && html.contains("Left out: 16 points that cannot be drawn.")
    );

    let values = vec![0.1, f64::NAN, 0.4];
    let series = vec![Distribution { name: "a".into(), values }];
    let html = items(vec![Item::Distributions(Distributions { series, ..Distributions::default() })]);
    assert!(html.contains("Left out: 1 values"));

    for matrix in [
        ConfusionMatrix { classes: 21, counts: vec![0; 441] },
        ConfusionMatrix { classes: 3, counts: vec![0; 4] },
        ConfusionMatrix { classes: usize::MAX, counts: vec![] },
    ] {
        let html = items(vec![Item::Confusion(ConfusionFigure { matrix, ..ConfusionFigure::default() })]);
        assert!(html.contains("Not drawn: "));
    }

    let rows = vec![vec!["r".into(), "1".into(), "2".into()], vec![]];
    let table = Table { head: vec!["a".into(), "b".into()], rows, ..Table::default() };
    let html = items(vec![Item::Table(table)]);
    assert!(html.contains("Left out: 1 cells") && html.contains("<th scope=\"row\">–</th><td>–</td>"));
}

#[test]
fn long_lines_are_thinned() {
    let x: Vec<f64> = (0..50_000).map(f64::from).collect();
    let line = Line { y: x.iter().map(|v| v.sin()).collect(), x, ..Line::default() };
    let html = items(vec![Item::Curves(Curves { lines: vec![line], ..Curves::default() })]);
    assert!(html.contains("Shown: 2,000 of up to 50,000 points per line.") && html.len() < 60_000);
}

#[test]
fn a_caption_says_what_rings_are() {
    let caption_of = |curves: Curves| items(vec![Item::Curves(curves)]);
    let line = Line { reference: vec![(1.0, 2.0)], ..Line::new("a", vec![0.0, 2.0], vec![1.0, 3.0]) };
    let curves = Curves::new("t", "x", "y", vec![line]);
    assert!(caption_of(curves.clone()).contains("Rings are values from elsewhere."));
    let html = caption_of(curves.with_rings("the <points>"));
    assert!(html.contains("Rings are the &lt;points&gt;.") && !html.contains("from elsewhere"));
    assert!(
        !caption_of(Curves::new("t", "x", "y", vec![Line::new("a", vec![0.0], vec![1.0])])).contains("Rings")
    );
}

#[test]
fn the_input_round_trips_through_json() {
    let report = networks();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}

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
        a in any_numbers(), b in any_numbers(), c in any_numbers(),
        range in prop::option::of((any_number(), any_number())), logarithmic in any::<(bool, bool)>(), size in any::<usize>(),
    ) {
        let v = |i: usize| a.get(i).copied().unwrap_or(0.5);
        let line = Line {
            name: "l".into(), x: a.clone(), y: b.clone(), error: c.clone(), optimum: a.first().copied(),
            reference: b.iter().copied().zip(c.iter().copied()).collect(),
            band: a.iter().zip(&c).take(size % 4).map(|(a, c)| [*a, *c]).collect(),
        };
        let values = NamedValues {
            bars: logarithmic.0,
            rows: a.iter().zip(&b).map(|(a, b)| NamedValue { name: "n".into(), value: *a, interval: [*b, *a] }).collect(),
            ..NamedValues::default()
        };
        let mut report = digits(20);
        report.more = vec![
            Item::Named(values),
            Item::Curves(Curves {
                x_logarithmic: logarithmic.0, y_logarithmic: logarithmic.1, y_range: range, lines: vec![line], ..Curves::default()
            }),
            Item::Distributions(Distributions {
                range, series: vec![Distribution { name: "d".into(), values: c.clone() }], ..Distributions::default()
            }),
            Item::Plane(Plane {
                grid_x: a.clone(), grid_y: b.clone(), points_x: c.clone(), points_y: a.clone(),
                panels: vec![PlanePanel { values: c.clone(), ..PlanePanel::default() }], ..Plane::default()
            }),
            Item::Plane(Plane {
                points_x: a.clone(), points_y: b.clone(), points_class: vec![size; 30],
                panels: vec![PlanePanel { kind: PlaneKind::Amount, values: (0..1600).map(v).collect(), ..PlanePanel::default() }],
                ..moons()
            }),
            Item::Plane(Plane {
                panels: vec![
                    PlanePanel { strengths: (1..1601).map(v).collect(), mark: a.first().copied().zip(b.first().copied()),
                        ..PlanePanel::new("c", PlaneKind::Class, (0..1600).map(v).collect()) },
                    PlanePanel::decisions("d", &(0..1600 * 3).map(v).collect::<Vec<_>>(), 3),
                ],
                ..moons()
            }),
            Item::Posteriors(PosteriorPanels {
                panels: vec![TitledPosterior { title: "p".into(), posterior: PosteriorPanel {
                    grid: a.clone(), mean: b.clone(), latent_standard_deviation: c.clone(), observed_standard_deviation: a.clone(),
                    train_input: b.clone(), train_target: c.clone(), true_function: c.clone(), ..PosteriorPanel::default()
                } }], ..PosteriorPanels::default()
            }),
            Item::Reliability(Reliability { series: vec![ReliabilitySeries { name: "r".into(), bins: a.iter().zip(&b)
                .map(|(x, y)| ReliabilityBin { lower: *x, upper: *y, count: size, confidence: *x, frequency: *y }).collect() }],
                ..Reliability::default() }),
            Item::Images(ImageGallery { images: vec![ImagePrediction { probabilities: a.clone(), label: Some(size),
                image: picture(0, ImageLayout::Grey) }], ..ImageGallery::default() }),
            Item::Picture(Picture { image: Image { height: size, width: 3, ..picture(0, ImageLayout::Grey) }, ..Picture::default() }),
            Item::Confusion(ConfusionFigure { matrix: ConfusionMatrix { classes: 2, counts: vec![size, 0, 1, 0] }, ..ConfusionFigure::default() }),
        ];
        let scores = report.scores.as_mut().unwrap();
        (scores.nll, scores.ece, scores.accuracy, scores.mean_confidence) = (v(0), v(1), v(2), v(3));
        report.nll_difference = Some(Average { mean: v(4), standard_error: Some(v(5)) });
        report.methods[0].seconds = Some(v(6));
        report.joint[0].scores[0].mean = v(7);
        let method = &mut report.out_of_distribution.as_mut().unwrap().methods[0];
        (method.inside, method.outside, method.auc) = (b.clone(), c.clone(), Some(v(8)));
        report.shifts[0].methods[0].nll = c.clone();
        let html = Report::new("t", "", vec![report.into()]).to_html();
        if let Err(fault) = check_markup(&html) {
            return Err(TestCaseError::fail(fault));
        }
        prop_assert!(no_broken_numbers(&html));
    }
}
