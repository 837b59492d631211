import {
  canonical,
  type FieldError,
  invalid,
  itemAt,
  type JsonObject,
  type JsonValue,
  listedMax,
  ofField,
  required,
  tooMany,
  type WorkBudget,
} from '@wheelhouse/machinery';
import { childPath } from '../field-paths.ts';
import { type NestedValidation, resolved, type Schema, type ValueValidation } from '../schema.ts';
import { Pattern } from './pattern.ts';
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
  mergeInto,
  newResult,
  type Place,
  type Result,
  validationBudget,
} from './validation-result.ts';

export interface ValidateOptions {
  /**
   * The previous value of an update. Errors about unchanged parts are then omitted. If absent, all
   * errors are reported.
   */
  readonly old?: JsonValue | undefined;
  /** Prefix of every error's field, for a value that is part of an object (`status`). */
  readonly prefix?: string;
}

export type Validator = (value: JsonValue, options?: ValidateOptions) => readonly FieldError[];

const none: readonly FieldError[] = [];
const validators = {
  objects: new WeakMap<Schema, Validator>(),
  defaults: new WeakMap<Schema, Validator>(),
};

/**
 * The validator of a custom kind's schema: OpenAPI's value validations with kube-openapi's wording
 * and error types (CRD-2). Other functions check CEL rules, list uniqueness, and embedded metadata.
 * The CustomResourceDefinition's validation must have accepted each `pattern`. Cached per schema.
 */
export function validate(schema: Schema): Validator {
  return validatorOf(schema, 'objects');
}

/** The same for defaults, in which kube-apiserver allows int-or-string to have any type. */
export function validateStructure(schema: Schema): Validator {
  return validatorOf(schema, 'defaults');
}

function validatorOf(schema: Schema, use: keyof typeof validators): Validator {
  const at = resolved(schema);
  const cachedValidator = validators[use].get(at);
  if (cachedValidator !== undefined) return cachedValidator;
  const check = compile(nodeOfSchema(at, { ofDefault: use === 'defaults' }));
  const validator: Validator = (value, options) => {
    let result = newResult(validationBudget());
    check(value, { path: '', pair: undefined }, result);
    if (result.errors.length === 0) return none;
    const old = options?.old;
    if (old !== undefined) {
      // Correlates values only after a failure, because most updates are valid.
      const pair = correlate({ old, value, schema: at });
      if (isUnchanged(pair)) return none;
      result = newResult(validationBudget());
      check(value, { path: '', pair }, result);
    }
    const errors = withoutRepeated(result.errors);
    const prefix = options?.prefix;
    return prefix === undefined ? errors : errors.map((one) => under(prefix, one));
  };
  validators[use].set(at, validator);
  return validator;
}

/**
 * Removes duplicate errors, which nested junctors produce. Errors beyond those that a response
 * lists are not compared.
 */
function withoutRepeated(errors: readonly FieldError[]): readonly FieldError[] {
  if (errors.length < 2) return errors;
  const listed = new Map<string, FieldError>();
  let compared = 0;
  for (const error of errors) {
    if (listed.size > listedMax) break;
    listed.set(`${error.field}: ${error.message}`, error);
    compared += 1;
  }
  return listed.size === compared ? errors : [...listed.values(), ...errors.slice(compared)];
}

function under(prefix: string, error: FieldError): FieldError {
  if (error.field === '<nil>' || error.field === '') return ofField(error, prefix);
  return ofField(error, childPath(prefix, error.field));
}

/** Compiles the check of a node. Children are compiled on first use. */
export function compile(node: ValidationNode): Check {
  const hasType = node.types.length > 0 || node.format !== '';
  const checkType = hasType ? typeCheck(node) : undefined;
  const junctors = junctorsOf(node.values, compile);
  const { pattern } = node.values;
  const checkText = stringCheck(
    node.values,
    pattern === undefined || pattern === '' ? undefined : lazyPattern(pattern),
  );
  const checkFormat = formatValueCheck(node.format);
  const checkNumber = numberCheck(node.values);
  const checkEnum = enumCheck(node.enum);
  const checkItems = itemsCheck(node);
  const checkMembers = membersCheck(node);
  return (value, place, result) => {
    const { errors } = result;
    if (checkType !== undefined) {
      if (checkType(value, place.path, errors)) result.checks += 1;
      result.checks += 1;
    }
    if (value === null) {
      checkEnum?.(value, place.path, errors);
      return;
    }
    junctors?.(value, place, result);
    result.checks += 4;
    if (typeof value === 'string') {
      checkText?.(value, place.path, result);
      checkFormat?.(value, place.path, errors);
      if (checkFormat !== undefined) result.checks += 1;
    } else if (typeof value === 'number' || typeof value === 'bigint') {
      checkNumber?.(value, place.path, errors);
      result.checks += 1;
    } else if (typeof value === 'object') {
      if (Array.isArray(value)) checkItems(value, place, result);
    } else {
      result.checks -= 1;
    }
    checkEnum?.(value, place.path, errors);
    if (typeof value === 'object' && !Array.isArray(value)) checkMembers(value, place, result);
  };
}

/** RE2 compiles slowly, so patterns are compiled on first use. */
function lazyPattern(source: string): (text: string, work: WorkBudget) => boolean {
  let pattern: Pattern | undefined;
  return (text, work) => {
    pattern ??= new Pattern(source);
    work.spend(pattern.stepsFor(text.length));
    return pattern.test(text);
  };
}

function lazyCheck(node: () => ValidationNode): Check {
  let check: Check | undefined;
  return (value, place, result) => {
    check ??= compile(node());
    check(value, place, result);
  };
}

/** Checks a member or item with its correlation. Errors in an unchanged value are ignored. */
function checkChild(check: Check, child: { value: JsonValue; place: Place }, result: Result): void {
  const { pair } = child.place;
  if (pair === undefined) {
    check(child.value, child.place, result);
    return;
  }
  const before = result.errors.length;
  check(child.value, child.place, result);
  if (result.errors.length > before && isUnchanged(pair)) result.errors.length = before;
}

function itemsCheck(
  node: ValidationNode,
): (list: JsonValue[], place: Place, result: Result) => void {
  const check = node.items === undefined ? undefined : lazyCheck(node.items);
  const { minItems, maxItems, uniqueItems } = node.values;
  return (list, place, result) => {
    const { path } = place;
    const size = list.length;
    result.checks += 1;
    if (check !== undefined) {
      let index = 0;
      for (const value of list) {
        const pair = place.pair === undefined ? undefined : correlateItem(place.pair, index);
        checkChild(check, { value, place: { path: `${path}[${index}]`, pair } }, result);
        index += 1;
      }
    }
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
}

function hasDuplicates(list: readonly JsonValue[]): boolean {
  return new Set(list.map((item) => canonical(item))).size < list.length;
}

function membersCheck(
  node: ValidationNode,
): (object: JsonObject, place: Place, result: Result) => void {
  const checks = new Map([...node.properties].map(([name, child]) => [name, lazyCheck(child)]));
  const additional = node.additional === undefined ? undefined : lazyCheck(node.additional);
  const { minProperties, maxProperties } = node.values;
  const counts = minProperties !== undefined || maxProperties !== undefined;
  return (object, place, result) => {
    if (counts) checkCount(node, { object, path: place.path }, result);
    const atRoot = place.path === '';
    for (const name of Object.keys(object)) {
      const named = checks.get(name);
      const check = named ?? additional;
      const value = object[name];
      if (value === undefined) continue;
      if (check === undefined) {
        if (node.closed) result.errors.push(forbiddenMember(place.path, name));
        continue;
      }
      const path = named !== undefined && atRoot ? name : `${place.path}.${name}`;
      const isTypeMeta = atRoot && (name === 'apiVersion' || name === 'kind');
      const pair =
        place.pair === undefined || isTypeMeta ? undefined : correlateMember(place.pair, name);
      checkChild(check, { value, place: { path, pair } }, result);
    }
    for (const name of node.required) {
      if (Object.hasOwn(object, name) && object[name] !== undefined) continue;
      result.errors.push(required(childPath(fieldOf(place.path), name)));
    }
  };
}

function forbiddenMember(path: string, name: string): FieldError {
  return invalid(fieldOf(path), name, `${path}.${name} in body is a forbidden property`);
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

type Compile = (node: ValidationNode) => Check;

interface Checks {
  readonly anyOf: readonly Check[];
  readonly oneOf: readonly Check[];
  readonly allOf: readonly Check[];
  readonly not: Check | undefined;
}

/** The checks of allOf, anyOf, oneOf, and not; undefined if there are none. */
function junctorsOf(validation: ValueValidation, compile: Compile): Check | undefined {
  const { anyOf = [], oneOf = [], allOf = [], not } = validation;
  if (anyOf.length + oneOf.length + allOf.length === 0 && not === undefined) return undefined;
  const all = (list: readonly NestedValidation[]) => list.map((one) => compile(nodeOfNested(one)));
  const checks: Checks = {
    anyOf: all(anyOf),
    oneOf: all(oneOf),
    allOf: all(allOf),
    not: not === undefined ? undefined : compile(nodeOfNested(not)),
  };
  return (value, place, result) => {
    if (checks.anyOf.length > 0) checkAny(checks.anyOf, { value, place }, result);
    if (checks.oneOf.length > 0) checkOne(checks.oneOf, { value, place }, result);
    if (checks.allOf.length > 0) checkAll(checks.allOf, { value, place }, result);
    if (checks.not !== undefined && isValid(run(checks.not, { value, place }, result.work))) {
      const message = `${JSON.stringify(place.path)} must not validate the schema (not)`;
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

function run(check: Check, at: At, work: WorkBudget): Result {
  work.spend(alternativeSteps);
  const result = newResult(work);
  check(at.value, at.place, result);
  result.checks += 1;
  return result;
}

const isValid = (result: Result) => result.errors.length === 0;

/** If all alternatives fail, the errors of the one that passed most checks are reported too. */
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
  const path = JSON.stringify(at.place.path);
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
  const path = JSON.stringify(at.place.path);
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
  const path = JSON.stringify(at.place.path);
  const none = valid === 0 ? '. None validated' : '';
  result.errors.push(compositeError(`${path} must validate all the schemas (allOf)${none}`));
}
