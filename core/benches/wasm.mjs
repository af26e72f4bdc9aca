// core.wasm.vs-native: `check` and `compile` of the reference graph through the npm package in Node,
// as a multiple of the native build, values in and values out on both sides. The two take turns, so
// that a machine that is busy for a while is busy for both. One JSON object a line; exit 1 when missed.
import { execFileSync } from 'node:child_process';
import { check, compile } from '../../target/npm/node.js';

const LIMIT = 3;
const ROUNDS = 5;

const native = (what) => {
	const flags = ['bench', '--locked', '--quiet', '--package', 'sluicegate-core', '--bench', 'reference', '--', what];
	return execFileSync('cargo', flags, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
};
const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

/** How long this process has been at work in microseconds, its collector's threads too. */
function worked() {
	const { user, system } = process.cpuUsage();
	return user + system;
}

/** The median time of a call in microseconds of work, as reference/main.rs takes its own. */
function time(call) {
	const begun = worked();
	const times = [];
	while (times.length < 11 || worked() - begun < 1_000_000) {
		const before = worked();
		call();
		times.push(worked() - before);
	}
	return median(times);
}

const graph = JSON.parse(native('graph'));
const both = () => [check(graph), compile(graph)];
const [, { plan, issues }] = both();
if (plan === null) throw new Error(`the reference graph is at fault: ${JSON.stringify(issues)}`);
time(both);

const ratios = [];
for (let round = 0; round < ROUNDS; round += 1) ratios.push(time(both) / Number(native('check-compile')));
const value = Math.round(median(ratios) * 100) / 100;
console.log(JSON.stringify({ name: 'core.wasm.vs-native', value, unit: 'ratio', limit: LIMIT }));
process.exitCode = value > LIMIT ? 1 : 0;
