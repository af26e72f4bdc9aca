// A server of its own for each test: a fresh data folder, a free port, the samples.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');

/** Starts `sluicegate serve --demo`; gives its sign-in link and a way to stop it. */
export async function serve() {
	if (!existsSync(join(root, 'target/web/index.html'))) {
		throw new Error('the app is not built: run `make web` first');
	}
	execFileSync('cargo', ['build', '--locked', '--quiet', '-p', 'sluicegate-server'], {
		cwd: root,
		stdio: 'inherit',
	});
	const data = mkdtempSync(join(tmpdir(), 'sluicegate-browser-'));
	const flags = ['serve', '--demo', '--listen', '127.0.0.1:0', '--data', data, '--log', 'warn'];
	const child = spawn(join(target, 'debug/sluicegate'), flags, {
		cwd: root,
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	const stop = async () => {
		if (child.exitCode === null) {
			child.kill('SIGTERM');
			await new Promise((done) => child.once('exit', done));
		}
		rmSync(data, { recursive: true, force: true });
	};
	const link = await new Promise((found, failed) => {
		child.once('exit', (code) => failed(new Error(`the server ended with ${code}`)));
		createInterface({ input: child.stdout }).on('line', (line) => {
			const link = /^sign in, once: (\S+)/.exec(line)?.[1];
			if (link) found(link);
		});
	}).catch(async (error) => {
		await stop();
		throw error;
	});
	return { link, stop };
}
