// The npm package in a real browser, from a plain static file server: the README's page and worker as they
// stand, and golden vectors inside a page and inside a module worker (wire-format.md §11).
import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { open } from './page.mjs';
import { root } from './server.mjs';
import { install } from '../npm/installed.mjs';
import { example, promised } from '../npm/readme.mjs';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.json': 'application/json', '.wasm': 'application/wasm' };

/** Serves a folder on a free port of this machine. */
async function serve(folder) {
	const server = createServer((request, response) => {
		try {
			const path = new URL(request.url, 'http://x').pathname;
			response.setHeader('Content-Type', types[extname(path)] ?? 'text/plain');
			response.end(path === '/favicon.ico' ? '' : readFileSync(join(folder, path)));
		} catch {
			response.writeHead(404).end();
		}
	});
	await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
	return { address: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

const folder = install();
cpSync(join(root, 'tests/vectors'), join(folder, 'vectors'), { recursive: true });
writeFileSync(join(folder, 'page.html'), example('page'));
writeFileSync(join(folder, 'worker.js'), example('worker'));
writeFileSync(join(folder, 'empty.html'), '<!doctype html><meta charset="utf-8"><title>x</title>');
writeFileSync(
	join(folder, 'vectors.js'),
	`import * as core from './node_modules/@sluicegate/core/browser.js';
import { judge } from './vectors/judge.mjs';
export const all = async (files) => {
	const wrong = [];
	let count = 0;
	for (const file of files) {
		for (const vector of await (await fetch('./vectors/' + file)).json()) {
			count += 1;
			const why = judge(core, vector);
			if (why) wrong.push(file + ' ' + vector.clause + ': ' + why);
		}
	}
	return { count, wrong };
};
if (typeof WorkerGlobalScope === 'function') {
	self.onmessage = async ({ data }) => self.postMessage(await all(data));
	self.postMessage('ready');
}
`,
);
const vectors = readdirSync(join(root, 'tests/vectors'), { recursive: true }).filter((file) => file.endsWith('.json'));

test('§11 the package in a page and in a module worker of a browser', async (t) => {
	const { address, stop } = await serve(folder);
	const { browser, page, errors } = await open();
	t.after(async () => {
		await browser.close();
		stop();
	});

	await t.test('the README\'s page shows what it says', async () => {
		await page.goto(`${address}/page.html`);
		await page.locator('output:not(:empty)').waitFor({ state: 'attached' });
		assert.equal(await page.locator('output').textContent(), promised(/^It shows `(.*)`\.$/m));
	});

	await t.test('the README\'s worker folds a run moment by moment', async () => {
		const read = (path) => JSON.parse(readFileSync(join(root, 'samples', path), 'utf8'));
		const request = {
			graph: read('expenses.review.json'),
			input: read('expenses.review/approved.input.json'),
			fixtures: read('expenses.review/approved.fixtures.json'),
		};
		await page.goto(`${address}/empty.html`);
		const moments = await page.evaluate((request) => new Promise((done, failed) => {
			const worker = new Worker('/worker.js', { type: 'module' });
			const seen = [];
			worker.onerror = (event) => failed(new Error(event.message));
			worker.onmessage = ({ data }) => {
				if (data === 'ready') worker.postMessage(request);
				else seen.push(data);
				if (data.status === 'succeeded') done(seen);
			};
		}), request);
		assert.equal(moments[0].status, 'queued');
		assert.equal(moments.at(-1).nodesSettled, moments.at(-1).nodesTotal);
		assert.ok(moments.length > 20);
	});

	await t.test('golden vectors hold in the page and in a worker', async () => {
		await page.goto(`${address}/empty.html`);
		const inPage = await page.evaluate(async (files) => (await import('/vectors.js')).all(files), vectors);
		const inWorker = await page.evaluate((files) => new Promise((done, failed) => {
			const worker = new Worker('/vectors.js', { type: 'module' });
			worker.onerror = (event) => failed(new Error(event.message));
			worker.onmessage = ({ data }) => (data === 'ready' ? worker.postMessage(files) : done(data));
		}), vectors);
		assert.deepEqual(inPage.wrong, []);
		assert.deepEqual(inWorker, inPage);
		assert.ok(inPage.count > 1_000, `${inPage.count}`);
	});

	assert.deepEqual(errors, []);
});
