import {
  canonical,
  type FieldError,
  invalid,
  type JsonObject,
  type JsonValue,
  listedMax,
  ofField,
  required,
  tooMany,
  type WorkBudget,
} from '@wheelhouse/machinery';
import { childPath } from '../path.ts';
import { resolved, type Schema } from '../schema.ts';
import { correlate, correlateItem, correlateMember, isUnchanged } from './correlation.ts';
import { Pattern } from './pattern.ts';
import { junctorsOf } from './validate-junctors.ts';
import {
  enumCheck,
  fieldOf,
  formatValueCheck,
  numberCheck,
  stringCheck,
  typeCheck,
} from './validate-scalars.ts';
import { nodeOfSchema, type ValidationNode } from './validation-node.ts';
import {
  type Check,
  newResult,
  type Place,
  type Result,
  validationBudget,
} from './validation-result.ts';

export interface ValidateOptions {
  /**
   * The value before an update. Errors about what has not changed are then left out. Absent: all
   * errors count.
   */
  readonly old?: JsonValue | undefined;
  /** Put ahead of every error's field, for a value that is part of an object (`status`). */
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
 * and error types (CRD-2). CEL rules, list uniqueness and embedded metadata are other functions'.
 * A `pattern` must have been accepted at the CustomResourceDefinition's admission. Made once per
 * schema.
 */
export function validate(schema: Schema): Validator {
  return validatorOf(schema, 'objects');
}

/** The same for defaults, of which upstream lets int-or-string be of any type. */
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
      // Only now is it worth pairing the values: most updates are right as they stand.
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
 * Junctors inside of each other find the same error more than once: it is listed once. Errors behind
 * the last that an answer lists are not compared.
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

/** Makes the check of a node. Children compile when a value first reaches them. */
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

/** RE2 compiles slowly: only for kinds whose objects come by. */
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

/** Checks a member or item with a pair of its own: unchanged, its errors do not count. */
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
