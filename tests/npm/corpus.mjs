// 200 graphs with inputs and fixtures, made by chance that repeats: from whole ones to nonsense (B127).
import { readFileSync, readdirSync } from 'node:fs';

const folder = new URL('../../samples/', import.meta.url);
const read = (path) => JSON.parse(readFileSync(new URL(path, folder), 'utf8'));

/** Numbers from 0 to below `below`; the same ones for the same seed (mulberry32). */
export function dice(seed) {
	return (below) => {
		seed = (seed + 0x6d2b79f5) | 0;
		let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return (((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296 * below) | 0;
	};
}

const odd = [
	null, true, false, 0, -0, 1, 1.5, -2.25, 1e15, 9007199254740991, 5e-324, 0.1 + 0.2, '', 'a', 'é', '😀', '\u2028', 'a"b\\c', '2024-02-29',
	[], {}, [1, [2, [3]]], { a: {} }, JSON.parse('{"__proto__": {"admin": true}, "constructor": 1, "1": 1, "0": 0}'), { 'a/b': 1, 'm~n': 2 },
];

/** A value of some depth. */
function value(roll, depth = 3) {
	const kind = roll(depth > 0 ? 6 : 3);
	if (kind === 3) return Array.from({ length: roll(4) }, () => value(roll, depth - 1));
	if (kind > 3) return Object.fromEntries(Array.from({ length: roll(4) }, () => ['abcn01'[roll(6)], value(roll, depth - 1)]));
	return odd[roll(odd.length)];
}

function expr(roll, depth = 3) {
	const kind = roll(depth > 0 ? 13 : 4);
	const pointer = () => ['', '/a', '/b', '/n', '/a/0', '/1', '/__proto__', '/a~1b'][roll(8)];
	const below = () => expr(roll, depth - 1);
	if (kind === 0) return { literal: value(roll, 1) };
	if (kind === 1) return { read: pointer() };
	if (kind < 4) return { exists: pointer() };
	if (kind === 4) return { not: below() };
	if (kind < 7) return { [kind === 5 ? 'and' : 'or']: Array.from({ length: 1 + roll(3) }, below) };
	return { [['eq', 'ne', 'lt', 'le', 'gt', 'in'][kind - 7]]: [below(), below()] };
}

/** A chain of gates, validators and merges that runs. */
function chain(roll) {
	const nodes = [{ id: 'in', type: 'input', ports: { data: 'std.any' } }];
	const edges = [];
	const edge = (nodeId, port, target, to = 'input') =>
		edges.push({ id: `e${String(edges.length).padStart(3, '0')}`, source: { nodeId, port }, target: { nodeId: target, port: to } });
	let [node, port] = ['in', 'data'];
	for (let step = 0; step < 1 + roll(5); step += 1) {
		const [gate, merge] = [`gate-${step}`, `merge-${step}`];
		nodes.push({ id: gate, type: 'gate', label: odd[15 + roll(4)], ports: { input: 'std.any', pass: 'std.any', fail: 'std.any' }, logic: { version: 1, expr: expr(roll) } });
		nodes.push({ id: merge, type: 'merge', mode: 'all', ports: { items: 'std.any', data: 'std.merged' } });
		edge(node, port, gate);
		edge(gate, 'pass', merge, 'items');
		edge(gate, 'fail', merge, 'items');
		[node, port] = [merge, 'data'];
	}
	const mappings = [
		{ targetPointer: '/all', binding: { kind: 'path', sourceNodeId: 'in', sourcePort: 'data', pointer: '' } },
		{ targetPointer: '/said', binding: { kind: 'template', template: 'It is {{ it }}.', variables: [{ name: 'it', binding: { kind: 'path', sourceNodeId: 'in', sourcePort: 'data', pointer: '' } }] } },
		{ targetPointer: '/own', binding: { kind: 'literal', value: value(roll) } },
	];
	nodes.push({ id: 'out', type: 'output', ports: { input: 'std.any' }, ...(roll(2) ? { mappings } : {}) });
	edge(node, port, 'out');
	return { graph: { schemaVersion: 1, nodes, edges, schemas: {}, layout: { in: { x: roll(99), y: -roll(99) } } }, input: value(roll), fixtures: {} };
}

/** Every case of every sample. */
function samples() {
	const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
	return folders.flatMap(({ name }) => {
		const inputs = readdirSync(new URL(`${name}/`, folder)).filter((file) => file.endsWith('.input.json'));
		return inputs.map((file) => ({
			graph: read(`${name}.json`),
			input: read(`${name}/${file}`),
			fixtures: read(`${name}/${file.replace('.input.', '.fixtures.')}`),
		}));
	});
}

/** Puts something else somewhere, or takes something away. */
function damage(roll, root) {
	let at = root;
	for (;;) {
		const names = Object.keys(at);
		if (names.length === 0) return;
		const name = names[roll(names.length)];
		const next = at[name];
		if (typeof next === 'object' && next !== null && roll(4) > 0) {
			at = next;
		} else if (roll(3) > 0 || Array.isArray(at)) {
			at[name] = value(roll, 1);
			return;
		} else {
			delete at[name];
			return;
		}
	}
}

/** The corpus: `{graph, input, fixtures}`, 200 times. */
export function corpus() {
	const all = samples();
	for (let seed = 0; all.length < 200; seed += 1) {
		const roll = dice(seed);
		const made = seed % 2 ? chain(roll) : structuredClone(all[seed % 20]);
		for (let times = seed % 4 ? roll(3) : 0; times > 0; times -= 1) damage(roll, roll(3) ? made.graph : made);
		all.push({ graph: made.graph ?? {}, input: made.input ?? null, fixtures: made.fixtures ?? {} });
	}
	return all;
}
