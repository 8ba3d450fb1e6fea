//! Where inducing points begin: centres of clusters, in each class for classes.

use crate::LaplaceError;
use faer::Mat;
use posterior_kernels::inducing::{KMeansSettings, k_means, random_rows};
use posterior_linalg::random::Streams;

/// Rows for each inducing point among which clusters are looked for.
const ROWS: usize = 500;

/// Rows that are clustered at one time, at most.
pub(super) fn clustered(rows: usize, inducing: usize) -> usize {
    inducing.saturating_mul(ROWS).min(rows)
}

/// Inducing points (M x numbers of a point) with the output that each looks at. With `classes` (of all rows) M is shared out evenly among the classes, the first getting one more where it does
/// not divide; without, clusters of all rows look at one output after the other. At most 500 rows an inducing point are clustered, ten rounds of Lloyd's algorithm (spec `valla`, section 6.1); where clusters stay
/// empty, rows by chance take their place.
///
/// # Errors
/// A class without rows; numbers that are not finite.
pub(super) fn start(
    points: &dyn Fn(&[usize]) -> Mat<f64>,
    rows: usize,
    outputs: usize,
    classes: Option<&[usize]>,
    inducing: usize,
    streams: Streams,
) -> Result<(Mat<f64>, Vec<usize>), LaplaceError> {
    let Some(classes) = classes else {
        let all: Vec<usize> = (0..rows).collect();
        let centres = clusters(points, &all, inducing, streams)?;
        return Ok((centres, (0..inducing).map(|m| m % outputs).collect()));
    };
    let (mut parts, mut labels) = (Vec::new(), Vec::new());
    for class in 0..outputs {
        let count = inducing / outputs + usize::from(class < inducing % outputs);
        let own: Vec<usize> = (0..rows).filter(|&i| classes[i] == class).collect();
        if own.is_empty() {
            return Err(LaplaceError::Request(format!(
                "no example is of class {class}: inducing points of each class need one"
            )));
        }
        parts.push(clusters(points, &own, count, streams.child("laplace/fixed-mean-class", class as u64))?);
        labels.extend(std::iter::repeat_n(class, count));
    }
    let width = parts.first().map_or(0, |part| part.ncols());
    let mut centres = Mat::zeros(inducing, width);
    let mut first = 0;
    for part in parts {
        centres.as_mut().subrows_mut(first, part.nrows()).copy_from(&part);
        first += part.nrows();
    }
    Ok((centres, labels))
}

/// As many centres as are asked for.
fn clusters(
    points: &dyn Fn(&[usize]) -> Mat<f64>,
    own: &[usize],
    count: usize,
    streams: Streams,
) -> Result<Mat<f64>, LaplaceError> {
    let request = |e: posterior_kernels::inducing::InducingError| LaplaceError::Request(e.to_string());
    let chosen: Vec<usize> =
        random_rows(own.len(), count.saturating_mul(ROWS), streams).into_iter().map(|i| own[i]).collect();
    let x = points(&chosen);
    let settings = KMeansSettings { rounds: 10, tolerance: 0.0 };
    let centres = k_means(x.as_ref(), count, settings, streams).map_err(request)?;
    let missing = count - centres.nrows().min(count);
    let more = random_rows(x.nrows(), missing, streams.child("laplace/fixed-mean-fill", 0));
    Ok(Mat::from_fn(count, x.ncols(), |i, j| match i.checked_sub(centres.nrows()) {
        None => centres[(i, j)],
        // Fewer different rows than centres: some stand twice.
        Some(k) => x[(more[k % more.len()], j)],
    }))
}
