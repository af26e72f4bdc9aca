// Judges one golden vector by a module with the functions of the npm package: in Node, in a page or in
// a worker. README.md beside this file says what a vector is.

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
export function judge(core, { given, when, then }) {
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
