//! What is asked of a [`Method`]: its settings answer.

use super::{Deep, MethodSettings};
use crate::options::{
    BatchOptions, DiskOptions, EvidenceOptions, GviOptions, InducingOptions, IterativeOptions,
    KernelPrecision, LargeTableOptions,
};
use crate::{Method, Solver};
use posterior_gp::iterative::Budget;
use std::time::Duration;

/// Bounds of the tolerance of solvers that nobody chose one for: what residuals of ten thousands of rows are known to in single and in double precision, and what published runs are content with.
const FINEST: [f64; 2] = [1e-5, 1e-7];
const COARSEST: f64 = 1e-3;

/// The largest condition number of a system that is solved in single precision by itself: the reciprocal of its rounding, nearly.
const SINGLE_CONDITION: f64 = 1e7;

/// The settings of the method that is asked.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal => $options:path),* $(,)?) => {
        impl Method {
            /// What is asked of it.
            pub(crate) fn settings(&self) -> &dyn MethodSettings {
                match self { $(Self::$name(own) => own),* }
            }

            fn settings_mut(&mut self) -> &mut dyn MethodSettings {
                match self { $(Self::$name(own) => own),* }
            }
        }
    };
}

methods! { settings }

/// Shares of the settings, where the method has them.
macro_rules! ask {
    ($($(#[doc = $about:literal])* $seen:vis $name:ident: $kind:ident;)+) => {
        impl Method {
            $($(#[doc = $about])* $seen fn $name(&self) -> Option<&$kind> { self.settings().$name() })+
        }
    };
}

ask! {
    /// The search for hyperparameters by exact evidence, of methods that have one; bounds learn theirs.
    pub evidence: EvidenceOptions;
    /// What iterative solvers are told.
    pub iterative: IterativeOptions;
    /// Steps, rows to judge by and checkpoints of methods for large tables.
    pub large: LargeTableOptions;
    /// Where prepared rows are kept, of methods that look at some of them at a time.
    pub disk: DiskOptions;
    /// What generalised variational inference is told.
    pub(crate) gvi: GviOptions;
    /// Inducing points of methods that have some.
    pub inducing: InducingOptions;
    /// Batches of methods that step on some.
    pub batches: BatchOptions;
}

impl Method {
    /// With what it has otherwise than the methods that it shares a group of options with, where nothing is said of it.
    pub(crate) fn settled(mut self) -> Self {
        self.settings_mut().settle();
        self
    }

    /// With one start of a search by exact evidence.
    pub(crate) fn start_once(&mut self) {
        self.settings_mut().start_once();
    }

    /// As [`Self::iterative`], to be changed.
    pub fn iterative_mut(&mut self) -> Option<&mut IterativeOptions> {
        self.settings_mut().iterative_mut()
    }

    /// As [`Self::large`], to be changed.
    pub fn large_mut(&mut self) -> Option<&mut LargeTableOptions> {
        self.settings_mut().large_mut()
    }

    /// What methods with learned features are told.
    pub(crate) fn deep(&self) -> Option<Deep<'_>> {
        self.settings().deep(self.name())
    }

    /// Whether something is learned of which rows that are set aside choose and stop: features, or a mean and a covariance.
    pub(crate) fn sets_aside(&self) -> bool {
        self.deep().is_some() || self.gvi().is_some()
    }

    /// What finds the weights of an iterative method on so many rows, as it is kept in the model's file.
    pub fn solver(&self, rows: usize, seed: u64) -> Option<Solver> {
        self.settings().solver(rows, seed)
    }

    /// How long a solver of so many rows goes on: so many steps, so much time, to a tolerance that conjugate gradients and sketch-and-project have and others are asked for.
    ///
    /// Predictions at rows are off by the residual at most, and what their own deviations are measured by is the noise: the usual tolerance is a hundredth of its standard deviation, in units of what is solved for, at most 10⁻³. `noise_share` is its variance over that of targets or of prior functions, whichever is larger.
    pub fn budget(&self, rows: usize, time: Option<Duration>, noise_share: f64) -> Budget {
        let finest = FINEST[usize::from(self.precision() == KernelPrecision::Double)];
        let usual = match self.settings().ends_by_tolerance() {
            true => (0.01 * noise_share.sqrt()).clamp(finest, COARSEST),
            false => 0.0,
        };
        let tolerance = self.settings().tolerance().unwrap_or(usual);
        Budget { steps: self.steps(rows), time, tolerance }
    }

    /// Steps of the solver or bound on so many rows.
    pub fn steps(&self, rows: usize) -> usize {
        self.settings().steps(rows)
    }

    /// The precision of kernel products; bounds are computed in double. Of a method whose precision is [open](Self::precision_is_open), that of its search.
    pub fn precision(&self) -> KernelPrecision {
        self.iterative().map_or(KernelPrecision::Double, |options| options.system.precision())
    }

    /// Whether the system decides in which precision it is solved ([`Self::for_system`]): conjugate gradients, where nobody says.
    pub fn precision_is_open(&self) -> bool {
        self.clone().settings_mut().open_precision().is_some_and(|own| own.is_none())
    }

    /// With an open precision decided for a system of so many rows, whose function has `ratio` times the noise's variance: the matrix's condition number is at most their product. Conjugate gradients in single precision
    /// take 1.4 times the iterations of double where it is 4·10⁶, 2.5 times at 10⁷, where each is half as dear, and do not arrive at 10⁸.
    pub fn for_system(&self, rows: usize, ratio: f64) -> Self {
        let mut own = self.clone();
        if let Some(open) = own.settings_mut().open_precision() {
            let single = rows as f64 * ratio <= SINGLE_CONDITION;
            open.get_or_insert(if single { KernelPrecision::Single } else { KernelPrecision::Double });
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{CgOptions, MethodName, SapOptions};

    #[test]
    fn solvers_go_on_to_a_hundredth_of_the_noise() {
        let of = |name: MethodName, noise: f64| Method::from(name).budget(100, None, noise).tolerance;
        for (name, finest) in [(MethodName::Cg, 1e-5), (MethodName::Sap, 1e-7)] {
            let found = [1.0, 0.01, 1e-4, 1e-20, 0.0].map(|noise| of(name, noise));
            assert_eq!(found, [1e-3, 1e-3, 1e-4, finest, finest]);
        }
        // Descent ends where predictions do; what is asked for is what it is.
        assert_eq!(of(MethodName::Sdd, 1e-4), 0.0);
        let asked = Method::Sap(SapOptions { tolerance: Some(0.02), ..SapOptions::default() });
        assert_eq!(asked.budget(100, None, 1e-4).tolerance, 0.02);
    }

    /// Ten times as many rows bear a tenth of the ratio; what was asked for stays, and so does what is no question.
    #[test]
    fn conjugate_gradients_are_in_double_precision_where_single_cannot_solve() {
        let of = |method: &Method, rows, ratio| method.for_system(rows, ratio).precision();
        let open = Method::from(MethodName::Cg);
        assert!(open.precision_is_open());
        let double = [(1_000, 9e3), (1_000, 1.1e4), (10_000, 9e2), (10_000, 1.1e3)]
            .map(|(rows, ratio)| of(&open, rows, ratio) == KernelPrecision::Double);
        assert_eq!(double, [false, true, false, true]);
        let mut asked = CgOptions::default();
        asked.iterative.system.precision = Some(KernelPrecision::Single);
        let asked = Method::Cg(asked);
        assert!(!asked.precision_is_open());
        assert_eq!(of(&asked, 10_000, 1e8), KernelPrecision::Single);
        let descent = Method::from(MethodName::Sdd);
        assert!(!descent.precision_is_open());
        assert_eq!(descent.for_system(10_000, 1e8), descent);
    }
}
