import {
  type ApiObject,
  appendAll,
  type FieldError,
  goPlain,
  goTypeName,
  integralFloatsOf,
  invalid,
  isIntegralFloat,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqualSteps,
  member,
} from '@wheelhouse/machinery';
import {
  applyDefaults,
  type EmbeddedRules,
  resolved,
  type Schema,
  validate,
  validateEmbedded,
  validateUniqueness,
} from '@wheelhouse/schema';
import { at, stepsOf, valueAt } from '../cells.ts';
import type { MetadataErrors, Strategy, StrategyContext } from '../resource-def.ts';
import type { CrdScale } from './definition.ts';

/**
 * Runs the CEL rules of a schema in steps. `warn` receives the errors that do not reject a change,
 * because the old object has them too; with `unforgiving`, these errors also reject it.
 */
type RuleValidator = (
  object: ApiObject,
  old: ApiObject | undefined,
  warn?: ((text: string) => void) | 'unforgiving',
) => Generator<void, readonly FieldError[]>;

/** Compiles the rules (`x-kubernetes-validations`) of a valid schema; undefined if it has none. */
export type RuleCompiler = (schema: Schema) => RuleValidator | undefined;

/** The rules of one version and their inputs. */
export interface VersionRules {
  readonly apiVersion: string;
  readonly kind: string;
  readonly schema: Schema;
  readonly hasStatus: boolean;
  readonly scale: CrdScale | undefined;
  readonly embedded: EmbeddedRules;
  readonly rules: RuleValidator | undefined;
  /** Whether the schema has CEL rules, even if they do not run. */
  readonly hasRules: boolean;
  /** `off` if a change may not keep invalid values of the old object. */
  readonly ratcheting?: 'off';
}

/**
 * Returns the strategy of a custom kind.
 * @param rulesOf returns the rules of the request's version
 */
export function customStrategy(
  rulesOf: (context: StrategyContext) => VersionRules,
  parts: {
    readonly hasStatus: boolean;
    readonly validateName: Strategy['validateName'];
    readonly qualifiedName: (name: string) => readonly string[];
    readonly standardFinalizers: readonly string[];
  },
): Strategy {
  return {
    validateName: parts.validateName,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: false,
    hasStatus: parts.hasStatus,
    deleteAnswers: 'status',
    ...(parts.hasStatus ? { resetFields: { '': ['status'], status: ['spec'] } } : {}),
    prepareForCreate: (context, object) => {
      const rules = rulesOf(context);
      if (rules.hasStatus) delete object['status'];
      object.metadata.generation = 1;
    },
    prepareForUpdate: (context, object, old) => {
      if (context.subresource === 'status') return keepAllButStatus(object, old);
      return prepareSpecUpdate(rulesOf(context), object, old);
    },
    validateCreate: (context, object, metadata) =>
      validateObject(rulesOf(context), { object, old: undefined, metadata, warn: context.warn }),
    validateUpdate: (context, object, old, metadata) => {
      const rules = rulesOf(context);
      const change = { object, old, metadata, warn: context.warn };
      if (context.subresource === 'status') return validateStatusChange(rules, change);
      return validateObject(rules, change);
    },
    warnings: (object, old) => finalizerWarnings(object, old, parts),
  };
}

function* prepareSpecUpdate(
  rules: VersionRules,
  object: ApiObject,
  old: ApiObject,
): Generator<void, void> {
  if (rules.hasStatus) {
    const status = old['status'];
    if (status === undefined) delete object['status'];
    else object['status'] = status;
  }
  if (yield* jsonEqualSteps(withoutMeta(object), withoutMeta(old))) return;
  object.metadata.generation = (old.metadata.generation ?? 0) + 1;
}

/** The object without its metadata, and without apiVersion, which is the request's. */
function withoutMeta(object: ApiObject): JsonObject {
  const { metadata, apiVersion, ...rest } = object;
  return rest;
}

const isTypeOrMetadata = (name: string) =>
  name === 'metadata' || name === 'apiVersion' || name === 'kind';

/** Restores everything but the status and the managed fields. */
function keepAllButStatus(object: ApiObject, old: ApiObject): void {
  const { status } = object;
  const { managedFields } = object.metadata;
  for (const name of Object.keys(object)) if (!isTypeOrMetadata(name)) delete object[name];
  for (const name of Object.keys(old)) if (!isTypeOrMetadata(name)) object[name] = old[name];
  object.metadata = { ...old.metadata };
  if (managedFields === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = managedFields;
  if (status === undefined) delete object['status'];
  else object['status'] = status;
}

function validateTypeMeta(rules: VersionRules, object: ApiObject): readonly FieldError[] {
  if (object.kind !== rules.kind) return [invalid('kind', object.kind, `must be ${rules.kind}`)];
  return [];
}

/** A new object, or a change of an old one. */
interface Change<Old = ApiObject | undefined> {
  readonly object: ApiObject;
  readonly old: Old;
  readonly metadata: MetadataErrors | undefined;
  /** Receives warnings about errors that do not reject the object. */
  readonly warn: StrategyContext['warn'];
}

/** Validates the whole object; an update may keep the errors of the old object. */
function* validateObject(
  rules: VersionRules,
  change: Change,
): Generator<void, readonly FieldError[]> {
  const { object, old } = change;
  const typeErrors = validateTypeMeta(rules, object);
  if (typeErrors.length > 0) return typeErrors;
  const wasUnique = old === undefined || validateUniqueness(rules.schema, old).length === 0;
  const ratchet = old === undefined || rules.ratcheting === 'off' ? {} : { old };
  const errors = [
    ...(yield* validate(rules.schema)(object, ratchet)),
    ...scaleErrors(rules.scale, object),
    ...validateEmbedded(rules.schema, object, rules.embedded),
    ...(wasUnique ? validateUniqueness(rules.schema, object) : []),
  ];
  return yield* withRules(rules, errors, change);
}

/** Validates only `status` by the schema; an update may keep the errors of the old status. */
function* validateStatusChange(
  rules: VersionRules,
  change: Change<ApiObject>,
): Generator<void, readonly FieldError[]> {
  const { object, old } = change;
  const typeErrors = validateTypeMeta(rules, object);
  if (typeErrors.length > 0) return typeErrors;
  const schema = resolved(rules.schema).properties?.get('status')?.schema;
  const status = object['status'];
  const errors: FieldError[] = [];
  if (schema !== undefined && status !== undefined) {
    const ratchet = rules.ratcheting === 'off' ? {} : { old: old['status'] };
    appendAll(errors, yield* validate(schema)(status, { prefix: 'status', ...ratchet }));
  }
  appendAll(errors, statusScaleErrors(rules.scale, object));
  const repeated = validateUniqueness(rules.schema, object);
  if (repeated.length > 0 && validateUniqueness(rules.schema, old).length === 0) {
    appendAll(errors, repeated);
  }
  return yield* withRules(rules, errors, change);
}

/** Types of errors after which CEL rules do not run. */
const blockingTypes: ReadonlySet<FieldError['type']> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);
const isBlocking = ({ type }: FieldError) => blockingTypes.has(type);
const unchecked =
  'some validation rules were not checked because the object was invalid; ' +
  'correct the existing errors to complete validation';

/** Adds the errors of the CEL rules, or an error that they were not checked. */
function* withRules(
  rules: VersionRules,
  errors: readonly FieldError[],
  change: Change,
): Generator<void, readonly FieldError[]> {
  const isBlocked = () => [...(change.metadata?.() ?? []), ...errors].some(isBlocking);
  if (rules.hasRules && isBlocked()) return [...errors, invalid('<nil>', 'null', unchecked)];
  if (rules.rules === undefined) return errors;
  const warn = rules.ratcheting === 'off' ? 'unforgiving' : change.warn;
  return [...errors, ...(yield* rules.rules(change.object, change.old, warn))];
}

const replicasMax = 2 ** 31 - 1;

function scaleErrors(scale: CrdScale | undefined, object: ApiObject): FieldError[] {
  if (scale === undefined) return [];
  return [...replicaErrors(scale.specReplicasPath, object), ...statusScaleErrors(scale, object)];
}

function statusScaleErrors(scale: CrdScale | undefined, object: ApiObject): FieldError[] {
  if (scale === undefined) return [];
  const errors = replicaErrors(scale.statusReplicasPath, object);
  const path = scale.labelSelectorPath ?? '';
  if (path === '') return errors;
  const problem = parentProblem(object, path);
  if (problem !== undefined) return [...errors, invalid(path, '', problem)];
  const selector = valueAt(object, path);
  if (selector !== undefined && typeof selector !== 'string') {
    errors.push(invalid(path, '', accessorError(path, selector, 'string')));
  }
  return errors;
}

function replicaErrors(path: string, object: ApiObject): FieldError[] {
  const problem = integerProblem(object, path);
  if (problem !== undefined) return [invalid(path, 0, problem)];
  const replicas = valueAt(object, path);
  if (typeof replicas !== 'bigint' && typeof replicas !== 'number') return [];
  if (replicas < 0) return [invalid(path, replicas, 'should be a non-negative integer')];
  if (replicas > replicasMax) {
    return [invalid(path, replicas, `should be less than or equal to ${replicasMax}`)];
  }
  return [];
}

/**
 * Why no integer can be read at a simple path (`.spec.replicas`): the value is not an integer, or
 * one on the way to it is not an object; undefined if there is an integer or no value.
 */
export function integerProblem(object: JsonObject, path: string): string | undefined {
  const problem = parentProblem(object, path);
  if (problem !== undefined) return problem;
  const value = valueAt(object, path);
  if (value === undefined || typeof value === 'bigint') return undefined;
  const isInteger = typeof value === 'number' && value % 1 === 0;
  if (!isInteger) return accessorError(path, value, 'int64');
  if (!isSpelledAsFloat(object, path)) return undefined;
  return accessorText(path, { value, isOf: 'float64', expected: 'int64' });
}

/** Whether the integer at a path is one that a request spells like `1.0`. */
function isSpelledAsFloat(object: JsonObject, path: string): boolean {
  const floats = integralFloatsOf(object);
  if (floats === undefined) return false;
  const names = stepsOf(path);
  const last = names.pop() ?? '';
  const container = names.length === 0 ? object : at(object, ...names);
  return isObject(container) && isIntegralFloat(floats, container, last);
}

/** The error for a value on the path that is present but not an object. */
function parentProblem(object: JsonObject, path: string): string | undefined {
  const names = stepsOf(path);
  let value: JsonValue | undefined = object;
  for (const [index, name] of names.entries()) {
    if (value === undefined || value === null) return undefined;
    if (!isObject(value)) {
      const place = `.${names.slice(0, index + 1).join('.')}`;
      return accessorError(place, value, 'map[string]interface{}');
    }
    value = member(value, name);
  }
  return undefined;
}

function accessorError(path: string, value: JsonValue, type: string): string {
  return accessorText(path, { value, isOf: goTypeName(value), expected: type });
}

function accessorText(
  path: string,
  { value, isOf, expected }: { value: JsonValue; isOf: string; expected: string },
): string {
  return `${path} accessor error: ${goPlain(value)} is of the type ${isOf}, expected ${expected}`;
}

function finalizerWarnings(
  object: ApiObject,
  old: ApiObject | undefined,
  parts: {
    readonly qualifiedName: (name: string) => readonly string[];
    readonly standardFinalizers: readonly string[];
  },
): readonly string[] {
  const before = new Set(old?.metadata.finalizers ?? []);
  const finalizers = new Set(object.metadata.finalizers ?? []);
  const added = [...finalizers].filter((finalizer) => !before.has(finalizer));
  return added.sort().flatMap((name) => {
    const at = `metadata.finalizers: ${JSON.stringify(name)}`;
    const warnings = parts.qualifiedName(name).map((message) => `${at}: ${message}`);
    if (name.includes('/') || parts.standardFinalizers.includes(name)) return warnings;
    const path = name.includes('.') ? ' including a path (/)' : '';
    const reason = 'to avoid accidental conflicts with other finalizer writers';
    return [...warnings, `${at}: prefer a domain-qualified finalizer name${path} ${reason}`];
  });
}

/**
 * Returns a function that adds the schema's default of `status` to an object without one; undefined
 * if the schema has none. The result shares all other members with the object.
 */
export function statusDefaulter(schema: Schema): ((object: ApiObject) => ApiObject) | undefined {
  const status = resolved(schema).properties?.get('status');
  if (status === undefined || (resolved(status.schema).default ?? undefined) === undefined) {
    return undefined;
  }
  const onlyStatus: Schema = { type: 'object', properties: new Map([['status', status]]) };
  // Compiled on first use: there are many definitions, most with few objects.
  let fill: ReturnType<typeof applyDefaults> | undefined;
  return (object) => {
    if (object['status'] !== undefined) return object;
    const defaults: JsonObject = {};
    fill ??= applyDefaults(onlyStatus);
    fill(defaults, { beyond: 'left out' });
    return { ...object, ...defaults };
  };
}
