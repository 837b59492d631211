import {
  appendAll,
  type FieldError,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  WorkBudget,
} from '@wheelhouse/machinery';
import { isBooleanSchema, resolved, type Schema } from '../schema.ts';
import type { Pattern } from './pattern.ts';

/** The result of a check. */
export interface Result {
  readonly errors: FieldError[];
  /** The number of passed checks, by which the alternatives of anyOf are ranked. */
  checks: number;
  /** The work budget of validating one object, shared by the results of its parts. */
  readonly work: ValidationWork;
}

/** Maximum number of steps for the patterns and alternatives of one object. */
const validationStepsMax = 30_000_000;

/** Maximum number of match steps in one step of a validation. */
const undividedMatches = 200_000;

/** Number of match steps after which the matches of a step are cached, for repeated checks. */
const cachedFrom = 50_000;

/** The budget of validating one object, and a cache of matches. */
export class ValidationWork extends WorkBudget {
  readonly #matches = new Map<Pattern, Map<string, boolean>>();
  /** Steps of matches since the last step began. */
  #matched = 0;

  constructor() {
    super({ what: 'the validation of the object', steps: validationStepsMax });
  }

  /** Starts a new step of the validation. */
  endStep(): void {
    this.#matched = 0;
  }

  /**
   * Whether the pattern matches the text.
   * @throws LongCheck if the match takes too long for one step
   * @throws WorkExceeded if the budget is exceeded
   */
  test(pattern: Pattern, text: string): boolean {
    const cached = this.#matches.get(pattern)?.get(text);
    if (cached !== undefined) return cached;
    const steps = pattern.stepsFor(text.length);
    this.spend(steps);
    this.#matched += steps;
    if (this.#matched > undividedMatches) throw new LongCheck(this.#steps(pattern, text));
    const matches = pattern.test(text);
    if (this.#matched > cachedFrom) this.#cache(pattern, text, matches);
    return matches;
  }

  *#steps(pattern: Pattern, text: string): Generator<void, void> {
    yield;
    const matches = yield* pattern.testSteps(text);
    this.#cache(pattern, text, matches);
    yield;
    this.endStep();
  }

  #cache(pattern: Pattern, text: string, matches: boolean): void {
    const texts = this.#matches.get(pattern) ?? new Map<string, boolean>();
    this.#matches.set(pattern, texts.set(text, matches));
  }
}

/**
 * Thrown by a check that must compile a large pattern or needs a long match; it must be repeated
 * after the steps of that.
 */
export class LongCheck extends Error {
  /** Compiles or matches, and caches the result. */
  readonly steps: Generator<void, void>;
  constructor(steps: Generator<void, void>) {
    super('the check needs a pattern or a match that takes long');
    this.steps = steps;
  }
}

/** Returns a result without errors. */
export function newResult(work: ValidationWork): Result {
  return { errors: [], checks: 0, work };
}

/** Adds the errors and checks of another result. */
export function mergeInto(target: Result, other: Result): void {
  if (other.errors.length > 0) appendAll(target.errors, other.errors);
  target.checks += other.checks;
}

/** The place of a check: its path in messages, and its correlation in an update. */
export interface Place {
  readonly path: string;
  readonly pair: Correlation | undefined;
}

/** Adds the errors of a value at a place. */
export type Check = (value: JsonValue, place: Place, result: Result) => void;

/**
 * A value in an update and its previous version, so that the update is not rejected because of
 * parts that it does not change (CRD-3). Members are paired by name, and items of lists of type
 * `map` by their keys. Items of other lists are not paired.
 */
export interface Correlation {
  readonly old: JsonValue;
  readonly value: JsonValue;
  readonly schema: Schema;
  /** Cached on first use. */
  equal?: boolean;
  /** Previous items by their keys, cached on first use. */
  byKey?: ReadonlyMap<string, JsonValue>;
}

/** Pairs a value with its previous version. */
export function correlate(pair: { old: JsonValue; value: JsonValue; schema: Schema }): Correlation {
  return { ...pair, schema: resolved(pair.schema) };
}

/** Pairs a member, if both objects have it and it has a schema; `true` counts as none. */
export function correlateMember(
  at: Correlation | undefined,
  name: string,
): Correlation | undefined {
  if (at === undefined || !isObject(at.old) || !isObject(at.value)) return undefined;
  const schema = at.schema.properties?.get(name)?.schema ?? at.schema.additionalProperties;
  const old = member(at.old, name);
  const value = member(at.value, name);
  if (schema === undefined || isBooleanSchema(schema)) return undefined;
  if (old === undefined || value === undefined) return undefined;
  return correlate({ old, value, schema });
}

/** Pairs an item of a list of type `map`, if the previous list has an item with its keys. */
export function correlateItem(at: Correlation | undefined, index: number): Correlation | undefined {
  if (at === undefined || at.schema.listType !== 'map' || at.schema.items === undefined) {
    return undefined;
  }
  if (!Array.isArray(at.old) || !Array.isArray(at.value)) return undefined;
  const value = at.value[index];
  if (!isObject(value)) return undefined;
  const { listMapKeys = [] } = at.schema;
  const key = keyOf(value, listMapKeys);
  if (key === undefined) return undefined;
  at.byKey ??= itemsByKey(at.old, listMapKeys);
  const old = at.byKey.get(key);
  return old === undefined ? undefined : correlate({ old, value, schema: at.schema.items });
}

/**
 * Whether a value is unchanged by kube-apiserver's rules: the order of a list of type `map` is
 * irrelevant, and an object with a member without a schema always counts as changed.
 */
export function isUnchanged(at: Correlation): boolean {
  at.equal ??= compareVersions(at);
  return at.equal;
}

function compareVersions(at: Correlation): boolean {
  const { old, value, schema } = at;
  if (Array.isArray(old) && Array.isArray(value)) {
    if (old.length !== value.length) return false;
    if (schema.listType !== 'map') return jsonEqual(old, value);
    return value.every((_, index) => isPairUnchanged(correlateItem(at, index)));
  }
  if (isObject(old) && isObject(value)) {
    const names = Object.keys(value);
    if (names.length !== Object.keys(old).length) return false;
    return names.every((name) => isPairUnchanged(correlateMember(at, name)));
  }
  return jsonEqual(old, value);
}

const isPairUnchanged = (pair: Correlation | undefined) => pair !== undefined && isUnchanged(pair);

function itemsByKey(list: JsonArray, keys: readonly string[]): ReadonlyMap<string, JsonValue> {
  const items = new Map<string, JsonValue>();
  for (const item of list) {
    if (!isObject(item)) continue;
    const key = keyOf(item, keys);
    if (key !== undefined && !items.has(key)) items.set(key, item);
  }
  return items;
}

/** Returns the values of the key members as one string; undefined unless all are scalars. */
function keyOf(item: JsonObject, keys: readonly string[]): string | undefined {
  const values = keys.map((key) => member(item, key) ?? null);
  if (keys.length === 0 || values.some((value) => typeof value === 'object')) return undefined;
  return JSON.stringify(values, (_, value: unknown) =>
    typeof value === 'bigint' ? `int:${value}` : value,
  );
}
