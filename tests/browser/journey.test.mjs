// From the printed sign-in link to a live run, as a person does it (web.md §§1–4).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { drag, node, open, path, picture, port } from './page.mjs';
import { root, serve } from './server.mjs';

const sample = (name) => join(root, 'samples/expenses.review', name);
let server, browser, page, errors;

before(async () => {
	server = await serve();
	({ browser, page, errors } = await open());
});

after(async () => {
	await browser?.close();
	await server?.stop();
});

const saved = () => page.getByRole('status').filter({ hasText: /^Saved$/ }).waitFor();
const problems = (text) => page.getByRole('button', { name: text }).waitFor();

test('the printed link signs in and shows the workflows', async () => {
	await page.goto(server.link);
	await page.getByRole('heading', { name: 'Workflows' }).waitFor();
	await page.getByRole('link', { name: /invoice\.check/ }).waitFor();
	await picture(page, 'list');
});

test('a workflow opens as a graph', async () => {
	await page.getByRole('link', { name: /expenses\.review/ }).click();
	await node(page, 'review').waitFor();
	const graph = JSON.parse(readFileSync(join(root, 'samples/expenses.review.json')));
	assert.equal(await page.locator('[data-node]').count(), graph.nodes.length);
	assert.equal(await page.locator('[data-edge]').count(), graph.edges.length);
	await problems('No problems');
	await picture(page, 'editor');
});

test('what may not be connected is refused with a reason at the pointer', async () => {
	const edges = await page.locator('[data-edge]').count();
	const refusal = page.locator('.refusal');
	for (const [to, name, reason] of [
		['check', 'input', /taken by/],
		['limit', 'pass', /Both are outputs/],
	]) {
		await drag(page, port(page, 'review', 'pass'), port(page, to, name));
		await refusal.filter({ hasText: reason }).waitFor();
		await page.mouse.up();
	}
	assert.equal(await page.locator('[data-edge]').count(), edges);
});

test('an edge that would close a loop is refused', async () => {
	await drag(page, port(page, 'reject', 'success'), port(page, 'refused', 'items'));
	await page.locator('.refusal').filter({ hasText: /close a loop/ }).waitFor();
	await page.mouse.up();
});

test('a node that is moved stays where it was put, and its edges with it', async () => {
	const before = await node(page, 'incomplete').boundingBox();
	const edge = page.locator('[data-edge] .line');
	const curves = await edge.evaluateAll((all) => all.map((it) => it.getAttribute('d')));
	await drag(page, node(page, 'incomplete'), { x: 60, y: 40 });
	await page.mouse.up();
	const after = await node(page, 'incomplete').boundingBox();
	assert.ok(Math.abs(after.x - before.x - 60) < 5 && Math.abs(after.y - before.y - 40) < 5);
	const moved = await edge.evaluateAll((all) => all.map((it) => it.getAttribute('d')));
	const changed = moved.filter((curve, index) => curve !== curves[index]);
	assert.equal(changed.length, 1, 'only the edge of that node is drawn again');
});

test('a deleted edge shows as problems, and one undo brings it back', async () => {
	const edges = page.locator('[data-edge]');
	const count = await edges.count();
	const [from, to] = [port(page, 'outcome', 'data'), port(page, 'decision', 'input')];
	const [a, b] = [await from.boundingBox(), await to.boundingBox()];
	await page.mouse.click((a.x + b.x + a.width) / 2, (a.y + b.y + a.height) / 2);
	await page.locator('.edge.selected').waitFor({ state: 'attached' });
	await page.keyboard.press('Delete');
	assert.equal(await edges.count(), count - 1);
	await page.getByRole('button', { name: /\d problems?/ }).click();
	await page.getByRole('region', { name: 'Problems' }).getByRole('button').first().waitFor();
	await picture(page, 'problems');
	await page.getByRole('button', { name: 'Undo' }).click();
	assert.equal(await edges.count(), count);
	await problems('No problems');
	await page.getByRole('button', { name: 'No problems' }).click();
});

test('the draft is saved with its expected revision and comes back', async () => {
	await page.keyboard.press('Control+s');
	await saved();
	const at = await node(page, 'incomplete').evaluate((it) => it.style.transform);
	await page.reload();
	await node(page, 'incomplete').waitFor();
	assert.equal(await node(page, 'incomplete').evaluate((it) => it.style.transform), at);
});

test('somebody else saved first: both sides are kept until a choice', async () => {
	await page.evaluate(async () => {
		const session = await (await fetch('/api/session')).json();
		const detail = await (await fetch('/api/workflows/detail?key=expenses.review')).json();
		const graph = detail.draft.graph;
		graph.nodes.find((node) => node.id === 'claim').label = 'Changed elsewhere';
		const answer = await fetch('/api/workflows/update', {
			method: 'POST',
			headers: { 'content-type': 'application/json', 'x-csrf-token': session.csrfToken },
			body: JSON.stringify({
				workflowId: detail.workflowId,
				expectedRevision: detail.draftVersion,
				graph,
			}),
		});
		if (!answer.ok) throw new Error(`the other save was answered ${answer.status}`);
	});
	await drag(page, node(page, 'incomplete'), { x: 0, y: 32 });
	await page.mouse.up();
	const conflict = page.getByRole('alert').filter({ hasText: 'Nothing is sent until you choose' });
	await conflict.waitFor();
	await picture(page, 'conflict');
	await conflict.getByRole('button', { name: 'Look at theirs' }).click();
	await page.getByText('Changed elsewhere').first().waitFor();
	await conflict.getByRole('button', { name: 'Back to mine' }).click();
	await page.getByText('Claim submitted').first().waitFor();
	await conflict.getByRole('button', { name: 'Save mine over it' }).click();
	await saved();
	assert.equal(await conflict.count(), 0);
});

test('a simulation runs in the page and is played back', async () => {
	await page.getByRole('button', { name: 'Simulate', exact: true }).click();
	const files = page.locator('input[type=file]');
	await files.nth(0).setInputFiles(sample('approved-after-a-retry.input.json'));
	await files.nth(1).setInputFiles(sample('approved-after-a-retry.fixtures.json'));
	await page.getByRole('button', { name: 'Run simulation' }).click();
	await page.locator('[data-node="review"][data-status="waiting-retry"]').waitFor();
	await page.getByRole('button', { name: 'Pause' }).click();
	await picture(page, 'simulation');
	await page.getByRole('button', { name: 'To the end' }).click();
	await page.locator('[data-node="decision"][data-status="succeeded"]').waitFor();
	const end = await path(page);
	assert.equal(end.nodes.approve, 'succeeded');
	assert.equal(end.nodes.reject, 'skipped');
	await page.getByRole('button', { name: 'One event back' }).click();
	await page.getByRole('slider', { name: 'Event' }).fill('3');
	assert.equal((await path(page)).nodes.approve, 'pending');
	await page.getByRole('button', { name: 'To the end' }).click();
	assert.deepEqual(await path(page), end);
});

test('what is unsaved goes out when another screen is opened', async () => {
	await drag(page, node(page, 'incomplete'), { x: 24, y: 0 });
	await page.mouse.up();
	const at = await node(page, 'incomplete').evaluate((it) => it.style.transform);
	await page.getByRole('link', { name: 'All workflows' }).click();
	await page.getByRole('link', { name: /expenses\.review/ }).click();
	await saved();
	await page.waitForTimeout(500);
	await page.reload();
	await node(page, 'incomplete').waitFor();
	assert.equal(await node(page, 'incomplete').evaluate((it) => it.style.transform), at);
});

test('a configuration is changed as JSON, with what is wrong in place, and published', async () => {
	await node(page, 'review').click();
	await page.waitForURL(/node=review/);
	const field = page.getByRole('textbox', { name: 'Configuration' });
	const text = await field.inputValue();
	await field.fill(text.replace('"maxAttempts": 3', '"maxAttempts": "3"'));
	await field.blur();
	await page.getByText(/\/failurePolicy\/maxAttempts: /).waitFor();
	// A wait long enough to reload in the middle of it.
	await field.fill(text.replace('"initialMs": 1000', '"initialMs": 5000'));
	await field.blur();
	await page.getByRole('button', { name: 'Publish', exact: true }).click();
	const dialog = page.getByRole('dialog', { name: 'Publish' });
	await dialog.getByText('claims.reviewer r1').waitFor();
	await picture(page, 'publish');
	await dialog.getByRole('button', { name: 'Publish revision' }).click();
	await page.getByText('Revision 2 is live.').waitFor();
});

test('a live run is watched, and a reload in the middle shows the same path', async () => {
	await page.getByRole('button', { name: 'Run live', exact: true }).click();
	const dialog = page.getByRole('dialog', { name: 'Run live' });
	await dialog.getByText('expenses.claim.approve v1').waitFor();
	const input = readFileSync(sample('approved-after-a-retry.input.json'), 'utf8');
	await dialog.getByRole('textbox', { name: 'Input' }).fill(input);
	await picture(page, 'run-live');
	await dialog.getByRole('button', { name: 'Start the run' }).click();
	await page.waitForURL(/#\/runs\//);
	// The reviewer's first answer is that it is too busy; the retry waits.
	const waits = page.locator('[data-node="review"][data-status="waiting-retry"]');
	await waits.waitFor();
	const middle = await path(page);
	await page.reload();
	await waits.waitFor();
	assert.deepEqual(await path(page), middle);
	await picture(page, 'run-middle');
	await page.getByRole('status').filter({ hasText: 'Succeeded' }).waitFor({ timeout: 30_000 });
	const end = await path(page);
	assert.equal(end.nodes.decision, 'succeeded');
	assert.equal(end.nodes.reject, 'skipped');
	await node(page, 'approve').click();
	await page.getByRole('heading', { name: 'Attempt 1' }).waitFor();
	await picture(page, 'run');
	await page.reload();
	await page.locator('[data-node="decision"][data-status="succeeded"]').waitFor();
	assert.deepEqual(await path(page), end);
});

test('the run stands in the history', async () => {
	await page.getByRole('link', { name: 'All runs' }).click();
	const row = page.getByRole('row', { name: /expenses\.review/ }).first();
	await row.getByText('Succeeded').waitFor();
	await picture(page, 'runs');
});

test('the page reported no error', () => {
	// The conflict above is answered 409 on purpose; the browser reports every such answer.
	const unexpected = errors.filter((text) => !text.includes('409'));
	assert.deepEqual(unexpected, []);
});
