import {
  canonicalJson,
  type FieldError,
  invalid,
  itemAt,
  type JsonObject,
  type JsonValue,
  listedMax,
  longerPath,
  required,
  Stride,
  showValue,
  tooMany,
  withField,
} from '@wheelhouse/machinery';
import { childPath, indexPath } from '../field-paths.ts';
import { type NestedValidation, resolved, type Schema } from '../schema.ts';
import { isLargePattern, Pattern } from './pattern.ts';
import {
  compositeError,
  enumCheck,
  fieldOf,
  formatValueCheck,
  numberCheck,
  stringCheck,
  typeCheck,
} from './validate-scalars.ts';
import { nodeOfNested, nodeOfSchema, type ValidationNode } from './validation-node.ts';
import {
  type Check,
  correlate,
  correlateItem,
  correlateMember,
  isUnchanged,
  LongCheck,
  mergeInto,
  newResult,
  type Place,
  type Result,
  ValidationWork,
} from './validation-result.ts';

interface ValidateOptions {
  /** The previous value in an update; errors about unchanged parts are then omitted. */
  readonly old?: JsonValue | undefined;
  /** The path of the value (`status`) if it is part of an object; the prefix of all fields. */
  readonly prefix?: string;
}

/** Returns the errors of a value, in steps (TRUST-2). */
type Validator = (
  value: JsonValue,
  options?: ValidateOptions,
) => Generator<void, readonly FieldError[]>;

const none: readonly FieldError[] = [];
const validators = {
  objects: new WeakMap<Schema, Validator>(),
  defaults: new WeakMap<Schema, Validator>(),
};

/**
 * Returns the validator of the schema of a custom kind: it checks the value validations of OpenAPI
 * and reports errors as kube-apiserver does (CRD-2). Other functions check CEL rules, list
 * uniqueness, and embedded metadata. Each `pattern` must be valid. Cached per schema.
 */
export function validate(schema: Schema): Validator {
  return validatorOf(schema, 'objects');
}

/** Returns the validator of defaults, in which an int-or-string can have any type. */
export function validateStructure(schema: Schema): Validator {
  return validatorOf(schema, 'defaults');
}

function validatorOf(schema: Schema, use: keyof typeof validators): Validator {
  const at = resolved(schema);
  const cachedValidator = validators[use].get(at);
  if (cachedValidator !== undefined) return cachedValidator;
  const { steps } = compileNode(nodeOfSchema(at, { ofDefault: use === 'defaults' }));
  const validator: Validator = function* (value, options) {
    let result = newResult(new ValidationWork());
    yield* steps(value, { path: '', pair: undefined }, new Progress(result));
    if (result.errors.length === 0) return none;
    const old = options?.old;
    if (old !== undefined) {
      // Correlates values only after a failure, because most updates are valid.
      const pair = correlate({ old, value, schema: at });
      if (isUnchanged(pair)) return none;
      result = newResult(new ValidationWork());
      yield* steps(value, { path: '', pair }, new Progress(result));
    }
    const errors = withoutRepeated(result.errors);
    const prefix = options?.prefix;
    return prefix === undefined ? errors : errors.map((error) => under(prefix, error));
  };
  validators[use].set(at, validator);
  return validator;
}

/** Maximum number of errors that are compared to find duplicates. */
const comparedMax = 10 * listedMax;

/**
 * Removes duplicate errors, which nested alternatives produce. Errors beyond those that a response
 * lists are not compared.
 */
function withoutRepeated(errors: readonly FieldError[]): readonly FieldError[] {
  if (errors.length < 2) return errors;
  const listed = new Map<string, FieldError>();
  let compared = 0;
  for (const error of errors) {
    if (listed.size > listedMax || compared === comparedMax) break;
    listed.set(`${error.field}: ${error.message}`, error);
    compared += 1;
  }
  return listed.size === compared ? errors : [...listed.values(), ...errors.slice(compared)];
}

function under(prefix: string, error: FieldError): FieldError {
  if (error.field === '<nil>' || error.field === '') return withField(error, prefix);
  return withField(error, childPath(prefix, error.field));
}

/** Compiles the check of a node; the checks of its children are compiled on first use. */
const compile = (node: ValidationNode): Check => compileNode(node).check;

/** The check of a node, which runs in one piece or in steps. */
interface NodeCheck {
  readonly check: Check;
  readonly steps: (value: JsonValue, place: Place, progress: Progress) => Generator<void, void>;
}

/** Number of budget steps between two pauses; matching patterns consumes them. */
const pausedAfter = 100_000;

/** Determines where a validation pauses: after many values, and after long matches. */
class Progress {
  readonly result: Result;
  readonly #stride = new Stride();
  #pauseAt: number;

  constructor(result: Result) {
    this.result = result;
    this.#pauseAt = result.work.left - pausedAfter;
  }

  /**
   * Runs a check, and repeats it after each long match that it needs. A repeated check starts from
   * the errors that preceded it.
   */
  *run(check: () => void): Generator<void, void> {
    const { result } = this;
    const { checks } = result;
    const { length } = result.errors;
    for (;;) {
      try {
        check();
        return;
      } catch (error) {
        if (!(error instanceof LongCheck)) throw error;
        result.checks = checks;
        result.errors.length = length;
        yield* error.steps;
      }
    }
  }

  /** Whether a value has few members and little text, so that it can be checked in one piece. */
  isLight(value: JsonValue): boolean {
    return this.#stride.weigh(value) === 'light' && textIn(value, textMax) >= 0;
  }

  /** Whether the current step is over, so that the validation must pause. */
  get isOver(): boolean {
    if (!this.#stride.isOver && this.result.work.left > this.#pauseAt) return false;
    this.#pauseAt = this.result.work.left - pausedAfter;
    this.result.work.endStep();
    return true;
  }
}

/** Maximum length of the text in a light value, in characters. */
const textMax = 16_384;

/** Subtracts the lengths of all texts in a value from `max`; negative if they exceed it. */
function textIn(value: JsonValue, max: number): number {
  if (typeof value === 'string') return max - value.length;
  if (typeof value !== 'object' || value === null) return max;
  let left = max;
  for (const part of Object.values(value)) {
    left = textIn(part ?? null, left);
    if (left < 0) break;
  }
  return left;
}

function compileNode(node: ValidationNode): NodeCheck {
  const open = openingCheck(node);
  const checkScalar = scalarCheck(node);
  const checkEnum = enumCheck(node.enum);
  const items = itemsCheck(node);
  const members = membersCheck(node);
  const check: Check = (value, place, result) => {
    open(value, place, result);
    if (typeof value !== 'object') checkScalar(value, place, result);
    else if (Array.isArray(value)) {
      items.open(result);
      for (const child of items.children(value, place)) checkChild(child, result);
      items.close(value, place, result);
    }
    checkEnum?.(value, place.path, result.errors);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    members.open(value, place, result);
    for (const child of members.children(value, place)) checkChild(child, result);
    members.close(value, place, result);
  };
  return {
    check,
    *steps(value, place, progress) {
      const { result } = progress;
      if (typeof value !== 'object' || value === null) {
        yield* progress.run(() => check(value, place, result));
        return;
      }
      yield* progress.run(() => open(value, place, result));
      if (Array.isArray(value)) {
        items.open(result);
        for (const child of items.children(value, place)) yield* childSteps(child, progress);
        items.close(value, place, result);
        checkEnum?.(value, place.path, result.errors);
        return;
      }
      checkEnum?.(value, place.path, result.errors);
      members.open(value, place, result);
      for (const child of members.children(value, place)) yield* childSteps(child, progress);
      members.close(value, place, result);
    },
  };
}

/** Returns the check of the type and of anyOf and the like, which precede the parts of a value. */
function openingCheck(node: ValidationNode): Check {
  const hasType = node.types.length > 0 || node.format !== '';
  const checkType = hasType ? typeCheck(node) : undefined;
  const checkAlternatives = alternativesCheck(node);
  return (value, place, result) => {
    if (checkType !== undefined) {
      if (checkType(value, place.path, result.errors)) result.checks += 1;
      result.checks += 1;
    }
    if (value === null) return;
    checkAlternatives?.(value, place, result);
    result.checks += 4;
  };
}

function scalarCheck(node: ValidationNode): Check {
  const { pattern } = node.values;
  const checkText = stringCheck(
    node.values,
    pattern === undefined || pattern === '' ? undefined : lazyPattern(pattern),
  );
  const checkFormat = formatValueCheck(node.format);
  const checkNumber = numberCheck(node.values);
  return (value, { path }, result) => {
    if (typeof value === 'string') {
      checkText?.(value, path, result);
      checkFormat?.(value, path, result.errors);
      if (checkFormat !== undefined) result.checks += 1;
    } else if (typeof value === 'number' || typeof value === 'bigint') {
      checkNumber?.(value, path, result.errors);
      result.checks += 1;
    } else result.checks -= 1;
  };
}

/** Returns the test of a pattern, which is compiled on first use because that takes long. */
function lazyPattern(source: string): (text: string, work: ValidationWork) => boolean {
  let pattern: Pattern | undefined;
  function* compileSteps(): Generator<void, void> {
    yield;
    const parsed = new Pattern(source);
    yield* parsed.compileSteps();
    pattern = parsed;
  }
  return (text, work) => {
    if (pattern === undefined && isLargePattern(source)) throw new LongCheck(compileSteps());
    pattern ??= new Pattern(source);
    return work.test(pattern, text);
  };
}

/** The check of a node that compiles when a value first reaches it. */
type LazyCheck = () => NodeCheck;

function lazyCheck(node: () => ValidationNode): LazyCheck {
  let compiled: NodeCheck | undefined;
  return () => {
    compiled ??= compileNode(node());
    return compiled;
  };
}

/** A member or an item with the check of its node, or the error if it has no node. */
type Child =
  | { readonly value: JsonValue; readonly place: Place; readonly check: LazyCheck }
  | { readonly error: FieldError };

function checkChild(child: Child, result: Result): void {
  if ('error' in child) {
    result.errors.push(child.error);
    return;
  }
  const { value, place, check } = child;
  const before = result.errors.length;
  check().check(value, place, result);
  dropIfUnchanged(place, result, before);
}

function* childSteps(child: Child, progress: Progress): Generator<void, void> {
  const { result } = progress;
  if (progress.isOver) yield;
  if ('error' in child) {
    result.errors.push(child.error);
    return;
  }
  const { value, place, check } = child;
  const before = result.errors.length;
  if (progress.isLight(value)) {
    yield* progress.run(() => check().check(value, place, result));
  } else yield* check().steps(value, place, progress);
  dropIfUnchanged(place, result, before);
}

/** Removes the errors of an unchanged member or item. */
function dropIfUnchanged({ pair }: Place, { errors }: Result, before: number): void {
  if (pair !== undefined && errors.length > before && isUnchanged(pair)) errors.length = before;
}

function itemsCheck(node: ValidationNode) {
  const check = node.items === undefined ? undefined : lazyCheck(node.items);
  const { minItems, maxItems, uniqueItems } = node.values;
  const open = (result: Result): void => {
    result.checks += 1;
  };
  function* children(list: readonly JsonValue[], place: Place): Generator<Child, void> {
    if (check === undefined) return;
    for (const [index, value] of list.entries()) {
      const pair = place.pair === undefined ? undefined : correlateItem(place.pair, index);
      yield { value, place: { path: indexPath(place.path, index), pair }, check };
    }
  }
  const close = (list: readonly JsonValue[], { path }: Place, result: Result): void => {
    const size = list.length;
    if (minItems !== undefined && size < minItems) {
      const message = `${path} in body should have at least ${minItems} items`;
      result.errors.push(invalid(fieldOf(path), size, message));
    }
    if (maxItems !== undefined && size > maxItems) {
      result.errors.push(tooMany(fieldOf(path), size, maxItems));
    }
    if (uniqueItems === true && hasDuplicates(list)) {
      const message = `${path} in body shouldn't contain duplicates`;
      result.errors.push(invalid(fieldOf(path), '', message));
    }
  };
  return { open, children, close };
}

function hasDuplicates(list: readonly JsonValue[]): boolean {
  return new Set(list.map((item) => canonicalJson(item))).size < list.length;
}

function membersCheck(node: ValidationNode) {
  const checks = new Map([...node.properties].map(([name, child]) => [name, lazyCheck(child)]));
  const additional = node.additional === undefined ? undefined : lazyCheck(node.additional);
  const { minProperties, maxProperties } = node.values;
  const counts = minProperties !== undefined || maxProperties !== undefined;
  const open = (object: JsonObject, { path }: Place, result: Result): void => {
    if (counts) checkCount(node, { object, path }, result);
  };
  const children = (object: JsonObject, place: Place): readonly Child[] => {
    const members: Child[] = [];
    const atRoot = place.path === '';
    for (const name of Object.keys(object)) {
      const named = checks.get(name);
      const check = named ?? additional;
      const value = object[name];
      if (value === undefined) continue;
      if (check === undefined) {
        if (node.closed) members.push({ error: forbiddenMember(place.path, name) });
        continue;
      }
      const path = longerPath(place.path, named !== undefined && atRoot ? name : `.${name}`);
      const isTypeMeta = atRoot && (name === 'apiVersion' || name === 'kind');
      const pair =
        place.pair === undefined || isTypeMeta ? undefined : correlateMember(place.pair, name);
      members.push({ value, place: { path, pair }, check });
    }
    return members;
  };
  const close = (object: JsonObject, place: Place, result: Result): void => {
    for (const name of node.required) {
      if (Object.hasOwn(object, name) && object[name] !== undefined) continue;
      result.errors.push(required(childPath(fieldOf(place.path), name)));
    }
  };
  return { open, children, close };
}

function forbiddenMember(path: string, name: string): FieldError {
  const message = `${longerPath(path, `.${name}`)} in body is a forbidden property`;
  return invalid(fieldOf(path), name, message);
}

function checkCount(
  node: ValidationNode,
  at: { object: JsonObject; path: string },
  result: Result,
): void {
  const { minProperties, maxProperties } = node.values;
  const count = Object.keys(at.object).length;
  if (minProperties !== undefined && count < minProperties) {
    const message = `${at.path} in body should have at least ${minProperties} properties`;
    result.errors.push(invalid(fieldOf(at.path), count, message));
  }
  if (maxProperties !== undefined && count > maxProperties) {
    result.errors.push(tooMany(fieldOf(at.path), count, maxProperties));
  }
}

/** The checks of the alternatives of a node. */
interface Alternatives {
  readonly anyOf: readonly Check[];
  readonly oneOf: readonly Check[];
  readonly allOf: readonly Check[];
  readonly not: Check | undefined;
}

/**
 * Returns the check of allOf, anyOf, oneOf, and not; undefined if there are none. As in
 * kube-apiserver, an alternative reports unchanged parts too (CRD-3).
 */
function alternativesCheck({ values, options }: ValidationNode): Check | undefined {
  const { anyOf = [], oneOf = [], allOf = [], not } = values;
  if (anyOf.length + oneOf.length + allOf.length === 0 && not === undefined) return undefined;
  const compileNested = (nested: NestedValidation) => compile(nodeOfNested(nested, options));
  const all = (list: readonly NestedValidation[]) => list.map(compileNested);
  const checks: Alternatives = {
    anyOf: all(anyOf),
    oneOf: all(oneOf),
    allOf: all(allOf),
    not: not === undefined ? undefined : compileNested(not),
  };
  return (value, { path }, result) => {
    const at = { value, place: { path, pair: undefined } };
    if (checks.anyOf.length > 0) checkAny(checks.anyOf, at, result);
    if (checks.oneOf.length > 0) checkOne(checks.oneOf, at, result);
    if (checks.allOf.length > 0) checkAll(checks.allOf, at, result);
    if (checks.not !== undefined && isValid(run(checks.not, at, result.work))) {
      const message = `${showValue(path)} must not validate the schema (not)`;
      result.errors.push(compositeError(message));
    }
  };
}

interface At {
  readonly value: JsonValue;
  readonly place: Place;
}

/**
 * Cost of an alternative besides its patterns, since there may be as many alternatives as an object
 * has items.
 */
const alternativeSteps = 20;

function run(check: Check, at: At, work: ValidationWork): Result {
  work.spend(alternativeSteps);
  const result = newResult(work);
  check(at.value, at.place, result);
  result.checks += 1;
  return result;
}

const isValid = (result: Result) => result.errors.length === 0;

/** Requires one alternative; if all fail, adds the errors of the one that passed most checks. */
function checkAny(alternatives: readonly Check[], at: At, result: Result): void {
  let best: Result | undefined;
  for (const alternative of alternatives) {
    const outcome = run(alternative, at, result.work);
    if (isValid(outcome)) {
      mergeInto(result, outcome);
      return;
    }
    if (best === undefined || outcome.checks > best.checks) best = outcome;
  }
  const path = showValue(at.place.path);
  result.errors.push(compositeError(`${path} must validate at least one schema (anyOf)`));
  if (best !== undefined) mergeInto(result, best);
}

function checkOne(alternatives: readonly Check[], at: At, result: Result): void {
  const outcomes = alternatives.map((alternative) => run(alternative, at, result.work));
  const valid = outcomes.filter(isValid);
  if (valid.length === 1) {
    mergeInto(result, itemAt(valid, 0));
    return;
  }
  const found =
    valid.length === 0 ? 'Found none valid' : `Found ${valid.length} valid alternatives`;
  const path = showValue(at.place.path);
  result.errors.push(
    compositeError(`${path} must validate one and only one schema (oneOf). ${found}`),
  );
  if (valid.length > 0) return;
  let best = itemAt(outcomes, 0);
  for (const outcome of outcomes) if (outcome.checks > best.checks) best = outcome;
  mergeInto(result, best);
}

function checkAll(parts: readonly Check[], at: At, result: Result): void {
  const outcomes = parts.map((part) => run(part, at, result.work));
  for (const outcome of outcomes) mergeInto(result, outcome);
  const valid = outcomes.filter(isValid).length;
  if (valid === parts.length) return;
  const path = showValue(at.place.path);
  const none = valid === 0 ? '. None validated' : '';
  result.errors.push(compositeError(`${path} must validate all the schemas (allOf)${none}`));
}
