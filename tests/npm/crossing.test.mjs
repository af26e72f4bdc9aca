// What a JSON vector cannot say about the npm package: JavaScript values that are not JSON
// (wire-format.md §11: nothing traps, nothing is lost without a word).
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as core from '../../target/npm/node.js';

const whole = (value) => core.readPointer(value, '').value;
const refuses = (value, code, pointer) =>
  assert.throws(() => whole(value), (error) => {
    assert.ok(error instanceof Error);
    assert.deepEqual([error.name, error.code, error.pointer], ['SluicegateError', code, pointer]);
    assert.ok(error.message.length > 0);
    return true;
  });

test('§11 plain values cross both ways unchanged', () => {
  const value = { a: [null, true, '', '😀', 0.1, -5, 2 ** 53 - 1, 5e-324, -1e15], b: {} };
  assert.deepEqual(whole(value), value);
  assert.deepEqual(whole(Object.create(null)), {});
});

test('§11 an undefined member is absent, an undefined item is refused', () => {
  assert.deepEqual(whole({ a: undefined, b: 1 }), { b: 1 });
  refuses([1, undefined], 'json.wrong-type', '/1');
  refuses(new Array(1), 'json.wrong-type', '/0');
  refuses(undefined, 'json.wrong-type', '');
});

test('§11 a member named __proto__ stays an own member', () => {
  const value = whole(JSON.parse('{"__proto__": {"a": 1}}'));
  assert.deepEqual(Object.keys(value), ['__proto__']);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.ok(Object.hasOwn(core.parseText('{"__proto__": 1}'), '__proto__'));
});

test('§11 what JSON does not have is refused at its place', () => {
  class Claim {}
  for (const item of [NaN, Infinity, 1n, Symbol('s'), () => 1, new Date(0), new Map(), new Claim()]) {
    refuses({ 'x/y': [item] }, 'json.wrong-type', '/x~1y/0');
  }
  const thrower = { get a() { throw new Error('no'); } };
  refuses(thrower, 'json.wrong-type', '/a');
});

test('J1 numbers and strings that I-JSON does not have are refused', () => {
  refuses({ a: 2 ** 53 }, 'json.number-range', '/a');
  refuses({ a: '\ud800' }, 'json.lone-surrogate', '/a');
  assert.throws(() => core.parseText('"\ud800"'), { code: 'json.lone-surrogate' });
  assert.throws(() => core.parseText(1), { code: 'json.wrong-type' });
});

test('J4 64 nested containers pass, 65 and a cycle are refused', () => {
  const nested = (depth) => (depth === 0 ? 0 : [nested(depth - 1)]);
  assert.deepEqual(whole(nested(64)), nested(64));
  refuses(nested(65), 'json.too-deep', '/0'.repeat(64));
  const cycle = {};
  cycle.a = cycle;
  refuses(cycle, 'json.too-deep', '/a'.repeat(64));
  assert.throws(() => core.parseText('['.repeat(200_000)), { code: 'json.too-deep' });
});

test('§11 a graph with errors is refused with its issues, fixtures with their faults', () => {
  const refusal = (request) => {
    try {
      core.simulate(request);
    } catch (error) {
      return error;
    }
    throw new Error('nothing was thrown');
  };
  const empty = refusal({ graph: {}, input: 1, fixtures: {} });
  assert.equal(empty.code, 'WORKFLOW_GRAPH_INVALID');
  assert.deepEqual(empty.issues, core.check({}));
  const unknown = refusal({ graph: { nodes: [{}] }, input: 1, fixtures: {} });
  assert.deepEqual([unknown.code, unknown.pointer], ['json.missing-member', '/graph/nodes/0']);
});

test('§11 without a catalogue the rules about it are not judged (Q3)', () => {
  const codes = (issues) => issues.map((issue) => issue.code);
  for (const none of [undefined, null]) {
    assert.ok(codes(core.check({ schemaVersion: 1 }, none)).includes('catalogue.absent'));
  }
  assert.ok(!codes(core.check({ schemaVersion: 1 }, {})).includes('catalogue.absent'));
  assert.throws(() => core.check({}, { agents: 1 }), { code: 'json.wrong-type' });
});

test('B042 an inherited member is not user data, and __proto__ is', () => {
  const text = '{"__proto__":{"admin":true},"constructor":{"x":1},"n":1}';
  const verdict = (expr) => core.simulate({
    graph: oneGate(expr),
    input: JSON.parse(text),
    fixtures: {},
  });
  const chosen = (expr) => Object.keys(verdict(expr).outputs)[0];
  assert.equal(chosen({ exists: '/admin' }), 'fail');
  assert.equal(chosen({ exists: '/__proto__/admin' }), 'pass');
  assert.equal(chosen({ exists: '/toString' }), 'fail');
  assert.equal(chosen({ eq: [{ read: '/constructor/x' }, { literal: 1 }] }), 'pass');
  const { payloads } = verdict({ exists: '/admin' });
  assert.deepEqual(Object.keys(payloads.input.preview).sort(), ['__proto__', 'constructor', 'n']);
  assert.equal(payloads.input.hash, core.hashText(text));
  assert.equal({}.admin, undefined);
  assert.equal(payloads.input.preview.admin, undefined);
});

test('B127 numbers cross without loss, and absent stays absent', () => {
  assert.throws(() => core.parseText('9007199254740993'), { code: 'json.number-range', pointer: '' });
  refuses(9007199254740993, 'json.number-range', '');
  refuses({ a: 1e21 }, 'json.number-range', '/a');
  refuses(9007199254740993n, 'json.wrong-type', '');
  for (const amount of [0, 1, 9007199254740991, -9007199254740991, 5e-324, 0.1]) assert.equal(whole(amount), amount);
  assert.ok(Object.is(whole(-0), 0) && Object.is(whole({ a: -0 }).a, 0));
  assert.equal(core.canonicalizeText('[-0.0,1.0,1E0,{"a":{}}]'), '[0,1,1,{"a":{}}]');
  assert.equal(core.canonicalizeText('{"1":0,"0":0,"b":0,"a":0}'), '{"0":0,"1":0,"a":0,"b":0}');
  const keyed = JSON.parse('{"1":0,"0":0}');
  assert.deepEqual(Object.keys(whole(keyed)), ['0', '1']);
  assert.deepEqual(whole({ a: null, b: undefined }), { a: null });
  const [issue] = core.check(oneGate({ exists: '/a' }));
  assert.deepEqual(Object.keys(issue.location), ['kind']);
  const { status, failure } = core.simulate({ graph: oneGate({ exists: '/a' }), input: {}, fixtures: {} });
  assert.deepEqual([status, failure], ['succeeded', undefined]);
});

test('B127 instants and money of an event cross without loss', () => {
  const vectors = JSON.parse(readFileSync(new URL('../vectors/run/fold.json', import.meta.url), 'utf8'));
  const [plan, events] = vectors.find(({ given: [, events] }) => events.at(-1)?.type === 'run.succeeded').given;
  const recordedAt = 1_790_000_000_000;
  const overlay = core.foldEvents(plan, events.map((event) => ({ ...event, recordedAt })));
  assert.deepEqual([overlay.queuedAt, overlay.completedAt], [recordedAt, recordedAt]);
  const money = (amountMicros) => {
    const last = events.at(-1);
    const payload = { ...last.payload, cost: { ...last.payload.cost, amountMicros } };
    return [...events.slice(0, -1), { ...last, payload }];
  };
  // It is read whole and then found not to be the sum, or not even read.
  assert.throws(() => core.foldEvents(plan, money(9007199254740991)), { code: 'WORKFLOW_EVENT_TRANSITION_INVALID' });
  const at = `/${events.length - 1}/payload/cost/amountMicros`;
  assert.throws(() => core.foldEvents(plan, money(2 ** 53)), { code: 'json.number-range', pointer: at });
});

function oneGate(expr) {
  const any = 'std.any';
  const edge = (id, source, target) => ({
    id,
    source: { nodeId: source[0], port: source[1] },
    target: { nodeId: target, port: 'input' },
  });
  return {
    schemaVersion: 1,
    nodes: [
      { id: 'in', type: 'input', ports: { data: any } },
      { id: 'gate', type: 'gate', ports: { input: any, pass: any, fail: any }, logic: { version: 1, expr } },
      { id: 'pass', type: 'output', ports: { input: any } },
      { id: 'fail', type: 'output', ports: { input: any } },
    ],
    edges: [edge('e1', ['in', 'data'], 'gate'), edge('e2', ['gate', 'pass'], 'pass'), edge('e3', ['gate', 'fail'], 'fail')],
  };
}
