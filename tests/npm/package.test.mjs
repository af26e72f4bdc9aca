// The package as a whole (wire-format.md §11): what is in it, what its wasm asks of the world, and
// that every door into it gives the same functions.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { install, out, root } from './installed.mjs';

const read = (path) => readFileSync(path, 'utf8');
const manifest = JSON.parse(read(`${out}/package.json`));
const wasm = readFileSync(`${out}/sluicegate_bg.wasm`);
const core = await import('../../target/npm/node.js');

/** The table of §11, but for what comes with the editor. */
const functions = [
	'parseText', 'canonicalizeText', 'hashText', 'readPointer', 'acceptSchema', 'validateValue', 'exampleValue',
	'compareSchemas', 'evaluateGate', 'renderTemplate', 'check', 'compile', 'dryRun', 'simulate', 'foldEvents',
	'verifyAudit',
].sort();

test('§11 the package can be published as it stands', () => {
	assert.deepEqual([manifest.name, manifest.type, manifest.license], ['@sluicegate/core', 'module', 'MIT OR Apache-2.0']);
	assert.equal(manifest.version, /^version = "(.*)"$/m.exec(read(`${root}Cargo.toml`))[1]);
	const named = (entry) => (typeof entry === 'string' ? [entry] : Object.values(entry).flatMap(named));
	const entries = [manifest.main, manifest.module, manifest.types, ...manifest.sideEffects, ...named(manifest.exports)];
	for (const entry of entries) assert.ok(existsSync(`${out}/${entry}`), entry);
	const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: out, encoding: 'utf8' });
	assert.deepEqual(JSON.parse(packed)[0].files.map((file) => file.path).sort(), [
		'LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'bindings.cjs', 'bindings.js', 'border.cjs', 'border.js',
		'browser.js', 'index.d.cts', 'index.d.ts', 'node.cjs', 'node.js', 'package.json', 'sluicegate_bg.wasm',
	]);
});

test('§11 every entry exports the whole table and the error, and the types declare the same', async () => {
	const names = ['SluicegateError', ...functions];
	assert.deepEqual(Object.keys(core).sort(), names);
	const declared = [...read(`${out}/index.d.ts`).matchAll(/^export declare (?:function|class) (\w+)/gm)];
	assert.deepEqual(declared.map(([, name]) => name).sort(), names);
	const browser = [...read(`${out}/browser.js`).matchAll(/^export \{ (.*) \} from/gm)];
	assert.deepEqual(browser.flatMap(([, list]) => list.split(', ')).sort(), names);
	for (const name of functions) assert.ok(read(`${root}wasm/npm/README.md`).includes(`\`${name}(`), name);
});

test('§11 import and require are one instance, by the package\'s name', () => {
	const folder = install();
	const program = `
		const required = require('@sluicegate/core');
		import('@sluicegate/core').then((imported) => {
			const same = Object.keys(imported).every((name) => imported[name] === required[name]);
			try { imported.parseText('['); } catch (error) {
				console.log(same, error instanceof required.SluicegateError, error instanceof Error, error.name);
			}
		});`;
	const printed = execFileSync(process.execPath, ['-e', program], { cwd: folder, encoding: 'utf8' });
	assert.equal(printed, 'true true true SluicegateError\n');
});

test('§11 the wasm asks for nothing but what wasm-bindgen itself provides', () => {
	const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm));
	assert.deepEqual([...new Set(imports.map((item) => `${item.module} ${item.kind}`))], ['./sluicegate_bg.js function']);
	const plain = ({ name }) => /^__wb(?:g|indgen)_+(?:wbindgen_)?(.*?)(?:_[0-9a-f]{16})?$/.exec(name)[1];
	assert.deepEqual([...new Set(imports.map(plain))].sort(), WANTED);
});

/** Looks at values, makes some, throws, and seeds hash maps. Never a clock, a network or a file. */
const WANTED = [
	'Error', 'cast', 'get', 'getRandomValues', 'get_unchecked', 'is_null', 'is_undefined', 'length', 'new', 'number_get',
	'object_clone_ref', 'object_drop_ref', 'parse', 'set', 'string_get', 'textOf', 'throw',
];

test('§11 the wasm tells nothing of the machine that built it', () => {
	const text = wasm.toString('latin1');
	const homes = ['home', 'root', 'Users'].map((name) => `/${name}/`);
	for (const place of [homedir(), root, ...homes, '.cargo/registry']) {
		assert.ok(!text.includes(place), place);
	}
	// The check above would pass on an empty file; a panic's own place is in there.
	assert.ok(text.includes('core/src/') || text.includes('.rs'));
});
