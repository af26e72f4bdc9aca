// Bent arguments never trap the module (wire-format.md §11): the golden vectors' arguments and the
// samples, with subtrees replaced, removed, doubled, moved and swapped for what is hostile. The same
// documents meet the native build in core/tests/fuzz. FUZZ_ITERATIONS runs longer, FUZZ_SEED elsewhere.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import * as core from '../../target/npm/node.js';
import { dice } from './corpus.mjs';

const iterations = Number(process.env.FUZZ_ITERATIONS ?? 60);
const start = Number(process.env.FUZZ_SEED ?? 1);
const root = new URL('../../', import.meta.url);
const read = (path) => JSON.parse(readFileSync(new URL(path, root), 'utf8'));

/** The JSON files below a folder, in order. */
function files(below) {
  return readdirSync(new URL(below, root), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      if (entry.isDirectory()) return files(`${below}${entry.name}/`);
      return entry.name.endsWith('.json') ? [`${below}${entry.name}`] : [];
    });
}

/** The arguments that are bent, by function. */
function corpus() {
  const seeds = {};
  const add = (when, given) => (seeds[when] ??= []).push(given);
  for (const { when, given } of files('tests/vectors/').flatMap(read)) add(when, given);
  for (const path of files('samples/').filter((file) => file.endsWith('.input.json'))) {
    const graph = read(path.replace(/\/[^/]*$/, '.json'));
    const fixtures = read(path.replace('.input.', '.fixtures.'));
    add('simulate', [{ graph, input: read(path), fixtures }]);
  }
  return seeds;
}

const nested = (depth, name) => {
  let value = 1;
  for (let level = 0; level < depth; level += 1) value = name ? { [name]: value } : [value];
  return value;
};

const pieces = ['', '/', '~', '~2', '/-', '/01', '{{', '}}', '{{{{', '{{ a }}', '#/$defs/', '#', '__proto__', '\0', '\ud800', '😀',
  '(a*)*$', '[', '(?=a)', '\\p{L}+', 'a{1000}{1000}', 'std.any'];

/** What documents trip over. Made anew each time, for it is bent too. */
const hostile = [
  () => null, () => true, () => ({}), () => [], () => undefined, () => NaN, () => -0, () => 2 ** 53 - 1, () => 2 ** 53, () => 1e308,
  () => 5e-324, () => -1, () => 64.5, () => 65536, () => 2 ** 32, () => 'x'.repeat(70_000), () => '{{ a }}'.repeat(3_000),
  () => nested(64), () => nested(65), () => nested(200, 'a'), () => nested(16, 'not'), () => nested(60, 'and'),
  () => Array.from({ length: 5_000 }, (_, index) => index), () => Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, index])),
];

/** Every place of a document that can be written to: its container and its name. */
function places(value, found = []) {
  if (typeof value === 'object' && value !== null && found.length < 20_000) {
    for (const name of Object.keys(value)) {
      found.push([value, name]);
      places(value[name], found);
    }
  }
  return found;
}

function bend(given, others, roll) {
  for (let times = 1 + roll(4); times > 0; times -= 1) {
    const all = places(given);
    if (all.length === 0) return;
    const [holder, name] = all[roll(all.length)];
    const own = all[roll(all.length)];
    const other = places(others[roll(others.length)]);
    switch (roll(8)) {
      case 0: delete holder[name]; break;
      case 1: holder[name] = hostile[roll(hostile.length)](); break;
      case 2: holder[name] = pieces[roll(pieces.length)]; break;
      case 3: if (other.length > 0) { const [from, at] = other[roll(other.length)]; holder[name] = structuredClone(from[at]); } break;
      case 4: holder[name] = structuredClone(own[0][own[1]]); break;
      case 5: [holder[name], own[0][own[1]]] = structuredClone([own[0][own[1]], holder[name]]); break;
      case 6: if (!Array.isArray(holder)) Object.defineProperty(holder, roll(2) ? own[1] : pieces[roll(pieces.length)], { value: holder[name], configurable: true, enumerable: true, writable: true }); break;
      default: if (typeof holder[name] === 'string') holder[name] = holder[name].slice(0, roll(9)) + pieces[roll(pieces.length)] + holder[name].slice(roll(9));
        else if (typeof holder[name] === 'number') holder[name] = [holder[name] + 1, -holder[name], holder[name] * 1e6, holder[name] / 3][roll(4)];
        else if (Array.isArray(holder[name])) holder[name] = holder[name].concat(structuredClone(holder[name]));
    }
  }
}

/** The module as it should be: a trap, or a stack that lost its place, would show here. */
function works(sound) {
  const { status } = core.simulate(...structuredClone(sound));
  assert.equal(status, 'succeeded');
}

const seeds = corpus();
const all = Object.values(seeds).flat();
const sound = seeds.simulate.at(-1);

for (const [name, own] of Object.entries(seeds)) {
  test(`§11 bent arguments never trap ${name}`, () => {
    works(sound);
    const roll = dice(start);
    for (let iteration = 0; iteration < iterations; iteration += 1) {
      const given = structuredClone(own[roll(own.length)]);
      bend(given, roll(4) ? own : all, roll);
      const began = performance.now();
      try {
        core[name](...given);
      } catch (error) {
        const where = `seed ${start}, iteration ${iteration}: ${name}(${JSON.stringify(given)?.slice(0, 5_000)})`;
        assert.ok(error instanceof core.SluicegateError, `${error.stack}\n${where}`);
        assert.ok(typeof error.code === 'string' && error.message.length > 0, where);
      }
      const taken = performance.now() - began;
      assert.ok(taken < 10_000, `seed ${start}, iteration ${iteration} took ${taken} ms`);
    }
    works(sound);
  });
}
