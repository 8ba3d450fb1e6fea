//! Covariances of images through all layers with positions, row of pairs by row of pairs.
//!
//! A segment's row, all pairs of columns for one pair of rows, is summed from the rows that its filter sees (down, then across), meets its activation, and is added to
//! the rows of the pool that it belongs to. What is kept of a segment is what is behind its pool.

use super::lanes::{LANES, Lanes, Second};
use super::pairs::Terms;
use super::plan::{Activated, Plan, Segment};
use crate::infinite::Activation;
use crate::infinite::activation::{DualMap, ErrorFunction, Rectifier, Side, SineWave};
use crate::infinite::scales::{Affine, Scales};
use crate::infinite::stack::with_map;
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;

/// Room for some pairs of images, side by side.
pub(super) struct Pass<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) affines: Vec<Affine<T>>,
    /// Covariances behind each segment, pairs of rows by pairs of columns.
    pub(super) planes: Vec<Vec<Lanes<T>>>,
    /// One row of sums over the rows that a filter sees.
    sums: Vec<Lanes<T>>,
    /// One row behind a filter, from the left.
    pub(super) row: Vec<Lanes<T>>,
    /// Where the rows begin that products are summed over.
    starts: Vec<[usize; 2]>,
}

impl<'a, T: Real> Pass<'a, T> {
    pub(super) fn new(plan: &'a Plan, scales: &Scales) -> Self {
        let affine = |segment: &Segment| match segment.layer {
            Some(layer) => scales.affine(layer, segment.share),
            None => Affine { gain: T::from_f64(segment.share), offset: T::ZERO },
        };
        let zero = [T::ZERO; LANES];
        let before = (0..plan.segments.len()).map(|s| plan.before(s)).max().unwrap_or(0);
        let behind = plan.segments.iter().map(|s| s.pairs[1].len()).max().unwrap_or(0);
        Self {
            plan,
            affines: plan.segments.iter().map(affine).collect(),
            planes: plan.segments.iter().map(|s| vec![zero; s.outputs[0] * s.outputs[1]]).collect(),
            sums: vec![zero; before],
            row: vec![zero; behind],
            starts: Vec::new(),
        }
    }

    /// The mean over positions behind all segments.
    pub(super) fn mean(&mut self, x: &[Lanes<T>], z: impl Second<T>) -> Lanes<T> {
        for segment in 0..self.plan.segments.len() {
            self.segment(segment, x, z);
        }
        self.flattened()
    }

    /// The same for images with themselves, of which `x` has the pixels; what belongs to them alone is written behind these.
    pub(super) fn own_mean(&mut self, x: &mut [Lanes<T>]) -> Lanes<T> {
        for segment in 0..self.plan.segments.len() {
            self.variances(segment, x);
            self.segment(segment, x, super::lanes::Each(x));
        }
        self.flattened()
    }

    fn flattened(&self) -> Lanes<T> {
        let mut mean = [T::ZERO; LANES];
        for values in self.planes.last().into_iter().flatten() {
            (0..LANES).for_each(|lane| mean[lane] += values[lane]);
        }
        let share = T::from_f64(1.0 / self.plan.positions() as f64);
        mean.map(|sum| sum * share)
    }

    /// One segment, from what stands before it.
    fn segment(&mut self, number: usize, x: &[Lanes<T>], z: impl Second<T>) {
        let segment = &self.plan.segments[number];
        self.planes[number].fill([T::ZERO; LANES]);
        for v in 0..segment.pairs[0].len() {
            self.filtered(number, v, x, z);
            let (affine, row) = (self.affines[number], &mut self.row[..segment.pairs[1].len()]);
            let plane = &mut self.planes[number];
            dispatch(
                #[inline(always)]
                || {
                    match segment.activation {
                        Some(activated) => {
                            let places = Places::new(segment, activated, v);
                            with_map!(activated.activation, map => activate(map, affine, places, x, z, row));
                        }
                        None => add_affine(affine, row),
                    }
                    hand_on(segment, v, row, plane);
                },
            );
        }
    }

    /// `self.row`: row v behind a segment's filter, without weights and biases.
    pub(super) fn filtered(&mut self, number: usize, v: usize, x: &[Lanes<T>], z: impl Second<T>) {
        let (plan, before) = (self.plan, self.plan.before(number));
        let segment = &plan.segments[number];
        let rows = segment.filter[0].of(v);
        let sums = &mut self.sums[..before];
        let row = &mut self.row[..segment.pairs[1].len()];
        let below = number.checked_sub(1).map(|before| &self.planes[before][..]);
        if below.is_none() {
            starts_of_rows(plan, rows, &mut self.starts);
        }
        let starts = &self.starts[..];
        dispatch(
            #[inline(always)]
            || {
                match below {
                    Some(plane) => add_rows(rows, plane, sums),
                    None => products(starts, &plan.image[1], x, z, sums),
                }
                gather(&segment.filter[1], sums, row);
            },
        );
    }

    /// Writes the variances before a segment's activation, and what its dual map makes of them.
    fn variances(&mut self, number: usize, x: &mut [Lanes<T>]) {
        let segment = &self.plan.segments[number];
        let Some(activated) = segment.activation else { return };
        for (v, &[p, q]) in segment.pairs[0].iter().enumerate() {
            if p != q {
                continue;
            }
            self.filtered(number, v, x, super::lanes::Each(x));
            let (affine, row, places) = (self.affines[number], &self.row, Places::new(segment, activated, v));
            dispatch(
                #[inline(always)]
                || with_map!(activated.activation, map => own(map, affine, places, row, x)),
            );
        }
    }
}

/// Where the pixels of the rows stand that a filter sees, for each channel.
pub(super) fn starts_of_rows(plan: &Plan, rows: &[u32], starts: &mut Vec<[usize; 2]>) {
    let [channels, height, width] = plan.shape;
    starts.clear();
    for &row in rows {
        let pair = plan.image[0][row as usize];
        starts.extend((0..channels).map(|c| pair.map(|p| (c * height + p as usize) * width)));
    }
}

/// Where the sides of a row's dual maps stand among the numbers of both images, and its pairs of columns.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    /// Variances of the first and of the second image's row.
    pub(super) variances: [usize; 2],
    /// What the dual map makes of them.
    pub(super) scales: [usize; 2],
    pub(super) columns: &'a [[u32; 2]],
}

impl<'a> Places<'a> {
    pub(super) fn new(segment: &'a Segment, activated: Activated, v: usize) -> Self {
        let rows = segment.pairs[0][v].map(|p| p as usize * segment.width);
        Self {
            variances: rows.map(|row| activated.variances + row),
            scales: rows.map(|row| activated.scales + row),
            columns: &segment.pairs[1],
        }
    }
}

/// `sums_t <- Σ x_p z_q` over channels and the rows that a filter sees, for each pair of columns t of the image: up to four terms a pass, so that sums stay in registers.
#[inline(always)]
fn products<T: Real>(
    starts: &[[usize; 2]],
    columns: &[[u32; 2]],
    x: &[Lanes<T>],
    z: impl Second<T>,
    sums: &mut [Lanes<T>],
) {
    sums.fill([T::ZERO; LANES]);
    let mut rest = starts;
    while let Some(count) = Some(rest.len().min(4)).filter(|count| *count > 0) {
        let (now, later) = rest.split_at(count);
        match *now {
            [a] => add_products([a], columns, x, z, sums),
            [a, b] => add_products([a, b], columns, x, z, sums),
            [a, b, c] => add_products([a, b, c], columns, x, z, sums),
            [a, b, c, d] => add_products([a, b, c, d], columns, x, z, sums),
            _ => {}
        }
        rest = later;
    }
}

#[inline(always)]
fn add_products<T: Real, const N: usize>(
    starts: [[usize; 2]; N],
    columns: &[[u32; 2]],
    x: &[Lanes<T>],
    z: impl Second<T>,
    sums: &mut [Lanes<T>],
) {
    for (sum, &[p, q]) in sums.iter_mut().zip(columns) {
        let (p, q) = (p as usize, q as usize);
        let mut total = *sum;
        for [first, second] in starts {
            let (a, b) = (&x[first + p], z.get(second + q));
            for lane in 0..LANES {
                total[lane] = a[lane].mul_add(b[lane], total[lane]);
            }
        }
        *sum = total;
    }
}

/// `sums_t <- Σ plane_rt` over the rows r that a filter sees.
#[inline(always)]
fn add_rows<T: Real>(rows: &[u32], plane: &[Lanes<T>], sums: &mut [Lanes<T>]) {
    let width = sums.len();
    for t in 0..width {
        let mut total = [T::ZERO; LANES];
        for &r in rows {
            let value = &plane[r as usize * width + t];
            for lane in 0..LANES {
                total[lane] += value[lane];
            }
        }
        sums[t] = total;
    }
}

/// `row_u <- Σ sums_t` over the columns t that a filter sees.
#[inline(always)]
fn gather<T: Real>(filter: &Terms, sums: &[Lanes<T>], row: &mut [Lanes<T>]) {
    for (u, out) in row.iter_mut().enumerate() {
        *out = match *filter.of(u) {
            // The usual sizes without a loop.
            [a, b, c] => add(add(sums[a as usize], &sums[b as usize]), &sums[c as usize]),
            [a, b] => add(sums[a as usize], &sums[b as usize]),
            ref terms => terms.iter().fold([T::ZERO; LANES], |total, &t| add(total, &sums[t as usize])),
        };
    }
}

#[inline(always)]
fn add<T: Real>(mut total: Lanes<T>, value: &Lanes<T>) -> Lanes<T> {
    for lane in 0..LANES {
        total[lane] += value[lane];
    }
    total
}

#[inline(always)]
fn add_affine<T: Real>(affine: Affine<T>, row: &mut [Lanes<T>]) {
    for value in row {
        for lane in 0..LANES {
            value[lane] = value[lane].mul_add(affine.gain, affine.offset);
        }
    }
}

/// `row <- E[φ(u) φ(v)]` from sums behind a filter.
#[inline(always)]
fn activate<T: Real>(
    map: impl DualMap<T>,
    affine: Affine<T>,
    places: Places<'_>,
    x: &[Lanes<T>],
    z: impl Second<T>,
    row: &mut [Lanes<T>],
) {
    let ([a, b], [scale_a, scale_b]) = (places.variances, places.scales);
    for (value, &[p, q]) in row.iter_mut().zip(places.columns) {
        let (p, q) = (p as usize, q as usize);
        let (variances, scales) = (&x[a + p], &x[scale_a + p]);
        let (others, other_scales) = (z.get(b + q), z.get(scale_b + q));
        for lane in 0..LANES {
            let c = value[lane].mul_add(affine.gain, affine.offset);
            let first = Side { variance: variances[lane], scale: scales[lane] };
            let second = Side { variance: others[lane], scale: other_scales[lane] };
            value[lane] = map.value(first, c, second);
        }
    }
}

/// Variances of images from the sums of a row of positions with themselves.
#[inline(always)]
fn own<T: Real>(
    map: impl DualMap<T>,
    affine: Affine<T>,
    places: Places<'_>,
    row: &[Lanes<T>],
    x: &mut [Lanes<T>],
) {
    for (sums, &[p, q]) in row.iter().zip(places.columns) {
        if p != q {
            continue;
        }
        let (mut variances, mut scales) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        for lane in 0..LANES {
            variances[lane] = sums[lane].mul_add(affine.gain, affine.offset);
            scales[lane] = map.scale(variances[lane]);
        }
        x[places.variances[0] + p as usize] = variances;
        x[places.scales[0] + p as usize] = scales;
    }
}

/// Adds a row to where it belongs behind a segment's pool; without one, writes it.
#[inline(always)]
fn hand_on<T: Real>(segment: &Segment, v: usize, row: &[Lanes<T>], plane: &mut [Lanes<T>]) {
    let width = segment.outputs[1];
    let Some(pool) = &segment.pool else {
        plane[v * width..(v + 1) * width].copy_from_slice(row);
        return;
    };
    let share = T::from_f64(pool.share);
    let rows = pool.rows.of(v);
    for u in 0..width {
        let mut total = [T::ZERO; LANES];
        for &t in pool.columns.of(u) {
            let value = &row[t as usize];
            for lane in 0..LANES {
                total[lane] += value[lane];
            }
        }
        for &r in rows {
            let out = &mut plane[r as usize * width + u];
            for lane in 0..LANES {
                out[lane] = total[lane].mul_add(share, out[lane]);
            }
        }
    }
}
