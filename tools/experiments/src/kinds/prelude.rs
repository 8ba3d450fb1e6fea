//! What every kind is made of: settings that are checked, what it runs in, and numbers, tables and pictures for the report.

pub(in crate::kinds) use super::Checked;
pub(in crate::kinds) use super::parts::{by_step, each_once, made, positive, root_mean_squares, through};
pub(in crate::kinds) use crate::context::Context;
pub(in crate::kinds) use crate::error::{ExperimentError, Result, refused};
pub(in crate::kinds) use crate::gaussian::check_names;
pub(in crate::kinds) use crate::measured::{Measured, NumberTable};
pub(in crate::kinds) use crate::numbers::{Quantity, put, put_all, shown_columns};
pub(in crate::kinds) use crate::toy::mean;
pub(in crate::kinds) use faer::{Mat, MatRef};
pub(in crate::kinds) use posterior_linalg::random::Streams;
pub(in crate::kinds) use posterior_report::{Curves, Item, Line, Note, SummaryRow};
pub(in crate::kinds) use serde::{Deserialize, Serialize};
pub(in crate::kinds) use serde_json::{Map, Value, json};
