//! How far solvers are from the exact weights of a posterior mean while they work: at test points, and in three norms of the weights.
//!
//! Serves figures 4.3 to 4.6 and 4.9 of the thesis. Only the mean is solved for; samples share its matrix, and so its convergence.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what files say |
//! | `trajectory` | one solver's way: weights at checkpoints, and their errors |
//! | `largest_step` | its largest stable step |
//! | `report` | numbers, tables and figures |

mod largest_step;
mod report;
mod settings;
mod trajectory;

use crate::kinds::prelude::*;
use crate::tables::{Fold, Source};
use posterior_gp::GpError;
use posterior_gp::iterative::{KernelFeatures, Problem};
use posterior_kernels::features::FeatureSettings;
use posterior_kernels::matrix::KernelMatrix;
use posterior_kernels::{cross, diagonal};
use posterior_linalg::solve::System;
use report::{Report, WithNoise};
pub(crate) use settings::Settings;
use settings::check_rows;
use std::time::Instant;
use trajectory::{Case, Exact, Trajectory};

/// Follows every method on every fold of every set, at every noise level.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let folder = (!settings.folder.as_os_str().is_empty()).then(|| context.folder.join(&settings.folder));
    let mut report = Report::new(settings);
    for (index, set) in settings.sets.iter().enumerate() {
        let streams = Streams::new(context.seed).child("experiment/set", index as u64);
        let source = Source::open(set, folder.as_deref(), settings.rows, settings.features, streams)?;
        let mut by_noise: Vec<WithNoise> = settings.noises.iter().map(|n| WithNoise::new(&n.name)).collect();
        for &fold in &settings.folds {
            let Fold { train, test, truth } = source.fold(fold, settings.rows, streams)?;
            let n = train.rows();
            check_rows(n)?;
            let kernel = set.covariance()?.kernel::<f64>()?;
            let started = Instant::now();
            let budget = settings.cache_mb.saturating_mul(1_000_000);
            let matrix = KernelMatrix::with_budget(&*kernel, train.inputs(), budget);
            if fold == settings.folds[0] {
                let stored = if matrix.is_stored() { ", kept in memory" } else { "" };
                let what = format!(
                    "{n} and {} rows, {} columns; kernel matrix in {:.1} s{stored}",
                    truth.len(),
                    test.ncols(),
                    started.elapsed().as_secs_f64()
                );
                report.out.facts.push(SummaryRow::new(format!("{}, training and test", set.name), what));
            }
            let between = matrix.cross(test.as_ref());
            let across = cross(&*kernel, train.inputs(), test.as_ref());
            let prior = diagonal(&*kernel, test.as_ref());
            let features = KernelFeatures {
                kernel: &*kernel,
                points: train.inputs(),
                settings: FeatureSettings::default(),
            };
            for (noise, found) in settings.noises.iter().zip(&mut by_noise) {
                let deviation = noise.deviation.unwrap_or(set.noise);
                let system = System::uniform(&matrix, deviation * deviation).map_err(GpError::from)?;
                let problem = Problem::new(&system, train.targets(), None)?.with_features(&features);
                let seed = context.seed.wrapping_add(fold as u64);
                let case = Case {
                    matrix: &matrix,
                    between: &between,
                    problem: &problem,
                    truth: &truth,
                    noise: deviation * deviation,
                    seed,
                };
                let stage = |what: &str| format!("{}, {}, fold {fold}, {what}", set.name, noise.name);
                let problem_is = (set, deviation, &settings.folder, settings.rows, settings.features);
                let name = stage("exact");
                let exact: Exact = context.once(&name, &problem_is, |context| {
                    case.solve_directly((&across, &prior), &name, context)
                })?;
                let own = Mat::from_fn(n, 1, |i, _| exact.weights[i]);
                found.exact.push((case.errors(&own, &exact)?.swap_remove(0), exact.seconds));
                for (entry, courses) in settings.methods.iter().zip(found.courses(settings)) {
                    let name = stage(&entry.method.name);
                    let trajectory: Trajectory =
                        context.once(&name, &(&problem_is, entry, settings.checkpoints), |context| {
                            case.follow(entry, settings.checkpoints, &exact, &name, context)
                        })?;
                    courses.push(trajectory);
                }
            }
        }
        report.add(&set.name, by_noise)?;
    }
    Ok(report.out)
}
