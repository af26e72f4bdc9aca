//! The run machine as a stranger drives it: only through plans, commands, events and
//! effects (run-machine.md; the laws of architecture.md).

mod cancel;
mod laws;
mod live;
mod order;
mod plans;
