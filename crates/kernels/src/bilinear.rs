//! Gradients of bilinear forms of kernel matrices, in `O((n + m)(D + k))` memory.
//!
//! Solvers know a matrix by its products, and the gradients that they need are those of `Σ_c u_cᵀ K v_c`: of the evidence, with solutions and
//! probe vectors (spec, section 9.5), and of functions `Σ_j k(·, z_j) v_j`. The adjoint of K is then `U Vᵀ`, which is written tile by tile.

use crate::driver::pull_tiles;
use crate::{Adjoints, FillAdjoint, Kernel, Request, pullback_gram};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::tiles::Cover;

/// What an adjoint of `k(x, z)`, n x m, contributes to parameters, x and z, where `fill(rows, columns, tile)` writes the adjoint's tiles, so
/// that it need not be stored.
///
/// Cost: that of [`crate::pullback`].
pub fn pullback_tiles<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    z: MatRef<'_, T>,
    fill: &FillAdjoint<'_, T>,
    request: Request,
) -> Adjoints<T> {
    pull_tiles(kernel, (x, z), Cover::Full, request, fill)
}

/// The gradients of `Σ_c Σ_ij u_ic v_jc k(x_i, z_j)` in parameters, x and z, for U of n x k and V of m x k.
///
/// Equal points of x and z are different observations. Cost: `nm(2k + 6D + 40)` flops about, two tiles of memory for each thread and, for
/// gradients in x, 32 copies of x.
///
/// # Panics
/// When U and V do not have a row for each point and the same number of columns.
pub fn pullback_bilinear<T: Real>(
    kernel: &dyn Kernel<T>,
    (x, u): (MatRef<'_, T>, MatRef<'_, T>),
    (z, v): (MatRef<'_, T>, MatRef<'_, T>),
    request: Request,
) -> Adjoints<T> {
    check((x, u), (z, v));
    pullback_tiles(
        kernel,
        x,
        z,
        &|rows, columns, tile| {
            let (u, v) = (u.subrows(rows.start, rows.len()), v.subrows(columns.start, columns.len()));
            matmul(tile, Accum::Replace, u, v.transpose(), T::ONE, Par::Seq);
        },
        request,
    )
}

/// The gradients of `Σ_c u_cᵀ K v_c`, `K = k(x, x)` with its noise on the diagonal, in parameters and, through both arguments, in x. U and V
/// are n x k. Half the tiles of [`pullback_bilinear`].
///
/// # Panics
/// When U and V do not have a row for each point and the same number of columns.
#[inline(never)]
pub fn pullback_quadratic<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    (u, v): (MatRef<'_, T>, MatRef<'_, T>),
    request: Request,
) -> Adjoints<T> {
    check((x, u), (x, v));
    // K is symmetric, so its adjoint may be made so: (U Vᵀ + V Uᵀ)/2.
    let half = T::from_f64(0.5);
    pullback_gram(
        kernel,
        x,
        &|rows, columns, mut tile| {
            let part = |m: MatRef<'_, T>, range: &std::ops::Range<usize>| -> faer::Mat<T> {
                m.subrows(range.start, range.len()).to_owned()
            };
            let (ui, vi, uj, vj) = (part(u, &rows), part(v, &rows), part(u, &columns), part(v, &columns));
            matmul(tile.as_mut(), Accum::Replace, &ui, vj.transpose(), half, Par::Seq);
            matmul(tile, Accum::Add, &vi, uj.transpose(), half, Par::Seq);
        },
        request,
    )
}

fn check<T>((x, u): (MatRef<'_, T>, MatRef<'_, T>), (z, v): (MatRef<'_, T>, MatRef<'_, T>)) {
    assert!(
        u.nrows() == x.nrows() && v.nrows() == z.nrows() && u.ncols() == v.ncols(),
        "one row of weights for each point and the same number of vectors on both sides, not {} x {} for {} points and {} x {} for {}",
        u.nrows(),
        u.ncols(),
        x.nrows(),
        v.nrows(),
        v.ncols(),
        z.nrows()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KernelExpression, cross, gram};
    use faer::Mat;
    use posterior_linalg::random::Streams;
    use posterior_optim::check::{assert_close, gradient};
    use rand_distr::{Distribution, StandardNormal};

    fn normal(n: usize, d: usize, name: &str) -> Mat<f64> {
        let mut rng = Streams::new(5).stream(name);
        Mat::from_fn(n, d, |_, _| StandardNormal.sample(&mut rng))
    }

    fn flat(matrix: &Mat<f64>) -> Vec<f64> {
        (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j).to_vec()).collect()
    }

    fn form(k: &Mat<f64>, u: &Mat<f64>, v: &Mat<f64>) -> f64 {
        let kv = k * v;
        (0..u.ncols()).map(|c| (0..u.nrows()).map(|i| u[(i, c)] * kv[(i, c)]).sum::<f64>()).sum()
    }

    #[test]
    fn gradients_are_those_of_the_forms() {
        let (x, z) = (normal(7, 2, "x"), normal(5, 2, "z"));
        let (u, v, w) = (normal(7, 3, "u"), normal(5, 3, "v"), normal(7, 3, "w"));
        let names = ["x1".to_string(), "x2".to_string()];
        for text in ["matern32(ard, lengthscale=1.3)", "se + linear * matern52 + white", "rq * periodic(x2)"]
        {
            let mut kernel = text.parse::<KernelExpression>().unwrap().build::<f64>(&names).unwrap();
            let got =
                pullback_bilinear(&*kernel, (x.as_ref(), u.as_ref()), (z.as_ref(), v.as_ref()), Request::ALL);
            let both = pullback_quadratic(&*kernel, x.as_ref(), (u.as_ref(), w.as_ref()), Request::ALL);
            let at = |points: &[f64], n| MatRef::from_column_major_slice(points, n, 2).to_owned();
            let value = |x: &Mat<f64>, z: &Mat<f64>| form(&cross(&*kernel, x.as_ref(), z.as_ref()), &u, &v);
            assert_close(&flat(&got.x.unwrap()), &gradient(|p| value(&at(p, 7), &z), &flat(&x)), 1e-6, 1e-7);
            assert_close(&flat(&got.z.unwrap()), &gradient(|p| value(&x, &at(p, 5)), &flat(&z)), 1e-6, 1e-7);
            let square = |x: &Mat<f64>| form(&gram(&*kernel, x.as_ref()), &u, &w);
            assert_close(&flat(&both.x.unwrap()), &gradient(|p| square(&at(p, 7)), &flat(&x)), 1e-6, 1e-7);
            let start = kernel.values();
            let in_parameters = |kernel: &mut Box<dyn Kernel<f64>>, square: bool| {
                let copy = std::cell::RefCell::new(kernel.clone_box());
                gradient(
                    |p| {
                        let mut kernel = copy.borrow_mut();
                        kernel.set_values(p);
                        if square {
                            form(&gram(&**kernel, x.as_ref()), &u, &w)
                        } else {
                            form(&cross(&**kernel, x.as_ref(), z.as_ref()), &u, &v)
                        }
                    },
                    &start,
                )
            };
            assert_close(&got.parameters, &in_parameters(&mut kernel, false), 1e-6, 1e-7);
            assert_close(&both.parameters, &in_parameters(&mut kernel, true), 1e-6, 1e-7);
        }
    }
}
