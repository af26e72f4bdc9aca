// The runnable examples of the package's README: each block that names where it runs.
import { readFileSync } from 'node:fs';

const readme = readFileSync(new URL('../../wasm/npm/README.md', import.meta.url), 'utf8');

/** The example for `node`, `page` or `worker`. */
export function example(where) {
	const blocks = [...readme.matchAll(/^```(?:js|html) (\w+)\n(.*?)^```$/gms)];
	const found = blocks.filter(([, name]) => name === where);
	if (found.length !== 1) throw new Error(`${found.length} examples for ${where}`);
	return found[0][2];
}

/** What the README says that an example prints or shows, by a pattern with one group. */
export function promised(pattern) {
	return pattern.exec(readme)[1];
}
