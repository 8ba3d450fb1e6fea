//! A dictionary for those who meet these words for the first time.

/// Word and meaning, in the order in which a reader of the report meets them.
pub(crate) const WORDS: &[(&str, &str)] = &[
    (
        "Prediction",
        "Here never a single number but a bell curve: a mean (the best guess) and a standard deviation (how far off it may be).",
    ),
    (
        "Held-out rows",
        "Rows of the table that the model did not see while it was fitted. Only they tell how it will do on new data.",
    ),
    (
        "95 % interval",
        "The mean plus and minus 1.96 standard deviations. If the model is honest, the truth lies inside 95 times out of 100.",
    ),
    (
        "Coverage",
        "The share of truths that lie inside their intervals. It should equal the probability that the intervals promise: higher is wasteful, lower is overconfident.",
    ),
    (
        "Calibration",
        "Agreement of promised and kept coverage for intervals of every probability, not only 95 %.",
    ),
    (
        "RMSE",
        "Root mean squared error: the typical distance of the best guess from the truth, in units of the target. Lower is better.",
    ),
    ("MAE", "Mean absolute error: the same with less weight on the largest errors. Lower is better."),
    (
        "NLL",
        "Negative log predictive density: small if the model gave a high density to what happened. Punishes confident mistakes hard. Lower is better, and it may be negative.",
    ),
    (
        "Accuracy",
        "The share of rows whose most probable class is the true one. It does not see how sure the model was.",
    ),
    (
        "Brier score",
        "The mean squared distance between the predicted probabilities and what happened (1 for the true class, 0 for the others). Between 0 and 2; lower is better.",
    ),
    (
        "Confidence",
        "The probability that a model gives to the class it predicts. Among all predictions made with 80 % confidence, 80 % should be right.",
    ),
    (
        "ECE",
        "Expected calibration error: how far confidence and accuracy are apart, averaged over groups of predictions of similar confidence. Lower is better.",
    ),
    (
        "AUC",
        "Area under the ROC curve: the probability that a row of a class is given more probability of it than a row of another. 1 is perfect, 0.5 is guessing; it does not see whether the probabilities are right, only their order.",
    ),
    (
        "Confusion matrix",
        "How often each true class (a row) was predicted as each class (a column). What stands off the diagonal is wrong.",
    ),
    (
        "Entropy",
        "How undecided a prediction is, in nats: 0 if one class has all the probability, the logarithm of the number of classes if all have the same.",
    ),
    (
        "Removable entropy",
        "The part of a prediction's entropy that more data would remove, because the model does not know the function there; the rest is that the classes themselves overlap.",
    ),
    (
        "Out-of-distribution AUC",
        "The probability that a strange input gets a more undecided prediction than a familiar one. 1 is perfect, 0.5 is guessing.",
    ),
    (
        "Joint log-likelihood",
        "The logarithm of the probability that a model gives to several labels at once. Unlike scores of one label at a time it rewards a model that knows which of its errors come together. Higher is better.",
    ),
    (
        "CRPS",
        "Continuous ranked probability score: the distance between the predicted bell curve and the truth, in units of the target. For a prediction without uncertainty it is the absolute error. Lower is better.",
    ),
    (
        "CQM",
        "Centred quantile metric: the area between the calibration curve and its diagonal. 0 is perfect, 0.5 the worst.",
    ),
    (
        "Standardised",
        "Measured in standard deviations of the training targets, so that datasets can be compared. A standardised RMSE of 1 is what guessing the mean achieves.",
    ),
    (
        "Standardised residual",
        "The error divided by the predicted standard deviation. Values between -2 and 2 are ordinary.",
    ),
    (
        "Gaussian process",
        "A probability distribution over functions: any number of points on the function have a joint bell curve. Conditioning it on data gives predictions with error bars.",
    ),
    ("Kernel", "The rule for how strongly the function's values at two inputs are expected to agree."),
    (
        "Lengthscale",
        "How far one has to go along a feature before the function's values have little to do with each other. Long: smooth or irrelevant; short: changes quickly.",
    ),
    (
        "Noise",
        "The scatter of observations around the function, which no amount of data removes from the prediction of a single observation.",
    ),
    (
        "Evidence",
        "The probability of the training data under the model. Hyperparameters are chosen to make it large.",
    ),
    (
        "Jitter",
        "A tiny number added to the diagonal of a matrix so that it can be factorised in floating-point arithmetic. Reported when it was needed.",
    ),
];
