// The types of the package, judged by tsc: uses that must pass and uses that must not, every sample as
// what it is, and what the core really gives as what it says.
import test from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as core from '../../target/npm/node.js';
import { install, root } from './installed.mjs';

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
const here = fileURLToPath(new URL('types', import.meta.url));
const folder = install();
const sample = (path) => JSON.parse(readFileSync(join(root, 'samples', path), 'utf8'));
const names = readdirSync(join(root, 'samples'), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name);

/** `value` as a literal that must be of a type. */
const typed = (type, value) => `(${JSON.stringify(value)}) satisfies core.${type};\n`;

function judge(options) {
	const flags = ['--strict', '--noEmit', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--target', 'es2022', ...options];
	const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags], { cwd: folder, encoding: 'utf8' });
	assert.equal(stdout, '');
	assert.equal(status, 0);
}

test('§11 the types let pass what is right and nothing else', () => {
	for (const name of readdirSync(here)) copyFileSync(join(here, name), join(folder, name));
	writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
	judge(['--module', 'nodenext', 'uses.ts', 'require.cts']);
	judge(['--module', 'esnext', '--moduleResolution', 'bundler', 'uses.ts']);
});

test('§11 the samples are graphs, and their fixtures are fixtures', () => {
	let text = "import type * as core from '@sluicegate/core';\n";
	for (const name of names) {
		text += typed('Graph', sample(`${name}.json`));
		for (const file of readdirSync(join(root, 'samples', name))) {
			text += typed(file.endsWith('.fixtures.json') ? 'Fixtures' : 'Json', sample(`${name}/${file}`));
		}
	}
	writeFileSync(join(folder, 'samples.ts'), text);
	judge(['--module', 'nodenext', 'samples.ts']);
});

test('§11 what the functions give is of the types that they promise', () => {
	let text = "import type * as core from '@sluicegate/core';\n";
	for (const name of names) {
		const graph = sample(`${name}.json`);
		const { plan, issues } = core.compile(graph);
		text += typed('Plan', plan) + typed('Issue[]', issues) + typed('DryRunReport', core.dryRun({ graph }));
		text += typed('Issue[]', core.check({ ...graph, edges: [] }));
		for (const file of readdirSync(join(root, 'samples', name)).filter((file) => file.endsWith('.input.json'))) {
			const fixtures = sample(`${name}/${file.replace('.input.', '.fixtures.')}`);
			const result = core.simulate({ graph, input: sample(`${name}/${file}`), fixtures });
			text += typed('RunResult', result) + typed('Overlay', core.foldEvents(plan, result.events));
		}
	}
	text += typed('Verification', core.verifyAudit([])) + typed('Verification', core.verifyAudit([{}]));
	text += typed('SchemaFault[]', core.acceptSchema({ pattern: '(?=a)', unknown: 1 }));
	text += typed('ValidationFailure[]', core.validateValue({ type: 'string' }, 1).errors);
	writeFileSync(join(folder, 'given.ts'), text);
	judge(['--module', 'nodenext', 'given.ts']);
});
