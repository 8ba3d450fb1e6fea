//! What members say about several examples together.

use super::EnsembleModel;
use crate::laplace::{LaplaceModel, joint_log_likelihoods};
use crate::{JointRow, ModelData, ModelError, Predicted, Question};
use posterior_laplace::LaplaceError;
use posterior_linalg::random::Streams;
use posterior_metrics::DyadicGroups;
use posterior_notes::fixes::MEMORY;

impl EnsembleModel {
    /// The question that member `k` is asked for `samples` draws, each member by a seed of its own.
    fn asked(&self, question: &Question, k: usize, samples: usize) -> Question {
        let seed = Streams::new(question.seed).child("models/ensemble", k as u64).seed();
        Question { samples, seed, ..question.clone() }
    }

    /// The function of a network alone at all examples, in the units of draws.
    fn function(&self, member: &LaplaceModel, data: &ModelData) -> Result<Vec<f64>, ModelError> {
        let plain = member.predict_plain(data)?;
        Ok(match (plain.outputs, plain.predicted) {
            (1, Predicted::Moments { .. }) => {
                let (centre, scale) = member.header().data.target_scale();
                plain.latent_mean.iter().map(|f| centre + scale * f).collect()
            }
            _ => plain.latent_mean,
        })
    }

    /// Functions drawn from the members in turn, `[samples, examples, outputs]`: draw `k` is of member `k mod M`.
    pub(super) fn draws(&self, data: &ModelData, question: &Question) -> Result<Vec<f64>, ModelError> {
        let (count, members) = (question.samples, self.members.len());
        let outputs: usize = self.first().graph().output_shape().iter().product();
        let each = data.len() * outputs;
        check_memory(
            "functions",
            (count as u64).saturating_mul(each as u64).saturating_mul(32),
            question.memory,
        )?;
        let mut out = vec![0.0; count * each];
        for (k, member) in self.members.iter().enumerate() {
            let own = (count + members - 1 - k) / members;
            if own == 0 {
                continue;
            }
            let drawn = match self.plain {
                true => self.function(member, data)?.repeat(own),
                false => {
                    let asked = self.asked(question, k, own);
                    member.function_samples(data, own, asked.seed, asked.memory)?
                }
            };
            for (i, draw) in drawn.chunks_exact(each.max(1)).enumerate() {
                let place = (i * members + k) * each;
                out[place..place + each].copy_from_slice(draw);
            }
        }
        Ok(out)
    }

    /// The covariance of all outputs of all examples under the mixture, row after row: the mean of the members' covariances, and that of their functions' means.
    pub(super) fn joint_covariance(&self, data: &ModelData, memory: u64) -> Result<Vec<f64>, ModelError> {
        let outputs: usize = self.first().graph().output_shape().iter().product();
        let (n, members) = (data.len() * outputs, self.members.len() as f64);
        check_memory("the joint covariance", (n as u64).saturating_mul(n as u64).saturating_mul(32), memory)?;
        let functions: Vec<Vec<f64>> =
            self.members.iter().map(|m| self.function(m, data)).collect::<Result<_, _>>()?;
        let mean = |i: usize| functions.iter().map(|f| f[i]).sum::<f64>() / members;
        let mean: Vec<f64> = (0..n).map(mean).collect();
        let mut out = vec![0.0; n * n];
        for (member, function) in self.members.iter().zip(&functions) {
            let apart: Vec<f64> = function.iter().zip(&mean).map(|(f, m)| f - m).collect();
            for (i, row) in out.chunks_exact_mut(n.max(1)).enumerate() {
                row.iter_mut().zip(&apart).for_each(|(v, d)| *v += apart[i] * d / members);
            }
            if !self.plain {
                let covariance = member.joint_covariance(data, memory)?;
                for (i, row) in out.chunks_exact_mut(n.max(1)).enumerate() {
                    row.iter_mut().enumerate().for_each(|(j, v)| *v += covariance[(i, j)] / members);
                }
            }
        }
        Ok(out)
    }

    /// Joint scores: the functions of all members are the functions of the mixture. A plain network is one function; of networks with error bars each is asked for the question's number of draws, so that all
    /// weigh the same.
    pub(super) fn joint(&self, data: &ModelData, question: &Question) -> Result<Vec<JointRow>, ModelError> {
        let mut table = Vec::new();
        for (k, member) in self.members.iter().enumerate() {
            match self.plain {
                true => table.extend(densities(member, data)?),
                false => {
                    table.extend(joint_log_likelihoods(
                        member,
                        data,
                        &self.asked(question, k, question.samples),
                    )?);
                }
            }
        }
        let plain = densities(self.first(), data)?;
        let row = |&points: &usize| {
            let groups = DyadicGroups::new(points, question.seed);
            let n = data.len();
            Ok(JointRow { points, model: groups.score(&table, n)?, plain: groups.score(&plain, n)? })
        };
        question.joint_points.iter().map(row).collect()
    }
}

/// Log densities of the truths under the network alone.
fn densities(member: &LaplaceModel, data: &ModelData) -> Result<Vec<f64>, ModelError> {
    member.predict_plain(data)?.log_density.ok_or_else(|| crate::laplace::no_truths(data))
}

fn check_memory(what: &str, needed: u64, allowed: u64) -> Result<(), ModelError> {
    if needed <= allowed {
        return Ok(());
    }
    let remedy = format!("ask for fewer inputs or samples at a time, or allow more ({MEMORY})");
    Err(LaplaceError::Memory { what: format!("{what} of an ensemble"), needed, allowed, remedy }.into())
}
