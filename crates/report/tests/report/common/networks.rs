//! Reports on classification and on experiments with several methods, with realistic numbers.

use super::normal;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_metrics::{
    Average, Classes, DyadicGroups, JointLogLikelihood, Probabilities, UncertaintyScore,
    out_of_distribution_auc,
};
use posterior_report::*;
use rand::RngExt;

const CLASSES: usize = 10;

/// A classification model and an experiment with every kind of item.
pub fn networks() -> Report {
    Report::new(
        "Networks with error bars",
        "Made-up data, seed 7.",
        vec![digits(600).into(), experiment().into()],
    )
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|l| (l - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

/// Logits and labels that are softmax draws, of the given sharpness.
fn draw(n: usize, sharpness: f64, rng: &mut ChaCha8Rng) -> (Vec<f64>, Vec<usize>) {
    let (mut logits, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row: Vec<f64> = (0..CLASSES).map(|_| sharpness * normal(rng)).collect();
        let mut u: f64 = rng.random();
        let label = softmax(&row).iter().position(|p| {
            u -= p;
            u < 0.0
        });
        labels.push(label.unwrap_or(CLASSES - 1));
        logits.extend(row);
    }
    (logits, labels)
}

fn predict(logits: &[f64], scale: f64) -> Vec<f64> {
    let scaled: Vec<f64> = logits.iter().map(|l| scale * l).collect();
    scaled.chunks(CLASSES).flat_map(softmax).collect()
}

/// A picture of a bar that turns with the class.
pub fn picture(class: usize, layout: ImageLayout) -> Image {
    let angle = std::f64::consts::PI * class as f64 / CLASSES as f64;
    let side = 16;
    let grey: Vec<u8> = (0..side * side)
        .map(|i| {
            let (y, x) = ((i / side) as f64 - 7.5, (i % side) as f64 - 7.5);
            let off = (x * angle.sin() - y * angle.cos()).abs();
            (255.0 * (1.0 - off / 3.0).clamp(0.0, 1.0)) as u8
        })
        .collect();
    let pixels = match layout {
        ImageLayout::Grey => grey,
        ImageLayout::ColourPlanes => (0..3).flat_map(|c| grey.iter().map(move |g| g / (c + 1))).collect(),
        ImageLayout::ColourPixels => grey.iter().flat_map(|g| [*g, g / 2, 255 - g]).collect(),
    };
    Image { layout, height: side, width: side, pixels }
}

fn pictures(p: &[f64], labels: &[usize], rows: &[usize], layout: ImageLayout) -> Vec<ImagePrediction> {
    rows.iter()
        .map(|&i| ImagePrediction {
            image: picture(labels[i], layout),
            label: Some(labels[i]),
            probabilities: p[i * CLASSES..(i + 1) * CLASSES].to_vec(),
        })
        .collect()
}

/// Ten classes of bars; the plain network is overconfident, the model is right.
pub fn digits(n: usize) -> ClassificationReport {
    let mut rng = Streams::new(7).stream("report/digits");
    let (logits, labels) = draw(n, 2.5, &mut rng);
    let (strange, _) = draw(n, 1.2, &mut rng);
    let names = ["full Laplace", "plain network"];
    let tables = [predict(&logits, 1.0), predict(&logits, 2.2)];
    let outside = [predict(&strange, 0.7), predict(&strange, 2.2)];
    let classes = [0, 1].map(|k| Classes::new(&tables[k], CLASSES, &labels).unwrap());
    let scores = classes.map(|c| c.scores());
    let entropies = |p: &[f64]| Probabilities::new(p, CLASSES).unwrap().entropies();
    let auc = [0, 1].map(|k| {
        let outside = Probabilities::new(&outside[k], CLASSES).unwrap();
        out_of_distribution_auc(&classes[k].probabilities(), &outside, UncertaintyScore::Entropy).unwrap()
    });
    let confidences = classes[0].probabilities().maximum_probabilities();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| confidences[*b].total_cmp(&confidences[*a]));
    let negative = |k: usize| classes[k].log_likelihoods().iter().map(|l| -l).collect::<Vec<_>>();
    let shift = |k: usize| ShiftCurve {
        method: names[k].into(),
        at: (0..7).map(|i| 30.0 * f64::from(i)).collect(),
        nll: (0..7).map(|i| scores[k].nll + 0.2 * f64::from(i) * (1.0 + k as f64)).collect(),
        ece: (0..7).map(|i| scores[k].ece + 0.05 * f64::from(i) * (1.0 + k as f64)).collect(),
        accuracy: (0..7).map(|i| scores[k].accuracy - 0.08 * f64::from(i)).collect(),
        entropy: (0..7).map(|i| scores[k].mean_entropy + 0.1 * f64::from(i)).collect(),
    };
    let joint = |k: usize| -> Vec<JointLogLikelihood> {
        let table = classes[k].log_likelihoods();
        (1..=5).map(|points| DyadicGroups::new(points, 0).score(&table, n).unwrap()).collect()
    };
    let mut methods: Vec<MethodRow> = (0..2).map(|k| MethodRow::new(names[k], &scores[k])).collect();
    for k in 0..2 {
        methods[k].out_of_distribution_auc = Some(auc[k]);
        methods[k].seconds = Some([12.5, 0.0][k]);
    }
    methods[0].peak_memory = Some(310.0);
    ClassificationReport {
        dataset: "Turning bars".into(),
        description: "Pictures of bars in ten directions.".into(),
        model: names[0].into(),
        class_names: (0..CLASSES).map(|c| format!("{}°", 18 * c)).collect(),
        summary: vec![SummaryRow::new("network", "two convolutions, 12,000 weights")],
        scores: Some(scores[0]),
        plain: Some(ClassificationBaseline { name: names[1].into(), scores: scores[1] }),
        nll_difference: Some(Average::of_differences(&negative(0), &negative(1)).unwrap()),
        methods,
        reliability: Some(Reliability {
            form: ReliabilityForm::TopClass,
            series: (0..2)
                .map(|k| ReliabilitySeries {
                    name: names[k].into(),
                    bins: classes[k].reliability_of_the_top_class(10).unwrap(),
                })
                .collect(),
        }),
        confidences: (0..2)
            .map(|k| Distribution {
                name: names[k].into(),
                values: classes[k].probabilities().maximum_probabilities(),
            })
            .collect(),
        confusion: Some(classes[0].confusion().unwrap()),
        most_certain: pictures(&tables[0], &labels, &order[..12], ImageLayout::Grey),
        least_certain: pictures(&tables[0], &labels, &order[n - 14..], ImageLayout::ColourPlanes),
        shifts: vec![ShiftCurves {
            parameter: "rotation (degrees)".into(),
            methods: vec![shift(0), shift(1)],
            references: vec![ShiftCurve { entropy: vec![], ..shift(0) }],
        }],
        out_of_distribution: Some(OutOfDistribution {
            inside: "bars".into(),
            outside: "noise".into(),
            methods: (0..2)
                .map(|k| OutOfDistributionMethod {
                    name: names[k].into(),
                    inside: entropies(&tables[k]),
                    outside: entropies(&outside[k]),
                    auc: Some(auc[k]),
                })
                .collect(),
        }),
        joint: (0..2).map(|k| JointScores { method: names[k].into(), scores: joint(k) }).collect(),
        plane: Some(moons()),
        evidence: vec![evidence()],
        more: vec![Item::Text("Nothing else was tried.".into())],
        notes: vec![Note::information("Ten shuffles for the joint scores.")],
    }
}

fn evidence() -> Curves {
    let x: Vec<f64> = (0..61).map(|i| 10f64.powf(-3.0 + 0.1 * f64::from(i))).collect();
    let line = |name: &str, shift: f64| Line {
        name: name.into(),
        y: x.iter().map(|x| -300.0 - 40.0 * (x.log10() - shift).powi(2)).collect(),
        x: x.clone(),
        optimum: Some(10f64.powf(shift)),
        ..Line::default()
    };
    Curves {
        title: "Evidence along the prior precision".into(),
        x: "prior precision".into(),
        y: "log evidence (nats)".into(),
        x_logarithmic: true,
        y_range: Some((-700.0, -280.0)),
        lines: vec![line("full", 0.3), line("Kronecker", 0.8), line("diagonal", -0.5)],
        caption: "The precision is chosen at the top.".into(),
        ..Curves::default()
    }
}

/// Probability and entropy over the plane.
pub fn moons() -> Plane {
    let mut rng = Streams::new(7).stream("report/moons");
    let grid = |low: f64, high: f64| -> Vec<f64> {
        (0..40).map(|i| low + (high - low) * f64::from(i) / 39.0).collect()
    };
    let (grid_x, grid_y) = (grid(-2.0, 3.0), grid(-1.5, 2.0));
    let probabilities: Vec<f64> = grid_y
        .iter()
        .flat_map(|y| {
            grid_x.iter().map(move |x| 1.0 / (1.0 + (4.0 * (y - 0.25 - 0.5 * (2.0 * x).sin())).exp()))
        })
        .collect();
    let entropy = |p: f64| posterior_metrics::entropy(&[p, 1.0 - p]);
    let mut plane = Plane {
        title: "Two moons".into(),
        x: "first input".into(),
        y: "second input".into(),
        grid_x,
        grid_y,
        panels: vec![
            PlanePanel::new(
                "entropy",
                PlaneKind::Amount,
                probabilities.iter().map(|p| entropy(*p)).collect(),
            ),
            PlanePanel::new("probability", PlaneKind::Probability, probabilities),
        ],
        caption: "Away from the moons the model should be undecided.".into(),
        ..Plane::default()
    };
    for i in 0..80 {
        let angle = std::f64::consts::PI * rng.random::<f64>();
        let (mut x, mut y) = (angle.cos() + 0.1 * normal(&mut rng), angle.sin() + 0.1 * normal(&mut rng));
        if i % 2 == 1 {
            (x, y) = (1.0 - x, 0.5 - y);
        }
        plane.points_x.push(x);
        plane.points_y.push(y);
        plane.points_class.push(i % 2);
    }
    plane
}

/// Three posteriors side by side.
pub fn posteriors() -> PosteriorPanels {
    let mut rng = Streams::new(7).stream("report/posteriors");
    let grid: Vec<f64> = (0..81).map(|i| -4.0 + 0.1 * f64::from(i)).collect();
    let train_input: Vec<f64> =
        (0..30).map(|i| if i % 2 == 0 { -2.5 } else { 2.0 } + 0.5 * normal(&mut rng)).collect();
    let train_target: Vec<f64> = train_input.iter().map(|x| x.sin() + 0.1 * normal(&mut rng)).collect();
    let panel = |title: &str, spread: f64| TitledPosterior {
        title: title.into(),
        posterior: PosteriorPanel {
            input: "x".into(),
            mean: grid.iter().map(|x| x.sin()).collect(),
            latent_standard_deviation: grid.iter().map(|x| 0.1 + spread * x.cos().abs()).collect(),
            observed_standard_deviation: grid
                .iter()
                .map(|x| (0.1 + spread * x.cos().abs()).hypot(0.1))
                .collect(),
            grid: grid.clone(),
            train_input: train_input.clone(),
            train_target: train_target.clone(),
            ..PosteriorPanel::default()
        },
    };
    PosteriorPanels {
        title: "Four approximations".into(),
        target: "y".into(),
        panels: vec![
            panel("full", 0.5),
            panel("diagonal", 2.0),
            panel("Kronecker", 0.6),
            panel("last layer", 0.1),
        ],
        caption: "The same network and data.".into(),
    }
}

/// One item of each kind.
pub fn experiment() -> FiguresReport {
    let digits = digits(80);
    FiguresReport {
        title: "An experiment".into(),
        text: "Every kind of picture once.".into(),
        summary: vec![SummaryRow::new("seeds", "5")],
        items: vec![
            Item::Text("A paragraph.".into()),
            Item::Posteriors(posteriors()),
            Item::Curves(evidence()),
            Item::Distributions(Distributions {
                title: "Weights".into(),
                x: "weight".into(),
                series: digits.confidences.clone(),
                ..Distributions::default()
            }),
            Item::Reliability(Reliability {
                form: ReliabilityForm::EveryClass,
                ..digits.reliability.clone().unwrap()
            }),
            Item::Confusion(ConfusionFigure {
                class_names: vec![],
                matrix: digits.confusion.clone().unwrap(),
            }),
            Item::Images(ImageGallery {
                title: "Pictures".into(),
                images: digits
                    .most_certain
                    .iter()
                    .map(|p| ImagePrediction { image: picture(3, ImageLayout::ColourPixels), ..p.clone() })
                    .collect(),
                ..ImageGallery::default()
            }),
            Item::Picture(Picture {
                title: "Chosen".into(),
                image: picture(1, ImageLayout::Grey),
                caption: "In the order in which they were chosen.".into(),
            }),
            Item::Plane(moons()),
            Item::Table(Table {
                title: "Seconds".into(),
                head: vec!["method".into(), "fit".into(), "predict".into()],
                rows: vec![vec!["full".into(), "2.0".into(), "0.1".into()], vec!["diagonal".into()]],
                caption: "On one core.".into(),
            }),
        ],
        notes: vec![Note::warning("One seed of five did not converge.")],
    }
}
