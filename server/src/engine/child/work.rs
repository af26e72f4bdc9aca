//! What children do: ask an agent, or invoke an action (server.md §6; wire-format.md M5).

use std::sync::Arc;

use sluicegate_core::code::{Class, Code};
use sluicegate_core::run::{ChildOutcome, ChildResult, Cost, Usage};

use crate::actions::{Invocation, Registered};
use crate::agents::{AgentDefinition, Question};

/// What a child does.
pub(super) enum Work {
    Agent {
        definition: Box<AgentDefinition>,
        revision: u64,
        question: Question,
        decides: bool,
    },
    Action {
        registered: Arc<Registered>,
        call: Box<Invocation>,
    },
}

/// How the work of a child ended.
pub(super) struct Done {
    pub(super) outcome: ChildOutcome,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<Cost>,
}

impl Done {
    pub(super) fn result(self) -> ChildResult {
        ChildResult {
            outcome: self.outcome,
            terminal: true,
            usage: self.usage,
            cost: self.cost,
        }
    }
}

impl Work {
    pub(super) fn is_cooperative(&self) -> bool {
        use sluicegate_core::catalogue::Cancellation;
        match self {
            Self::Agent { .. } => true,
            Self::Action { registered, .. } => {
                registered.descriptor.cancellation == Cancellation::Cooperative
            }
        }
    }

    pub(super) async fn run(self) -> Done {
        match self {
            Self::Agent {
                definition,
                revision,
                question,
                decides,
            } => {
                let reply = definition.ask(&question);
                if !reply.delay.is_zero() {
                    tokio::time::sleep(reply.delay).await;
                }
                let outcome = match reply.answer {
                    Ok(answer) if decides => ChildOutcome::Decision {
                        answer: Arc::new(answer),
                    },
                    Ok(output) => ChildOutcome::Success {
                        output: Arc::new(output),
                    },
                    Err((code, message)) => failure(code, message),
                };
                Done {
                    outcome,
                    usage: reply.usage,
                    cost: reply
                        .usage
                        .and_then(|usage| definition.price(revision, usage)),
                }
            }
            Self::Action { registered, call } => Done {
                outcome: match registered.invoke(*call).await {
                    Ok(output) => ChildOutcome::Success {
                        output: Arc::new(output),
                    },
                    Err(fault) => failure(fault.code, fault.message),
                },
                usage: None,
                cost: None,
            },
        }
    }
}

/// A code of the refused class is a refusal, any other a failure (A2).
fn failure(code: String, message: String) -> ChildOutcome {
    match Code::classify(&code, &[]) {
        Class::Refused => ChildOutcome::Refused { code, message },
        _ => ChildOutcome::Failure { code, message },
    }
}
