// Runs every golden vector through the npm package of the core (wire-format.md §11). The file
// README.md beside this one says what a vector is. Prints the mismatches, then the count.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { webcrypto } from 'node:crypto';

// Node 18 has no global `crypto`; hash maps inside the package seed themselves from it.
globalThis.crypto ??= webcrypto;

const folder = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
const core = createRequire(import.meta.url)(join(folder, '../../target/npm/sluicegate.js'));

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

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Equality by J5, but for a `message` that the expectation does not name. */
function fits(expected, actual) {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      expected.length === actual.length &&
      expected.every((item, index) => fits(item, actual[index]))
    );
  }
  if (!isObject(expected)) return expected === actual;
  if (!isObject(actual)) return false;
  const names = Object.keys(expected);
  const others = Object.keys(actual).filter((name) => !Object.hasOwn(expected, name));
  return (
    names.every((name) => Object.hasOwn(actual, name) && fits(expected[name], actual[name])) &&
    others.every((name) => name === 'message')
  );
}

/** Whether all that the expectation names is there: members by name, items in this order with
 * others between them. */
function holds(expected, actual) {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return false;
    let at = 0;
    return expected.every((item) => {
      while (at < actual.length && !holds(item, actual[at])) at += 1;
      at += 1;
      return at <= actual.length;
    });
  }
  if (!isObject(expected)) return expected === actual;
  return (
    isObject(actual) &&
    Object.keys(expected).every(
      (name) => Object.hasOwn(actual, name) && holds(expected[name], actual[name]),
    )
  );
}

/** What is wrong with the outcome of one vector; nothing when it is as expected. */
function judge({ given, when, then }) {
  if (typeof core[when] !== 'function') return `the package has no function ${when}`;
  let outcome;
  try {
    outcome = { gives: core[when](...given) };
  } catch (error) {
    if (error.name !== 'SluicegateError') return `threw ${error.stack}`;
    outcome = { throws: { code: error.code, pointer: error.pointer } };
  }
  if (then.throws && outcome.throws) {
    const { code, pointer = outcome.throws.pointer } = then.throws;
    if (code === outcome.throws.code && pointer === outcome.throws.pointer) return undefined;
  } else if ('gives' in then && 'gives' in outcome) {
    if (fits(then.gives, outcome.gives)) return undefined;
  } else if ('has' in then && 'gives' in outcome) {
    const { has, lacks = [] } = then;
    if (holds(has, outcome.gives) && !lacks.some((absent) => holds(absent, outcome.gives))) {
      return undefined;
    }
  }
  return `expected ${JSON.stringify(then)}, got ${JSON.stringify(outcome)}`;
}

let passed = 0;
let failed = 0;
for (const file of files(folder)) {
  const vectors = JSON.parse(readFileSync(file, 'utf8'));
  vectors.forEach((vector, index) => {
    const wrong = judge(vector);
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
