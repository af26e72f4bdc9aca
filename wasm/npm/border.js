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

// Why a value has no JSON text; `Fault` in src/cross.rs has the same numbers.
const [NOT_JSON, NOT_A_NUMBER, UNDEFINED_ITEM, UNREADABLE, TOO_DEEP, TOO_MANY, TOO_LONG] = Array(7).keys();

/** Nested containers of any value (J4). */
const DEPTH = 64;
/** Values in one argument, and UTF-16 units of all its strings: memory that cannot be had is a
 * trap, after which nothing works any more, and a proxy can go on for ever. */
const VALUES = 2 ** 22;
const UNITS = 2 ** 26;

/** A fault on its way out. */
class NoText {
	constructor(fault) {
		this.fault = fault;
	}
}

/**
 * The JSON text of a value, with nothing lost: an undefined member is absent, half of a surrogate
 * pair stays one, for the reader of the text to refuse. Where there is none, `[fault, ...path]`.
 * Never throws, whatever the value is.
 */
export function textOf(value) {
	const path = [];
	let values = 0;
	let units = 0;
	const text = (string) => {
		units += string.length;
		if (units > UNITS) throw new NoText(TOO_LONG);
		return JSON.stringify(string);
	};
	const write = (value) => {
		values += 1;
		if (values > VALUES) throw new NoText(TOO_MANY);
		switch (typeof value) {
			case 'string':
				return text(value);
			case 'number':
				if (!Number.isFinite(value)) throw new NoText(NOT_A_NUMBER);
				return String(value);
			case 'boolean':
				return String(value);
			case 'object':
				if (value === null) return 'null';
				if (Array.isArray(value)) return items(value);
				if (isPlain(value)) return members(value);
		}
		throw new NoText(NOT_JSON);
	};
	const items = (array) => {
		if (path.length >= DEPTH) throw new NoText(TOO_DEEP);
		let all = '[';
		const { length } = array;
		for (let index = 0; index < length; index += 1) {
			path.push(index);
			const item = array[index];
			if (item === undefined) throw new NoText(UNDEFINED_ITEM);
			all += index === 0 ? write(item) : `,${write(item)}`;
			path.pop();
		}
		return `${all}]`;
	};
	const members = (object) => {
		if (path.length >= DEPTH) throw new NoText(TOO_DEEP);
		let all = '';
		for (const name of Object.keys(object)) {
			path.push(name);
			const member = object[name];
			if (member !== undefined) all += `${all === '' ? '{' : ','}${text(name)}:${write(member)}`;
			path.pop();
		}
		return all === '' ? '{}' : `${all}}`;
	};
	try {
		return value === undefined ? [UNDEFINED_ITEM] : write(value);
	} catch (error) {
		// Anything else was thrown by the value itself: a getter, a proxy.
		return [error instanceof NoText ? error.fault : UNREADABLE, ...path.map(String)];
	}
}

/**
 * A date, a map or an instance of a class has a longer chain of prototypes than a plain object;
 * reading its members would lose what it is.
 */
function isPlain(object) {
	const prototype = Object.getPrototypeOf(object);
	return prototype === null || Object.getPrototypeOf(prototype) === null;
}
