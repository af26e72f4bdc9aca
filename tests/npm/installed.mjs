// The built package, and a folder that has it installed.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const out = join(root, 'target/npm');

/** A fresh folder with the package in its node_modules; it goes when the process ends. */
export function install() {
	const folder = mkdtempSync(join(tmpdir(), 'sluicegate-npm-'));
	process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
	mkdirSync(join(folder, 'node_modules/@sluicegate'), { recursive: true });
	cpSync(out, join(folder, 'node_modules/@sluicegate/core'), { recursive: true });
	return folder;
}
