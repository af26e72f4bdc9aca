// X4: the same graph, input and fixtures give the same events, byte for byte, from the native
// command line and from the npm package. Every case of every sample.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import * as core from '../../target/npm/node.js';

const root = new URL('../../', import.meta.url);
const built = process.env.CARGO_TARGET_DIR ?? new URL('target', root).pathname;
const read = (path) => core.parseText(readFileSync(new URL(path, root), 'utf8'));

const samples = readdirSync(new URL('samples', root), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

for (const key of samples) {
  const cases = readdirSync(new URL(`samples/${key}`, root))
    .filter((name) => name.endsWith('.input.json'))
    .map((name) => name.slice(0, -'.input.json'.length));
  for (const name of cases) {
    test(`X4 ${key} ${name}: native and npm give the same events`, () => {
      const [graph, input, fixtures] = [
        `samples/${key}.json`,
        `samples/${key}/${name}.input.json`,
        `samples/${key}/${name}.fixtures.json`,
      ];
      const result = core.simulate({
        graph: read(graph),
        input: read(input),
        fixtures: read(fixtures),
      });
      const lines = result.events.map((event) => core.canonicalizeText(JSON.stringify(event)));
      const native = nativeEvents(graph, input, fixtures);
      assert.equal(native, lines.join('\n') + '\n');
      assert.equal(native, nativeEvents(graph, input, fixtures));
    });
  }
}

/** What the command line prints; a run that did not succeed exits with 1 and prints all the same. */
function nativeEvents(graph, input, fixtures) {
  const flags = ['simulate', graph, '--input', input, '--fixtures', fixtures, '--events'];
  try {
    return execFileSync(`${built}/debug/sluicegate`, flags, { cwd: root, encoding: 'utf8' });
  } catch (error) {
    if (error.status !== 1) throw error;
    return error.stdout;
  }
}
