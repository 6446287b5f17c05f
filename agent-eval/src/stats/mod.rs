//! The statistics of evaluations, as pure functions: each says its formula and its source.
//!
//! All are total: a value that is undefined is `None`, and nothing is ever NaN. A rate is from 0 to 1. A *case* is
//! what is sampled; *trials* of one case are not independent of each other, so intervals of a suite come from its
//! cases.

#![expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^53")]
#![expect(clippy::float_cmp, reason = "only values that are exact by construction are compared for equality")]

mod agreement;
mod bootstrap;
mod compare;
mod curve;
mod passes;
mod special;
mod trajectory;

pub use agreement::{cohen_kappa, krippendorff_nominal, majority, rogan_gladen};
pub use bootstrap::{Bootstrap, bootstrap, bootstrap_exact, bootstrap_of};
pub use compare::{McNemar, PairedT, holm, mcnemar, minimum_detectable_drop, paired_t, sign_flip};
pub use curve::{FirstPass, LoopCurve, choose_cap, loop_curve, supported_gain};
pub use passes::{Interval, clustered_standard_error, pass_at_k, pass_hat_k, resampling_baseline, wilson};
pub use special::student_quantile;
pub use trajectory::{Draft, classify_drafts, lcs_f1};
