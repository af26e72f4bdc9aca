// The README's example for Node runs as it stands and prints what it says; tests/browser has the others.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { install } from './installed.mjs';
import { example, promised } from './readme.mjs';

test('§11 the example for Node prints what the README says', () => {
	const folder = install();
	writeFileSync(join(folder, 'example.mjs'), example('node'));
	const printed = execFileSync(process.execPath, ['example.mjs'], { cwd: folder, encoding: 'utf8' });
	assert.equal(printed, promised(/^```text\n(.*?)^```$/ms));
});
