//! The suites that cross crates (architecture.md "Tests") and what they share.
