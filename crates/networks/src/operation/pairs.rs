//! Sums, products, quotients and extremes of two values, element by element, and the choice between two.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use crate::array::{
    Array, Precision, add, add_to, divide, extreme, extreme_of_first, multiply, scale, where_positive,
};
use std::sync::Arc;

/// A layer of two values of one shape, which are called `what` in errors.
fn pair<T: Precision>(
    what: &str,
    inputs: &[&[usize]],
    layer: impl Layer<T> + 'static,
) -> Result<Prepared<T>, String> {
    if inputs[0] != inputs[1] {
        return Err(format!(
            "{what} of shapes {:?} and {:?} differ: broadcast one first",
            inputs[0], inputs[1]
        ));
    }
    let flops = super::count(inputs[0]);
    Ok(Prepared { shape: inputs[0].to_vec(), parameters: vec![], flops, layer: Arc::new(layer) })
}

/// The product.
pub(crate) fn prepare_multiply<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    pair("factors", inputs, Multiplied)
}

/// The sum.
pub(crate) fn prepare_add<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    pair("terms", inputs, Added)
}

/// The first by the second.
pub(crate) fn prepare_divide<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    pair("dividend and divisor", inputs, Divided)
}

/// The larger (or the smaller) of the two.
pub(crate) fn prepare_extreme<T: Precision>(
    largest: bool,
    inputs: &[&[usize]],
) -> Result<Prepared<T>, String> {
    pair("values", inputs, Extreme { largest })
}

/// The second value where the first is positive, else the third.
pub(crate) fn prepare_choose<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    pair::<T>("the condition and what is chosen", &inputs[..2], Chosen)?;
    pair("values", &inputs[1..], Chosen)
}

#[derive(Debug)]
struct Multiplied;

impl<T: Precision> Layer<T> for Multiplied {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (multiply(inputs[0].clone(), inputs[1]), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        multiply(tangent.clone(), at.inputs[1 - input])
    }

    fn second_input(&self, _: &At<'_, T>, input: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        Some(multiply(c.clone(), tangents[1 - input].as_ref()?))
    }
}

#[derive(Debug)]
struct Added;

impl<T: Precision> Layer<T> for Added {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (add(inputs[0].clone(), inputs[1]), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        tangent.clone()
    }
}

#[derive(Debug)]
struct Divided;

impl<T: Precision> Layer<T> for Divided {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (divide(inputs[0].clone(), inputs[1]), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        let quotient = divide(tangent.clone(), at.inputs[1]);
        if input == 0 { quotient } else { scale(multiply(quotient, at.output), -T::ONE) }
    }

    /// Of `<c, s / b - t y / b>`: `-c t / b^2` in the dividend, `c (2 t y - s) / b^2` in the divisor.
    fn second_input(&self, at: &At<'_, T>, input: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        let by_divisor = |x: Array<T>| divide(divide(x, at.inputs[1]), at.inputs[1]);
        let of_divisor = tangents[1].as_ref().map(|t| multiply(c.clone(), t));
        if input == 0 {
            return Some(scale(by_divisor(of_divisor?), -T::ONE));
        }
        let twice = of_divisor.map(|p| scale(multiply(p, at.output), T::ONE + T::ONE));
        let of_dividend = tangents[0].as_ref().map(|s| scale(multiply(c.clone(), s), -T::ONE));
        let sum = match (twice, of_dividend) {
            (Some(mut sum), Some(other)) => {
                add_to(sum.values_mut(), other.values());
                sum
            }
            (one, other) => one.or(other)?,
        };
        Some(by_divisor(sum))
    }
}

#[derive(Debug)]
struct Extreme {
    largest: bool,
}

impl<T: Precision> Layer<T> for Extreme {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (extreme(inputs[0].clone(), inputs[1], self.largest), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        let first = extreme_of_first(at.inputs[0], at.inputs[1], self.largest);
        let taken = multiply(tangent.clone(), &first);
        if input == 0 { taken } else { add(scale(taken, -T::ONE), tangent) }
    }
}

#[derive(Debug)]
struct Chosen;

impl<T: Precision> Layer<T> for Chosen {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let yes = where_positive(inputs[1].clone(), inputs[0], true);
        (add(yes, &where_positive(inputs[2].clone(), inputs[0], false)), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        match input {
            0 => Array::zeros(tangent.shape().to_vec()),
            _ => where_positive(tangent.clone(), at.inputs[0], input == 1),
        }
    }
}
