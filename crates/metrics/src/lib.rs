//! Proper scores and calibration.
