// What a JSON vector cannot say about the npm package: JavaScript values that are not JSON
// (wire-format.md §11: nothing traps, nothing is lost without a word).
import test from 'node:test';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { webcrypto } from 'node:crypto';

globalThis.crypto ??= webcrypto;
const core = createRequire(import.meta.url)('../../target/npm/sluicegate.js');

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
