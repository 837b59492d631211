import { isObject, type JsonValue, member } from '../base/json.ts';
import { appendAll, itemAt } from '../base/lists.ts';
import { compareText, goPlain, goTypeName } from './go-values.ts';
import {
  depthMax,
  type JsonPath,
  type JsonPathAction,
  JsonPathError,
  type JsonPathFilter,
  type JsonPathNode,
  type JsonPathSlice,
} from './jsonpath-parser.ts';

/** How a template is evaluated. */
export interface JsonPathOptions {
  /** Whether each field must exist; by default, a missing field has no values. */
  readonly missing?: 'is an error' | 'is empty';
  /** The largest number of steps and of their values; unlimited by default. */
  readonly valuesMax?: number;
  /** Bounds the values of several evaluations together; unlimited by default. */
  readonly budget?: JsonPathBudget | undefined;
}

/** Bounds the values that several evaluations visit together. */
export interface JsonPathBudget {
  /** How many values they may still visit. Below zero, an evaluation fails. */
  left: number;
}

/**
 * Evaluates a template.
 * @returns the values of each text and each action, in the order of the output
 * @throws JsonPathError for a value that a step does not fit, and for too many values
 */
export function evaluateJsonPath(
  path: JsonPath,
  value: JsonValue,
  options: JsonPathOptions = {},
): readonly (readonly JsonValue[])[] {
  return new Evaluation(path, options).run(0, value);
}

class MissingFieldError extends JsonPathError {}
class TooManyValuesError extends JsonPathError {}

/** Its message contains the value, which may be large, and is only printed if it is read. */
class UnfilterableError extends JsonPathError {
  constructor(value: JsonValue) {
    super(undefined, value);
  }

  override get message(): string {
    return `${goPlain(this.value ?? null)} is not array or slice and cannot be filtered`;
  }
}

/** Evaluates one template, as client-go does. */
class Evaluation {
  readonly #path: JsonPath;
  readonly #isStrict: boolean;
  readonly #valuesMax: number;
  readonly #budget: JsonPathBudget;
  #values = 0;
  /** How many ranges the current part is in. */
  #ranges = 0;
  /** Words of the last action that `run` has not followed yet. */
  #begins = 0;
  #ends = 0;
  /** The position of the last `end`. */
  #lastEnd = -1;

  constructor(path: JsonPath, { missing, valuesMax, budget }: JsonPathOptions) {
    this.#path = path;
    this.#isStrict = missing === 'is an error';
    this.#valuesMax = valuesMax ?? Number.POSITIVE_INFINITY;
    this.#budget = budget ?? { left: Number.POSITIVE_INFINITY };
  }

  /** Evaluates the parts from a position up to the `end` of their range. */
  run(from: number, value: JsonValue): (readonly JsonValue[])[] {
    const results: (readonly JsonValue[])[] = [];
    for (let at = from; at < this.#path.length; at += 1) {
      const part = this.#path[at] ?? '';
      this.#count(1);
      const found = typeof part === 'string' ? [part] : this.#action(part, [value]);
      if (this.#ends > 0 && this.#ends <= this.#ranges) {
        this.#ends -= 1;
        this.#lastEnd = at;
        break;
      }
      if (this.#begins === 0) {
        results.push(found);
        continue;
      }
      this.#begins -= 1;
      this.#ranges += 1;
      if (this.#ranges > depthMax) throw new JsonPathError('nested too deeply');
      for (const item of found) appendAll(results, this.run(at + 1, item));
      // Even an empty range has an end, which must be found.
      if (found.length === 0) this.run(at + 1, null);
      this.#ranges -= 1;
      at = Math.max(at, this.#lastEnd);
    }
    return results;
  }

  #action(action: JsonPathAction, values: readonly JsonValue[]): readonly JsonValue[] {
    return action.reduce<readonly JsonValue[]>((current, node) => {
      const next = this.#step(node, current);
      this.#count(next.length + 1);
      return next;
    }, values);
  }

  #count(values: number): void {
    this.#values += values;
    this.#spend(values);
    if (this.#values > this.#valuesMax) throw tooManyValues();
  }

  #spend(values: number): void {
    this.#budget.left -= values;
    if (this.#budget.left < 0) throw tooManyValues();
  }

  #step(node: JsonPathNode, values: readonly JsonValue[]): readonly JsonValue[] {
    switch (node.kind) {
      case 'text':
        return [node.text];
      case 'constant':
        return values.map(() => node.value);
      case 'field':
        return this.#fields(node.name, values);
      case 'slice':
        return this.#sliced(node.slice, values);
      case 'all':
        return this.#collected(values, (value) => this.#contents(value));
      case 'descend':
        return this.#collected(values, (value) => this.#descendants(value));
      case 'union':
        return node.paths.flatMap((path) => this.#action(path, values));
      case 'filter':
        return this.#filtered(node.filter, values);
      case 'word':
        return this.#word(node.word, values);
    }
  }

  #word(word: string, values: readonly JsonValue[]): readonly JsonValue[] {
    if (word === 'range') {
      this.#begins += 1;
      return values;
    }
    if (word !== 'end') throw new JsonPathError(`unrecognized identifier ${word}`);
    if (this.#ranges === 0) throw new JsonPathError('not in range, nothing to end');
    this.#ends += 1;
    return [];
  }

  #fields(name: string, values: readonly JsonValue[]): readonly JsonValue[] {
    const found = values.flatMap((value) => {
      const item = isObject(value) ? member(value, name) : undefined;
      return item === undefined ? [] : [item];
    });
    if (this.#isStrict && values.length > 0 && found.length === 0) {
      throw new MissingFieldError(`${name} is not found`);
    }
    return found;
  }

  /** What each value yields, in order; stops as soon as that is too much. */
  #collected(
    values: readonly JsonValue[],
    itemsOf: (value: JsonValue) => Iterable<JsonValue>,
  ): readonly JsonValue[] {
    const collected: JsonValue[] = [];
    for (const value of values) this.#append(collected, itemsOf(value));
    return collected;
  }

  #append(collected: JsonValue[], items: Iterable<JsonValue>): void {
    for (const item of items) {
      const { left } = this.#budget;
      if (collected.length >= Math.min(left, this.#valuesMax - this.#values)) throw tooManyValues();
      collected.push(item);
    }
  }

  /** A value and all that it contains, each before its contents; not recursive. */
  *#descendants(root: JsonValue): Generator<JsonValue> {
    const open: Iterator<JsonValue>[] = [[root].values()];
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const next = last.next();
      if (next.done === true) {
        open.pop();
        continue;
      }
      const { value } = next;
      const inside = typeof value === 'object' ? this.#contents(value) : [];
      if (inside.length > 0 || (typeof value === 'string' && value !== '')) yield value;
      else this.#count(1);
      if (inside.length > 0) open.push(inside.values());
    }
  }

  /** A string counts as a list of its bytes. */
  #contents(value: JsonValue): readonly JsonValue[] | Uint8Array {
    if (Array.isArray(value)) return value;
    if (typeof value === 'string') {
      this.#spend(Math.ceil(value.length / charactersPerValue));
      return new TextEncoder().encode(value);
    }
    if (!isObject(value)) return [];
    const members = Object.values(value).filter((child) => child !== undefined);
    this.#spend(members.length);
    return members;
  }

  #sliced(slice: JsonPathSlice, values: readonly JsonValue[]): readonly JsonValue[] {
    const selected: JsonValue[] = [];
    for (const value of values) {
      if (value === null) continue;
      if (!Array.isArray(value)) {
        throw new JsonPathError(`${goTypeName(value)} is not array or slice`);
      }
      const items = sliceList(slice, value);
      // As in client-go, an empty slice ends the step.
      if (items === undefined) break;
      this.#append(selected, items);
    }
    return selected;
  }

  #filtered(filter: JsonPathFilter, values: readonly JsonValue[]): readonly JsonValue[] {
    return this.#collected(values, (value) => {
      if (!Array.isArray(value)) throw new UnfilterableError(value);
      return value.filter((item) => {
        this.#count(1);
        return this.#passes(filter, item);
      });
    });
  }

  #passes({ left, right, operator }: JsonPathFilter, item: JsonValue): boolean {
    if (operator === 'exists') return this.#exists(left, item);
    const lefts = this.#action(left, [item]);
    if (!hasOne(lefts)) return false;
    const rights = this.#action(right, [item]);
    if (!hasOne(rights)) return false;
    const compare = comparisons[operator];
    if (compare === undefined) throw new JsonPathError(`unrecognized filter operator ${operator}`);
    return compare(scalarOf(lefts[0], left), scalarOf(rights[0], right));
  }

  /** As in client-go, only a missing field does not exist, and not a step that fails. */
  #exists(path: JsonPathAction, item: JsonValue): boolean {
    try {
      return this.#action(path, [item]).length > 0;
    } catch (error) {
      if (!(error instanceof JsonPathError) || error instanceof TooManyValuesError) throw error;
      return !(error instanceof MissingFieldError);
    }
  }
}

/** Encoding this many characters takes about as long as visiting one value. */
const charactersPerValue = 64;

const tooManyValues = () => new TooManyValuesError('too many values');

/** Whether there is a value; several cannot be compared. */
function hasOne(values: readonly JsonValue[]): boolean {
  if (values.length > 1) throw new JsonPathError('can only compare one element at a time');
  return values.length === 1;
}

/** Returns the selected items; undefined if the slice is empty whatever the list contains. */
function sliceList(
  { start: first, end: last, isOne, step = 1 }: JsonPathSlice,
  list: readonly JsonValue[],
): Iterable<JsonValue> | undefined {
  const { length } = list;
  const start = first < 0 ? first + length : first;
  const written = isOne ? first + 1 : (last ?? length);
  const end = written < 0 || (written === 0 && isOne) ? written + length : written;
  if (start === end) return undefined;
  const outside = (index: number) =>
    new JsonPathError(`array index out of bounds: index ${index}, length ${length}`);
  if (start < 0 || start >= length) throw outside(start);
  if (end < 0 || end > length) throw outside(end - 1);
  if (start > end) {
    throw new JsonPathError(`starting index ${start} is greater than ending index ${end}`);
  }
  if (step <= 0) throw new JsonPathError('step must be > 0');
  return everyNth(list, { start, end, step });
}

function* everyNth(
  list: readonly JsonValue[],
  { start, end, step }: { readonly start: number; readonly end: number; readonly step: number },
): Generator<JsonValue> {
  for (let at = start; at < end; at += step) yield itemAt(list, at);
}

interface Scalar {
  readonly type: 'whole' | 'fraction' | 'string' | 'boolean';
  readonly value: string | number | boolean;
}

/** Returns the first value of an operand with its type. */
function scalarOf(value: JsonValue | undefined, action: JsonPathAction): Scalar {
  const last = action.at(-1);
  switch (typeof value) {
    case 'string':
      return { type: 'string', value };
    case 'boolean':
      return { type: 'boolean', value };
    case 'bigint':
      return { type: 'whole', value: Number(value) };
    case 'number': {
      // A constant with a decimal point is a float even if its fraction is zero.
      const isFloat = last?.kind === 'constant' ? last.isFloat : !Number.isInteger(value);
      return { type: isFloat ? 'fraction' : 'whole', value };
    }
    default:
      throw new JsonPathError('invalid type for comparison');
  }
}

const isEqual = (left: Scalar, right: Scalar): boolean => {
  if (left.type !== right.type) throw new JsonPathError('incompatible types for comparison');
  return left.value === right.value;
};

const isLess = (left: Scalar, right: Scalar): boolean => {
  if (left.type !== right.type) throw new JsonPathError('incompatible types for comparison');
  if (left.type === 'boolean') throw new JsonPathError('invalid type for comparison');
  return typeof left.value === 'string' && typeof right.value === 'string'
    ? compareText(left.value, right.value) < 0
    : left.value < right.value;
};

const comparisons: Readonly<Record<string, (left: Scalar, right: Scalar) => boolean>> = {
  '==': isEqual,
  '!=': (left, right) => !isEqual(left, right),
  '<': isLess,
  '>': (left, right) => !isLess(left, right) && !isEqual(left, right),
  '<=': (left, right) => isLess(left, right) || isEqual(left, right),
  '>=': (left, right) => !isLess(left, right),
};
