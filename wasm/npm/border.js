// What the bindings need of JavaScript itself (wire-format.md §11): the error that is thrown, and a
// look at a value that never throws, whatever the value is.

/** Every refusal of the core; `code` is stable, `message` is not. */
export class SluicegateError extends Error {
	constructor(code, message, pointer, list) {
		super(message);
		this.code = code;
		if (pointer !== undefined) this.pointer = pointer;
		Object.assign(this, list);
	}
}
Object.defineProperty(SluicegateError.prototype, 'name', {
	value: 'SluicegateError',
	configurable: true,
	writable: true,
});

// `Kind` in src/cross.rs has the same numbers; from TEXT on, a string of that many units more.
const [UNDEFINED, NULL, FALSE, TRUE, NUMBER, ARRAY, OBJECT, HALF_PAIR, OTHER, TEXT] = Array(10).keys();
const halfPair = /\p{Surrogate}/u;

/** What a value is. A string's length is told with it, so that none is copied that is too long. */
export function kindOf(value) {
	switch (typeof value) {
		case 'undefined':
			return UNDEFINED;
		case 'boolean':
			return value ? TRUE : FALSE;
		case 'number':
			return NUMBER;
		case 'string':
			return halfPair.test(value) ? HALF_PAIR : TEXT + value.length;
		case 'object':
			return value === null ? NULL : containerOf(value);
		default:
			return OTHER;
	}
}

/**
 * A date, a map or an instance of a class has a longer chain of prototypes than a plain object;
 * reading its members would lose what it is. A revoked proxy throws at every question.
 */
function containerOf(object) {
	try {
		if (Array.isArray(object)) return ARRAY;
		const prototype = Object.getPrototypeOf(object);
		const plain = prototype === null || Object.getPrototypeOf(prototype) === null;
		return plain ? OBJECT : OTHER;
	} catch {
		return OTHER;
	}
}

/** The names of an object's own members; undefined where it does not tell. */
export function namesOf(object) {
	try {
		return Object.keys(object);
	} catch {
		return undefined;
	}
}

/** An array's length; -1 where it does not tell. */
export function lengthOf(array) {
	try {
		const { length } = array;
		return Number.isSafeInteger(length) ? length : -1;
	} catch {
		return -1;
	}
}
