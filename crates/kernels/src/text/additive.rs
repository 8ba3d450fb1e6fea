//! What is particular to `additive`: the kernel of one column that it is made of.

use super::{Kind, Leaf};
use crate::additive::Additive;
use crate::stationary::{Form, Matern12, Matern32, Matern52, RationalQuadratic, SquaredExponential};
use crate::{Columns, Kernel};
use posterior_linalg::Real;

/// The highest order. Beyond some, functions of so many columns are those of a plain product.
pub(super) const HIGHEST_ORDER: f64 = 64.0;

/// Sets of columns that can be summed in single precision.
const MOST_SETS: f64 = 1e36;

const BASES: [Kind; 5] =
    [Kind::SquaredExponential, Kind::Matern12, Kind::Matern32, Kind::Matern52, Kind::RationalQuadratic];

/// A kernel that `additive` can be made of, by one of its names.
pub(super) fn base(word: &str) -> Option<Kind> {
    BASES.into_iter().find(|kind| kind.names().contains(&word))
}

pub(super) fn set_base(leaf: &mut Leaf, word: &str) -> Result<(), String> {
    match leaf.base.replace(base(word).ok_or_else(missing)?) {
        Some(_) => Err("`additive` is made of one kernel, but two are named".to_string()),
        None => Ok(()),
    }
}

fn missing() -> String {
    let names: Vec<&str> = BASES.iter().map(|kind| kind.names()[0]).collect();
    format!(
        "`additive` wants the kernel of one column, as in `additive(matern32, order=2)`; possible: {}",
        names.join(", ")
    )
}

/// What is wrong with an order for so many columns.
pub(super) fn check_order(order: usize, columns: usize) -> Result<(), String> {
    // Sums over sets of columns are made before they are divided by the number of sets, in single precision where that is asked for.
    let sets = (1..=order).fold(1.0, |sets, q| sets * (columns + 1).saturating_sub(q) as f64 / q as f64);
    if order <= columns && sets > MOST_SETS {
        return Err(format!(
            "`order` is {order} of {columns} columns, which is {sets:.1e} sets of columns: at most {MOST_SETS:.0e} can be summed in single precision; take a lower order"
        ));
    }
    if order <= columns {
        return Ok(());
    }
    Err(format!(
        "`order` is {order}, but the kernel looks at {columns} columns; an order is at most their number"
    ))
}

/// Its base is named, and no setting stands there that this has not: otherwise where and what is wrong.
pub(super) fn check(leaf: &Leaf) -> Result<(), (usize, String)> {
    if leaf.kind != Kind::Additive {
        return Ok(());
    }
    let Some(base) = leaf.base else { return Err((leaf.position, missing())) };
    match leaf.setting("alpha") {
        Some(alpha) if base != Kind::RationalQuadratic => {
            Err((alpha.position, "only `additive(rq)` has an `alpha`".to_string()))
        }
        _ => Ok(()),
    }
}

pub(super) fn build<T: Real>(leaf: &Leaf, label: &str, columns: Columns, order: usize) -> Box<dyn Kernel<T>> {
    match leaf.base {
        Some(Kind::SquaredExponential) => of(leaf, label, columns, order, SquaredExponential),
        Some(Kind::Matern12) => of(leaf, label, columns, order, Matern12),
        Some(Kind::Matern52) => of(leaf, label, columns, order, Matern52),
        Some(Kind::RationalQuadratic) => {
            of(leaf, label, columns, order, RationalQuadratic { alpha: leaf.initial("alpha", 1.0) })
        }
        _ => of(leaf, label, columns, order, Matern32),
    }
}

fn of<T: Real, F: Form>(
    leaf: &Leaf,
    label: &str,
    columns: Columns,
    order: usize,
    form: F,
) -> Box<dyn Kernel<T>> {
    let (lengthscale, variance) = (leaf.initial("lengthscale", 1.0), leaf.initial("variance", 1.0));
    Box::new(Additive::new(label, form, columns, leaf.ard, lengthscale, (order, variance)))
}
