// B127: the two builds give the same text, byte for byte, for 200 graphs with their inputs, and for every
// golden vector. core/examples/door.rs is the native one.
import test from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as core from '../../target/npm/node.js';
import { corpus } from './corpus.mjs';
import { root } from './installed.mjs';

/** What a call gives or throws, as the native door says it. */
function outcome({ when, given }) {
	try {
		const gives = core[when](...given);
		plain(gives);
		return { gives };
	} catch (error) {
		if (!(error instanceof core.SluicegateError)) throw error;
		return { throws: { code: error.code, pointer: error.pointer } };
	}
}

/** Absent is absent and never undefined; no number is a bigint, no object a map. */
function plain(value) {
	if (Array.isArray(value)) return value.forEach(plain);
	if (typeof value === 'object' && value !== null) {
		assert.equal(Object.getPrototypeOf(value), Object.prototype);
		return Object.values(value).forEach(plain);
	}
	assert.ok(value === null || ['boolean', 'number', 'string'].includes(typeof value), typeof value);
}

function native(calls) {
	const input = calls.map((call) => `${JSON.stringify(call)}\n`).join('');
	const flags = ['run', '--locked', '--quiet', '-p', 'sluicegate-core', '--example', 'door'];
	const { status, stdout, stderr } = spawnSync('cargo', flags, { cwd: root, input, encoding: 'utf8', maxBuffer: 2 ** 30 });
	assert.equal(status, 0, stderr);
	return stdout.trimEnd().split('\n');
}

/** Compares what the two builds say, messages too. */
function same(calls, ours) {
	const theirs = native(calls);
	assert.equal(theirs.length, ours.length);
	ours.forEach((text, index) => assert.equal(text, theirs[index], JSON.stringify(calls[index])));
}

test('B127 wasm and native give the same bytes for 200 graphs and inputs', () => {
	const cases = corpus();
	assert.equal(cases.length, 200);
	const calls = cases.flatMap(({ graph, input, fixtures }) => [
		{ when: 'check', given: [graph] },
		{ when: 'compile', given: [graph, {}] },
		{ when: 'dryRun', given: [{ graph, input, catalogue: { permissions: [] } }] },
		{ when: 'simulate', given: [{ graph, input, fixtures }] },
		{ when: 'canonicalizeText', given: [JSON.stringify(input)] },
	]);
	const ours = calls.map((call) => core.canonicalizeText(JSON.stringify(outcome(call))));
	// What ran is folded too, at its end and in the middle.
	calls.forEach(({ when, given: [request] }, index) => {
		const { gives } = JSON.parse(ours[index]);
		const compiled = when === 'simulate' && JSON.parse(ours[index - 2]).gives?.plan;
		if (!gives || !compiled) return;
		const { plan } = core.compile(request.graph);
		for (const seen of [gives.events.length, gives.events.length >> 1]) {
			const call = { when: 'foldEvents', given: [plan, gives.events.slice(0, seen)] };
			calls.push(call);
			ours.push(core.canonicalizeText(JSON.stringify(outcome(call))));
		}
	});
	same(calls, ours);
	// A corpus of refusals alone would prove little.
	const ran = ours.filter((text) => text.includes('"status":"succeeded"'));
	assert.ok(ran.length > 50, `${ran.length} ran`);
});

test('J2 wasm and native give the same bytes for every golden vector', () => {
	const folder = join(root, 'tests/vectors');
	const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.json')).sort();
	const vectors = files.flatMap((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')));
	const calls = vectors.map(({ when, given }) => ({ when, given }));
	const outcomes = calls.map(outcome);
	// What nests 64 deep by itself is too deep with a call or an answer around it.
	const fits = (_, index) => Math.max(depth(calls[index]), depth(outcomes[index])) <= 64;
	const compared = calls.filter(fits);
	assert.ok(calls.length - compared.length < 10 && compared.length > 900, `${compared.length} of ${calls.length}`);
	same(compared, outcomes.filter(fits).map((one) => core.canonicalizeText(JSON.stringify(one))));
});

const depth = (value) => (typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0);
