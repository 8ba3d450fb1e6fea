//! The way back from means over positions to pixels and parameters, row of pairs by row of pairs.
//!
//! Kept of the way forth is what stands behind each segment's pool; rows before it are summed once more. An adjoint `g` of a row passes the pool (to all pairs of its windows), the
//! activation (leaving something at the variances of either image), and the filter (to all pairs that it sees, at the image times the other image's pixel). What is left at variances goes
//! the same way through the covariances of each image with itself, once for each image.

use super::forward::{Pass, Places, starts_of_rows};
use super::lanes::{Each, LANES, Lanes, Second};
use super::pairs::Terms;
use super::plan::{Plan, Segment};
use crate::infinite::Activation;
use crate::infinite::activation::{DualMap, ErrorFunction, Rectifier, Side, SineWave};
use crate::infinite::scales::{Affine, LayerAdjoints, Scales};
use crate::infinite::stack::with_map;
use crate::inputs::fold;
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;

/// Room for some pairs of images, side by side, on their way back.
pub(super) struct PassBack<'a, T> {
    pub(super) forth: Pass<'a, T>,
    /// Adjoints of what is behind each segment.
    planes: Vec<Vec<Lanes<T>>>,
    /// Adjoint of the row behind a filter, and of the sums before its columns.
    row: Vec<Lanes<T>>,
    sums: Vec<Lanes<T>>,
    starts: Vec<[usize; 2]>,
    /// Adjoints of the numbers of both images: pixels, and variances at their places.
    pub(super) toward: [Vec<Lanes<T>>; 2],
    /// Whether adjoints of pixels are wanted.
    pixels: bool,
}

impl<'a, T: Real> PassBack<'a, T> {
    pub(super) fn new(plan: &'a Plan, scales: &Scales, pixels: bool) -> Self {
        let forth = Pass::new(plan, scales);
        let zeros = |count: usize| vec![[T::ZERO; LANES]; count];
        let before = (0..plan.segments.len()).map(|s| plan.before(s)).max().unwrap_or(0);
        Self {
            planes: forth.planes.iter().map(|plane| zeros(plane.len())).collect(),
            row: zeros(forth.row.len()),
            sums: zeros(before),
            starts: Vec::new(),
            toward: [zeros(plan.columns), zeros(plan.columns)],
            forth,
            pixels,
        }
    }

    /// Adds to `self.toward` and `layers` what adjoints `g` of the means of `x` and `z` contribute, where `self.forth` has just gone from them.
    pub(super) fn pull(
        &mut self,
        x: &[Lanes<T>],
        z: impl Second<T>,
        g: Lanes<T>,
        layers: &mut LayerAdjoints,
    ) {
        self.begin(g);
        for number in (0..self.planes.len()).rev() {
            self.segment(number, x, z, layers);
        }
    }

    /// The same for images with themselves, at whose variances `outside` has left something before.
    pub(super) fn pull_own(
        &mut self,
        x: &[Lanes<T>],
        g: Lanes<T>,
        outside: &[Lanes<T>],
        layers: &mut LayerAdjoints,
    ) {
        self.begin(g);
        for number in (0..self.planes.len()).rev() {
            self.segment(number, x, Each(x), layers);
            self.variances(number, x, outside, layers);
        }
    }

    /// Adjoints behind the last segment; zeros behind the others.
    fn begin(&mut self, g: Lanes<T>) {
        let share = T::from_f64(1.0 / self.forth.plan.positions() as f64);
        let last = self.planes.len() - 1;
        self.planes[..last].iter_mut().for_each(|plane| plane.fill([T::ZERO; LANES]));
        self.planes[last].fill(g.map(|v| v * share));
    }

    fn segment(&mut self, number: usize, x: &[Lanes<T>], z: impl Second<T>, layers: &mut LayerAdjoints) {
        let segment = &self.forth.plan.segments[number];
        for v in 0..segment.pairs[0].len() {
            self.forth.filtered(number, v, x, z);
            let affine = self.forth.affines[number];
            let (inputs, plane) = (&self.forth.row, &self.planes[number]);
            let (row, [first, second]) = (&mut self.row[..segment.pairs[1].len()], &mut self.toward);
            dispatch(
                #[inline(always)]
                || {
                    take_back(segment, v, plane, row);
                    if let Some(activated) = segment.activation {
                        let places = Places::new(segment, activated, v);
                        with_map!(activated.activation, map =>
                            deactivate(map, affine, places, (x, z), inputs, row, (first, second)));
                    }
                },
            );
            self.filter(number, v, x, z, layers);
        }
    }

    /// What was left at the variances before a segment's activation goes on, through its filter.
    fn variances(&mut self, number: usize, x: &[Lanes<T>], outside: &[Lanes<T>], layers: &mut LayerAdjoints) {
        let segment = &self.forth.plan.segments[number];
        let Some(activated) = segment.activation else { return };
        for (v, &[p, q]) in segment.pairs[0].iter().enumerate() {
            if p != q {
                continue;
            }
            self.forth.filtered(number, v, x, Each(x));
            let places = Places::new(segment, activated, v);
            let [first, second] = &self.toward;
            for (value, &[p, q]) in self.row.iter_mut().zip(places.columns) {
                let at = places.variances[0] + p as usize;
                *value = [T::ZERO; LANES];
                if p == q {
                    (0..LANES).for_each(|lane| {
                        value[lane] = outside[at][lane] + (first[at][lane] + second[at][lane]);
                    });
                }
            }
            self.filter(number, v, x, Each(x), layers);
        }
    }

    /// From `self.row`, the adjoint of row v before its activation, to what the filter sees.
    fn filter(
        &mut self,
        number: usize,
        v: usize,
        x: &[Lanes<T>],
        z: impl Second<T>,
        layers: &mut LayerAdjoints,
    ) {
        let (plan, before) = (self.forth.plan, self.forth.plan.before(number));
        let segment = &plan.segments[number];
        let (affine, rows) = (self.forth.affines[number], segment.filter[0].of(v));
        let row = &mut self.row[..segment.pairs[1].len()];
        if let Some(layer) = segment.layer {
            let [gain, offset] = dispatch(
                #[inline(always)]
                || moments(row, &self.forth.row),
            );
            layers.gains[layer] += fold(&gain);
            layers.offsets[layer] += fold(&offset);
        }
        let sums = &mut self.sums[..before];
        let below = number.checked_sub(1);
        if below.is_none() {
            if !self.pixels {
                return;
            }
            starts_of_rows(plan, rows, &mut self.starts);
        }
        let (starts, [first, second]) = (&self.starts, &mut self.toward);
        let mut plane = below.map(|below| &mut self.planes[below]);
        dispatch(
            #[inline(always)]
            || {
                scatter(&segment.filter[1], affine.gain, row, sums);
                match &mut plane {
                    Some(plane) => add_to_rows(rows, sums, plane),
                    None => add_products(starts, &plan.image[1], (x, z), sums, (first, second)),
                }
            },
        );
    }
}

/// The adjoint of a row from those of where it went.
#[inline(always)]
fn take_back<T: Real>(segment: &Segment, v: usize, plane: &[Lanes<T>], row: &mut [Lanes<T>]) {
    let width = segment.outputs[1];
    let Some(pool) = &segment.pool else {
        row.copy_from_slice(&plane[v * width..(v + 1) * width]);
        return;
    };
    let share = T::from_f64(pool.share);
    row.fill([T::ZERO; LANES]);
    for u in 0..width {
        let mut total = [T::ZERO; LANES];
        for &r in pool.rows.of(v) {
            let value = &plane[r as usize * width + u];
            for lane in 0..LANES {
                total[lane] = value[lane].mul_add(share, total[lane]);
            }
        }
        for &t in pool.columns.of(u) {
            let out = &mut row[t as usize];
            for lane in 0..LANES {
                out[lane] += total[lane];
            }
        }
    }
}

/// `row`, adjoints behind an activation, become those before it; what they say about variances is added to `toward`.
#[inline(always)]
fn deactivate<T: Real>(
    map: impl DualMap<T>,
    affine: Affine<T>,
    places: Places<'_>,
    (x, z): (&[Lanes<T>], impl Second<T>),
    inputs: &[Lanes<T>],
    row: &mut [Lanes<T>],
    (toward_x, toward_z): (&mut [Lanes<T>], &mut [Lanes<T>]),
) {
    let ([a, b], [scale_a, scale_b]) = (places.variances, places.scales);
    for ((g, inputs), &[p, q]) in row.iter_mut().zip(inputs).zip(places.columns) {
        let (p, q) = (p as usize, q as usize);
        let (variances, scales) = (&x[a + p], &x[scale_a + p]);
        let (others, other_scales) = (z.get(b + q), z.get(scale_b + q));
        let (left, right) = (&mut toward_x[a + p], &mut toward_z[b + q]);
        for lane in 0..LANES {
            let c = inputs[lane].mul_add(affine.gain, affine.offset);
            let first = Side { variance: variances[lane], scale: scales[lane] };
            let second = Side { variance: others[lane], scale: other_scales[lane] };
            let slopes = map.slopes(first, c, second);
            left[lane] = g[lane].mul_add(slopes.first, left[lane]);
            right[lane] = g[lane].mul_add(slopes.second, right[lane]);
            g[lane] *= slopes.covariance;
        }
    }
}

/// `Σ g K` and `Σ g`, each lane by itself.
#[inline(always)]
fn moments<T: Real>(g: &[Lanes<T>], inputs: &[Lanes<T>]) -> [Lanes<T>; 2] {
    let (mut product, mut sum) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for (g, inputs) in g.iter().zip(inputs) {
        for lane in 0..LANES {
            product[lane] = g[lane].mul_add(inputs[lane], product[lane]);
        }
        for lane in 0..LANES {
            sum[lane] += g[lane];
        }
    }
    [product, sum]
}

/// Adjoints of the sums before a filter's columns.
#[inline(always)]
fn scatter<T: Real>(filter: &Terms, gain: T, row: &[Lanes<T>], sums: &mut [Lanes<T>]) {
    sums.fill([T::ZERO; LANES]);
    for (u, value) in row.iter().enumerate() {
        for &t in filter.of(u) {
            let out = &mut sums[t as usize];
            for lane in 0..LANES {
                out[lane] = value[lane].mul_add(gain, out[lane]);
            }
        }
    }
}

/// Adds adjoints of sums to the rows that a filter sees.
#[inline(always)]
fn add_to_rows<T: Real>(rows: &[u32], sums: &[Lanes<T>], plane: &mut [Lanes<T>]) {
    let width = sums.len();
    for &r in rows {
        for t in 0..width {
            let (value, out) = (&sums[t], &mut plane[r as usize * width + t]);
            for lane in 0..LANES {
                out[lane] += value[lane];
            }
        }
    }
}

/// Adds to the adjoints of pixels: those of sums times the other image's pixel.
#[inline(always)]
fn add_products<T: Real>(
    starts: &[[usize; 2]],
    columns: &[[u32; 2]],
    (x, z): (&[Lanes<T>], impl Second<T>),
    sums: &[Lanes<T>],
    (toward_x, toward_z): (&mut [Lanes<T>], &mut [Lanes<T>]),
) {
    for (value, &[p, q]) in sums.iter().zip(columns) {
        for &[first, second] in starts {
            let (first, second) = (first + p as usize, second + q as usize);
            let (a, b) = (&x[first], z.get(second));
            let (left, right) = (&mut toward_x[first], &mut toward_z[second]);
            for lane in 0..LANES {
                left[lane] = value[lane].mul_add(b[lane], left[lane]);
            }
            for lane in 0..LANES {
                right[lane] = value[lane].mul_add(a[lane], right[lane]);
            }
        }
    }
}
