// What @sluicegate/core takes and gives (wire-format.md). Written by hand; wasm/tests holds the codes, the
// events, the node types and the operators against the core, tests/npm the functions and what they give.

/** A JSON value. A member that is undefined counts as absent; an undefined item is refused. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [member: string]: Json | undefined };

/** `sha256:` and 64 lower-case hexadecimal digits. */
export type Hash = `sha256:${string}`;
/** Milliseconds since the Unix epoch. */
export type Instant = number;
/** Milliseconds. */
export type Millis = number;
/** A JSON Pointer (RFC 6901). */
export type Pointer = '' | `/${string}`;

// ---- Codes ----

/** Refusals of JSON and its shape (J7). */
export type JsonCode =
	| 'json.syntax'
	| 'json.duplicate-member'
	| 'json.lone-surrogate'
	| 'json.number-range'
	| 'json.too-deep'
	| 'json.unknown-member'
	| 'json.wrong-type'
	| 'json.missing-member'
	| 'json.pointer-invalid';

/** Issues that prevent publication (§8). */
export type IssueErrorCode =
	| 'graph.version-unsupported'
	| 'graph.too-large'
	| 'graph.too-many-nodes'
	| 'graph.too-many-edges'
	| 'graph.too-many-schemas'
	| 'graph.input-count'
	| 'graph.output-missing'
	| 'graph.cycle'
	| 'id.invalid'
	| 'id.duplicate'
	| 'id.reserved'
	| 'node.incomplete'
	| 'node.unreachable'
	| 'node.dead-end'
	| 'port.unknown'
	| 'port.direction'
	| 'port.schema-missing'
	| 'port.schema-mismatch'
	| 'port.arity'
	| 'edge.endpoint-unknown'
	| 'edge.duplicate'
	| 'edge.schema-incompatible'
	| 'schema.unknown'
	| 'schema.invalid'
	| 'schema.keyword-unsupported'
	| 'schema.too-deep'
	| 'schema.too-large'
	| 'schema.recursive'
	| 'schema.pattern-unsupported'
	| 'mapping.pointer-invalid'
	| 'mapping.target-conflict'
	| 'mapping.source-unknown'
	| 'mapping.source-not-upstream'
	| 'mapping.type-incompatible'
	| 'template.syntax'
	| 'template.variable-unknown'
	| 'template.variable-unused'
	| 'template.variable-denied'
	| 'gate.version-unsupported'
	| 'gate.operator-unknown'
	| 'gate.operands'
	| 'gate.type-mismatch'
	| 'gate.path-impossible'
	| 'policy.out-of-bounds'
	| 'agent.revision-missing'
	| 'agent.inactive'
	| 'agent.structured-output-unsupported'
	| 'action.version-missing'
	| 'action.risk-forbidden'
	| 'action.idempotency-missing'
	| 'permission.denied'
	| 'input.invalid';

/** Issues that do not (Q1). */
export type IssueWarningCode =
	| 'mapping.source-uncertain'
	| 'catalogue.absent'
	| 'layout.orphan'
	| 'schema.unused';

export type IssueCode = IssueErrorCode | IssueWarningCode;

/** Ends of attempts and runs (§12), and refusals of requests. */
export type OtherCode =
	| 'agent.timeout'
	| 'agent.rate-limited'
	| 'agent.unavailable'
	| 'action.timeout'
	| 'action.unavailable'
	| 'agent.output-invalid'
	| 'agent.declined'
	| 'agent.cancelled'
	| 'agent.refused'
	| 'action.failed'
	| 'action.output-invalid'
	| 'action.cancelled'
	| 'action.reentrant'
	| 'action.refused'
	| 'gate.path-missing'
	| 'mapping.source-missing'
	| 'node.input-invalid'
	| 'node.output-invalid'
	| 'node.output-too-large'
	| 'run.no-output'
	| 'run.duration-exceeded'
	| 'run.event-limit'
	| 'WORKFLOW_RECOVERY_INCONSISTENT'
	| 'WORKFLOW_NOT_FOUND'
	| 'WORKFLOW_NOT_PUBLISHED'
	| 'WORKFLOW_ARCHIVED'
	| 'WORKFLOW_REVISION_CONFLICT'
	| 'WORKFLOW_GRAPH_INVALID'
	| 'WORKFLOW_AGENT_REVISION_MISSING'
	| 'WORKFLOW_ACTION_VERSION_MISSING'
	| 'WORKFLOW_PERMISSION_DENIED'
	| 'WORKFLOW_INPUT_INVALID'
	| 'WORKFLOW_FIXTURES_INVALID'
	| 'WORKFLOW_LIMIT_EXCEEDED'
	| 'WORKFLOW_IDEMPOTENCY_CONFLICT'
	| 'WORKFLOW_RUN_TERMINAL'
	| 'WORKFLOW_RESULT_EXPIRED'
	| 'WORKFLOW_CURSOR_INVALID'
	| 'WORKFLOW_CURSOR_MISMATCH'
	| 'WORKFLOW_EVENT_CURSOR_INVALID'
	| 'WORKFLOW_EVENT_CURSOR_CONFLICT'
	| 'WORKFLOW_EVENT_CURSOR_AHEAD'
	| 'WORKFLOW_EVENT_SCHEMA_UNSUPPORTED'
	| 'WORKFLOW_EVENT_TRANSITION_INVALID'
	| 'REQUEST_MALFORMED'
	| 'AUTHENTICATION_REQUIRED'
	| 'CSRF_REJECTED'
	| 'ROUTE_NOT_FOUND'
	| 'METHOD_NOT_ALLOWED'
	| 'PRECONDITION_REQUIRED'
	| 'PAYLOAD_TOO_LARGE'
	| 'MEDIA_TYPE_UNSUPPORTED'
	| 'RATE_LIMITED'
	| 'INTERNAL'
	| 'UNAVAILABLE';

/** Every stable code. The list only grows. */
export type Code = JsonCode | IssueCode | OtherCode;

/** Every refusal: nothing else is thrown. */
export declare class SluicegateError extends Error {
	readonly name: 'SluicegateError';
	/** Stable; `message` is not. */
	readonly code: Code;
	/** The place in the argument. */
	readonly pointer?: Pointer;
	/** With `WORKFLOW_GRAPH_INVALID`, where the graph was judged. */
	readonly issues?: Issue[];
	/** With `WORKFLOW_FIXTURES_INVALID`. */
	readonly errors?: FixtureError[];
	private constructor();
}

export type FixtureError = { nodeId: string; pointer?: Pointer; reason: string };

// ---- Schemas (§6) ----

export type SchemaType = 'null' | 'boolean' | 'number' | 'integer' | 'string' | 'array' | 'object';
export type SchemaFormat = 'date-time' | 'date' | 'time' | 'email' | 'uri' | 'uuid' | 'ipv4' | 'ipv6';
type Schemas = { readonly [name: string]: Schema };

/** The subset of JSON Schema draft 2020-12. Any other keyword is refused by name. */
export type Schema = boolean | {
	readonly type?: SchemaType | readonly SchemaType[];
	readonly enum?: readonly Json[];
	readonly const?: Json;
	readonly properties?: Schemas;
	readonly patternProperties?: Schemas;
	readonly additionalProperties?: Schema;
	readonly propertyNames?: Schema;
	readonly required?: readonly string[];
	readonly dependentRequired?: { readonly [name: string]: readonly string[] };
	readonly minProperties?: number;
	readonly maxProperties?: number;
	readonly items?: Schema;
	readonly prefixItems?: readonly Schema[];
	readonly contains?: Schema;
	readonly minContains?: number;
	readonly maxContains?: number;
	readonly minItems?: number;
	readonly maxItems?: number;
	readonly uniqueItems?: boolean;
	readonly minLength?: number;
	readonly maxLength?: number;
	/** Runs in linear time: no look-around, no back references. */
	readonly pattern?: string;
	readonly format?: SchemaFormat;
	readonly minimum?: number;
	readonly maximum?: number;
	readonly exclusiveMinimum?: number;
	readonly exclusiveMaximum?: number;
	readonly multipleOf?: number;
	readonly allOf?: readonly Schema[];
	readonly anyOf?: readonly Schema[];
	readonly oneOf?: readonly Schema[];
	readonly not?: Schema;
	readonly if?: Schema;
	readonly then?: Schema;
	readonly else?: Schema;
	readonly $defs?: Schemas;
	readonly $ref?: `#/$defs/${string}`;
	readonly $schema?: string;
	readonly $comment?: string;
	readonly title?: string;
	readonly description?: string;
	readonly default?: Json;
	readonly examples?: readonly Json[];
	readonly deprecated?: boolean;
	readonly readOnly?: boolean;
	/** Marks a secret: evidence is scrubbed of the values found here. */
	readonly writeOnly?: boolean;
};

export type SchemaFault = { code: Extract<IssueCode, `schema.${string}`>; path: Pointer; message: string };
export type ValidationFailure = { path: Pointer; keyword: string; message: string };

// ---- Gate logic (§5) ----

/** One key an object. */
export type Expr =
	| { readonly literal: Json }
	| { readonly read: Pointer }
	| { readonly exists: Pointer }
	| { readonly and: readonly Expr[] }
	| { readonly or: readonly Expr[] }
	| { readonly not: Expr }
	| { readonly eq: readonly [Expr, Expr] }
	| { readonly ne: readonly [Expr, Expr] }
	| { readonly lt: readonly [Expr, Expr] }
	| { readonly le: readonly [Expr, Expr] }
	| { readonly gt: readonly [Expr, Expr] }
	| { readonly ge: readonly [Expr, Expr] }
	| { readonly in: readonly [Expr, Expr] };

// ---- The graph document (§3). What a draft may lack is optional (G8). ----

export type Graph = {
	readonly schemaVersion: 1;
	readonly nodes: readonly Node[];
	readonly edges: readonly Edge[];
	readonly schemas?: Schemas;
	/** Node id → where it stands, in whole pixels. */
	readonly layout?: { readonly [nodeId: string]: Place };
};

export type Place = { readonly x: number; readonly y: number };

type Named = { readonly id: string; readonly label?: string; readonly description?: string };
type Ports<Name extends string> = { readonly ports?: { readonly [name in Name]?: string } };

export type Node = InputNode | AgentNode | AgentDecisionNode | GateNode | ValidatorNode | ActionNode | MergeNode | OutputNode;
export type NodeType = Node['type'];

export type InputNode = Named & Ports<'data'> & { readonly type: 'input' };
type AgentMembers = {
	readonly agent?: { readonly agentId?: string; readonly revision?: number };
	readonly mappings?: readonly Mapping[];
	readonly failurePolicy?: FailurePolicy;
	/** 1,000 to 3,600,000; 300,000 where absent. */
	readonly timeoutMs?: Millis;
};
export type AgentNode = Named & Ports<'input' | 'success' | 'failure'> & AgentMembers & { readonly type: 'agent' };
export type AgentDecisionNode = Named & Ports<'input' | 'pass' | 'fail' | 'failure'> & AgentMembers & { readonly type: 'agent-decision' };
export type GateNode = Named & Ports<'input' | 'pass' | 'fail'> & {
	readonly type: 'gate';
	readonly logic?: { readonly version?: 1; readonly expr?: Expr };
};
export type ValidatorNode = Named & Ports<'input' | 'pass' | 'fail'> & {
	readonly type: 'validator';
	/** A schema's id. */
	readonly schema?: string;
};
export type ActionNode = Named & Ports<'input' | 'success' | 'failure'> & {
	readonly type: 'action';
	readonly action?: { readonly actionId?: string; readonly contractVersion?: number };
	readonly mappings?: readonly Mapping[];
	readonly failurePolicy?: FailurePolicy;
};
export type MergeNode = Named & Ports<'items' | 'data'> & { readonly type: 'merge'; readonly mode?: 'all' };
export type OutputNode = Named & Ports<'input'> & { readonly type: 'output'; readonly mappings?: readonly Mapping[] };

export type Endpoint = { readonly nodeId: string; readonly port: string };
export type Edge = { readonly id: string; readonly source: Endpoint; readonly target: Endpoint; readonly label?: string };

export type PathBinding = { readonly kind: 'path'; readonly sourceNodeId: string; readonly sourcePort: string; readonly pointer: Pointer };
export type PlatformVariable = 'run.id' | 'run.workflow-key' | 'run.workflow-revision' | 'run.queued-at' | 'actor.label' | 'tenant.id';
export type TemplateVariable =
	| { readonly name: string; readonly binding: PathBinding }
	| { readonly name: string; readonly platform: PlatformVariable };
export type Binding =
	| { readonly kind: 'literal'; readonly value: Json }
	| PathBinding
	| { readonly kind: 'template'; readonly template: string; readonly variables?: readonly TemplateVariable[] };
export type Mapping = { readonly targetPointer: Pointer; readonly binding: Binding };

/** §7. */
export type FailurePolicy = {
	/** 1 to 5. */
	readonly maxAttempts?: number;
	/** Exact codes, at most 16. */
	readonly retryOn?: readonly string[];
	readonly backoff?: { readonly kind?: 'fixed' | 'exponential'; readonly initialMs?: Millis; readonly maximumMs?: Millis };
	readonly onExhausted?: 'emit-failure' | 'fail-run';
};

// ---- The catalogue ----

export type AgentRow = {
	readonly agentId: string;
	readonly revision: number;
	readonly name: string;
	readonly status: 'active' | 'paused' | 'archived';
	readonly provider: string;
	readonly model: string;
	readonly structuredOutput: boolean;
	readonly requiredPermissions: readonly string[];
};
export type ActionDescriptor = {
	readonly id: string;
	readonly contractVersion: number;
	readonly description: string;
	readonly requiredPermissions: readonly string[];
	readonly inputSchema: Schema;
	readonly outputSchema: Schema;
	readonly timeoutMs: Millis;
	readonly idempotency: 'required' | 'none';
	readonly risk: 'read' | 'workspace-write' | 'external' | 'destructive';
	readonly cancellation: 'cooperative' | 'not-supported';
	readonly retryableCodes?: readonly string[];
};
/** Without `permissions`, those are not judged; without a catalogue, agents and actions neither. */
export type Catalogue = {
	readonly agents?: readonly AgentRow[];
	readonly actions?: readonly ActionDescriptor[];
	readonly permissions?: readonly string[];
};

// ---- Issues and the dry-run report (§8) ----

export type Location =
	| { kind: 'graph'; path?: Pointer }
	| { kind: 'input'; path: Pointer }
	| { kind: 'node'; nodeId: string; path?: Pointer }
	| { kind: 'edge'; edgeId: string; path?: Pointer };
export type Issue = { message: string; location: Location } & (
	| { severity: 'error'; code: IssueErrorCode }
	| { severity: 'warning'; code: IssueWarningCode }
);

export type Limits = {
	nodes: number; edges: number; schemas: number; graphBytes: number; inputBytes: number; envelopeBytes: number;
	previewBytes: number; attempts: number; durationMs: Millis; events: number;
};
export type Reference = { kind: 'agent' | 'action' | 'schema'; id: string; version: string; available: boolean };
export type DryRunReport = {
	reportVersion: 1;
	graphChecksum: Hash;
	valid: boolean;
	issues: Issue[];
	/** Empty when the graph has an error. */
	compiledOrder: string[];
	references: Reference[];
	requiredPermissions: string[];
	limits: Limits;
};

// ---- The plan: data that needs no graph any more. Made by `compile`, read by `foldEvents`. ----

export type PlanNode = { readonly id: string; readonly type: NodeType; readonly ports: { readonly [name: string]: string } } & {
	readonly [member: string]: Json;
};
export type Plan = {
	readonly planVersion: 1;
	readonly compilerVersion: string;
	readonly graphChecksum: Hash;
	/** In plan order. */
	readonly nodes: readonly PlanNode[];
	/** By id. */
	readonly edges: readonly { readonly id: string; readonly source: Endpoint; readonly target: Endpoint }[];
	readonly schemas: { readonly [id: string]: Schema };
};

// ---- Fixtures (§9) ----

type Lasting = { readonly simulatedDurationMs?: Millis };
export type FixtureAttempt = Lasting & (
	| { readonly outcome: 'success'; readonly output: Json }
	| { readonly outcome: 'pass' | 'fail'; readonly data: Json; readonly reason?: string }
	| { readonly outcome: 'failure'; readonly code: string; readonly message?: string }
);
export type Fixtures = {
	/** Attempt n uses the n-th entry; the last one repeats. */
	readonly nodes?: { readonly [nodeId: string]: Lasting & { readonly attempts?: readonly FixtureAttempt[] } };
};

// ---- Evidence and events (run-machine.md §2) ----

export type Evidence = {
	readonly version: 1;
	readonly state: 'available' | 'redacted' | 'truncated' | 'expired' | 'absent';
	readonly payloadId?: string;
	readonly schemaId: string;
	/** Over the redacted form. */
	readonly hash?: Hash;
	readonly originalByteSize: number;
	readonly reason?: 'secret' | 'scope-denied' | 'size-limit' | 'retention' | 'not-emitted';
};
export type PayloadView = Evidence & { readonly preview?: Json };

export type UserActor = { readonly kind: 'user'; readonly accountId: string; readonly displayName: string; readonly email?: string };
export type Actor =
	| UserActor
	| { readonly kind: 'agent'; readonly runId: string; readonly agentId: string; readonly agentName: string }
	| { readonly kind: 'service'; readonly id: string; readonly label: string; readonly configuredBy: UserActor };
export type Origin =
	| { readonly kind: 'manual' }
	| { readonly kind: 'module'; readonly moduleId: string; readonly operationId: string }
	| { readonly kind: 'schedule'; readonly scheduleId: string }
	| { readonly kind: 'webhook'; readonly triggerId: string };

export type Mode = 'live' | 'simulate';
export type ChildKind = 'agent' | 'action';
export type Classification = 'retryable' | 'permanent';
export type AttemptStatus = 'succeeded' | 'failed' | 'refused' | 'cancelled';
export type SkipReason = 'input-closed' | 'no-input' | 'other-port' | 'source-skipped' | 'run-failed' | 'run-refused' | 'run-cancelled';
export type Usage = { readonly inputTokens: number; readonly outputTokens: number };
export type Cost = { readonly amountMicros: number; readonly pricingSnapshotId: string };
export type RollupState = 'not-applicable' | 'provisional' | 'final';
export type UsageRollup = {
	readonly version: 1; readonly state: RollupState; readonly inputTokens: number; readonly outputTokens: number;
	readonly totalTokens: number; readonly includedChildRunIds: readonly string[]; readonly pricedChildRuns: number;
	readonly unpricedChildRuns: number; readonly actionInvocations: number; readonly unpricedActions: number;
};
export type CostRollup = {
	readonly version: 1; readonly state: RollupState; readonly currency: 'USD'; readonly amountMicros: number;
	readonly pricingSnapshotIds: readonly string[]; readonly unpricedChildRuns: number; readonly unpricedActions: number;
};

type Lease = { readonly workerId: string; readonly fence: number; readonly leaseExpiresAt: Instant };
type AtAttempt = { readonly nodeId: string; readonly attempt: number };
type Ended = { readonly usage: UsageRollup; readonly cost: CostRollup };
type EndedBadly = Ended & { readonly code: string; readonly message: string; readonly nodeId?: string };
type CancelAnswered = AtAttempt & { readonly childKind: ChildKind; readonly childId?: string };
export type EdgeSettled = {
	readonly edgeId: string;
	readonly state: 'emitted' | 'closed' | 'skipped';
	readonly source: Endpoint & { readonly attempt?: number };
	readonly target: Endpoint;
	readonly selectedPort?: string;
	readonly reason?: SkipReason;
	readonly evidence: Evidence;
};
export type CancelRequested = { readonly requestedBy: Actor; readonly reason?: string; readonly requestedAt: Instant };

/** Event type → its payload, in the order of the catalogue. */
export type EventPayloads = {
	'run.queued': {
		readonly mode: Mode; readonly graphChecksum: Hash; readonly planHash: Hash; readonly compilerVersion: string;
		readonly limits: Readonly<Limits>; readonly input: Evidence; readonly workflowId?: string; readonly workflowKey?: string;
		readonly workflowRevision?: number; readonly actor?: Actor; readonly origin?: Origin; readonly permissionDigest?: Hash;
	};
	'run.claimed': { readonly workerId: string; readonly fence?: number; readonly leaseExpiresAt?: Instant };
	'run.recovered': Lease & { readonly prior: Lease; readonly reason: 'lease-expired' | 'owner-gone' };
	'node.ready': { readonly nodeId: string };
	'node.attempt.started': AtAttempt & { readonly semanticGroup: number; readonly idempotencyKey?: Hash; readonly input: Evidence };
	'node.child.waiting': AtAttempt & { readonly childKind: ChildKind; readonly childId: string; readonly deadlineAt?: Instant };
	'node.attempt.settled': AtAttempt & {
		readonly status: AttemptStatus; readonly outcomePort?: string; readonly output?: Evidence; readonly code?: string;
		readonly classification?: Classification; readonly message?: string; readonly childTerminal?: boolean;
		readonly usage?: Usage; readonly cost?: Cost;
	};
	'node.retry.scheduled': AtAttempt & {
		readonly semanticGroup: number; readonly idempotencyKey?: Hash; readonly code: string; readonly classification: Classification;
		readonly backoffMs: Millis; readonly nextAttemptAt?: Instant; readonly nextAttemptOffsetMs?: Millis;
	};
	'node.retry.started': AtAttempt & { readonly scheduledSequence: number };
	'node.skipped': { readonly nodeId: string; readonly reason: SkipReason };
	'edge.settled': EdgeSettled;
	'run.cancel.requested': CancelRequested;
	'node.cancel.requested': CancelAnswered;
	'node.cancel.acknowledged': CancelAnswered;
	'node.cancel.not-acknowledged': CancelAnswered & { readonly reason: 'rejected' | 'timeout' | 'not-supported' };
	'node.result.late-ignored': AtAttempt & { readonly childId: string; readonly status: Exclude<AttemptStatus, 'cancelled'>; readonly output?: Evidence };
	'payload.retention.applied': {
		readonly policy: { readonly kind: string; readonly days: number };
		readonly payloads: readonly {
			readonly payloadId: string; readonly kind: 'execution' | 'evidence' | 'result'; readonly hash?: Hash;
			readonly priorState?: Evidence['state'];
		}[];
	};
	'run.succeeded': Ended & { readonly outputs: { readonly [nodeId: string]: Evidence } };
	'run.failed': EndedBadly;
	'run.refused': EndedBadly;
	'run.cancelled': Ended & { readonly acknowledged: readonly AtAttempt[]; readonly notAcknowledged: readonly AtAttempt[] };
};
export type EventType = keyof EventPayloads;

/** One durable fact about a run. A server adds the last four members, a simulation the offset. */
export type Event = {
	[T in EventType]: {
		readonly sequence: number;
		readonly type: T;
		readonly schemaVersion: 1;
		readonly payload: EventPayloads[T];
		readonly virtualOffsetMs?: Millis;
		readonly recordedAt?: Instant;
		readonly tenantId?: string;
		readonly runId?: string;
		readonly eventId?: string;
	};
}[EventType];

// ---- Runs ----

export type RunStatus =
	| 'queued' | 'running' | 'waiting-agent' | 'waiting-retry' | 'cancel-requested'
	| 'succeeded' | 'failed' | 'refused' | 'cancelled';
export type NodeStatus =
	| 'pending' | 'ready' | 'running' | 'waiting-child' | 'waiting-retry'
	| 'succeeded' | 'failed' | 'refused' | 'skipped' | 'cancelled';
export type Failure = { code: string; message: string; nodeId?: string };

/** R2. */
export type RunResult = {
	runId: string;
	status: RunStatus;
	outputs?: { [nodeId: string]: Json };
	failure?: Failure;
	virtualDurationMs?: Millis;
	events: Event[];
	payloads: { [payloadId: string]: PayloadView };
};

export type AttemptView = {
	nodeId: string;
	attempt: number;
	status: 'running' | 'waiting-child' | AttemptStatus;
	semanticGroup: number;
	idempotencyKey?: Hash;
	startedAt?: Instant;
	completedAt?: Instant;
	outcomePort?: string;
	childKind?: ChildKind;
	childId?: string;
	code?: string;
	message?: string;
	classification?: Classification;
	retry?: { backoffMs: Millis; nextAttemptAt?: Instant };
	input: Evidence;
	output?: Evidence;
	usage?: Usage;
	cost?: Cost;
	firstSequence: number;
	lastSequence: number;
};
export type NodeView = {
	nodeId: string;
	status: NodeStatus;
	/** 0: none. */
	latestAttempt: number;
	outcomePort?: string;
	nextAttemptAt?: Instant;
	readyAt?: Instant;
	startedAt?: Instant;
	settledAt?: Instant;
	attempts: AttemptView[];
};
/** A run as a picture on its graph. */
export type Overlay = {
	status: RunStatus;
	mode: Mode;
	lastSequence: number;
	queuedAt?: Instant;
	startedAt?: Instant;
	completedAt?: Instant;
	cancelRequestedAt?: Instant;
	wakeAt?: Instant;
	nodesSettled: number;
	nodesTotal: number;
	usage: UsageRollup;
	cost: CostRollup;
	failure?: Failure;
	virtualOffsetMs?: Millis;
	cancellation?: CancelRequested;
	/** All, in plan order. */
	nodes: NodeView[];
	/** Those that have settled, by id. */
	edges: (EdgeSettled & { settledAt?: Instant })[];
};

// ---- Audit (run-machine.md §11) ----

export type AuditEntry = {
	readonly tenantId: string;
	readonly sequence: number;
	readonly actor: Actor;
	readonly origin?: Origin;
	readonly action: string;
	readonly subject: { readonly kind: string; readonly id: string };
	readonly metadata: Json;
	readonly occurredAt: Instant;
	readonly previousHash: Hash;
	readonly eventHash: Hash;
};
/** The last entry, kept apart from its chain, so that a cut tail shows. */
export type AuditHead = { readonly sequence: number; readonly hash: Hash };
export type Verification = {
	valid: boolean;
	checkedThroughSequence: number;
	firstBrokenSequence?: number;
	expectedPreviousHash?: Hash;
	actualPreviousHash?: Hash;
	reason?: 'link' | 'content' | 'head' | 'events';
	head: AuditHead;
};

// ---- Functions (§11). Every one may throw a SluicegateError, and nothing else. ----

/** The value of an I-JSON text, by J1 and J4. */
export declare function parseText(text: string): Json;
/** The canonical form (RFC 8785) of an I-JSON text. */
export declare function canonicalizeText(text: string): string;
/** The hash of that form. */
export declare function hashText(text: string): Hash;
/** What a JSON Pointer reads. */
export declare function readPointer(value: Json, pointer: Pointer): { found: true; value: Json } | { found: false };
/** What is wrong with a schema; empty: it is in the subset. */
export declare function acceptSchema(schema: Schema | Json): SchemaFault[];
/** Whether a value fits a schema, and every assertion that fails. */
export declare function validateValue(schema: Schema, value: Json): { valid: boolean; errors: ValidationFailure[] };
/** A value that a schema accepts; undefined where none was found. */
export declare function exampleValue(schema: Schema): Json | undefined;
/** Whether every, no, or perhaps some value of the source fits the target. */
export declare function compareSchemas(source: Schema, target: Schema): 'compatible' | 'incompatible' | 'unknown';
/** Evaluates gate logic against an input. */
export declare function evaluateGate(expr: Expr, input: Json): boolean;
/** The text of a template whose variables are given by name. */
export declare function renderTemplate(template: string, variables: { readonly [name: string]: Json }): string;
/** Everything that is wrong with a graph, in the order of §8. */
export declare function check(graph: Graph, catalogue?: Catalogue | null): Issue[];
/** A graph's plan and issues; the plan is null when an issue is an error. */
export declare function compile(graph: Graph, catalogue?: Catalogue | null): { plan: Plan | null; issues: Issue[] };
/** Judges a graph and a sample input; runs and stores nothing. */
export declare function dryRun(request: {
	readonly graph: Graph; readonly input?: Json; readonly catalogue?: Catalogue; readonly permissions?: readonly string[];
}): DryRunReport;
/** Runs a graph from end to end, fixtures standing for its agents and actions. */
export declare function simulate(request: {
	readonly graph: Graph; readonly input: Json; readonly fixtures: Fixtures; readonly catalogue?: Catalogue;
}): RunResult;
/** A run's state after as many of its events as are given. */
export declare function foldEvents(plan: Plan, events: readonly Event[]): Overlay;
/** Checks an audit chain from its first entry on, against its head where one is known. */
export declare function verifyAudit(entries: readonly AuditEntry[], head?: AuditHead | null): Verification;
