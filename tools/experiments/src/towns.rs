//! A made-up country: speeds that are measured where people are, in towns and along the roads between them, and seldom elsewhere.

use super::splits::Rows;
use faer::Mat;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// The country's sides, km: east and north.
pub(crate) const SIDES: [f64; 2] = [400.0, 480.0];

/// Towns.
const TOWNS: usize = 14;

/// Shares of the rows in towns and along roads; the others are anywhere.
const SHARES: [f64; 2] = [0.65, 0.25];

/// How far rows lie from their road, km.
const VERGE: f64 = 1.5;

/// Standard deviation of the logarithm of a speed about its mean there.
pub(crate) const NOISE: f64 = 0.35;

struct Town {
    at: [f64; 2],
    /// Its share of the townspeople.
    share: f64,
    /// Kilometres.
    radius: f64,
    /// What a speed's logarithm is more in its middle.
    gain: f64,
}

/// Towns, the roads between them, and what speeds are without them.
pub(crate) struct Country {
    towns: Vec<Town>,
    /// Pairs of towns: the shortest tree that joins all.
    roads: Vec<(usize, usize)>,
    /// Waves: frequencies (1/km), phase, height.
    waves: Vec<([f64; 2], f64, f64)>,
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// The distance of a point from the way between two others.
fn distance_from_way(p: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let share = ((p[0] - a[0]) * along[0] + (p[1] - a[1]) * along[1]) / square.max(1e-12);
    let share = share.clamp(0.0, 1.0);
    distance(p, [a[0] + share * along[0], a[1] + share * along[1]])
}

impl Country {
    /// The country of a seed.
    pub(crate) fn new(streams: Streams) -> Self {
        let mut rng = streams.stream("experiment/country");
        // The sizes of towns by rank (Zipf).
        let all: f64 = (1..=TOWNS).map(|k| 1.0 / k as f64).sum();
        let towns: Vec<Town> = (1..=TOWNS)
            .map(|k| Town {
                at: SIDES.map(|side| side * rng.random_range(0.08..0.92)),
                share: 1.0 / k as f64 / all,
                radius: 4.0 + 14.0 / (k as f64).sqrt(),
                gain: 0.5 + 0.8 / (k as f64).sqrt() + 0.15 * normal(&mut rng),
            })
            .collect();
        let mut joined = vec![0];
        let mut roads = Vec::new();
        while joined.len() < TOWNS {
            let open = (0..TOWNS).filter(|k| !joined.contains(k));
            let ways = open.flat_map(|k| joined.iter().map(move |&j| (j, k)));
            let length = |(a, b): &(usize, usize)| distance(towns[*a].at, towns[*b].at);
            let Some(way) = ways.min_by(|a, b| length(a).total_cmp(&length(b))) else { break };
            joined.push(way.1);
            roads.push(way);
        }
        let waves = (0..6)
            .map(|_| {
                let frequency = SIDES.map(|side| normal(&mut rng) * TAU / side);
                (frequency, rng.random_range(0.0..TAU), 0.12)
            })
            .collect();
        Self { towns, roads, waves }
    }

    /// The mean of a speed's logarithm at a place: waves over the country, plateaus of towns with edges, and roads that can be felt for some kilometres.
    pub(crate) fn mean(&self, at: [f64; 2]) -> f64 {
        let waves: f64 = self
            .waves
            .iter()
            .map(|(f, phase, height)| height * (f[0] * at[0] + f[1] * at[1] + phase).sin())
            .sum();
        // A town ends within a fifth of its radius.
        let town = |t: &Town| t.gain / (1.0 + (5.0 * (distance(at, t.at) / t.radius - 1.0)).exp());
        let towns = self.towns.iter().map(town).fold(0.0, f64::max);
        let road = |(a, b): &(usize, usize)| distance_from_way(at, self.towns[*a].at, self.towns[*b].at);
        let nearest = self.roads.iter().map(road).fold(f64::INFINITY, f64::min);
        3.0 + waves + towns + 0.45 * (-nearest / 6.0).exp()
    }

    /// A place where somebody measures.
    fn place(&self, rng: &mut ChaCha8Rng) -> [f64; 2] {
        let kind: f64 = rng.random();
        let at = if kind < SHARES[0] {
            let mut left: f64 = rng.random();
            let chosen = self.towns.iter().find(|town| {
                left -= town.share;
                left < 0.0
            });
            let town = chosen.unwrap_or(&self.towns[0]);
            [town.at[0] + 0.6 * town.radius * normal(rng), town.at[1] + 0.6 * town.radius * normal(rng)]
        } else if kind < SHARES[0] + SHARES[1] {
            let (a, b) = self.roads[rng.random_range(0..self.roads.len())];
            let (a, b, share) = (self.towns[a].at, self.towns[b].at, rng.random::<f64>());
            [0, 1].map(|j| a[j] + share * (b[j] - a[j]) + VERGE * normal(rng))
        } else {
            SIDES.map(|side| side * rng.random::<f64>())
        };
        [0, 1].map(|j| at[j].clamp(0.0, SIDES[j]))
    }

    /// Speeds that are measured: east and north in km, and log-normal speeds in Mbit/s.
    pub(crate) fn rows(&self, count: usize, streams: Streams) -> Rows {
        let mut rng = streams.stream("experiment/speeds");
        let (mut x, mut y) = (Mat::zeros(count, 2), Vec::with_capacity(count));
        for i in 0..count {
            let at = self.place(&mut rng);
            (x[(i, 0)], x[(i, 1)]) = (at[0], at[1]);
            y.push((self.mean(at) + NOISE * normal(&mut rng)).exp());
        }
        Rows::new(x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_rows_are_where_people_are_and_speeds_are_log_normal() {
        let country = Country::new(Streams::new(0));
        assert_eq!(country.roads.len(), TOWNS - 1);
        let rows = country.rows(6000, Streams::new(1));
        let at = |i: usize| [rows.x[(i, 0)], rows.x[(i, 1)]];
        assert!((0..6000).all(|i| (0..2).all(|j| (0.0..=SIDES[j]).contains(&at(i)[j])) && rows.y[i] > 0.0));
        // Towns have 65 % of the rows, of which nearly all lie within 1.8 radii (three deviations), and less than a tenth of the land.
        let in_town = |p: [f64; 2]| country.towns.iter().any(|t| distance(p, t.at) < 1.8 * t.radius);
        let share = (0..6000).filter(|&i| in_town(at(i))).count() as f64 / 6000.0;
        let mut rng = Streams::new(2).stream("land");
        let land =
            (0..4000).filter(|_| in_town(SIDES.map(|s| s * rng.random::<f64>()))).count() as f64 / 4000.0;
        assert!(share > 0.6 && land < 0.25, "{share} {land}");
        // Residuals of logarithms: mean 0 and deviation NOISE, give or take four standard errors.
        let residual = |i: usize| rows.y[i].ln() - country.mean(at(i));
        let mean = (0..6000).map(residual).sum::<f64>() / 6000.0;
        let square = (0..6000).map(|i| residual(i).powi(2)).sum::<f64>() / 6000.0;
        assert!(mean.abs() < 4.0 * NOISE / 6000f64.sqrt(), "{mean}");
        assert!((square.sqrt() / NOISE - 1.0).abs() < 4.0 / 12000f64.sqrt(), "{square}");
        assert_eq!(country.rows(6000, Streams::new(1)).y, rows.y);
        // In the middle of the largest town speeds are higher than ten kilometres outside of it.
        let town = &country.towns[0];
        assert!(distance_from_way([0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]) == 1.0);
        assert!((distance_from_way([3.0, 0.0], [-1.0, 0.0], [1.0, 0.0]) - 2.0).abs() < 1e-12);
        assert!(town.gain > 0.5);
    }
}
