//! Streams of rows with classes: features of images (pixels, random ones, or those that a network's last layer reads) or of points of the plane.

use crate::images::{self, Shared};
use crate::kinds::prelude::*;
use crate::opened;
use crate::pictures::before_last_layer;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::dense::product;
use posterior_networks::Array;
use posterior_networks::train::Targets;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use std::path::PathBuf;

/// Images that are read at a time.
const PIECE: usize = 250;

/// Where the four classes of the plane are, and how far maps reach.
const REACH: f64 = 4.0;

/// One `[[stream]]`: exactly one of `images`, `network` and `plane`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct StreamSettings {
    pub(super) name: String,
    /// Images whose pixels are the inputs.
    images: Option<images::ImageSettings>,
    /// A network that came with its weights, and images: inputs are what its last layer reads.
    network: Option<opened::ImageSettings>,
    /// Its test images.
    test: Option<TestSettings>,
    /// Made-up points.
    plane: Option<PlaneSettings>,
    /// So many random rectified features of the inputs, whose weights nobody trains; absent: the inputs themselves.
    pub(super) random_features: Option<usize>,
}

/// The table `[stream.test]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct TestSettings {
    data: Vec<PathBuf>,
    #[serde(default)]
    labels: Vec<PathBuf>,
    examples: usize,
}

/// Four classes around the corners of a square.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct PlaneSettings {
    rows: usize,
    test: usize,
    /// Standard deviation of a class, whose middle is a corner at 1.5 in both coordinates.
    spread: f64,
    /// Points of a side of the pictures.
    grid: usize,
}

impl StreamSettings {
    pub(super) fn check(&self) -> Result<()> {
        let ways = [self.images.is_some(), self.network.is_some(), self.plane.is_some()];
        if ways.iter().filter(|w| **w).count() != 1 || self.network.is_some() != self.test.is_some() {
            return refused(format!(
                "[[stream]] `{}` has exactly one of `images`, `network` (with `test`) and `plane`",
                self.name
            ));
        }
        if self.random_features.is_some_and(|p| !(1..=20_000).contains(&p)) {
            return refused("[[stream]]: `random_features` are from 1 to 20000");
        }
        if let Some(plane) = &self.plane
            && (plane.rows == 0 || plane.test == 0 || !positive(plane.spread))
        {
            return refused("[stream.plane]: `rows`, `test` and `spread` are positive");
        }
        if self.plane.as_ref().is_some_and(|plane| !(2..=200).contains(&plane.grid)) {
            return refused("[stream.plane]: `grid` is from 2 to 200");
        }
        Ok(())
    }

    /// Whether its rows are points of the plane.
    pub(super) fn is_plane(&self) -> bool {
        self.plane.is_some()
    }

    /// Reads it, in an order of the seed's. Features have mean 0 and variance 1 over the first `scale_rows` rows, behind a column of ones.
    pub(super) fn open(&self, scale_rows: usize, context: &mut Context<'_>) -> Result<Stream> {
        let streams = Streams::new(context.seed).child("experiment/stream", 0);
        let (mut train, test, classes) = self.inputs(streams, context)?;
        let mut order: Vec<usize> = (0..train.labels.len()).collect();
        order.shuffle(&mut streams.stream("experiment/order"));
        train = train.in_order(&order);
        let map = Map::new(self.random_features, train.inputs.as_ref(), scale_rows, streams);
        let grid = self.plane.as_ref().map(|plane| {
            let side = plane.grid;
            let at = |i: usize| REACH * (2.0 * i as f64 / (side - 1) as f64 - 1.0);
            let inputs = Mat::from_fn(side * side, 2, |i, j| at(if j == 0 { i % side } else { i / side }));
            Grid { axis: (0..side).map(at).collect(), features: map.features(inputs.as_ref()) }
        });
        Ok(Stream {
            features: map.features(train.inputs.as_ref()),
            labels: train.labels,
            test_features: map.features(test.inputs.as_ref()),
            test_labels: test.labels,
            classes,
            points: grid.is_some().then_some(train.inputs),
            grid,
        })
    }

    fn inputs(&self, streams: Streams, context: &mut Context<'_>) -> Result<(Inputs, Inputs, usize)> {
        if let Some(plane) = &self.plane {
            return Ok((
                plane.draw("train", plane.rows, streams),
                plane.draw("test", plane.test, streams),
                4,
            ));
        }
        if let Some(images) = &self.images {
            let (train, test) = images.read(context.folder)?;
            let pixels = &mut |x: &Array<f32>| -> Result<_> { Ok(x.clone()) };
            let stage = format!("`{}`: pixels", self.name);
            let train = Inputs::of(&train, pixels, &stage, context)?;
            return Ok((train, Inputs::of(&test, pixels, &stage, context)?, images.classes));
        }
        let (Some(network), Some(test)) = (&self.network, &self.test) else {
            return refused("[[stream]] has no source");
        };
        let opened = network.open(context.folder)?;
        let OutputLikelihood::Categorical(classes) = &opened.likelihood else {
            return refused("[stream.network] is no classifier");
        };
        let other = network.with_images(&test.data, &test.labels, test.examples).open(context.folder)?;
        let last = before_last_layer(&opened.network)?;
        let features = &mut |x: &Array<f32>| -> Result<_> { Ok(opened.network.forward_with(x, last)?.1) };
        let stage = format!("`{}`: features", self.name);
        let train = Inputs::of(&opened.examples, features, &stage, context)?;
        Ok((train, Inputs::of(&other.examples, features, &stage, context)?, classes.classes()))
    }
}

/// From images to what is streamed of them.
type Features<'a> = dyn FnMut(&Array<f32>) -> Result<Array<f32>> + 'a;

/// Inputs (rows x columns) with their classes.
struct Inputs {
    inputs: Mat<f64>,
    labels: Vec<usize>,
}

impl Inputs {
    fn of(
        examples: &Shared,
        features: &mut Features<'_>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let (n, mut values, mut labels) = (examples.len(), Vec::new(), Vec::with_capacity(examples.len()));
        for start in (0..n).step_by(PIECE) {
            context.step(stage, start, n)?;
            let rows: Vec<usize> = (start..(start + PIECE).min(n)).collect();
            let (x, targets) = examples.batch(&rows, None);
            let Targets::Classes(classes) = targets else {
                return refused("the images of a stream have no classes");
            };
            labels.extend(classes.iter().map(|c| *c as usize));
            values.extend(features(&x)?.values().iter().map(|v| f64::from(*v)));
        }
        let width = values.len() / n.max(1);
        Ok(Self { inputs: Mat::from_fn(n, width, |i, j| values[i * width + j]), labels })
    }

    fn in_order(self, order: &[usize]) -> Self {
        Self {
            inputs: Mat::from_fn(order.len(), self.inputs.ncols(), |i, j| self.inputs[(order[i], j)]),
            labels: order.iter().map(|i| self.labels[*i]).collect(),
        }
    }
}

impl PlaneSettings {
    fn draw(&self, part: &str, rows: usize, streams: Streams) -> Inputs {
        let mut rng = streams.stream(&format!("experiment/plane/{part}"));
        let labels: Vec<usize> = (0..rows).map(|_| rng.random_range(0..4)).collect();
        let mut inputs = Mat::zeros(rows, 2);
        for (i, label) in labels.iter().enumerate() {
            for j in 0..2 {
                let white: f64 = StandardNormal.sample(&mut rng);
                let middle = if (label >> j) & 1 == 1 { 1.5 } else { -1.5 };
                inputs[(i, j)] = middle + self.spread * white;
            }
        }
        Inputs { inputs, labels }
    }
}

/// From inputs to features.
struct Map {
    /// Weights and offsets of random features: `max(0, x W / √d + b)`.
    random: Option<(Mat<f64>, Vec<f64>)>,
    centre: Vec<f64>,
    scale: Vec<f64>,
}

impl Map {
    fn new(random: Option<usize>, inputs: MatRef<'_, f64>, scale_rows: usize, streams: Streams) -> Self {
        let mut rng = streams.stream("experiment/features");
        let mut white = || -> f64 { StandardNormal.sample(&mut rng) };
        let root = (inputs.ncols() as f64).sqrt();
        let random = random.map(|p| {
            let weights = Mat::from_fn(inputs.ncols(), p, |_, _| white() / root);
            (weights, (0..p).map(|_| 0.5 * white()).collect())
        });
        let mut map = Self { random, centre: Vec::new(), scale: Vec::new() };
        let rows = scale_rows.min(inputs.nrows());
        let raw = map.raw(inputs.subrows(0, rows));
        for column in raw.col_iter() {
            let mean = column.iter().sum::<f64>() / rows as f64;
            let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64;
            map.centre.push(mean);
            // A pixel that never changed may yet: by its own size it would then be enormous.
            map.scale.push(if variance > 1e-4 { variance.sqrt() } else { 1.0 });
        }
        map
    }

    fn raw(&self, inputs: MatRef<'_, f64>) -> Mat<f64> {
        match &self.random {
            None => inputs.to_owned(),
            Some((weights, offsets)) => {
                let mut out = product(inputs, weights.as_ref());
                for (column, offset) in out.col_iter_mut().zip(offsets) {
                    column.iter_mut().for_each(|v| *v = (*v + offset).max(0.0));
                }
                out
            }
        }
    }

    fn features(&self, inputs: MatRef<'_, f64>) -> Mat<f64> {
        let raw = self.raw(inputs);
        Mat::from_fn(raw.nrows(), raw.ncols() + 1, |i, j| match j.checked_sub(1) {
            None => 1.0,
            Some(j) => (raw[(i, j)] - self.centre[j]) / self.scale[j],
        })
    }
}

/// Equally spaced points of the plane.
pub(super) struct Grid {
    pub(super) axis: Vec<f64>,
    pub(super) features: Mat<f64>,
}

/// Rows in their order, and others to be scored on.
pub(super) struct Stream {
    /// Rows x P, the first column ones.
    pub(super) features: Mat<f64>,
    pub(super) labels: Vec<usize>,
    pub(super) test_features: Mat<f64>,
    pub(super) test_labels: Vec<usize>,
    pub(super) classes: usize,
    pub(super) grid: Option<Grid>,
    /// Inputs of the rows, where they are points of the plane.
    pub(super) points: Option<Mat<f64>>,
}
