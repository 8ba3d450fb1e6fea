//! Plots and the self-contained HTML report.
