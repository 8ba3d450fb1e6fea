//! Honest error bars at scale: the library's face and the model file.
