//! What classifiers learn from: points of the plane, images, or what a trained network says of photographs.

use crate::images::ImageSettings;
use crate::kinds::prelude::*;
use crate::pictures::{self, Pictures, before_last_layer};
use posterior_data::synthetic::{LabelledPoints, clouds};
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Array, Network};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Images of which features are computed at a time.
const AT_ONCE: usize = 64;

/// Most rows that are made up.
const MOST_MADE_UP: usize = 100_000;

/// The table `[data]`: one of three.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum DataSettings {
    /// Clouds of points in the plane.
    Points(PointSettings),
    /// Grey images, which the network sees as they are.
    Images(ImageSettings),
    /// What the last layer of a trained network reads.
    Features(FeatureSettings),
}

/// The table `[data.points]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct PointSettings {
    /// Training points.
    train: usize,
    /// Test points.
    test: usize,
    /// Clouds, each a class.
    classes: usize,
    /// Standard deviation of a cloud; centres have a distance of 1 from the origin.
    noise: f64,
    /// Points along each side of the map, which reaches from -`reach` to `reach`.
    grid: usize,
    /// Half the side of the map.
    reach: f64,
}

/// The table `[data.features]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct FeatureSettings {
    /// The trained network's file, counted from the experiment's; empty: features are made up.
    network: PathBuf,
    /// Training images (IDX with `labels`, or CIFAR).
    #[serde(default)]
    data: Vec<PathBuf>,
    #[serde(default)]
    labels: Vec<PathBuf>,
    /// The first so many.
    train: usize,
    /// Test images.
    #[serde(default)]
    test_data: Vec<PathBuf>,
    #[serde(default)]
    test_labels: Vec<PathBuf>,
    /// The first so many.
    test: usize,
    /// Classes.
    classes: usize,
    /// Of each channel, on the scale of 0 to 1.
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// Images of other kinds.
    #[serde(default)]
    foreign: Vec<ForeignSettings>,
}

/// One `[[data.features.foreign]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct ForeignSettings {
    /// What they are.
    name: String,
    /// Labelled images; none: bytes that are uniform by chance.
    #[serde(default)]
    data: Vec<PathBuf>,
    #[serde(default)]
    labels: Vec<PathBuf>,
    /// The first so many.
    count: usize,
}

/// Examples that can be shared.
type Shared<T> = Arc<dyn Examples<T> + Send>;

/// What classifiers learn from and are scored on.
pub(super) struct Problem<T> {
    pub(super) train: Shared<T>,
    pub(super) test: Shared<T>,
    /// Inputs of other kinds, by name.
    pub(super) foreign: Vec<(String, Array<T>)>,
    /// Where maps are drawn.
    pub(super) plane: Option<Grid>,
}

/// A square grid of the plane, and the training points.
pub(super) struct Grid {
    /// Coordinates along each side.
    pub(super) side: Vec<f64>,
    /// Training points, two coordinates each.
    pub(super) points: Vec<f64>,
    /// Their classes.
    pub(super) labels: Vec<u32>,
}

impl Grid {
    /// Points of the grid, row by row.
    pub(super) fn inputs(&self) -> Array<f64> {
        let n = self.side.len();
        let values = (0..n * n).flat_map(|i| [self.side[i % n], self.side[i / n]]);
        Array::new(vec![n * n, 2], values.collect())
    }
}

impl DataSettings {
    /// Classes.
    pub(super) fn classes(&self) -> usize {
        match self {
            Self::Points(own) => own.classes,
            Self::Images(own) => own.classes,
            Self::Features(own) => own.classes,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let fits = |v: usize| (1..=MOST_MADE_UP).contains(&v);
        match self {
            Self::Points(own) => {
                let reach = own.reach > 0.0 && own.reach.is_finite();
                if fits(own.train) && fits(own.test) && (2..=400).contains(&own.grid) && reach {
                    return Ok(());
                }
                refused(format!(
                    "[data.points]: `train` and `test` lie between 1 and {MOST_MADE_UP}, `grid` between 2 and 400, `reach` is positive"
                ))
            }
            Self::Images(_) => Ok(()),
            Self::Features(own) => {
                let made_up = own.network.as_os_str().is_empty();
                let counts = [(own.train, made_up), (own.test, made_up)]
                    .into_iter()
                    .chain(own.foreign.iter().map(|f| (f.count, made_up || f.data.is_empty())))
                    .all(|(count, made_up)| count >= 1 && (!made_up || fits(count)));
                let even = own.mean.len() == own.deviation.len()
                    && own.deviation.iter().all(|d| *d > 0.0 && d.is_finite())
                    && own.mean.iter().all(|m| m.is_finite());
                if !even || !counts || !(2..=1000).contains(&own.classes) {
                    return refused(format!(
                        "[data.features]: `classes` lie between 2 and 1000, counts of images are at least 1 (at most {MOST_MADE_UP} are made up), `mean` and `deviation` have a number for each channel, deviations positive"
                    ));
                }
                if own.foreign.is_empty() {
                    return Ok(());
                }
                crate::gaussian::check_names(
                    "data.features.foreign",
                    own.foreign.iter().map(|f| f.name.as_str()),
                )
            }
        }
    }
}

/// Points with their labels as examples.
fn tabular(points: Vec<f64>, width: usize, labels: Vec<u32>) -> Shared<f64> {
    let inputs = Array::new(vec![labels.len(), width], points);
    Arc::new(Tabular::new(inputs, Targets::Classes(labels)))
}

impl PointSettings {
    /// The same points whatever the seed of the run: it is for networks.
    pub(super) fn open(&self) -> Result<Problem<f64>> {
        let made = |part: u64, n: usize| -> Result<LabelledPoints> {
            let streams = Streams::new(0).child("experiment/clouds", part);
            Ok(clouds(n, self.classes, self.noise, streams)?)
        };
        let (train, test) = (made(0, self.train)?, made(1, self.test)?);
        let step = 2.0 * self.reach / (self.grid - 1) as f64;
        let grid = Grid {
            side: (0..self.grid).map(|i| i as f64 * step - self.reach).collect(),
            points: train.features.to_f64(),
            labels: train.labels.clone(),
        };
        Ok(Problem {
            train: tabular(train.features.to_f64(), 2, train.labels),
            test: tabular(test.features.to_f64(), 2, test.labels),
            foreign: Vec::new(),
            plane: Some(grid),
        })
    }
}

/// Opens images as they are.
pub(super) fn open_images(own: &ImageSettings, folder: &Path) -> Result<Problem<f32>> {
    let (train, test) = own.read(folder)?;
    Ok(Problem { train, test, foreign: Vec::new(), plane: None })
}

impl FeatureSettings {
    /// Features of all images, each standardised by the training images: computed by the first part that asks and kept with the others.
    pub(super) fn open(&self, context: &mut Context<'_>) -> Result<Problem<f64>> {
        // They are the same for every seed, which is for what is trained on them.
        let seed = std::mem::replace(&mut context.seed, 0);
        let found = context.once("features", self, |context| match self.network.as_os_str().is_empty() {
            true => Ok(self.made_up()),
            false => self.computed(context),
        });
        context.seed = seed;
        let (train, test, foreign): Sets = found?;
        let width = train.0.len() / train.1.len().max(1);
        let count = train.1.len() as f64;
        let mut mean = vec![0.0; width];
        let mut square = vec![0.0; width];
        for row in train.0.chunks_exact(width.max(1)) {
            mean.iter_mut().zip(row).for_each(|(m, v)| *m += f64::from(*v) / count);
        }
        for row in train.0.chunks_exact(width.max(1)) {
            let centred = row.iter().zip(&mean).map(|(v, m)| (f64::from(*v) - m).powi(2) / count);
            square.iter_mut().zip(centred).for_each(|(s, v)| *s += v);
        }
        // A feature that never changes says nothing, and is left at zero.
        let scale: Vec<f64> = square.iter().map(|s| if *s > 0.0 { s.sqrt() } else { 1.0 }).collect();
        let standard = |values: Vec<f32>| -> Vec<f64> {
            let each = |(i, v): (usize, f32)| (f64::from(v) - mean[i % width]) / scale[i % width];
            values.into_iter().enumerate().map(each).collect()
        };
        let foreign = foreign.into_iter().map(|(name, values)| {
            let rows = values.len() / width.max(1);
            (name, Array::new(vec![rows, width], standard(values)))
        });
        Ok(Problem {
            foreign: foreign.collect(),
            train: tabular(standard(train.0), width, train.1),
            test: tabular(standard(test.0), width, test.1),
            plane: None,
        })
    }

    fn computed(&self, context: &mut Context<'_>) -> Result<Sets> {
        let network = pictures::network::<f32>(context.folder, &self.network)?;
        let base = context.folder;
        let train = Pictures::read(base, &self.data, &self.labels, Some(self.train))?;
        let test = Pictures::read(base, &self.test_data, &self.test_labels, Some(self.test))?;
        [&train, &test].into_iter().try_for_each(|part| part.check_labels(self.classes))?;
        if train.labels.is_empty() || test.labels.is_empty() {
            return refused("[data.features]: there are no images");
        }
        let mut foreign = Vec::new();
        for (i, own) in self.foreign.iter().enumerate() {
            let pictures = match own.data.is_empty() {
                true => noise(train.shape, own.count, i as u64),
                false => Pictures::read(base, &own.data, &own.labels, Some(own.count))?.like(train.shape),
            };
            foreign.push((own.name.clone(), self.features(&network, pictures, &own.name, context)?.0));
        }
        let train = self.features(&network, train, "training images", context)?;
        let test = self.features(&network, test, "test images", context)?;
        Ok((train, test, foreign))
    }

    /// What the last layer reads of each image.
    fn features(
        &self,
        network: &Network<f32>,
        pictures: Pictures,
        name: &str,
        context: &mut Context<'_>,
    ) -> Result<Labelled> {
        let read = before_last_layer(network)?;
        let labels = pictures.labels.clone();
        let images = pictures.standardised((&self.mean, &self.deviation), network.graph().input_shape())?;
        let mut values = Vec::new();
        let all: Vec<usize> = (0..labels.len()).collect();
        for (done, indices) in all.chunks(AT_ONCE).enumerate() {
            context.step(&format!("features of {name}"), done * AT_ONCE, all.len())?;
            let (x, _) = images.batch(indices, None);
            values.extend(network.forward_with(&x, read)?.1.into_values());
        }
        Ok((values, labels))
    }

    /// Normal clouds about one corner of a cube for each class, and foreign rows about its middle: for runs without files.
    fn made_up(&self) -> Sets {
        let width = self.classes;
        let rows = |part: &str, count: usize, height: f32| -> Labelled {
            let mut rng = Streams::new(0).stream(&format!("experiment/features/{part}"));
            let labels: Vec<u32> = (0..count).map(|i| (i % self.classes) as u32).collect();
            let value = |label: u32, j: usize, normal: f32| {
                if label as usize == j { height + normal } else { normal }
            };
            let values = labels.iter().flat_map(|label| {
                let own: Vec<f32> =
                    (0..width).map(|j| value(*label, j, StandardNormal.sample(&mut rng))).collect();
                own
            });
            (values.collect(), labels.clone())
        };
        let foreign = self.foreign.iter().map(|f| (f.name.clone(), rows(&f.name, f.count, 0.0).0)).collect();
        (rows("train", self.train, 3.0), rows("test", self.test, 3.0), foreign)
    }
}

/// Features, row by row, with labels.
type Labelled = (Vec<f32>, Vec<u32>);

/// Training, test, and foreign sets by name.
type Sets = (Labelled, Labelled, Vec<(String, Vec<f32>)>);

/// Bytes that are uniform by chance.
fn noise(shape: [usize; 3], count: usize, part: u64) -> Pictures {
    let mut rng = Streams::new(part).stream("experiment/noise");
    let size = count.saturating_mul(shape.iter().product());
    Pictures { shape, bytes: (0..size).map(|_| rng.random()).collect(), labels: vec![0; count] }
}
