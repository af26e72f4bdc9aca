// Nothing traps (wire-format.md §11): whatever an argument is, every function answers or throws a
// SluicegateError, and works afterwards.
import test from 'node:test';
import assert from 'node:assert/strict';
import * as core from '../../target/npm/node.js';

const { SluicegateError, ...functions } = core;
const refusing = (handler) => new Proxy({}, handler);
const no = () => { throw new RangeError('no'); };
const revoked = (target) => {
	const { proxy, revoke } = Proxy.revocable(target, {});
	revoke();
	return proxy;
};
const deep = (depth, wrap) => {
	let value = 0;
	for (let level = 0; level < depth; level += 1) value = wrap(value);
	return value;
};
const cycle = {};
cycle.self = cycle;
const ring = [];
ring.push(ring);

/** What hands of chance and of malice pass in. Made anew for each call, for some remember. */
const hostile = () => [
	undefined, null, true, 0, -0, NaN, Infinity, 2 ** 53, 1e308, 1n, 2n ** 64n, '', 'x', '\ud800', 'a\udc00b', '\u0000',
	Symbol('s'), Symbol.iterator, () => 1, class {}, async () => 1, function* () {},
	[], {}, [undefined], new Array(3), new Array(2 ** 32 - 1), [[[]]], Object.create(null), Object.create({ a: 1 }),
	Object.freeze({ a: Object.freeze([1]) }), Object.freeze([]), Object.seal({ schemaVersion: 1 }),
	new Date(0), new Date(NaN), new Map([[1, 2]]), new Set([1]), new WeakMap(), /x/, new Error('x'), Promise.resolve(1),
	new Uint8Array(4), new Float64Array([NaN]), new ArrayBuffer(8), new DataView(new ArrayBuffer(8)),
	new String('x'), new Number(1), Object(1n), Object(Symbol('s')), globalThis, Reflect, JSON, Math,
	cycle, ring, deep(64, (v) => [v]), deep(65, (v) => [v]), deep(100_000, (v) => [v]), deep(100_000, (v) => ({ a: v })),
	{ get a() { throw new Error('no'); } }, { toJSON() { return 1; } }, { [Symbol('s')]: 1 }, { __proto__: null, a: 1 },
	JSON.parse('{"__proto__":{"a":1}}'), { '\ud800': 1 }, { a: { '\udfff': 1 } },
	refusing({ get: no }), refusing({ ownKeys: no }), refusing({ getPrototypeOf: no }), refusing({ getOwnPropertyDescriptor: no }),
	refusing({ ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: no }),
	refusing({ ownKeys: () => ['a', 'b'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: () => cycle }),
	new Proxy([], { get: no }), new Proxy([], { get: (_, name) => (name === 'length' ? 1e15 : no()) }),
	new Proxy([], { get: (_, name) => (name === 'length' ? -1 : 1) }), new Proxy([], { get: (_, name) => (name === 'length' ? 1n : 1) }),
	new Proxy(() => 1, {}), revoked({}), revoked([]), revoked(() => 1),
	// Names and members that ask for what is inherited.
	{ constructor: 1, toString: 1, hasOwnProperty: 1, valueOf: null }, { length: 3 },
	// It calls back into the core while the core reads it.
	{ get nodes() { core.check({}); return []; }, get a() { return core.parseText('[1]'); } },
];

/** What is large. All functions read values alike, and it takes its time: these get it, in their first place. */
const PATIENT = ['parseText', 'readPointer'];
const huge = () => [
	'x'.repeat(10_000_000), '['.repeat(10_000_000), `"${'é'.repeat(5_000_000)}"`, '{{'.repeat(1_000_000), '{"a":'.repeat(100_000),
	['x'.repeat(10_000_000)], { ['k'.repeat(10_000_000)]: 1 },
	Array.from({ length: 100_000 }, (_, i) => i), Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i])),
];

const sound = {
	graph: { schemaVersion: 1, nodes: [], edges: [] },
	plan: null,
};

/** Calls that are right but for one argument or member, so that the hostile value gets far. */
const places = {
	parseText: [(v) => [v], (v) => [JSON.stringify(v)]],
	canonicalizeText: [(v) => [v]],
	hashText: [(v) => [v]],
	readPointer: [(v) => [v, ''], (v) => [{}, v], (v) => [{ a: [v] }, '/a/0']],
	acceptSchema: [(v) => [v], (v) => [{ properties: v }], (v) => [{ enum: v }], (v) => [{ pattern: v }], (v) => [{ allOf: [v] }], (v) => [{ const: v }]],
	validateValue: [(v) => [v, 1], (v) => [{}, v], (v) => [{ uniqueItems: true, pattern: 'x', minLength: 1, required: ['a'] }, v], (v) => [{ multipleOf: v }, 1.1], (v) => [{ multipleOf: 0.1 }, v]],
	exampleValue: [(v) => [v], (v) => [{ minLength: v }], (v) => [{ pattern: v }], (v) => [{ type: 'array', minItems: v }], (v) => [{ minimum: v, type: 'integer' }]],
	compareSchemas: [(v) => [v, {}], (v) => [{}, v], (v) => [{ const: v }, { enum: [v] }]],
	evaluateGate: [(v) => [v, {}], (v) => [{ exists: '/a' }, v], (v) => [{ eq: [{ literal: v }, { literal: v }] }, 1], (v) => [{ in: [{ literal: 1 }, v] }, 1]],
	renderTemplate: [(v) => [v, {}], (v) => ['{{a}}', v], (v) => ['{{a}}', { a: v }]],
	check: [(v) => [v], (v) => [sound.graph, v], (v) => [{ ...sound.graph, nodes: v }], (v) => [{ ...sound.graph, nodes: [v] }], (v) => [{ ...sound.graph, schemas: { a: v } }], (v) => [{ ...sound.graph, layout: v }]],
	compile: [(v) => [v], (v) => [sound.graph, { agents: v }], (v) => [{ ...sound.graph, edges: v }]],
	dryRun: [(v) => [v], (v) => [{ graph: v }], (v) => [{ graph: sound.graph, input: v }], (v) => [{ graph: sound.graph, permissions: v }]],
	simulate: [(v) => [v], (v) => [{ graph: v, input: 1, fixtures: {} }], (v) => [{ graph: sound.graph, input: v, fixtures: {} }], (v) => [{ graph: sound.graph, input: 1, fixtures: v }]],
	foldEvents: [(v) => [v, []], (v) => [plan, v], (v) => [plan, [v]], (v) => [plan, [{ ...first, payload: v }]], (v) => [{ ...plan, nodes: v }, []], (v) => [plan, [{ ...first, sequence: v }]]],
	verifyAudit: [(v) => [v], (v) => [[], v], (v) => [[v]], (v) => [[], { sequence: v, hash: 'x' }], (v) => [[{ sequence: 1, previousHash: v }]]],
};

const graph = {
	schemaVersion: 1,
	nodes: [{ id: 'in', type: 'input', ports: { data: 'std.any' } }, { id: 'out', type: 'output', ports: { input: 'std.any' } }],
	edges: [{ id: 'e', source: { nodeId: 'in', port: 'data' }, target: { nodeId: 'out', port: 'input' } }],
};
const { plan } = core.compile(graph);
const [first] = core.simulate({ graph, input: 1, fixtures: {} }).events;

/** The module as it should be: a trap, or a stack that lost its place, would show here. */
function works() {
	assert.equal(core.simulate({ graph, input: { a: 1 }, fixtures: {} }).status, 'succeeded');
}

/** A call's own errors are the only ones that get out. */
function judge(name, given) {
	try {
		functions[name](...given);
		return undefined;
	} catch (error) {
		const ours = error instanceof SluicegateError && typeof error.code === 'string' && error.message.length > 0;
		return ours ? undefined : error;
	}
}

for (const [name, makers] of Object.entries(places)) {
	test(`§11 ${name} never traps`, () => {
		assert.equal(judge(name, []), undefined, 'without arguments');
		for (const [place, make] of makers.entries()) {
			const values = place === 0 && PATIENT.includes(name) ? [...hostile(), ...huge()] : hostile();
			for (const [index, value] of values.entries()) {
				let given;
				try {
					given = make(value);
				} catch {
					continue; // It cannot even be put into an argument.
				}
				const wrong = judge(name, given);
				assert.equal(wrong, undefined, `place ${place}, value ${index}: ${wrong?.stack}`);
			}
		}
		works();
	});
}

test('§11 every function is tried', () => {
	assert.deepEqual(Object.keys(places).sort(), Object.keys(functions).sort());
});

test('§11 refusing does not use up the module', () => {
	// What a refusal left on the stack or the heap would be gone many times over.
	for (let turn = 0; turn < 5_000; turn += 1) judge('readPointer', [[revoked({})], '']);
	for (let turn = 0; turn < 5_000; turn += 1) judge('readPointer', [refusing({ ownKeys: no }), '']);
	for (let turn = 0; turn < 2_000; turn += 1) judge('check', [{ get nodes() { throw new Error('no'); } }]);
	works();
});

test('§11 one call takes a lot, and says when it is too much', () => {
	const many = new Proxy([], { get: (_, name) => (name === 'length' ? 2 ** 40 : 1) });
	assert.throws(() => core.readPointer(many, ''), { name: 'SluicegateError', code: 'WORKFLOW_LIMIT_EXCEEDED' });
	const long = 'x'.repeat(2 ** 26 + 1);
	assert.throws(() => core.readPointer([long], ''), { name: 'SluicegateError', code: 'WORKFLOW_LIMIT_EXCEEDED' });
	assert.throws(() => core.parseText(long), { name: 'SluicegateError', code: 'WORKFLOW_LIMIT_EXCEEDED' });
	const text = 'é'.repeat(10_000_000);
	assert.equal(core.readPointer({ a: text }, '/a').value, text);
	works();
});

test('§11 what is deep but accepted does not overflow the stack', () => {
	const not = (depth) => (depth === 0 ? { literal: true } : { not: not(depth - 1) });
	assert.equal(core.evaluateGate(not(15), 1), false);
	assert.throws(() => core.evaluateGate(not(60), 1), { code: 'gate.operands' });
	const nested = (depth) => (depth === 0 ? true : { items: nested(depth - 1) });
	assert.deepEqual(core.acceptSchema(nested(15)), []);
	for (const group of [['(', ')'], ['(?:', ')'], ['[', ']'], ['(a|', ')*'], ['(', '){2}']]) {
		for (const times of [10, 100, 1_000, 4_000]) {
			const pattern = group[0].repeat(times) + 'a' + group[1].repeat(times);
			judge('acceptSchema', [{ pattern }]);
			assert.equal(judge('validateValue', [{ pattern }, 'a'.repeat(1_000)]), undefined);
			assert.equal(judge('exampleValue', [{ pattern }]), undefined);
		}
	}
	works();
});
