//! Placeholder until its step is built.
