//! Conjugate gradients for one Newton step.

/// A step along a descent direction, and what the quadratic model promises for it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonStep {
    /// The step (d).
    pub step: Vec<f64>,
    /// `-1/2 g's`: by how much the quadratic model falls along it.
    pub promised: f64,
    /// Products with the matrix.
    pub products: usize,
}

/// An approximate solution of `H s = -gradient` for a matrix that is known by its products, each of which may fail: at most `steps` iterations, ended once the
/// preconditioned residual is `tolerance` times the first, or where the curvature along a direction is not positive. Any number of iterations gives a
/// direction of descent (Nocedal and Wright 2006, algorithm 7.1, without its forcing sequence).
///
/// # Errors
/// Those of `product`.
pub fn truncated_newton_step<E>(
    gradient: &[f64],
    mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    precondition: impl Fn(&[f64]) -> Vec<f64>,
    tolerance: f64,
    steps: usize,
) -> Result<NewtonStep, E> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut step = vec![0.0; residual.len()];
    let mut z = precondition(&residual);
    let (mut direction, mut rho) = (z.clone(), dot(&residual, &z));
    let (first, mut products) = (rho, 0);
    for _ in 0..steps {
        if !(rho > tolerance * tolerance * first && rho > 0.0) {
            break;
        }
        let image = product(&direction)?;
        products += 1;
        let curvature = dot(&direction, &image);
        if curvature.is_nan() || curvature <= 0.0 {
            break;
        }
        let alpha = rho / curvature;
        step.iter_mut().zip(&direction).for_each(|(s, d)| *s += alpha * d);
        residual.iter_mut().zip(&image).for_each(|(r, p)| *r -= alpha * p);
        z = precondition(&residual);
        let next = dot(&residual, &z);
        let beta = next / rho;
        direction.iter_mut().zip(&z).for_each(|(d, z)| *d = z + beta * *d);
        rho = next;
    }
    let promised = -0.5 * dot(gradient, &step);
    Ok(NewtonStep { step, promised, products })
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use std::convert::Infallible;

    #[test]
    fn as_many_steps_as_dimensions_solve_the_system() {
        let root =
            Mat::from_fn(5, 5, |i, j| ((i * 5 + j) as f64 * 0.7).sin() + if i == j { 2.0 } else { 0.0 });
        let h = root.transpose() * &root;
        let expected = [1.0, -2.0, 0.5, 3.0, -0.25];
        let product = |v: &[f64]| -> Result<Vec<f64>, Infallible> {
            Ok((0..5).map(|i| (0..5).map(|j| h[(i, j)] * v[j]).sum()).collect())
        };
        let gradient: Vec<f64> = product(&expected).unwrap().iter().map(|g| -g).collect();
        let diagonal = |r: &[f64]| r.iter().enumerate().map(|(i, r)| r / h[(i, i)]).collect::<Vec<f64>>();
        let found = truncated_newton_step(&gradient, product, diagonal, 1e-14, 20).unwrap();
        assert!(found.products <= 7, "{found:?}");
        found.step.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-9, "{found:?}"));
        // At the solution the quadratic has fallen by half of s'Hs.
        let fall = 0.5 * product(&expected).unwrap().iter().zip(&expected).map(|(a, b)| a * b).sum::<f64>();
        assert!((found.promised - fall).abs() < 1e-9 * fall);
        // One step is already one of descent; none is no step; failures are passed on.
        let one = truncated_newton_step(&gradient, product, diagonal, 1e-14, 1).unwrap();
        assert!(one.promised > 0.0 && one.promised < fall && one.products == 1);
        assert_eq!(truncated_newton_step(&gradient, product, diagonal, 0.1, 0).unwrap().step, vec![0.0; 5]);
        assert_eq!(truncated_newton_step(&gradient, |_| Err(7), diagonal, 0.1, 3), Err(7));
        // Without curvature there is nothing to go by.
        let flat = truncated_newton_step(&gradient, |v| Ok::<_, u8>(vec![0.0; v.len()]), diagonal, 0.1, 3);
        assert_eq!(flat.unwrap().step, vec![0.0; 5]);
    }
}
