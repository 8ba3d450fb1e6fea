//! Pools with labels that are known but not told: bags of words, digits by a network's features, clusters of the plane.

use crate::kinds::prelude::*;
use crate::pictures::{self, Pictures, before_last_layer};
use posterior_data::Standardisation;
use posterior_networks::Array;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Normal, Poisson, StandardNormal};
use std::path::{Path, PathBuf};

/// Most rows of pool and test set together.
const MOST_ROWS: usize = 100_000;

/// Where rows come from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Source {
    /// Counts of words in documents of two topics.
    Words(Words),
    /// Images of digits as the last hidden layer of a network sees them.
    Digits(Digits),
    /// Clusters of the plane, of which each class has two.
    Clusters(Clusters),
}

/// Documents of two topics whose words overlap. Word w has the frequency `∝ rank^-1 exp(± ½ tilt z_w)` in the one and the other, z_w being standard normal.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Words {
    /// Different words.
    vocabulary: usize,
    /// Median of the words of a document.
    length: f64,
    /// Standard deviation of the logarithm of that number: short documents are hard.
    spread: f64,
    /// How far the topics are apart.
    tilt: f64,
}

/// Images that the network was not trained on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Digits {
    /// The network's file; the layer before its last one makes the features.
    network: PathBuf,
    images: PathBuf,
    labels: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Clusters {
    /// Standard deviation of a cluster.
    deviation: f64,
}

/// Standardised rows, the pool before the test rows, with their classes.
pub(super) struct Problem {
    pub(super) inputs: Mat<f64>,
    pub(super) labels: Vec<usize>,
    pub(super) classes: usize,
    pub(super) names: Vec<String>,
    /// Mean and scale of each column, to go back.
    pub(super) units: Standardisation,
}

impl Source {
    /// Refuses what cannot be drawn, for so many rows of pool and test set.
    pub(super) fn check(&self, (pool, test): (usize, usize)) -> Result<()> {
        if pool < 10 || test == 0 || pool.saturating_add(test) > MOST_ROWS {
            return refused(format!(
                "`pool` is at least 10, `test` at least 1, both together at most {MOST_ROWS}"
            ));
        }
        match self {
            Self::Words(w) => {
                let few = (2..=10_000).contains(&w.vocabulary);
                if !few
                    || !positive(w.length)
                    || w.length > 1e4
                    || !(0.0..=3.0).contains(&w.spread)
                    || !positive(w.tilt)
                {
                    return refused(
                        "words: `vocabulary` is 2 to 10000, `length` positive and at most 10000, `spread` 0 to 3, `tilt` positive",
                    );
                }
                Ok(())
            }
            Self::Clusters(c) if !positive(c.deviation) => refused("clusters: `deviation` must be positive"),
            _ => Ok(()),
        }
    }

    /// Rows of pool and test set, drawn anew for every stream.
    pub(super) fn open(
        &self,
        (pool, test): (usize, usize),
        base: &Path,
        streams: Streams,
    ) -> Result<Problem> {
        let n = pool + test;
        let (x, labels, classes) = match self {
            Self::Words(words) => words.draw(n, streams)?,
            Self::Digits(digits) => digits.read(n, base, streams)?,
            Self::Clusters(clusters) => clusters.draw(n, streams),
        };
        // In the units of the pool, all of which may be looked at.
        let units = Standardisation::learn(x.as_ref().subrows(0, pool), &vec![0.0; pool]);
        let names = (1..=x.ncols()).map(|j| format!("x{j}")).collect();
        Ok(Problem { inputs: units.features(x.as_ref()), labels, classes, names, units })
    }
}

type Drawn = (Mat<f64>, Vec<usize>, usize);

impl Words {
    fn draw(&self, n: usize, streams: Streams) -> Result<Drawn> {
        let mut rng = streams.stream("experiment/words");
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let tilts: Vec<f64> = (0..self.vocabulary).map(|_| self.tilt * normal()).collect();
        let cumulated = |sign: f64| -> Vec<f64> {
            let mut total = 0.0;
            let each = tilts.iter().enumerate().map(|(rank, tilt)| {
                total += (0.5 * sign * tilt).exp() / (rank + 1) as f64;
                total
            });
            each.collect()
        };
        let topics = [cumulated(-1.0), cumulated(1.0)];
        let lengths = Normal::new(self.length.ln(), self.spread)
            .map_err(|e| ExperimentError::Setting(e.to_string()))?;
        let mut rng = streams.stream("experiment/documents");
        let mut counts = Mat::<f64>::zeros(n, self.vocabulary);
        let mut labels = Vec::with_capacity(n);
        for i in 0..n {
            let topic = usize::from(rng.random::<f64>() < 0.5);
            let mean: f64 = lengths.sample(&mut rng).exp();
            let words = Poisson::new(mean).map_or(0.0, |p| p.sample(&mut rng)).max(1.0) as usize;
            let own = &topics[topic];
            let total = own[own.len() - 1];
            for _ in 0..words {
                let at = total * rng.random::<f64>();
                let word = own.partition_point(|c| *c <= at).min(self.vocabulary - 1);
                counts[(i, word)] += 1.0;
            }
            labels.push(topic);
        }
        // As is usual with counts: the tenth time a word occurs says less than the first.
        let x = Mat::from_fn(n, self.vocabulary, |i, j| counts[(i, j)].ln_1p());
        Ok((x, labels, 2))
    }
}

impl Clusters {
    fn draw(&self, n: usize, streams: Streams) -> Drawn {
        let mut rng = streams.stream("experiment/clusters");
        let centres = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]];
        let mut labels = Vec::with_capacity(n);
        let mut rows = Vec::with_capacity(n);
        for _ in 0..n {
            let cluster = rng.random_range(0..4);
            let mut at = |centre: f64| {
                let white: f64 = StandardNormal.sample(&mut rng);
                centre + self.deviation * white
            };
            rows.push([at(centres[cluster][0]), at(centres[cluster][1])]);
            // Opposite corners are of one class.
            labels.push(cluster % 2);
        }
        (Mat::from_fn(n, 2, |i, j| rows[i][j]), labels, 2)
    }
}

impl Digits {
    fn read(&self, n: usize, base: &Path, streams: Streams) -> Result<Drawn> {
        let network = pictures::network::<f64>(base, &self.network)?;
        let (images, labels) = (std::slice::from_ref(&self.images), std::slice::from_ref(&self.labels));
        let Pictures { shape, bytes, labels } = Pictures::read(base, images, labels, None)?;
        let size: usize = shape.iter().product();
        let input = network.graph().input_shape();
        if input.iter().product::<usize>() != size {
            return refused(format!("digits: the network takes {input:?}, images have {size} pixels"));
        }
        if labels.len() < n {
            let count = labels.len();
            return refused(format!("digits: {count} images are fewer than the {n} of pool and test set"));
        }
        let features = before_last_layer(&network)?;
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.shuffle(&mut streams.stream("experiment/digits"));
        order.truncate(n);
        let pixels =
            order.iter().flat_map(|&i| bytes[i * size..(i + 1) * size].iter().map(|b| f64::from(*b) / 255.0));
        let shape: Vec<usize> = std::iter::once(n).chain(input.iter().copied()).collect();
        let (_, found) = network.forward_with(&Array::new(shape, pixels.collect()), features)?;
        let width = found.values().len() / n;
        let labels: Vec<usize> = order.iter().map(|&i| labels[i] as usize).collect();
        let classes = labels.iter().max().map_or(0, |c| c + 1);
        Ok((Mat::from_fn(n, width, |i, j| found.values()[i * width + j]), labels, classes))
    }
}
