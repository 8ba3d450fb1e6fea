//! Points that are close to a point.

use faer::MatRef;
use posterior_linalg::Real;

/// Points of a leaf.
const LEAF: usize = 16;

/// A k-d tree: n points, halved again and again at the median of the coordinate in which they are spread most, so that a search looks into
/// few of the pieces. Built in `O(n D log n)`; in many dimensions searches come close to looking at everything. Distances are f64.
///
/// Source: J. Bentley (1975); J. Friedman, J. Bentley, R. Finkel (1977).
#[derive(Clone, Debug)]
pub struct NeighbourTree {
    dimension: usize,
    /// Points in the order of the tree, one after another.
    points: Vec<f64>,
    /// The number of the point at each place.
    numbers: Vec<usize>,
    /// The place of each point.
    places: Vec<usize>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    start: usize,
    end: usize,
    /// The coordinate and the value at which it is cut, and the nodes of both sides; none for leaves.
    cut: Option<(usize, f64, usize, usize)>,
}

impl NeighbourTree {
    /// The tree of the rows of x (n x D), which are finite.
    pub fn new<T: Real>(x: MatRef<'_, T>) -> Self {
        let (n, dimension) = (x.nrows(), x.ncols());
        let rows: Vec<f64> = (0..n).flat_map(|i| (0..dimension).map(move |d| x[(i, d)].to_f64())).collect();
        let mut tree = Self {
            dimension,
            points: Vec::new(),
            numbers: (0..n).collect(),
            places: vec![0; n],
            nodes: Vec::new(),
        };
        let mut numbers = std::mem::take(&mut tree.numbers);
        tree.build(&rows, &mut numbers, 0);
        for (place, &number) in numbers.iter().enumerate() {
            tree.places[number] = place;
            tree.points.extend_from_slice(&rows[number * dimension..(number + 1) * dimension]);
        }
        tree.numbers = numbers;
        tree
    }

    /// Adds the node of these points and those below it, and returns its index. Halves, so about log₂ n deep.
    fn build(&mut self, rows: &[f64], numbers: &mut [usize], start: usize) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node { start, end: start + numbers.len(), cut: None });
        let value = |number: usize, d: usize| rows[number * self.dimension + d];
        let spread = |d: usize| {
            let ends = numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &i| {
                (low.min(value(i, d)), high.max(value(i, d)))
            });
            ends.1 - ends.0
        };
        if numbers.len() <= LEAF {
            return index;
        }
        let Some((d, width)) = (0..self.dimension).map(|d| (d, spread(d))).max_by(|a, b| a.1.total_cmp(&b.1))
        else {
            return index;
        };
        if width <= 0.0 {
            return index;
        }
        let middle = numbers.len() / 2;
        numbers.select_nth_unstable_by(middle, |&a, &b| value(a, d).total_cmp(&value(b, d)));
        let at = value(numbers[middle], d);
        let (low, high) = numbers.split_at_mut(middle);
        let left = self.build(rows, low, start);
        let right = self.build(rows, high, start + middle);
        self.nodes[index].cut = Some((d, at, left, right));
        index
    }

    /// How many points.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The points other than point i within `radius` of it, at most `most` of them: squared distances and numbers, nearest first.
    pub fn within(&self, i: usize, radius: f64, most: usize) -> Vec<(f64, usize)> {
        let mut found = Vec::new();
        if most > 0 && self.count() > 0 {
            let place = self.places[i];
            self.search(0, place, radius * radius, most, &mut found);
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found.truncate(most);
        found
    }

    /// The squared distance of two points.
    pub fn squared_distance(&self, i: usize, j: usize) -> f64 {
        self.between(self.places[i], self.places[j])
    }

    fn point(&self, place: usize) -> &[f64] {
        &self.points[place * self.dimension..(place + 1) * self.dimension]
    }

    fn between(&self, a: usize, b: usize) -> f64 {
        self.point(a).iter().zip(self.point(b)).map(|(p, q)| (p - q) * (p - q)).sum()
    }

    fn search(&self, node: usize, place: usize, limit: f64, most: usize, found: &mut Vec<(f64, usize)>) {
        let Node { start, end, cut } = self.nodes[node];
        match cut {
            None => {
                for other in (start..end).filter(|&other| other != place) {
                    let distance = self.between(place, other);
                    if distance <= limit {
                        found.push((distance, self.numbers[other]));
                    }
                }
                // Now and then the farthest are forgotten, so that a crowd does not fill memory.
                if found.len() > most.saturating_mul(2).max(64) {
                    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                    found.truncate(most);
                }
            }
            Some((d, at, left, right)) => {
                let offset = self.point(place)[d] - at;
                let (near, far) = if offset < 0.0 { (left, right) } else { (right, left) };
                self.search(near, place, limit, most, found);
                // Equal coordinates may stand on either side.
                let worst = if found.len() >= most {
                    let mut distances: Vec<f64> = found.iter().map(|f| f.0).collect();
                    *distances.select_nth_unstable_by(most - 1, f64::total_cmp).1
                } else {
                    limit
                };
                if offset * offset <= worst {
                    self.search(far, place, limit, most, found);
                }
            }
        }
    }
}
