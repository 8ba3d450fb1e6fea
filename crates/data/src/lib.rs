//! Reading tables, splitting and standardising them, synthetic problems.
