//! Activations of whole arrays.

use super::Activation;
use crate::array::elementwise::{map, zip_repeated};
use crate::array::{Array, Precision};

/// `$body` for each activation of the list, with `$form!()` standing for it. Written out, not bound to a variable: a closure that captures the activation
/// looks at it for every value, and a loop over that closure does not become vector code. All others share that slower closure.
macro_rules! each_form {
    ($kind:expr, $form:ident => $body:expr; $($name:ident $({ $($field:ident),* })?),* $(,)?) => {
        match $kind {
            $(Activation::$name $({ $($field),* })? => {
                macro_rules! $form {
                    () => {
                        Activation::$name $({ $($field),* })?
                    };
                }
                $body
            })*
            other => {
                macro_rules! $form {
                    () => {
                        other
                    };
                }
                $body
            }
        }
    };
}

/// [`each_form`] of the activations that networks have everywhere.
macro_rules! for_each_activation {
    ($kind:expr, $form:ident => $body:expr) => {
        each_form!(
            $kind, $form => $body;
            Identity, Relu, LeakyRelu { slope }, Tanh, Sigmoid, Gelu, GeluTanh, Silu, Softplus, Elu { alpha }, Erf, Clip { low, high },
            HardSigmoid { alpha, beta }, HardSwish, Mish,
        )
    };
}

/// `f(x)`.
pub(crate) fn activate<T: Precision>(kind: Activation, x: &Array<T>) -> Array<T> {
    for_each_activation!(kind, form => map(x, #[inline(always)] move |v| form!().derivatives(v).0))
}

/// `t f'(x)`, with the rows of `x` repeated.
pub(crate) fn activate_tangent<T: Precision>(kind: Activation, mut t: Array<T>, x: &Array<T>) -> Array<T> {
    for_each_activation!(
        kind,
        form => zip_repeated(&mut t, x, #[inline(always)] move |t, x| t * form!().derivatives(x).1)
    );
    t
}

/// `t f''(x)`, with the rows of `x` repeated.
pub(crate) fn activate_second<T: Precision>(kind: Activation, mut t: Array<T>, x: &Array<T>) -> Array<T> {
    for_each_activation!(
        kind,
        form => zip_repeated(&mut t, x, #[inline(always)] move |t, x| t * form!().derivatives(x).2)
    );
    t
}
