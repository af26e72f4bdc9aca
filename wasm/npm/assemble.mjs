// Puts the npm package together around the bindings in a folder (wire-format.md §11): an entry for
// Node and one for browsers and workers, types, licences, and what the registry wants to know.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const out = process.argv[2];
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path) => readFileSync(join(root, path), 'utf8');
const write = (name, text) => writeFileSync(join(out, name), text);

// In Node `require` and `import` must share one instance, or its errors would be of two classes.
const bindings = readFileSync(join(out, 'bindings.cjs'), 'utf8');
write('bindings.cjs', bindings.replaceAll('./border.js', './border.cjs'));
const border = read('wasm/npm/border.js');
write('border.js', border);
const shared = [...border.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
write('border.cjs', `${border.replace(/^export /gm, '')}\nmodule.exports = { ${shared.join(', ')} };\n`);

const functions = [...bindings.matchAll(/^exports\.(\w+) = \1;$/gm)].map(([, name]) => name);
const names = ['SluicegateError', ...functions];
write(
	'node.cjs',
	`// Node 18 keeps its cryptography to itself; hash maps inside seed themselves from it.
globalThis.crypto ??= require('node:crypto').webcrypto;
const bindings = require('./bindings.cjs');
exports.SluicegateError = require('./border.cjs').SluicegateError;
${functions.map((name) => `exports.${name} = bindings.${name};`).join('\n')}
`,
);
write(
	'node.js',
	`import core from './node.cjs';
export const { ${names.join(', ')} } = core;
`,
);
write(
	'browser.js',
	`import start from './bindings.js';
export { ${functions.join(', ')} } from './bindings.js';
export { SluicegateError } from './border.js';
await start();
`,
);

write('index.d.ts', read('wasm/npm/index.d.ts'));
write('index.d.cts', read('wasm/npm/index.d.ts'));
write('README.md', read('wasm/npm/README.md'));
for (const licence of ['LICENSE-APACHE', 'LICENSE-MIT']) copyFileSync(join(root, licence), join(out, licence));

const workspace = read('Cargo.toml');
const said = (name) => new RegExp(`^${name} = "(.*)"$`, 'm').exec(workspace)[1];
const manifest = {
	name: '@sluicegate/core',
	version: said('version'),
	description: 'The core of Sluicegate: check, compile, simulate and fold workflows of agents, decisions and actions, without a server.',
	license: said('license'),
	type: 'module',
	engines: { node: '>=18' },
	main: './node.cjs',
	module: './browser.js',
	types: './index.d.ts',
	exports: {
		'.': {
			browser: { types: './index.d.ts', default: './browser.js' },
			node: {
				import: { types: './index.d.ts', default: './node.js' },
				require: { types: './index.d.cts', default: './node.cjs' },
			},
			types: './index.d.ts',
			default: './browser.js',
		},
		'./package.json': './package.json',
		'./sluicegate_bg.wasm': './sluicegate_bg.wasm',
	},
	// Importing one starts the core: a bundler may drop neither.
	sideEffects: ['./browser.js', './node.js', './node.cjs'],
	files: ['*.js', '*.cjs', '*.d.ts', '*.d.cts', '*.wasm', 'LICENSE-*'],
};
write('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
