// Runs every golden vector through the npm package of the core (wire-format.md §11). The file
// README.md beside this one says what a vector is. Prints the mismatches, then the count.
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import * as core from '../../target/npm/node.js';
import { judge } from './judge.mjs';

const folder = import.meta.dirname ?? new URL('.', import.meta.url).pathname;

/** Every vector file below a folder, in order. */
function files(below) {
  return readdirSync(below, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(below, entry.name);
      if (entry.isDirectory()) return files(path);
      return entry.name.endsWith('.json') ? [path] : [];
    });
}

let passed = 0;
let failed = 0;
for (const file of files(folder)) {
  const vectors = JSON.parse(readFileSync(file, 'utf8'));
  vectors.forEach((vector, index) => {
    const wrong = judge(core, vector);
    if (wrong === undefined) {
      passed += 1;
    } else {
      failed += 1;
      console.error(`${relative(folder, file)} [${index}] ${vector.clause} ${vector.when}: ${wrong}`);
    }
  });
}
console.log(`vectors: ${passed} passed, ${failed} failed`);
// A run that found nothing to test is not a success.
if (failed > 0 || passed === 0) process.exitCode = 1;
