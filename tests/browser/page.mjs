// One page of Debian's Chromium, and what a person does on it.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { root } from './server.mjs';

const artifacts = join(root, 'tests/browser/artifacts');

/** Opens a browser with one page; every error of the page is kept. */
export async function open() {
	mkdirSync(artifacts, { recursive: true });
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
		args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update'],
	});
	const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
	const page = await context.newPage();
	page.setDefaultTimeout(15_000);
	const errors = [];
	page.on('pageerror', (error) => errors.push(String(error)));
	page.on('console', (message) => {
		if (message.type() === 'error') errors.push(message.text());
	});
	return { browser, page, errors };
}

/** Keeps a picture in light and in dark. */
export async function picture(page, name) {
	for (const colorScheme of ['dark', 'light']) {
		await page.emulateMedia({ colorScheme });
		// Colours take up to 200 ms to change (web.md §7).
		await page.waitForTimeout(300);
		await page.screenshot({ path: join(artifacts, `${name}.${colorScheme}.png`) });
	}
}

export const node = (page, id) => page.locator(`[data-node="${id}"]`);
export const port = (page, id, name) => node(page, id).locator(`[data-port="${name}"]`);

async function middle(locator) {
	const box = await locator.boundingBox();
	assert.ok(box, 'it is on the screen');
	return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** Presses on one thing and drags to another, or by a distance; the button stays down. */
export async function drag(page, from, to) {
	const start = await middle(from);
	const end = 'boundingBox' in to ? await middle(to) : { x: start.x + to.x, y: start.y + to.y };
	await page.mouse.move(start.x, start.y);
	await page.mouse.down();
	await page.mouse.move((start.x + end.x) / 2, (start.y + end.y) / 2, { steps: 4 });
	await page.mouse.move(end.x, end.y, { steps: 4 });
}

/** The state of every node and edge, as drawn. */
export async function path(page) {
	return page.evaluate(() => {
		const states = (name) => {
			const all = [...document.querySelectorAll(`[data-${name}][data-status]`)];
			return Object.fromEntries(all.map((it) => [it.dataset[name], it.dataset.status]));
		};
		return { nodes: states('node'), edges: states('edge') };
	});
}
