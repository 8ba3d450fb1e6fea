//! All command lines that texts recommend, by what they are for.
//!
//! A test of the command line reads every one with the grammar of its commands. What no grammar has is named there.

use crate::Fix;

/// Commands other than a fit that read tables.
const READERS: &str =
    "fit --network NET, train, forward, predict, evaluate, stream, label start, optimize start";
/// A fit around a network.
const NETWORK: &str = "fit --network NET";
/// Commands that meet missing cells under the columns of a fit.
const WITH_SCHEMA: &str = "predict, evaluate, stream, label start";

// Any command.
/// More memory.
pub const MEMORY: Fix = Fix::new("fit", "--memory GB").example("--memory 4").also("fit --network NET, predict, evaluate, compress, train, forward, inspect, stream, label start, label ask, optimize start, tomography project, tomography reconstruct, tomography uncertainty, tomography design");
/// Replace what is there.
pub const FORCE: Fix = Fix::new("fit", "--force").also("fit --network NET, predict, evaluate, compress, train, forward, inspect, label start, label export, optimize start, tomography project, tomography reconstruct, tomography uncertainty");
/// What a file of tensors belongs to.
pub const ARCHITECTURE: Fix = Fix::new("inspect", "--architecture")
    .example("--architecture net.toml")
    .also("fit --network NET, forward");

// Reading tables.
/// Leave a column out, whose name follows.
pub const EXCLUDE: Fix = Fix::new("fit", "--exclude").example("--exclude a").also(READERS);
/// Leave a column out.
pub const EXCLUDE_COLUMN: Fix = Fix::new("fit", "--exclude NAME").example("--exclude a").also(READERS);
/// Take columns as categories.
pub const CATEGORIES: Fix = Fix::new("fit", "--categories").example("--categories a").also(READERS);
/// Take a column as categories.
pub const CATEGORIES_COLUMN: Fix =
    Fix::new("fit", "--categories NAME").example("--categories a").also(READERS);
/// New rows are of other groups; the name of their column follows.
pub const GROUPS: Fix = Fix::new("fit", "--groups").example("--groups a");
/// New rows are newer than all others; the name of the column of times follows.
pub const TIME: Fix = Fix::new("fit", "--time").example("--time a");
/// Dates begin with the day.
pub const DAY_FIRST: Fix = Fix::new("fit", "--date-order day-first").also("evaluate, stream, label start");
/// Dates begin with the month.
pub const MONTH_FIRST: Fix =
    Fix::new("fit", "--date-order month-first").also("evaluate, stream, label start");
/// Drop rows with missing cells.
pub const MISSING_DROP: Fix = Fix::new("fit", "--missing drop").also(WITH_SCHEMA);
/// Fill missing cells in.
pub const MISSING_MEAN: Fix = Fix::new("fit", "--missing mean").also(WITH_SCHEMA);
/// Tell the model where cells are missing.
pub const MISSING_INDICATOR: Fix = Fix::new("fit", "--missing indicator").also(WITH_SCHEMA);
/// Leave out rows without a target.
pub const MISSING_TARGET: Fix = Fix::new("fit", "--missing-target leave-out");
/// Predict rows with new categories.
pub const UNSEEN_OTHER: Fix = Fix::new("predict", "--unseen other").also("evaluate, stream");
/// Numbers with a decimal comma.
pub const DECIMAL_COMMA: Fix = Fix::new("fit", "--set text.decimal=,").also(READERS);
/// Numbers with a decimal point.
pub const DECIMAL_POINT: Fix = Fix::new("fit", "--set text.decimal=.").also(READERS);
/// The encoding of a text.
pub const ENCODING: Fix =
    Fix::new("fit", "--set text.encoding").example("--set text.encoding=windows-1252").also(READERS);
/// An encoding that is frequent.
pub const ENCODING_WINDOWS: Fix = Fix::new("fit", "--set text.encoding=windows-1252").also(READERS);
/// Choose the features.
pub const FEATURES: Fix = Fix::new("fit", "--features")
    .example("--features a")
    .also("fit --network NET, train, label start, optimize start");
/// Read a table part by part.
pub const STREAM: Fix = Fix::new("fit", "--stream").also("predict");
/// Read a table whole.
pub const STREAM_FALSE: Fix = Fix::new("fit", "--stream false");

// Rows to score or to judge by.
/// Rows of the training to judge by.
pub const HELD_BACK: Fix = Fix::new("fit", "--held-back").example("--held-back 50");
/// Score each row by a fit to others.
pub const FOLDS_10: Fix = Fix::new("fit", "--folds 10");
/// Folds to score.
pub const FOLDS: Fix = Fix::new("fit", "--folds").example("--folds 5");
/// Folds that are drawn.
pub const FOLDS_COUNT: Fix = Fix::new("fit", "--folds COUNT").example("--folds 5");
/// The fold that is scored.
pub const FOLD: Fix = Fix::new("evaluate", "--fold").example("--folds folds.csv --fold 1").also("fit");
/// Score a fifth of the rows.
pub const TEST_FRACTION_FIFTH: Fix = Fix::new("fit", "--test-fraction 0.2");
/// Score a share of the rows.
pub const TEST_FRACTION: Fix = Fix::new("fit", "--test-fraction").example("--test-fraction 0.2");
/// Recalibrate where that helps.
pub const CALIBRATE_AUTO: Fix = Fix::new("fit", "--calibrate auto").also(NETWORK);
/// Recalibrate by what rows have shown.
pub const CALIBRATE_CONFORMAL: Fix = Fix::new("fit", "--calibrate conformal").also(NETWORK);
/// Do not recalibrate.
pub const CALIBRATE_NONE: Fix = Fix::new("fit", "--calibrate none").also(NETWORK);
/// Intervals of an ensemble.
pub const CALIBRATED_FOLDER: Fix = Fix::new(NETWORK, "--calibrate conformal --validation-data FILE")
    .example("--calibrate conformal --validation-data unseen.csv");
/// Rows that the network has not seen.
pub const VALIDATION_DATA: Fix =
    Fix::new(NETWORK, "--validation-data").example("--validation-data unseen.csv");
/// Set rows aside in training.
pub const TRAIN_VALIDATION: Fix =
    Fix::new("train", "--validation-fraction F").example("--validation-fraction 0.1");
/// Tune on rows that the network has seen.
pub const SEEN_ROWS: Fix = Fix::new(NETWORK, "--tune validation --allow-seen-rows");
/// Score rows that the network has seen.
pub const ALLOW_SEEN_ROWS: Fix = Fix::new(NETWORK, "--allow-seen-rows");

// What a process learns: target, likelihood, noise, kernel.
/// Take targets as numbers.
pub const LIKELIHOOD_GAUSSIAN: Fix = Fix::new("fit", "--likelihood gaussian");
/// Take targets as one of two labels.
pub const LIKELIHOOD_BERNOULLI: Fix = Fix::new("fit", "--likelihood bernoulli");
/// Take targets as classes.
pub const LIKELIHOOD_CATEGORICAL: Fix = Fix::new("fit", "--likelihood categorical");
/// Learn heavy tails.
pub const LIKELIHOOD_STUDENT_T: Fix = Fix::new("fit", "--likelihood student-t");
/// Another map of the target.
pub const TRANSFORM: Fix = Fix::new("fit", "--target-transform").example("--target-transform log");
/// Learn the logarithm of the target.
pub const TRANSFORM_LOG: Fix = Fix::new("fit", "--target-transform log");
/// Learn a power of the target.
pub const TRANSFORM_YEO_JOHNSON: Fix = Fix::new("fit", "--target-transform yeo-johnson");
/// Learn the target as it is.
pub const TRANSFORM_NONE: Fix = Fix::new("fit", "--target-transform none");
/// Learn noise that differs from place to place.
pub const NOISE_HETEROSCEDASTIC: Fix = Fix::new("fit", "--noise heteroscedastic");
/// A lower noise floor.
pub const NOISE_FLOOR: Fix = Fix::new("fit", "--set prior.noise-floor").example("--set prior.noise-floor=0");
/// Another kernel.
pub const KERNEL: Fix = Fix::new("fit", "--kernel").example("--kernel matern32");
/// No prior mean.
pub const MEAN_ZERO: Fix = Fix::new("fit", "--set prior.mean=zero");
/// Bound a hyperparameter.
pub const BOUND: Fix = Fix::new("fit", "--set bound").example("--set bound=noise_variance=1e-3..0.1");
/// Where events would have been seen.
pub const WINDOW: Fix =
    Fix::new("fit", "--window COLUMN=LOW:HIGH,...").example("--likelihood cox --window a=0:1,b=0:1");
/// Several targets.
pub const SEVERAL_TARGETS: Fix = Fix::new("fit", "--target A,B").example("--target a,b");
/// Gaussian pseudo-targets for labels.
pub const INFERENCE_GAUSSIANISED: Fix = Fix::new("fit", "--inference gaussianised");
/// Laplace's approximation for labels.
pub const INFERENCE_LAPLACE: Fix = Fix::new("fit", "--inference laplace");
/// A variational bound for labels.
pub const INFERENCE_VARIATIONAL: Fix = Fix::new("fit", "--inference variational");
/// Another pseudo-count of pseudo-targets.
pub const PSEUDO_COUNT: Fix = Fix::new("fit", "--pseudo-count").example("--pseudo-count 0.1");

// Methods of processes and how far they go.
/// The exact process.
pub const EXACT: Fix = Fix::new("fit", "--method exact");
/// Inducing points in closed form.
pub const SGPR: Fix = Fix::new("fit", "--method sgpr");
/// Inducing points by batches.
pub const SVGP: Fix = Fix::new("fit", "--method svgp");
/// A solver for large tables.
pub const SDD: Fix = Fix::new("fit", "--method sdd");
/// A solver whose models can be compressed.
pub const SAP: Fix = Fix::new("fit", "--method sap");
/// Learned features.
pub const DBK: Fix = Fix::new("fit", "--method dbk");
/// Learned features with inducing points.
pub const DKL: Fix = Fix::new("fit", "--method dkl");
/// Learned features with inducing points, by batches.
pub const SVDKL: Fix = Fix::new("fit", "--method svdkl");
/// The exact evidence behind a network.
pub const DKL_DENSE: Fix = Fix::new("fit", "--method dkl --set dense");
/// The last layer of a network as a process.
pub const KERNEL_LINEAR_SGPR: Fix = Fix::new("fit", "--kernel linear --method sgpr");
/// One target, such that rows can follow.
pub const TARGET_SGPR: Fix =
    Fix::new("fit", "--target NAME --method sgpr").example("--target y --method sgpr");
/// More time.
pub const TIME_BUDGET: Fix = Fix::new("fit", "--time-budget").example("--time-budget 5m");
/// More steps of a solver.
pub const ITERATIONS: Fix = Fix::new("fit", "--set iterations").example("--set iterations=1000");
/// More steps of a search.
pub const STEPS: Fix = Fix::new("fit", "--set steps").example("--set steps=200");
/// A smaller learning rate.
pub const LEARNING_RATE: Fix = Fix::new("fit", "--set learning-rate").example("--set learning-rate=0.01");
/// Solve in double precision.
pub const PRECISION_F64: Fix = Fix::new("fit", "--set precision=f64");
/// More samples that the model keeps; their number follows.
pub const FIT_SAMPLES: Fix = Fix::new("fit", "--set samples").example("--set samples=10");
/// A number of inducing points.
pub const INDUCING: Fix = Fix::new("fit", "--set inducing").example("--set inducing=100");
/// All functions have the same inducing points.
pub const FIXED_INDUCING: Fix = Fix::new("fit", "--set fixed-inducing");
/// Inducing points of learned features.
pub const RANK: Fix = Fix::new("fit", "--set rank").example("--set rank=100");
/// Rows that a prior is learned from.
pub const PRIOR_ROWS: Fix = Fix::new("fit", "--set prior-rows").example("--set prior-rows=1000");
/// Learn the prior on its inducing points.
pub const PRIOR_ROWS_NONE: Fix = Fix::new("fit", "--set prior-rows=0");
/// Search on blocks, then on all rows.
pub const SEARCH_REFINED: Fix = Fix::new("fit", "--set hyperparameter-search=refined");
/// Search on all rows by estimated gradients.
pub const SEARCH_STOCHASTIC: Fix = Fix::new("fit", "--set hyperparameter-search=stochastic");
/// Begin anew.
pub const FRESH: Fix = Fix::new("fit", "--fresh");
/// Another checkpoint.
pub const CHECKPOINT: Fix =
    Fix::new("fit", "--checkpoint").example("--checkpoint other.checkpoint").also("fit --network NET, train");
/// Maximise the evidence.
pub const OBJECTIVE_EVIDENCE: Fix = Fix::new("fit", "--set objective=evidence");
/// Projected generalised variational inference.
pub const OBJECTIVE_PGVI: Fix = Fix::new("fit", "--set objective=pgvi");
/// Gaussian Wasserstein inference.
pub const OBJECTIVE_GWI: Fix = Fix::new("fit", "--set objective=gwi");
/// Another risk under the same regulariser.
pub const PGVI_KL: Fix = Fix::new("fit", "--set objective=pgvi --set regulariser=kl");
/// Correct training and predictions.
pub const CORRECTION_FULL: Fix = Fix::new("fit", "--set correction=full");
/// Correct training alone.
pub const CORRECTION_TRAINING: Fix = Fix::new("fit", "--set correction=training");
/// The network of the features.
pub const BASIS: Fix = Fix::new("fit", "--set basis").example("--set basis=net.safetensors");
/// Keep that network as it is.
pub const FREEZE_BASIS: Fix = Fix::new("fit", "--set freeze-basis");
/// The network of the mean.
pub const MEAN_NETWORK: Fix =
    Fix::new("fit", "--set mean-network").example("--set mean-network=net.safetensors");
/// A full covariance of weights.
pub const VARIATIONAL_CHOLESKY: Fix = Fix::new("fit", "--set variational-kernel=cholesky");
/// Independent weights.
pub const VARIATIONAL_DIAGONAL: Fix = Fix::new("fit", "--set variational-kernel=diagonal");
/// A covariance of weights by its logarithm.
pub const VARIATIONAL_LOG: Fix = Fix::new("fit", "--set variational-kernel=log");
/// A mean by inducing points.
pub const VARIATIONAL_MEAN_INDUCING: Fix = Fix::new("fit", "--set variational-mean=inducing");
/// Learn hyperparameters by the evidence.
pub const RISK_EVIDENCE: Fix = Fix::new("fit", "--set regulariser-risk=evidence");

// Predictions.
/// Fewer rows.
pub const LIMIT: Fix = Fix::new("predict", "--limit").example("--limit 10").also("evaluate");
/// Quantiles of predictions.
pub const QUANTILES: Fix = Fix::new("predict", "--quantiles").example("--quantiles 0.05,0.95");
/// The median of predictions.
pub const MEDIAN: Fix = Fix::new("predict", "--quantiles 0.5");
/// Only the most probable classes.
pub const TOP: Fix = Fix::new("predict", "--top K").example("--top 3");
/// Draws.
pub const SAMPLES: Fix = Fix::new("predict", "--samples").example("--samples 10");
/// An array of draws.
pub const SAMPLES_OUT: Fix =
    Fix::new("predict", "--samples-out FILE.npy").example("--samples 10 --samples-out draws.npy");
/// Draws in an array.
pub const SAMPLES_TO_FILE: Fix =
    Fix::new("predict", "--samples N --samples-out FILE.npy").example("--samples 10 --samples-out draws.npy");
/// Take inputs of another kind as they are.
pub const OTHER_INPUTS: Fix = Fix::new("predict", "--allow-other-inputs").also("evaluate");
/// Points that carry a compressed model.
pub const COMPRESS_INDUCING: Fix = Fix::new("compress", "--inducing").example("--inducing 500");

// Networks.
/// Labels in a file of their own.
pub const LABELS: Fix = Fix::new(NETWORK, "--labels").example("--labels labels.npy").also("train, evaluate");
/// The same, with the file.
pub const LABELS_FILE: Fix =
    Fix::new(NETWORK, "--labels FILE").example("--labels labels.npy").also("train, evaluate");
/// The column of labels.
pub const TARGET: Fix = Fix::new(NETWORK, "--target").example("--target y").also("train");
/// Names of classes, in the order of outputs.
pub const CLASS_NAMES: Fix = Fix::new(NETWORK, "--class-names").example("--class-names a,b");
/// The mean of each channel.
pub const MEAN: Fix = Fix::new(NETWORK, "--mean").example("--mean 0.5").also("train");
/// The standard deviation of each channel.
pub const STD: Fix = Fix::new(NETWORK, "--std").example("--std 0.2").also("train");
/// Learn how far each place scatters.
pub const LOSS_GAUSSIAN: Fix = Fix::new("train", "--loss gaussian");
/// Choose precisions by the evidence.
pub const TUNE_EVIDENCE: Fix = Fix::new(NETWORK, "--tune evidence");
/// Choose precisions on unseen rows.
pub const TUNE_VALIDATION: Fix = Fix::new(NETWORK, "--tune validation");
/// Choose precisions by MacKay's rule.
pub const TUNE_MACKAY: Fix = Fix::new(NETWORK, "--tune mackay");
/// Keep the precisions.
pub const TUNE_NONE: Fix = Fix::new(NETWORK, "--tune none");
/// Compare curvatures.
pub const CURVATURE_AUTO: Fix = Fix::new(NETWORK, "--method auto");
/// All covariances of weights.
pub const CURVATURE_FULL: Fix = Fix::new(NETWORK, "--method full");
/// Keep the trained weights as the mode.
pub const MODE_TRAINED: Fix = Fix::new(NETWORK, "--set mode=trained");
/// Hold the covariance between outputs.
pub const FREEZE_OUTPUTS: Fix = Fix::new(NETWORK, "--set freeze=outputs");
/// Record less often.
pub const TRAJECTORY_EVERY: Fix =
    Fix::new(NETWORK, "--set trajectory-every=N").example("--set trajectory-every=10");
/// More time for a network's error bars.
pub const SECONDS: Fix = Fix::new(NETWORK, "--set seconds").example("--set seconds=60");
/// Double precision.
pub const FLOAT64: Fix = Fix::new(NETWORK, "--float64");
/// Samples of weights.
pub const SPACE_WEIGHTS: Fix = Fix::new(NETWORK, "--set space=weights");
/// More samples of a network.
pub const NETWORK_SAMPLES: Fix = Fix::new(NETWORK, "--set samples").example("--set samples=10");
/// Go on.
pub const RESUME: Fix = Fix::new(NETWORK, "--resume").also("train");

// Streams, labels and searches.
/// Go on with a fitted model.
pub const STREAM_MODEL: Fix = Fix::new("stream", "--model MODEL").example("--model m.posterior");
/// Begin a stream with a target.
pub const STREAM_TARGET: Fix = Fix::new("stream", "--target COL").example("--target y");
/// Keep the noise as it was fitted.
pub const STREAM_NOISE_FIXED: Fix = Fix::new("stream", "--noise fixed");
/// Read a last line without its newline.
pub const LAST_LINE: Fix = Fix::new("stream", "--last-line complete");
/// Pass over rows that were read.
pub const FROM_START: Fix = Fix::new("stream", "--from start");
/// Take all rows as new.
pub const FROM_NEXT: Fix = Fix::new("stream", "--from next");
/// Names of columns that no header has.
pub const COLUMNS: Fix = Fix::new("stream", "--columns").example("--columns a,b,y");
/// Pass over rows that cannot be used.
pub const BAD_ROWS_SKIP: Fix = Fix::new("stream", "--bad-rows skip");
/// Fewer inducing points of a stream.
pub const INDUCING_POINTS: Fix = Fix::new("stream", "--inducing-points").example("--inducing-points 100");
/// Smaller batches of a stream.
pub const BATCH: Fix = Fix::new("stream", "--batch").example("--batch 10");
/// Replace an answer.
pub const REPLACE: Fix = Fix::new("label tell", "--replace");
/// Where the pool is now.
pub const POOL: Fix = Fix::new("label ask", "--pool FILE").example("--pool pool.csv").also("label export");

// Tomography.
/// A phantom that is a volume.
pub const PHANTOM_WALNUT: Fix = Fix::new("tomography project", "--phantom walnut");
/// The angles that were measured.
pub const MEASURED: Fix = Fix::new("tomography design", "--measured").example("--measured 0,40");
/// A few equidistant angles.
pub const MEASURED_ANGLES: Fix = Fix::new("tomography design", "--measured 0,40,80,120,160");
/// A network that explains a scan.
pub const DEEP_IMAGE_PRIOR: Fix = Fix::new("tomography reconstruct", "--method deep-image-prior");
/// Another weight of total variation.
pub const WEIGHT: Fix = Fix::new("tomography reconstruct", "--weight").example("--weight 0.1");
/// The network that explains the angles so far.
pub const DESIGN_NETWORK: Fix =
    Fix::new("tomography design", "--network").example("--network net.safetensors");
/// A prior of pictures that costs less.
pub const PRIOR_MATERN: Fix = Fix::new("tomography design", "--prior matern");
/// The cheapest prior of pictures.
pub const PRIOR_ISOTROPIC: Fix = Fix::new("tomography design", "--prior isotropic");
/// A prior by the network, for the choice of angles.
pub const DESIGN_G_PRIOR: Fix = Fix::new("tomography design", "--prior g-prior");
/// Fewer draws for the choice of angles.
pub const DESIGN_SAMPLES: Fix = Fix::new("tomography design", "--samples").example("--samples 100");
/// A prior that stores no Jacobian.
pub const G_PRIOR: Fix = Fix::new("tomography uncertainty", "--prior g-prior");
/// More steps of descent.
pub const DESCENT: Fix = Fix::new("tomography uncertainty", "--descent").example("--descent 500");
/// A larger preconditioner.
pub const SCAN_RANK: Fix = Fix::new("tomography uncertainty", "--rank").example("--rank 100");

// Whole command lines.
/// Fit anew.
pub const FIT: Fix = Fix::new("fit", "");
/// Score a model.
pub const EVALUATE: Fix = Fix::new("evaluate", "");
/// Features of a network.
pub const FORWARD: Fix = Fix::new("forward", "");
/// Outputs of a network as a table.
pub const FORWARD_TABLE: Fix = Fix::new("forward", "--output FILE.csv").example("--output y.csv");
/// Look at a model.
pub const INSPECT: Fix = Fix::new("inspect", "");
/// Ask for rows to label.
pub const LABEL_ASK: Fix = Fix::new("label ask", "");
/// Keep what is labelled.
pub const LABEL_EXPORT: Fix = Fix::new("label export", "");
/// Ask for points to try.
pub const OPTIMIZE_ASK: Fix = Fix::new("optimize ask", "");
/// Go on with a model row by row.
pub const STREAM_ON: Fix = Fix::new("stream", "--model").example("--model m.posterior");

/// All of them.
pub const ALL: &[Fix] = &[
    MEMORY,
    FORCE,
    ARCHITECTURE,
    EXCLUDE,
    EXCLUDE_COLUMN,
    CATEGORIES,
    CATEGORIES_COLUMN,
    GROUPS,
    TIME,
    DAY_FIRST,
    MONTH_FIRST,
    MISSING_DROP,
    MISSING_MEAN,
    MISSING_INDICATOR,
    MISSING_TARGET,
    UNSEEN_OTHER,
    DECIMAL_COMMA,
    DECIMAL_POINT,
    ENCODING,
    ENCODING_WINDOWS,
    FEATURES,
    STREAM,
    STREAM_FALSE,
    HELD_BACK,
    FOLDS_10,
    FOLDS,
    FOLDS_COUNT,
    FOLD,
    TEST_FRACTION_FIFTH,
    TEST_FRACTION,
    CALIBRATE_AUTO,
    CALIBRATE_CONFORMAL,
    CALIBRATE_NONE,
    CALIBRATED_FOLDER,
    VALIDATION_DATA,
    TRAIN_VALIDATION,
    SEEN_ROWS,
    ALLOW_SEEN_ROWS,
    LIKELIHOOD_GAUSSIAN,
    LIKELIHOOD_BERNOULLI,
    LIKELIHOOD_CATEGORICAL,
    LIKELIHOOD_STUDENT_T,
    TRANSFORM,
    TRANSFORM_LOG,
    TRANSFORM_YEO_JOHNSON,
    TRANSFORM_NONE,
    NOISE_HETEROSCEDASTIC,
    NOISE_FLOOR,
    KERNEL,
    MEAN_ZERO,
    BOUND,
    WINDOW,
    SEVERAL_TARGETS,
    INFERENCE_GAUSSIANISED,
    INFERENCE_LAPLACE,
    INFERENCE_VARIATIONAL,
    PSEUDO_COUNT,
    EXACT,
    SGPR,
    SVGP,
    SDD,
    SAP,
    DBK,
    DKL,
    SVDKL,
    DKL_DENSE,
    KERNEL_LINEAR_SGPR,
    TARGET_SGPR,
    TIME_BUDGET,
    ITERATIONS,
    STEPS,
    LEARNING_RATE,
    PRECISION_F64,
    FIT_SAMPLES,
    INDUCING,
    FIXED_INDUCING,
    RANK,
    PRIOR_ROWS,
    PRIOR_ROWS_NONE,
    SEARCH_REFINED,
    SEARCH_STOCHASTIC,
    FRESH,
    CHECKPOINT,
    OBJECTIVE_EVIDENCE,
    OBJECTIVE_PGVI,
    OBJECTIVE_GWI,
    PGVI_KL,
    CORRECTION_FULL,
    CORRECTION_TRAINING,
    BASIS,
    FREEZE_BASIS,
    MEAN_NETWORK,
    VARIATIONAL_CHOLESKY,
    VARIATIONAL_DIAGONAL,
    VARIATIONAL_LOG,
    VARIATIONAL_MEAN_INDUCING,
    RISK_EVIDENCE,
    LIMIT,
    QUANTILES,
    MEDIAN,
    TOP,
    SAMPLES,
    SAMPLES_OUT,
    SAMPLES_TO_FILE,
    OTHER_INPUTS,
    COMPRESS_INDUCING,
    LABELS,
    LABELS_FILE,
    TARGET,
    CLASS_NAMES,
    MEAN,
    STD,
    LOSS_GAUSSIAN,
    TUNE_EVIDENCE,
    TUNE_VALIDATION,
    TUNE_MACKAY,
    TUNE_NONE,
    CURVATURE_AUTO,
    CURVATURE_FULL,
    MODE_TRAINED,
    FREEZE_OUTPUTS,
    TRAJECTORY_EVERY,
    SECONDS,
    FLOAT64,
    SPACE_WEIGHTS,
    NETWORK_SAMPLES,
    RESUME,
    STREAM_MODEL,
    STREAM_TARGET,
    STREAM_NOISE_FIXED,
    LAST_LINE,
    FROM_START,
    FROM_NEXT,
    COLUMNS,
    BAD_ROWS_SKIP,
    INDUCING_POINTS,
    BATCH,
    REPLACE,
    POOL,
    PHANTOM_WALNUT,
    MEASURED,
    MEASURED_ANGLES,
    DEEP_IMAGE_PRIOR,
    WEIGHT,
    DESIGN_NETWORK,
    PRIOR_MATERN,
    PRIOR_ISOTROPIC,
    DESIGN_G_PRIOR,
    DESIGN_SAMPLES,
    G_PRIOR,
    DESCENT,
    SCAN_RANK,
    FIT,
    EVALUATE,
    FORWARD,
    FORWARD_TABLE,
    INSPECT,
    LABEL_ASK,
    LABEL_EXPORT,
    OPTIMIZE_ASK,
    STREAM_ON,
];

#[cfg(test)]
mod tests {
    #[test]
    fn every_constant_is_in_the_list() {
        let source = include_str!("fixes.rs").split("#[cfg(test)]").next().unwrap();
        assert_eq!(source.matches(": Fix =").count(), super::ALL.len());
    }
}
