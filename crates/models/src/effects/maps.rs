//! **Maps** of a fitted process: of one numeric input, how its prior thinks that any two places go together; of two, what is predicted over the plane, and what is near to a place.
//!
//! Everything is asked of the model as predictions are: in the columns' own units and the target's.

use crate::{ModelError, Process};
use faer::Mat;
use posterior_data::{Column, Table};
use posterior_gp::Observations;
use posterior_linalg::tiles::pieces;
use posterior_report::{Plane, PlaneKind, PlanePanel, PosteriorPanel};

/// Places on each side of a map of a covariance.
const KERNEL_GRID: usize = 120;

/// Places on each side of a map of predictions: at most, and at least where each of them costs much.
const MAP_GRID: (usize, usize) = (48, 16);

/// Operations that a map may cost: a few seconds.
const MAP_WORK: f64 = 2e11;

/// Places that are predicted at a time.
const AT_ONCE: usize = 256;

/// Training rows that are shown on a map.
const DOTS: usize = 300;

/// `low` to `high` in even steps.
pub(crate) fn even(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
}

/// Covariances as correlations; NaN where a variance is 0.
fn correlation(covariance: f64, a: f64, b: f64) -> f64 {
    covariance / (a * b).sqrt()
}

impl Process<'_> {
    /// The columns of a model of numbers with Gaussian noise whose inputs are so many numbers.
    fn numeric_inputs<const D: usize>(&self) -> Option<[&str; D]> {
        self.output.gaussian().and_then(|_| self.inputs.numeric())
    }

    /// How the prior thinks that places of a model of one numeric input go together, over all pairs of `grid` (in the column's units; row-major): the covariance of the function in
    /// squares of the target's unit, and its correlation. None for other models. Cost: the square of the grid.
    ///
    /// # Errors
    /// As [`Process::predict`].
    pub fn kernel_panels(&self, grid: &[f64]) -> Result<Option<[PlanePanel; 2]>, ModelError> {
        let Some([column]) = self.numeric_inputs() else { return Ok(None) };
        let table = Table::new("grid", vec![Column::numeric(column, grid.to_vec())]);
        let Some(prior) = self.predictor.prior() else { return Ok(None) };
        let gram = prior.gram(self.standard_inputs(&table)?.as_ref())?;
        let each = |value: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..grid.len()).flat_map(|i| (0..grid.len()).map(move |j| value(i, j))).collect()
        };
        let standard = &self.inputs.standardisation;
        let covariances = each(&|i, j| standard.variance_back(gram[(i, j)]));
        let correlations = each(&|i, j| correlation(gram[(i, j)], gram[(i, i)], gram[(j, j)]));
        Ok(Some([
            PlanePanel::new("covariance", PlaneKind::Signed, covariances),
            PlanePanel::new("correlation", PlaneKind::Signed, correlations),
        ]))
    }

    /// Maps of a model of two numeric inputs over a grid (abscissae, of the first input, and ordinates, in the columns' units): the posterior mean of the target, the standard deviation of the
    /// function, and for each place the correlation of the prior's function there with that everywhere. None for other models. Cost: predictions of all grid points.
    ///
    /// # Errors
    /// As [`Process::predict`].
    pub fn map_panels(
        &self,
        (grid_x, grid_y): (&[f64], &[f64]),
        places: &[(&str, [f64; 2])],
    ) -> Result<Option<Vec<PlanePanel>>, ModelError> {
        let Some(columns) = self.numeric_inputs::<2>() else { return Ok(None) };
        let at = |points: [Vec<f64>; 2]| {
            let named = columns.into_iter().zip(points);
            Table::new("grid", named.map(|(name, values)| Column::numeric(name, values)).collect())
        };
        let count = grid_x.len() * grid_y.len();
        let table = at([
            grid_y.iter().flat_map(|_| grid_x.iter().copied()).collect(),
            grid_y.iter().flat_map(|y| std::iter::repeat_n(*y, grid_x.len())).collect(),
        ]);
        let (mut mean, mut deviation) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for rows in pieces(count, AT_ONCE) {
            let found = self.predict(&table, Some(&rows.collect::<Vec<_>>()))?;
            mean.extend(found.mean);
            deviation.extend(found.latent_deviation);
        }
        let mut panels = vec![
            PlanePanel::new("mean", PlaneKind::Amount, mean),
            PlanePanel::new("deviation of the function", PlaneKind::Amount, deviation),
        ];
        let x = self.standard_inputs(&table)?;
        let Some(prior) = self.predictor.prior() else { return Ok(None) };
        let variances = prior.variances(x.as_ref())?;
        for (name, [a, b]) in places {
            let place = self.standard_inputs(&at([vec![*a], vec![*b]]))?;
            let own = prior.variances(place.as_ref())?;
            let across: Mat<f64> = prior.cross(place.as_ref(), x.as_ref())?;
            let near = variances.iter().enumerate().map(|(i, v)| correlation(across[(0, i)], own[0], *v));
            let panel =
                PlanePanel::new(format!("correlation with {name}"), PlaneKind::Signed, near.collect());
            panels.push(panel.marked(*a, *b));
        }
        Ok(Some(panels))
    }

    /// The maps that belong into a report: of one numeric input the prior's covariance over the grid's range of its posterior, of two predictions and what is near to the densest place of the
    /// training rows and to the middle; none for other models.
    pub(crate) fn maps(&self, panel: Option<&PosteriorPanel>) -> Result<Vec<Plane>, ModelError> {
        if let Some(PosteriorPanel { grid: own, input, .. }) = panel
            && let [low, .., high] = own[..]
        {
            let grid = even(low, high, KERNEL_GRID);
            let Some(panels) = self.kernel_panels(&grid)? else { return Ok(Vec::new()) };
            return Ok(vec![Plane {
                title: "Which places go together".into(),
                x: input.clone(),
                y: format!("another {input}"),
                grid_x: grid.clone(),
                grid_y: grid,
                panels: panels.into(),
                caption: self.about_covariances(),
                ..Plane::default()
            }]);
        }
        self.two_inputs()
    }

    /// What to know of a prior's covariance.
    fn about_covariances(&self) -> String {
        let text = "What the model believes before it looks at any row: the covariance of the function at two places, in squares of the target's unit, and its correlation.".to_string();
        text + self.predictor.prior().map_or("", |prior| prior.note())
    }

    fn two_inputs(&self) -> Result<Vec<Plane>, ModelError> {
        let inputs = &self.inputs;
        let Some([x, y]) = self.numeric_inputs::<2>() else { return Ok(Vec::new()) };
        if !self.record.kernel.count_columns(&inputs.schema.feature_names()).is_empty() {
            return Ok(Vec::new());
        }
        let standard = &inputs.standardisation;
        let (training, of) = match self.predictor.training() {
            Some(data) => {
                let known = data.inputs();
                let every = known.nrows().div_ceil(DOTS).max(1);
                let rows = (0..known.nrows()).step_by(every);
                let points = rows.map(|i| [0, 1].map(|j| standard.feature_back(j, known[(i, j)]))).collect();
                (points, known.nrows())
            }
            None => (Vec::new(), 0),
        };
        // A column whose moments are not finite has no range.
        let range = |j: usize| inputs.input_ranges.0.iter().find(|range| range.input == j);
        let (Some(first), Some(second)) = (range(0), range(1)) else { return Ok(Vec::new()) };
        let ranges = [first, second].map(|range| (range.minimum, range.maximum));
        if ranges.iter().any(|(low, high)| !(high - low > 0.0 && (high - low).is_finite())) {
            return Ok(Vec::new());
        }
        let side = self.side();
        let padded = |(low, high): (f64, f64)| {
            let margin = 0.04 * (high - low);
            even(low - margin, high + margin, side)
        };
        let grids = ranges.map(padded);
        let middle = ranges.map(|(low, high)| 0.5 * low + 0.5 * high);
        let mut places = vec![("the middle", middle)];
        if let Some(densest) = inputs.densest {
            places.insert(0, ("the densest place", densest));
        }
        let Some(mut panels) = self.map_panels((&grids[0], &grids[1]), &places)? else {
            return Ok(Vec::new());
        };
        let near = panels.split_off(2);
        let shown = match of {
            0 => " The model keeps no rows that could be shown.".to_string(),
            of if training.len() < of => format!(" Of {of} rows {} are shown.", training.len()),
            _ => String::new(),
        };
        let map = |title: &str, panels: Vec<PlanePanel>, caption: String| Plane {
            title: title.into(),
            x: x.into(),
            y: y.into(),
            grid_x: grids[0].clone(),
            grid_y: grids[1].clone(),
            panels,
            points_x: training.iter().map(|p| p[0]).collect(),
            points_y: training.iter().map(|p| p[1]).collect(),
            points_class: vec![0; training.len()],
            caption,
        };
        let target = &inputs.schema.target;
        let densest = match inputs.densest {
            Some(_) => "the place where training rows lie most densely and ",
            None => "",
        };
        Ok(vec![
            map(
                "What the model predicts over the plane",
                panels,
                format!(
                    "The mean of {target}, and the standard deviation of the function (without noise), in its unit.{shown}"
                ),
            ),
            map(
                "What the model takes for near",
                near,
                format!(
                    "Correlations of the prior's function with {densest}the middle of the rows: before it looks at any target, how much the model lets one place say about another. The same shape everywhere is a stationary kernel."
                ),
            ),
        ])
    }

    /// Places at which maps of a model of two inputs are predicted; None where there are no such maps.
    pub(crate) fn map_places(&self) -> Option<usize> {
        self.numeric_inputs::<2>().map(|_| self.side().pow(2))
    }

    /// Places on each side of a map of predictions that this model can afford.
    fn side(&self) -> usize {
        let n = self.predictor.training().map_or(0, Observations::rows) as f64;
        let each = if self.predictor.stored_samples().is_none() { n * n } else { 100.0 * n };
        let affordable = (MAP_WORK / each.max(1.0)).sqrt();
        // A float-to-integer cast saturates.
        (affordable as usize).clamp(MAP_GRID.1, MAP_GRID.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::densest_place;

    #[test]
    fn the_densest_place_is_where_most_rows_are() {
        // A hundred rows on a line, and thirty about (7, 2).
        let x = Mat::from_fn(130, 2, |i, j| match i.checked_sub(100) {
            None => [0.1 * i as f64, 0.05 * i as f64][j],
            Some(k) => [7.0 + 0.01 * (k % 6) as f64, 2.0 + 0.01 * (k / 6) as f64][j],
        });
        let [a, b] = densest_place(x.as_ref()).unwrap();
        assert!((a - 7.025).abs() < 0.03 && (b - 2.02).abs() < 0.03, "{a} {b}");
        assert_eq!(densest_place(Mat::from_fn(5, 2, |i, j| (i * j) as f64).as_ref()).map(|_| ()), None);
        assert_eq!(densest_place(Mat::<f64>::zeros(0, 2).as_ref()), None);
        assert_eq!(densest_place(Mat::<f64>::zeros(3, 1).as_ref()), None);
        assert_eq!(densest_place(Mat::from_fn(3, 2, |_, _| f64::NAN).as_ref()), None);
    }
}
