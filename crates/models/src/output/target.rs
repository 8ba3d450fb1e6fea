//! What a target is, and how it stands in tables.

use crate::ModelError;
use crate::hyperparameter::FunctionUnits;
use posterior_data::{
    ClassNames, DataError, Extracted, Missing, Schema, Table, counts_of_rows, finite_targets, present,
};
use serde::{Deserialize, Serialize};

/// What the targets of a model are, and how they stand in tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Target {
    /// Labels.
    Classes {
        /// Their names, in the order of the classes.
        names: ClassNames,
    },
    /// Whole numbers from 0.
    Counts {
        /// The rate for each unit of exposure that functions are relative to, all counts of the training rows over all their exposures; 1 where there are none. So neither priors nor searches know in what exposures are measured.
        rate: f64,
    },
    /// Numbers, which the model sees in standard units.
    Numbers {
        /// Median of the training rows.
        mean: f64,
        /// Their median absolute deviation, as the standard deviation of normal numbers.
        scale: f64,
    },
    /// Events in a window, of which the intensity is predicted.
    Events {
        /// Ends of the window, one pair for each feature, in its own units.
        window: Vec<[f64; 2]>,
        /// How many there are of which this is the intensity, those included that are held back.
        events: usize,
    },
}

impl Target {
    /// What functions behind such targets are measured in.
    pub(crate) fn function_units(&self) -> FunctionUnits {
        match self {
            Self::Numbers { .. } => FunctionUnits::Target,
            Self::Classes { .. } | Self::Counts { .. } | Self::Events { .. } => FunctionUnits::Link,
        }
    }

    /// Inputs and targets of the given rows, targets as the likelihood takes them, of rows where both are there.
    ///
    /// # Errors
    /// [`DataError`] naming the cell.
    pub(crate) fn extract(
        &self,
        schema: &Schema,
        table: &Table,
        rows: &[usize],
    ) -> Result<Extracted, DataError> {
        let name = &schema.target;
        let given = rows.len();
        let finite;
        let rows = match self {
            Self::Classes { .. } | Self::Counts { .. } => {
                finite = finite_targets(table, name, rows, schema.missing == Missing::Drop)?;
                &finite[..]
            }
            Self::Numbers { .. } | Self::Events { .. } => rows,
        };
        let values: Vec<Option<f64>> = match self {
            Self::Classes { names } => {
                let classes = names.of_rows(table, name, rows)?;
                classes.into_iter().map(|class| class.map(|class| class as f64)).collect()
            }
            Self::Counts { .. } => counts_of_rows(table, name, rows)?,
            Self::Events { .. } => vec![Some(1.0); rows.len()],
            Self::Numbers { mean, scale } => {
                let own = Schema { features: Vec::new(), ..schema.clone() };
                let read = own.extract(table, rows, true)?;
                let mut values = vec![None; rows.len()];
                let mut places = rows.iter().enumerate();
                for (row, y) in read.rows.iter().zip(read.y.unwrap_or_default()) {
                    if let Some((place, _)) = places.find(|(_, own)| *own == row) {
                        values[place] = Some((y - mean) / scale);
                    }
                }
                values
            }
        };
        let (places, targets) = present(table, name, rows, values, schema.missing_target)?;
        let with_target: Vec<usize> = places.iter().map(|&place| rows[place]).collect();
        let mut extracted = schema.extract(table, &with_target, false)?;
        extracted.notes.dropped_rows += given - with_target.len();
        extracted.notes.rows_without_target = rows.len() - with_target.len();
        extracted.notes.columns.clone_from(&schema.notes);
        // Rows that are left out stay in their order.
        let mut left = extracted.rows.iter().peekable();
        let kept = with_target.iter().zip(targets);
        let targets = kept.filter_map(|(row, y)| left.next_if_eq(&row).map(|_| y)).collect();
        extracted.y = Some(targets);
        Ok(extracted)
    }

    /// Refuses places outside of the window of events, by row (of a table whose first row has this number in its file) and column.
    ///
    /// # Errors
    /// [`ModelError::Request`].
    pub(crate) fn check_places(
        &self,
        schema: &Schema,
        (table, first): (&Table, usize),
        found: &Extracted,
    ) -> Result<(), ModelError> {
        let Self::Events { window, .. } = self else { return Ok(()) };
        for (i, row) in found.rows.iter().enumerate() {
            for (j, [low, high]) in window.iter().enumerate() {
                if !(*low..=*high).contains(&found.x[(i, j)]) {
                    let (path, own) = table.place(*row);
                    return Err(ModelError::Request(format!(
                        "{}, row {}, column `{}`: {} lies outside of the window {low} to {high}, beyond which nothing is known of events; leave the row out, or fit with a wider --window where events were looked for there as well",
                        path.display(),
                        first + own + 1,
                        schema.feature_names()[j],
                        found.x[(i, j)],
                    )));
                }
            }
        }
        Ok(())
    }

    /// What is added to the latent values of rows with these exposures before the likelihood sees them.
    pub(crate) fn offsets(&self, exposures: Option<&[f64]>) -> Option<Vec<f64>> {
        let Self::Counts { rate } = self else { return None };
        exposures.map(|exposures| exposures.iter().map(|exposure| (rate * exposure).ln()).collect())
    }

    /// Mean and scale of numbers; 0 and 1 of other targets.
    pub(crate) fn units(&self) -> (f64, f64) {
        match self {
            Self::Numbers { mean, scale } => (*mean, *scale),
            _ => (0.0, 1.0),
        }
    }
}

/// The class of each row of a table; rows without a label are a stratum of their own.
pub(crate) fn strata(names: &ClassNames, table: &Table, target: &str) -> Result<Vec<usize>, DataError> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    // Where such rows are no error they are left out.
    let finite = finite_targets(table, target, &rows, true)?;
    let mut strata = vec![names.count(); rows.len()];
    for (row, class) in finite.iter().zip(names.of_rows(table, target, &finite)?) {
        strata[*row] = class.unwrap_or(names.count());
    }
    Ok(strata)
}

/// The distribution of training targets: shares of classes, mean and variance otherwise, of counts in an exposure of 1. With exposures E, counts of rate r are taken to have the variance `r E + s (r E)²`; r is all counts over all
/// exposures, and s makes the squared residuals right on average.
pub(crate) fn marginal(target: &Target, truths: &[f64], offsets: Option<&[f64]>) -> Vec<f64> {
    let n = truths.len() as f64;
    match (target, offsets) {
        (Target::Counts { .. }, Some(offsets)) => {
            let exposures: f64 = offsets.iter().map(|o| o.exp()).sum();
            let rate = truths.iter().sum::<f64>() / exposures;
            let expected = || offsets.iter().map(|o| rate * o.exp());
            let excess: f64 = truths.iter().zip(expected()).map(|(y, m)| (y - m).powi(2) - m).sum();
            let squares: f64 = expected().map(|m| m * m).sum();
            vec![rate, if squares > 0.0 { rate + rate * rate * excess / squares } else { 0.0 }]
        }
        _ => without_exposures(target, truths, n),
    }
}

fn without_exposures(target: &Target, truths: &[f64], n: f64) -> Vec<f64> {
    match target {
        Target::Classes { names } => {
            let mut shares = vec![0.0; names.count()];
            truths.iter().for_each(|y| shares[*y as usize] += 1.0 / n);
            shares
        }
        // The volume of a window is known to its level only.
        Target::Counts { .. } | Target::Numbers { .. } | Target::Events { .. } => {
            let mean = truths.iter().sum::<f64>() / n;
            vec![mean, truths.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n]
        }
    }
}

/// Log densities under it: counts as negative binomial of that mean and variance (Poisson where they scatter less), numbers as Gaussian, in the units of the likelihood.
pub(crate) fn baseline(
    target: &Target,
    marginal: &[f64],
    truths: &[f64],
    offsets: Option<&[f64]>,
) -> Vec<f64> {
    use posterior_likelihoods::{Likelihood, NegativeBinomial, Poisson};
    match target {
        // A class that had no row has the share that half a row would have had.
        Target::Classes { .. } => truths.iter().map(|y| marginal[*y as usize].max(1e-12).ln()).collect(),
        Target::Counts { .. } => {
            let [mean, variance] = [marginal[0].max(1e-9), marginal[1]];
            let latent = mean.ln();
            let likelihood: Option<Box<dyn Likelihood>> = if variance > mean {
                let dispersion = mean * mean / (variance - mean);
                NegativeBinomial::new(dispersion).ok().map(|l| Box::new(l) as _)
            } else {
                Poisson::new(1).ok().map(|l| Box::new(l) as _)
            };
            let density = |(i, y): (usize, &f64)| {
                let latent = [latent + offsets.map_or(0.0, |offsets| offsets[i])];
                likelihood.as_ref().map_or(f64::NAN, |l| l.log_density(&[*y], &latent))
            };
            truths.iter().enumerate().map(density).collect()
        }
        // Densities of events are told beside those of an even intensity.
        Target::Events { .. } => vec![0.0; truths.len()],
        Target::Numbers { scale, .. } => {
            let [mean, variance] = [marginal[0], marginal[1].max(1e-300)];
            let density = |y: &f64| {
                -0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + (y - mean).powi(2) / variance)
                    - scale.ln()
            };
            truths.iter().map(density).collect()
        }
    }
}
