//! **The driver of iterative fits**: clock, budget, divergence and restarts, interruption and what is told on the way. What one step is, an
//! [`Iteration`] says.
//!
//! ```
//! use posterior_optim::{Clock, Iteration, Limits, Progress, Reason, Run, Signal, Step, drive};
//!
//! /// The root of 2 by Heron's rule.
//! struct Heron {
//!     step: usize,
//!     root: f64,
//! }
//!
//! impl Iteration for Heron {
//!     type Error = std::convert::Infallible;
//!
//!     fn progress(&self) -> Progress {
//!         Progress { step: self.step, residual: Some((self.root * self.root - 2.0).abs()), ..Progress::default() }
//!     }
//!     fn converged(&self) -> Option<Reason> {
//!         (self.root * self.root - 2.0).abs().lt(&1e-12).then_some(Reason::Tolerance)
//!     }
//!     fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, Self::Error> {
//!         self.root = 0.5 * (self.root + 2.0 / self.root);
//!         self.step += 1;
//!         Ok(Step::Taken)
//!     }
//! }
//!
//! let mut heron = Heron { step: 0, root: 2.0 };
//! let limits = Limits { steps: 100, time: None };
//! let (reason, progress) = drive(&mut heron, limits, Clock::start(), &mut |_, _| Signal::Continue).unwrap();
//! assert_eq!((reason, progress.step), (Reason::Tolerance, 5));
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How a fit is getting on. What a method does not know is left as it is in [`Progress::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps taken, those of earlier runs included.
    pub step: usize,
    /// Steps planned at most.
    pub steps_planned: usize,
    /// Time spent, earlier runs included.
    pub elapsed: Duration,
    /// The objective: what is minimised, a loss, or a bound.
    pub value: Option<f64>,
    /// A norm of the gradient; which one, the method says.
    pub gradient_norm: Option<f64>,
    /// The largest relative residual of a linear system's right-hand sides.
    pub residual: Option<f64>,
    /// The step size.
    pub step_size: Option<f64>,
    /// How often the method began anew with a smaller step.
    pub restarts: usize,
    /// Evaluations of the objective, or steps of the solver behind it.
    pub evaluations: usize,
    /// Where the work has several parts, one after the other (starts, neighbourhoods, epochs): which one, from 0.
    pub part: usize,
    /// How many parts there are at most.
    pub parts: usize,
}

/// An observer's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Go on.
    Continue,
    /// Stop after this step; the result is what there is.
    Stop,
}

/// Sees every step, with what the method has to show there (a state that can be saved, say), and may stop the run.
pub type Observer<'a, V> = dyn FnMut(&Progress, &V) -> Signal + 'a;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The gradient is within its tolerance.
    Gradient,
    /// The value no longer improves.
    Value,
    /// Every right-hand side is within the tolerance.
    Tolerance,
    /// What is left is at the limit of the precision.
    Precision,
    /// The validation loss has not improved for as long as patience allows.
    Patience,
    /// The steps are used up.
    Steps,
    /// The time is used up.
    Time,
    /// What is minimised stopped being a number; what there is are parameters from before.
    Diverged,
    /// The observer asked for it (Ctrl-C, say).
    Interrupted,
}

impl Reason {
    /// All of them.
    const ALL: [Self; 9] = [
        Self::Gradient,
        Self::Value,
        Self::Tolerance,
        Self::Precision,
        Self::Patience,
        Self::Steps,
        Self::Time,
        Self::Diverged,
        Self::Interrupted,
    ];
}

impl fmt::Display for Reason {
    /// The name that files have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(name: &str) -> Result<Self, UnknownReason> {
        Self::ALL.into_iter().find(|r| r.to_string() == name).ok_or_else(|| UnknownReason(name.into()))
    }
}

/// A name that no [`Reason`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no reason for which a run ends")]
pub struct UnknownReason(pub String);

/// Most steps and most time of a run, earlier runs included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most steps.
    pub steps: usize,
    /// Most wall-clock time.
    pub time: Option<Duration>,
}

/// The time that a run has taken, earlier runs included.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begun: Instant,
    before: Duration,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self::after(0.0)
    }

    /// Starts now, after `seconds` of earlier runs; numbers that are no time count as none.
    pub fn after(seconds: f64) -> Self {
        let before = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Self { begun: Instant::now(), before }
    }

    /// All time so far.
    pub fn elapsed(&self) -> Duration {
        self.before + self.begun.elapsed()
    }
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was taken.
    Taken,
    /// It showed that the method diverges: [`Iteration::restart`] is next.
    Diverged,
    /// There was none to take, or it was not finished: the run ends.
    Ended(Reason),
}

/// What is driven: one step of a method, and what is known after it.
pub trait Iteration {
    /// What can go wrong.
    type Error;

    /// What is known now; the driver adds plan and time.
    fn progress(&self) -> Progress;

    /// Why there is nothing more to do, if so; asked before every step, and before the limits.
    fn converged(&self) -> Option<Reason> {
        None
    }

    /// Whether the last step has left something to do, for which the next is asked whatever has converged and whatever the limits say.
    fn unfinished(&self) -> bool {
        false
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Whatever ends the run without a result.
    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, Self::Error>;

    /// Begins anew after [`Step::Diverged`], with less of a step. Methods that never diverge need none.
    ///
    /// # Errors
    /// When there is no smaller step to try.
    fn restart(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The run that a step belongs to.
pub struct Run<'a, I: ?Sized> {
    limits: Limits,
    clock: Clock,
    observer: &'a mut dyn FnMut(&Progress, &I) -> Signal,
}

impl<I: Iteration + ?Sized> Run<'_, I> {
    /// Steps planned at most.
    pub fn steps_planned(&self) -> usize {
        self.limits.steps
    }

    /// Time so far, earlier runs included.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The share of what the run may take that is taken before this step (counted from 0): of its steps or of its time, whichever is nearer to its end.
    pub fn share(&self, step: usize) -> f64 {
        let of_steps = step as f64 / self.limits.steps.max(1) as f64;
        let of_time = self
            .limits
            .time
            .map_or(0.0, |limit| self.elapsed().as_secs_f64() / limit.as_secs_f64().max(f64::MIN_POSITIVE));
        of_steps.max(of_time).clamp(0.0, 1.0)
    }

    /// Tells the observer how things stand: within a step that has steps of its own. Steps that are taken are told by the driver.
    pub fn tell(&mut self, iteration: &I) -> Signal {
        let progress = self.progress(iteration);
        (self.observer)(&progress, iteration)
    }

    fn progress(&self, iteration: &I) -> Progress {
        Progress { steps_planned: self.limits.steps, elapsed: self.elapsed(), ..iteration.progress() }
    }

    /// Why no further step is taken, if so.
    fn ends(&self, iteration: &I) -> Option<Reason> {
        if iteration.unfinished() {
            return None;
        }
        iteration.converged().or_else(|| {
            if iteration.progress().step >= self.limits.steps {
                Some(Reason::Steps)
            } else {
                self.limits.time.is_some_and(|limit| self.elapsed() >= limit).then_some(Reason::Time)
            }
        })
    }
}

/// Takes steps until the iteration has converged, a limit is reached or the observer has seen enough; says why it ended and how things stand then.
/// A method that diverges begins anew as long as it can.
///
/// # Errors
/// Those of the iteration.
pub fn drive<I: Iteration>(
    iteration: &mut I,
    limits: Limits,
    clock: Clock,
    observer: &mut dyn FnMut(&Progress, &I) -> Signal,
) -> Result<(Reason, Progress), I::Error> {
    let mut run = Run { limits, clock, observer };
    loop {
        if let Some(reason) = run.ends(iteration) {
            return Ok((reason, run.progress(iteration)));
        }
        match iteration.step(&mut run)? {
            Step::Ended(reason) => return Ok((reason, run.progress(iteration))),
            Step::Diverged => iteration.restart()?,
            Step::Taken => {
                let progress = run.progress(iteration);
                let Progress { step, value, gradient_norm, residual, step_size, .. } = progress;
                tracing::debug!(step, value, gradient_norm, residual, step_size, "step");
                if (run.observer)(&progress, iteration) == Signal::Stop {
                    return Ok((Reason::Interrupted, progress));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts down; diverges while its step is too long.
    struct Countdown {
        left: usize,
        step: usize,
        size: f64,
        restarts: usize,
    }

    impl Iteration for Countdown {
        type Error = &'static str;

        fn progress(&self) -> Progress {
            Progress {
                step: self.step,
                step_size: Some(self.size),
                restarts: self.restarts,
                ..Progress::default()
            }
        }
        fn converged(&self) -> Option<Reason> {
            (self.left == 0).then_some(Reason::Value)
        }
        fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, Self::Error> {
            if self.size > 1.0 {
                return Ok(Step::Diverged);
            }
            (self.left, self.step) = (self.left - 1, self.step + 1);
            Ok(Step::Taken)
        }
        fn restart(&mut self) -> Result<(), Self::Error> {
            if self.restarts == 3 {
                return Err("not even a small step");
            }
            (self.step, self.size, self.restarts) = (0, 0.5 * self.size, self.restarts + 1);
            Ok(())
        }
    }

    fn countdown(size: f64) -> Countdown {
        Countdown { left: 5, step: 0, size, restarts: 0 }
    }

    #[test]
    fn convergence_comes_before_limits_and_limits_before_steps() {
        let run = |steps, time, clock| {
            drive(&mut countdown(1.0), Limits { steps, time }, clock, &mut |_, _| Signal::Continue).unwrap()
        };
        let (reason, progress) = run(5, None, Clock::start());
        assert_eq!((reason, progress.step, progress.steps_planned), (Reason::Value, 5, 5));
        assert_eq!(run(3, None, Clock::start()).0, Reason::Steps);
        let hour = Some(Duration::from_secs(3600));
        let (reason, progress) = run(5, hour, Clock::after(3600.0));
        assert_eq!((reason, progress.step), (Reason::Time, 0));
        assert!(progress.elapsed >= Duration::from_secs(3600));
        assert!(Clock::after(f64::NAN).elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn divergence_restarts_and_the_observer_stops() {
        let limits = Limits { steps: 9, time: None };
        let mut seen = Vec::new();
        let (reason, progress) = drive(&mut countdown(4.0), limits, Clock::start(), &mut |progress, own| {
            seen.push((progress.step, own.left));
            if progress.step == 2 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        assert_eq!((reason, progress.restarts, progress.step_size), (Reason::Interrupted, 2, Some(1.0)));
        assert_eq!(seen, [(1, 4), (2, 3)]);
        let hopeless =
            drive(&mut countdown(64.0), limits, Clock::start(), &mut |_, _| Signal::Continue).unwrap_err();
        assert_eq!(hopeless, "not even a small step");
    }

    #[test]
    fn reasons_are_read_as_they_are_written() {
        for reason in Reason::ALL {
            assert_eq!(reason.to_string().parse(), Ok(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.to_string());
        }
        assert!("steady predictions".parse::<Reason>().is_err());
    }
}
