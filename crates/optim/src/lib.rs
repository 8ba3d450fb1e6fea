//! What minimises: Adam, L-BFGS, schedules, early stopping, transforms, the one loop.
