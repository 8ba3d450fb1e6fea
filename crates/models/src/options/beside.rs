//! What a setting needs of others: declared next to the settings, checked in `grammar`.

/// A setting, by its id, and its values.
pub(super) type Needed = (&'static str, &'static [&'static str]);

/// Settings that mean something only beside certain values of others, one of which is needed; in words.
pub(super) type Beside = (&'static [&'static str], &'static [Needed], &'static str);
