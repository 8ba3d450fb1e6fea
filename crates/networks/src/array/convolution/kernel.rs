//! The two products on shifted grids, in registers.

use crate::array::pool::Pool;
use posterior_linalg::Real;
use posterior_store::Element;
use pulp::{Arch, Simd, WithSimd};

/// Rows of weights that one pass over the grid serves, for this machine's number of vector registers.
pub(super) fn block_rows() -> usize {
    struct Registers;
    impl WithSimd for Registers {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::REGISTER_COUNT
        }
    }
    if Arch::new().dispatch(Registers) >= 32 { 8 } else { 4 }
}

/// Rows and shifts of one block of [`Shifted::inner`]; buffers are padded to whole blocks.
pub(super) const INNER_ROWS: usize = 4;
pub(super) const INNER_SHIFTS: usize = 6;

/// Values that may be read and written beyond the end of a span: a whole vector of the widest kind.
pub(super) const SLACK: usize = 16;

/// Work for [`Shifted::product`]: `out[m, t] = sum_q weights[q, m] grid[offsets[q] + t]` for `t < span`.
pub struct Product<'a, T> {
    /// `[offsets.len(), rows]`.
    pub(super) weights: &'a [T],
    /// 4 or 8 rows of output; a multiple of 4.
    pub(super) rows: usize,
    pub(super) offsets: &'a [usize],
    /// Readable up to the largest offset plus `span` rounded up to whole vectors.
    pub(super) grid: &'a [T],
    pub(super) span: usize,
    /// `[rows, stride]`, with `stride` at least `span + SLACK`.
    pub(super) out: &'a mut [T],
    pub(super) stride: usize,
}

/// Work for [`Shifted::inner`]: the sum over images i and t of rows[i, r, t] grid[i, offsets[q] + t]`.
pub struct Inner<'a, T> {
    pub(super) images: usize,
    /// Row `r` of image `i` begins at `i * row_image + r * stride`; zero behind the span.
    pub(super) rows: &'a [T],
    pub(super) row_image: usize,
    pub(super) stride: usize,
    pub(super) span: usize,
    pub(super) grid: &'a [T],
    pub(super) grid_image: usize,
    pub(super) offsets: [usize; INNER_SHIFTS],
}

/// The kernels of a precision.
pub trait Shifted: Real + Element {
    #[doc(hidden)]
    fn pool() -> &'static Pool<Self>;
    #[doc(hidden)]
    fn product(work: Product<'_, Self>);
    #[doc(hidden)]
    fn inner(work: Inner<'_, Self>) -> [[Self; INNER_SHIFTS]; INNER_ROWS];
}

macro_rules! shifted {
    ($type:ident, $module:ident, $vector:ident, $splat:ident, $mul_add:ident, $load:ident, $store:ident, $sum:ident) => {
        mod $module {
            use super::{INNER_ROWS, INNER_SHIFTS, Inner, Product, Simd, WithSimd};

            #[inline(always)]
            fn tile<S: Simd, const M: usize, const V: usize>(
                simd: S,
                work: &mut Product<'_, $type>,
                first: usize,
            ) {
                let lanes = size_of::<S::$vector>() / size_of::<$type>();
                let width = V * lanes;
                let mut sums = [[simd.$splat(0.0); V]; M];
                for (weights, &offset) in work.weights.chunks_exact(M).zip(work.offsets) {
                    let (values, _) = S::$load(&work.grid[offset + first..offset + first + width]);
                    let values: [S::$vector; V] = std::array::from_fn(|v| values[v]);
                    for m in 0..M {
                        let weight = simd.$splat(weights[m]);
                        for v in 0..V {
                            sums[m][v] = simd.$mul_add(weight, values[v], sums[m][v]);
                        }
                    }
                }
                for m in 0..M {
                    let start = m * work.stride + first;
                    let (out, _) = S::$store(&mut work.out[start..start + width]);
                    for v in 0..V {
                        out[v] = sums[m][v];
                    }
                }
            }

            #[inline(always)]
            fn tiles<S: Simd, const M: usize>(simd: S, mut work: Product<'_, $type>) {
                let lanes = size_of::<S::$vector>() / size_of::<$type>();
                let mut vectors = work.span.div_ceil(lanes);
                let mut first = 0;
                while vectors > 0 {
                    let taken = match vectors {
                        1 => 1,
                        2 | 4 => 2,
                        _ => 3,
                    };
                    match taken {
                        1 => tile::<S, M, 1>(simd, &mut work, first),
                        2 => tile::<S, M, 2>(simd, &mut work, first),
                        _ => tile::<S, M, 3>(simd, &mut work, first),
                    }
                    vectors -= taken;
                    first += taken * lanes;
                }
            }

            impl WithSimd for Product<'_, $type> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: Simd>(self, simd: S) {
                    if self.rows == 8 { tiles::<S, 8>(simd, self) } else { tiles::<S, 4>(simd, self) }
                }
            }

            impl WithSimd for Inner<'_, $type> {
                type Output = [[$type; INNER_SHIFTS]; INNER_ROWS];
                #[inline(always)]
                fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
                    let lanes = size_of::<S::$vector>() / size_of::<$type>();
                    let mut sums = [[simd.$splat(0.0); INNER_SHIFTS]; INNER_ROWS];
                    for image in 0..self.images {
                        let rows = &self.rows[image * self.row_image..];
                        let grid = &self.grid[image * self.grid_image..][..self.grid_image];
                        let length = self.span.div_ceil(lanes) * lanes;
                        let rows: [&[S::$vector]; INNER_ROWS] =
                            std::array::from_fn(|r| S::$load(&rows[r * self.stride..][..length]).0);
                        let shifts: [&[S::$vector]; INNER_SHIFTS] =
                            std::array::from_fn(|q| S::$load(&grid[self.offsets[q]..][..length]).0);
                        for t in 0..length / lanes {
                            for q in 0..INNER_SHIFTS {
                                let right = shifts[q][t];
                                for r in 0..INNER_ROWS {
                                    sums[r][q] = simd.$mul_add(rows[r][t], right, sums[r][q]);
                                }
                            }
                        }
                    }
                    // Loops, not closures: a closure would be compiled without the vector instructions that this function has, and each sum be a call.
                    let mut out = [[0.0; INNER_SHIFTS]; INNER_ROWS];
                    for r in 0..INNER_ROWS {
                        for q in 0..INNER_SHIFTS {
                            out[r][q] = simd.$sum(sums[r][q]);
                        }
                    }
                    out
                }
            }
        }

        impl Shifted for $type {
            fn pool() -> &'static Pool<Self> {
                static POOL: Pool<$type> = Pool::new();
                &POOL
            }
            fn product(work: Product<'_, Self>) {
                Arch::new().dispatch(work);
            }
            fn inner(work: Inner<'_, Self>) -> [[Self; INNER_SHIFTS]; INNER_ROWS] {
                Arch::new().dispatch(work)
            }
        }
    };
}

shifted!(f32, single, f32s, splat_f32s, mul_add_e_f32s, as_simd_f32s, as_mut_simd_f32s, reduce_sum_f32s);
shifted!(f64, double, f64s, splat_f64s, mul_add_e_f64s, as_simd_f64s, as_mut_simd_f64s, reduce_sum_f64s);
