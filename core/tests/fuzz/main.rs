//! Hostile documents: nothing that comes in from outside makes the core panic, take long or
//! overflow a small stack, whatever it says (wire-format.md §11: nothing traps).
//!
//! The documents of the golden vectors and of the samples are bent by a mutator (`mutate.rs`)
//! and handed to one target for each door of the core (`targets/`). What breaks a target is
//! made small and written to `regressions/<target>/`; those files are replayed first, for ever.
//!
//! `FUZZ_ITERATIONS=200000 cargo test -p sluicegate-core --test fuzz graph` runs long;
//! `FUZZ_SEED` begins elsewhere. Random bytes alone would not pass the first brace, and a stream
//! of choices changes its meaning whenever a seed is added: so inputs are documents, the mutator
//! is ours, and no engine stands between them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what broke by panicking"
)]

mod corpus;
mod harness;
mod mutate;
#[path = "../sampled/mod.rs"]
mod sampled;
mod targets;

use targets::{events, graph, machine, small};

#[test]
fn values_are_read_written_and_pointed_into() {
    harness::run("value", small::value, corpus::values(), &[], 2_500);
}

#[test]
fn gates_are_parsed_and_evaluated() {
    harness::run("gate", small::gate, corpus::gates(), &[], 2_500);
}

#[test]
fn templates_are_parsed_and_rendered() {
    harness::run(
        "template",
        small::template,
        corpus::templates(),
        &["template"],
        2_000,
    );
}

#[test]
fn schemas_are_accepted_compared_and_validated_with() {
    harness::run("schema", small::schema, corpus::schemas(), &[], 800);
}

#[test]
fn audit_chains_are_verified() {
    harness::run("audit", small::audit, corpus::chains(), &[], 800);
}

#[test]
fn graphs_are_checked_compiled_and_simulated() {
    harness::run("graph", graph::graph, corpus::graphs(), &[], 200);
}

#[test]
fn fixtures_and_inputs_of_good_graphs_are_simulated() {
    harness::run(
        "simulate",
        graph::simulated,
        corpus::simulations(),
        &["graph"],
        80,
    );
}

#[test]
fn events_are_folded_and_projected() {
    harness::run("events", events::events, corpus::logs(), &["plan"], 100);
}

#[test]
fn commands_of_every_kind_meet_every_state() {
    harness::run(
        "machine",
        machine::machine,
        corpus::scripts(),
        &["plan"],
        100,
    );
}
