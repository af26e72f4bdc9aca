// How the types are used, and what they refuse. Only tsc reads this file (tests/npm/types.test.mjs).
import {
	acceptSchema, check, compareSchemas, compile, dryRun, evaluateGate, exampleValue, foldEvents, parseText,
	readPointer, renderTemplate, simulate, SluicegateError, validateValue, verifyAudit,
} from '@sluicegate/core';
import type {
	ActionDescriptor, AuditEntry, Catalogue, Code, Edge, Event, EventPayloads, Evidence, Expr, FixtureAttempt, Fixtures, Graph,
	Hash, Issue, IssueCode, Json, Mapping, Node, Overlay, Plan, RunResult, RunStatus, Schema, Verification,
} from '@sluicegate/core';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};

const gate: Node = {
	id: 'small',
	type: 'gate',
	ports: { input: 'claim', pass: 'claim', fail: 'claim' },
	logic: { version: 1, expr: { and: [{ exists: '/a' }, { not: { eq: [{ read: '/a' }, { literal: null }] } }] } },
};
const edge: Edge = { id: 'e', source: { nodeId: 'in', port: 'data' }, target: { nodeId: 'small', port: 'input' } };
const graph: Graph = { schemaVersion: 1, nodes: [gate], edges: [edge], layout: { small: { x: 0, y: 0 } } };

// A node's type says what it has.
function schemasOf(node: Node): (string | undefined)[] {
	switch (node.type) {
		case 'input': return [node.ports?.data];
		case 'merge': return [node.ports?.items, node.ports?.data, node.mode];
		case 'validator': return [node.schema, node.ports?.pass];
		case 'gate': return [node.ports?.fail, node.logic?.expr && 'gate'];
		case 'agent': return [node.agent?.agentId, node.ports?.success];
		case 'agent-decision': return [node.agent?.agentId, node.ports?.pass, node.ports?.failure];
		case 'action': return [node.action?.actionId, node.ports?.success];
		case 'output': return [node.ports?.input, ...(node.mappings ?? []).map((mapping) => mapping.targetPointer)];
		default: { const never: never = node; return never; }
	}
}
schemasOf(gate);

// An event's type says what its payload is.
function told(event: Event): string {
	switch (event.type) {
		case 'run.queued': return event.payload.graphChecksum;
		case 'node.attempt.settled': return event.payload.outcomePort ?? event.payload.code ?? event.payload.status;
		case 'edge.settled': return `${event.payload.edgeId} ${event.payload.state} ${event.payload.evidence.state}`;
		case 'node.cancel.not-acknowledged': return event.payload.reason;
		case 'run.succeeded': return Object.keys(event.payload.outputs).join();
		case 'run.cancelled': return String(event.payload.acknowledged.length);
		default: return event.type;
	}
}

const issues: Issue[] = check(graph);
for (const issue of issues) {
	if (issue.severity === 'warning') same<typeof issue.code, 'mapping.source-uncertain' | 'catalogue.absent' | 'layout.orphan' | 'schema.unused'>(true);
	const where: string = issue.location.kind === 'node' ? issue.location.nodeId : (issue.location.path ?? '');
	void where;
}
const { plan } = compile(graph, null);
const result: RunResult = simulate({ graph, input: { a: [1, 'x', null] }, fixtures: {} });
result.events.map(told);
if (plan) {
	const overlay: Overlay = foldEvents(plan, result.events);
	const status: RunStatus = overlay.status;
	const settled = overlay.edges.filter((settledEdge) => settledEdge.state === 'emitted').map((settledEdge) => settledEdge.edgeId);
	void [status, settled];
}
const read = readPointer({ a: 1 }, '/a');
if (read.found) same<typeof read.value, Json>(true);
const verdict: boolean = evaluateGate({ le: [{ read: '/n' }, { literal: 1 }] }, { n: 1 });
same<ReturnType<typeof compareSchemas>, 'compatible' | 'incompatible' | 'unknown'>(true);
same<EventPayloads['node.ready'], { readonly nodeId: string }>(true);
const report = dryRun({ graph, input: 1, permissions: ['agents.use'] });
const checksum: Hash = report.graphChecksum;
const chain: AuditEntry[] = [];
const verification: Verification = verifyAudit(chain, { sequence: 0, hash: checksum });
try {
	parseText('[');
} catch (error) {
	if (error instanceof SluicegateError) {
		const code: Code = error.code;
		const place: string | undefined = error.pointer;
		const lists = [error.issues?.length, error.errors?.map((fault) => fault.nodeId)];
		void [code, place, lists];
	}
}
const secret: Schema = { type: 'object', properties: { key: { type: 'string', writeOnly: true, format: 'uuid' } }, additionalProperties: false };
const action: ActionDescriptor = {
	id: 'a', contractVersion: 1, description: '', requiredPermissions: [], inputSchema: secret, outputSchema: true, timeoutMs: 1,
	idempotency: 'required', risk: 'read', cancellation: 'cooperative',
};
const catalogue: Catalogue = { actions: [action] };
const fixtures: Fixtures = { nodes: { a: { attempts: [{ outcome: 'pass', data: 1 }, { outcome: 'failure', code: 'agent.timeout' }] } } };
void [verdict, verification, catalogue, fixtures, acceptSchema(secret), exampleValue(secret), validateValue(secret, {}), renderTemplate('{{a}}', { a: 1 })];

// ---- What must not pass ----

// @ts-expect-error the type is none of the eight
const unknownType: Node = { id: 'a', type: 'loop' };
// @ts-expect-error a gate has no schema of its own
const schemaOfGate: Node = { id: 'a', type: 'gate', schema: 'x' };
// @ts-expect-error an input has no port of this name
const portOfInput: Node = { id: 'a', type: 'input', ports: { success: 'x' } };
// @ts-expect-error a node has an id
const nameless: Node = { type: 'input' };
// @ts-expect-error version 2 is not known here
const version: Graph = { schemaVersion: 2, nodes: [], edges: [] };
// @ts-expect-error an unknown member is refused, in the types too
const member: Graph = { schemaVersion: 1, nodes: [], edges: [], nodez: [] };
// @ts-expect-error an edge has two ends
const loose: Edge = { id: 'e', source: { nodeId: 'a', port: 'data' } };
// @ts-expect-error no such operator
const operator: Expr = { xor: [{ literal: true }, { literal: false }] };
// @ts-expect-error `eq` takes two
const operands: Expr = { eq: [{ literal: 1 }] };
// @ts-expect-error a pointer begins with a slash
const pointer: Expr = { read: 'a' };
// @ts-expect-error outside the subset
const keyword: Schema = { type: 'string', unevaluatedProperties: false };
// @ts-expect-error this format does not assert
const format: Schema = { format: 'hostname' };
// @ts-expect-error a literal has a value
const literal: Mapping = { targetPointer: '/a', binding: { kind: 'literal' } };
// @ts-expect-error no such kind of binding
const kind: Mapping = { targetPointer: '/a', binding: { kind: 'script', value: 1 } };
// @ts-expect-error a failure has a code
const failure: FixtureAttempt = { outcome: 'failure' };
// @ts-expect-error a success has an output
const success: FixtureAttempt = { outcome: 'success', data: 1 };
// @ts-expect-error a date is not JSON
const date: Json = { at: new Date() };
// @ts-expect-error nor is a bigint
const big: Json = [1n];
// @ts-expect-error nor a function
readPointer(() => 1, '');
// @ts-expect-error the code is one of the list
const code: IssueCode = 'graph.bad';
// @ts-expect-error a payload belongs to its type
const event: Event = { sequence: 1, type: 'node.ready', schemaVersion: 1, payload: { edgeId: 'e' } };
// @ts-expect-error there are 21 types and this is none
const eventType: Event['type'] = 'node.started';
// @ts-expect-error evidence in an event has no preview
const preview: Evidence = { version: 1, state: 'available', schemaId: 's', originalByteSize: 1, preview: 1 };
// @ts-expect-error the input is needed
simulate({ graph, fixtures: {} });
// @ts-expect-error a plan is needed, and null is none
foldEvents(null, []);
// @ts-expect-error what was read may be absent
const absent: Json = readPointer({}, '/a').value;
// @ts-expect-error nobody makes one but the core
new SluicegateError();
// @ts-expect-error a fence is a number
const fence: EventPayloads['run.claimed'] = { workerId: 'w', fence: '1' };
// @ts-expect-error a hash has its prefix
const hash: Hash = 'md5:00';
// @ts-expect-error what comes with the editor is not here yet
import { diff } from '@sluicegate/core';

export const unused: unknown[] = [
	unknownType, schemaOfGate, portOfInput, nameless, version, member, loose, operator, operands, pointer, keyword, format, literal,
	kind, failure, success, date, big, code, event, eventType, preview, absent, fence, hash, diff, plan satisfies Plan | null,
];
