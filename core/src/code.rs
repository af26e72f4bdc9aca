//! Every stable code in one append-only list: text, class, HTTP status and a sentence
//! (wire-format.md J7, §8, §12; seed A "Stable errors"; api.md). Three doors translate
//! it: the HTTP problem, the JavaScript error, the message in the app.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of finding a code names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// JSON or its shape is refused (J7).
    Json,
    /// A validation issue that prevents publication (§8).
    Error,
    /// A validation issue that does not (§8, Q1).
    Warning,
    /// An attempt's failure that may be retried (§12).
    Retryable,
    /// An attempt's failure that is final (§12).
    Permanent,
    /// A refusal, permanent too (§12, A2).
    Refused,
    /// A run's own end (§12).
    Run,
    /// A request is refused (api.md).
    Request,
}

macro_rules! codes {
    ($($name:ident = $text:literal, $class:ident, $status:literal, $sentence:literal;)*) => {
        /// A stable code. The list only grows; a text never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the text of each code is its documentation")]
        pub enum Code { $(#[doc = $sentence] $name,)* }

        impl Code {
            /// All codes, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The class.
            #[must_use]
            pub fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// The HTTP status of a problem with this code.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// One sentence for people: what it means.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }

            /// The code with this text.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    JsonSyntax = "json.syntax", Json, 400, "The text is not JSON.";
    JsonDuplicateMember = "json.duplicate-member", Json, 400, "An object has the same member twice.";
    JsonLoneSurrogate = "json.lone-surrogate", Json, 400, "A string holds half of a surrogate pair.";
    JsonNumberRange = "json.number-range", Json, 400, "A number's magnitude is 2^53 or more; use a string.";
    JsonTooDeep = "json.too-deep", Json, 400, "More than 64 containers are nested.";
    JsonUnknownMember = "json.unknown-member", Json, 400, "An object has a member that is not known here.";
    JsonWrongType = "json.wrong-type", Json, 400, "A value has another type than is needed here.";
    JsonMissingMember = "json.missing-member", Json, 400, "An object lacks a member that is needed.";
    JsonPointerInvalid = "json.pointer-invalid", Json, 400, "A text is not a JSON Pointer.";

    GraphVersionUnsupported = "graph.version-unsupported", Error, 422, "The graph's schemaVersion is not supported.";
    GraphTooLarge = "graph.too-large", Error, 422, "The graph's canonical JSON is too large.";
    GraphTooManyNodes = "graph.too-many-nodes", Error, 422, "The graph has too many nodes.";
    GraphTooManyEdges = "graph.too-many-edges", Error, 422, "The graph has too many edges.";
    GraphTooManySchemas = "graph.too-many-schemas", Error, 422, "The graph has too many schemas.";
    GraphInputCount = "graph.input-count", Error, 422, "A graph has exactly one input node.";
    GraphOutputMissing = "graph.output-missing", Error, 422, "A graph has at least one output node.";
    GraphCycle = "graph.cycle", Error, 422, "Edges form a cycle.";
    IdInvalid = "id.invalid", Error, 422, "An identifier has another form than is allowed.";
    IdDuplicate = "id.duplicate", Error, 422, "An identifier is used twice.";
    IdReserved = "id.reserved", Error, 422, "Identifiers that begin with std. are reserved.";
    NodeIncomplete = "node.incomplete", Error, 422, "A node lacks a part of its configuration.";
    NodeUnreachable = "node.unreachable", Error, 422, "A node cannot be reached from the input.";
    NodeDeadEnd = "node.dead-end", Error, 422, "A port that can be chosen leads nowhere.";
    PortUnknown = "port.unknown", Error, 422, "A node of this type has no such port.";
    PortDirection = "port.direction", Error, 422, "An edge runs from an output port to an input port.";
    PortSchemaMissing = "port.schema-missing", Error, 422, "A port names no schema.";
    PortSchemaMismatch = "port.schema-mismatch", Error, 422, "A port names another schema than its node type asks for.";
    PortArity = "port.arity", Error, 422, "An input port has too few or too many edges.";
    EdgeEndpointUnknown = "edge.endpoint-unknown", Error, 422, "An edge's end names a node that does not exist.";
    EdgeDuplicate = "edge.duplicate", Error, 422, "Two edges join the same two ports.";
    EdgeSchemaIncompatible = "edge.schema-incompatible", Error, 422, "What the source emits can never fit the target.";
    SchemaUnknown = "schema.unknown", Error, 422, "A schema of this name does not exist.";
    SchemaInvalid = "schema.invalid", Error, 422, "A schema is not a valid JSON Schema.";
    SchemaKeywordUnsupported = "schema.keyword-unsupported", Error, 422, "A keyword is outside the supported subset.";
    SchemaTooDeep = "schema.too-deep", Error, 422, "A schema is nested too deeply.";
    SchemaTooLarge = "schema.too-large", Error, 422, "A schema is too large.";
    SchemaRecursive = "schema.recursive", Error, 422, "A schema refers to itself.";
    SchemaPatternUnsupported = "schema.pattern-unsupported", Error, 422, "A pattern cannot be matched in linear time.";
    MappingPointerInvalid = "mapping.pointer-invalid", Error, 422, "A mapping's pointer is not valid.";
    MappingTargetConflict = "mapping.target-conflict", Error, 422, "Two mappings write the same place.";
    MappingSourceUnknown = "mapping.source-unknown", Error, 422, "A mapping reads a node or port that does not exist.";
    MappingSourceNotUpstream = "mapping.source-not-upstream", Error, 422, "A mapping reads a node that is not upstream.";
    MappingTypeIncompatible = "mapping.type-incompatible", Error, 422, "A mapped value can never fit its target.";
    MappingSourceUncertain = "mapping.source-uncertain", Warning, 422, "A mapping reads a port that may not emit.";
    TemplateSyntax = "template.syntax", Error, 422, "A template's token is malformed.";
    TemplateVariableUnknown = "template.variable-unknown", Error, 422, "A template uses a variable that is not declared.";
    TemplateVariableUnused = "template.variable-unused", Error, 422, "A declared template variable is not used.";
    TemplateVariableDenied = "template.variable-denied", Error, 422, "A platform variable is not allowed here.";
    GateVersionUnsupported = "gate.version-unsupported", Error, 422, "The gate logic's version is not supported.";
    GateOperatorUnknown = "gate.operator-unknown", Error, 422, "A gate operator is not known.";
    GateOperands = "gate.operands", Error, 422, "A gate operator has other operands than it needs.";
    GateTypeMismatch = "gate.type-mismatch", Permanent, 422, "A gate operand has a type that its operator refuses.";
    GatePathImpossible = "gate.path-impossible", Error, 422, "A gate reads a path that its input can never have.";
    PolicyOutOfBounds = "policy.out-of-bounds", Error, 422, "A failure policy or time limit is out of bounds.";
    AgentRevisionMissing = "agent.revision-missing", Refused, 422, "The pinned agent revision does not exist.";
    AgentInactive = "agent.inactive", Refused, 422, "The pinned agent is not active.";
    AgentStructuredOutputUnsupported = "agent.structured-output-unsupported", Error, 422, "The pinned agent cannot give structured output.";
    ActionVersionMissing = "action.version-missing", Refused, 422, "The pinned action contract version does not exist.";
    ActionRiskForbidden = "action.risk-forbidden", Refused, 422, "Only read and workspace-write actions may run in a workflow.";
    ActionIdempotencyMissing = "action.idempotency-missing", Error, 422, "The action does not promise idempotency.";
    PermissionDenied = "permission.denied", Refused, 403, "A permission is missing.";
    InputInvalid = "input.invalid", Error, 422, "The sample input does not fit the input schema.";
    CatalogueAbsent = "catalogue.absent", Warning, 422, "Without a catalogue, agents, actions and permissions are not judged.";
    LayoutOrphan = "layout.orphan", Warning, 422, "The layout places a node that does not exist.";
    SchemaUnused = "schema.unused", Warning, 422, "A schema is not used.";

    AgentTimeout = "agent.timeout", Retryable, 422, "The agent did not answer in time.";
    AgentRateLimited = "agent.rate-limited", Retryable, 422, "The agent's provider limits the rate of requests.";
    AgentUnavailable = "agent.unavailable", Retryable, 422, "The agent's provider cannot be reached.";
    ActionTimeout = "action.timeout", Retryable, 422, "The action did not finish in time.";
    ActionUnavailable = "action.unavailable", Retryable, 422, "The action cannot be reached.";
    AgentOutputInvalid = "agent.output-invalid", Permanent, 422, "The agent's output does not fit its port's schema.";
    AgentDeclined = "agent.declined", Permanent, 422, "The model declined to answer.";
    AgentCancelled = "agent.cancelled", Permanent, 422, "The agent run was cancelled.";
    AgentRefused = "agent.refused", Refused, 422, "The agent capability refused the run.";
    ActionFailed = "action.failed", Permanent, 422, "The action failed.";
    ActionOutputInvalid = "action.output-invalid", Permanent, 422, "The action's output does not fit its port's schema.";
    ActionCancelled = "action.cancelled", Permanent, 422, "The action was cancelled.";
    ActionReentrant = "action.reentrant", Refused, 422, "An action may not call back into workflow execution.";
    ActionRefused = "action.refused", Refused, 422, "The action capability refused the call.";
    GatePathMissing = "gate.path-missing", Permanent, 422, "A gate reads a path that its input does not have.";
    MappingSourceMissing = "mapping.source-missing", Permanent, 422, "A mapping reads a value that is not there.";
    NodeInputInvalid = "node.input-invalid", Permanent, 422, "A node's input does not fit its schema.";
    NodeOutputInvalid = "node.output-invalid", Permanent, 422, "A node's output does not fit its schema.";
    NodeOutputTooLarge = "node.output-too-large", Permanent, 422, "A node's input or output is too large.";
    RunNoOutput = "run.no-output", Run, 422, "The run ended without reaching an output node.";
    RunDurationExceeded = "run.duration-exceeded", Run, 422, "The run took longer than it may.";
    RunEventLimit = "run.event-limit", Run, 422, "The run recorded more events than it may.";
    RecoveryInconsistent = "WORKFLOW_RECOVERY_INCONSISTENT", Run, 500, "Stored evidence contradicts itself; the engine does not guess.";

    WorkflowNotFound = "WORKFLOW_NOT_FOUND", Request, 404, "No such workflow or run.";
    WorkflowNotPublished = "WORKFLOW_NOT_PUBLISHED", Request, 409, "The workflow has no published revision.";
    WorkflowArchived = "WORKFLOW_ARCHIVED", Request, 409, "The workflow is archived.";
    WorkflowRevisionConflict = "WORKFLOW_REVISION_CONFLICT", Request, 409, "The draft was saved by someone else in the meantime.";
    WorkflowGraphInvalid = "WORKFLOW_GRAPH_INVALID", Request, 422, "The graph is not valid.";
    WorkflowAgentRevisionMissing = "WORKFLOW_AGENT_REVISION_MISSING", Request, 422, "A pinned agent revision does not exist or is not active.";
    WorkflowActionVersionMissing = "WORKFLOW_ACTION_VERSION_MISSING", Request, 422, "A pinned action contract version does not exist.";
    WorkflowPermissionDenied = "WORKFLOW_PERMISSION_DENIED", Request, 403, "You do not have the permission for this.";
    WorkflowInputInvalid = "WORKFLOW_INPUT_INVALID", Request, 422, "The input is not valid.";
    WorkflowFixturesInvalid = "WORKFLOW_FIXTURES_INVALID", Request, 422, "The fixtures do not fit the graph.";
    WorkflowLimitExceeded = "WORKFLOW_LIMIT_EXCEEDED", Request, 413, "A limit is exceeded.";
    WorkflowIdempotencyConflict = "WORKFLOW_IDEMPOTENCY_CONFLICT", Request, 409, "The idempotency key was used for another request.";
    WorkflowRunTerminal = "WORKFLOW_RUN_TERMINAL", Request, 409, "The run has ended.";
    WorkflowResultExpired = "WORKFLOW_RESULT_EXPIRED", Request, 410, "The result was removed by retention.";
    WorkflowCursorInvalid = "WORKFLOW_CURSOR_INVALID", Request, 400, "The cursor is not valid.";
    WorkflowCursorMismatch = "WORKFLOW_CURSOR_MISMATCH", Request, 400, "The cursor belongs to another list.";
    WorkflowEventCursorInvalid = "WORKFLOW_EVENT_CURSOR_INVALID", Request, 400, "The event cursor is not valid for this run.";
    WorkflowEventCursorConflict = "WORKFLOW_EVENT_CURSOR_CONFLICT", Request, 409, "The two event positions disagree.";
    WorkflowEventCursorAhead = "WORKFLOW_EVENT_CURSOR_AHEAD", Request, 409, "The event position is beyond the last event.";
    WorkflowEventSchemaUnsupported = "WORKFLOW_EVENT_SCHEMA_UNSUPPORTED", Request, 500, "A stored event has a type or version that is not known.";
    WorkflowEventTransitionInvalid = "WORKFLOW_EVENT_TRANSITION_INVALID", Request, 500, "A stored event does not follow from the ones before it.";

    RequestMalformed = "REQUEST_MALFORMED", Request, 400, "The request is malformed.";
    AuthenticationRequired = "AUTHENTICATION_REQUIRED", Request, 401, "Sign in, or send an API key.";
    CsrfRejected = "CSRF_REJECTED", Request, 403, "The request did not come from this session's own page.";
    RouteNotFound = "ROUTE_NOT_FOUND", Request, 404, "There is nothing at this address.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", Request, 405, "This address does not take this method.";
    PreconditionRequired = "PRECONDITION_REQUIRED", Request, 428, "Say which draft version you saw: expectedRevision or If-Match.";
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", Request, 413, "The request body is too large.";
    MediaTypeUnsupported = "MEDIA_TYPE_UNSUPPORTED", Request, 415, "Send application/json.";
    RateLimited = "RATE_LIMITED", Request, 429, "Too many requests; wait a little.";
    Internal = "INTERNAL", Request, 500, "Something failed on the server; the log has the details.";
    Unavailable = "UNAVAILABLE", Request, 503, "The server cannot answer right now; try again.";
}

impl Code {
    /// The classification of an attempt that ends with a code, which may also be one
    /// that only an action's contract knows; a code in no row is permanent (§12).
    #[must_use]
    pub fn classify(code: &str, contract_retryable: &[String]) -> Class {
        match Self::parse(code).map(Self::class) {
            Some(class @ (Class::Retryable | Class::Refused)) => class,
            // What the engine itself finds wrong stays wrong, whatever a contract lists; the
            // general failure is the one code that a contract may call passing.
            Some(_) if code != Self::ActionFailed.as_str() => Class::Permanent,
            _ if contract_retryable.iter().any(|c| c == code) => Class::Retryable,
            _ => Class::Permanent,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &"a stable code")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_and_stands_once() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            assert!(code.sentence().ends_with('.'));
            let text = serde_json::to_value(code).unwrap();
            assert_eq!(text, code.as_str());
            assert_eq!(serde_json::from_value::<Code>(text).unwrap(), *code);
        }
        assert!(serde_json::from_value::<Code>("node.unheard-of".into()).is_err());
        let mut texts: Vec<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
    }

    #[test]
    fn w12_unknown_codes_are_permanent_unless_the_contract_lists_them() {
        let contract = [
            "stock.busy",
            "action.refused",
            "action.failed",
            "node.input-invalid",
        ];
        let contract = contract.map(str::to_owned);
        assert_eq!(Code::classify("action.failed", &contract), Class::Retryable);
        assert_eq!(Code::classify("action.failed", &[]), Class::Permanent);
        assert_eq!(
            Code::classify("node.input-invalid", &contract),
            Class::Permanent
        );
        assert_eq!(Code::classify("stock.busy", &contract), Class::Retryable);
        assert_eq!(Code::classify("stock.gone", &contract), Class::Permanent);
        assert_eq!(Code::classify("action.refused", &contract), Class::Refused);
        assert_eq!(Code::classify("agent.timeout", &[]), Class::Retryable);
    }
}
