import {
  CelCompileError,
  CelError,
  type Compiled,
  compileSteps,
  EntryMap,
  type Environment,
  kubernetesType,
  List,
  listType,
  mapType,
  type Program,
  setEntry,
  standardFunctions,
  stringType,
  type Type,
  type Value,
} from '@wheelhouse/cel';
import { objectsAt } from '@wheelhouse/kinds';
import {
  aggregateText,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';

/** Cost limit of one expression. */
const costMax = 1_000_000;

/** A compiled match condition of a webhook. */
export interface MatchCondition {
  readonly expression: string;
  /** Evaluates in steps (TRUST-2). Throws an error in kube-apiserver's wording on failure. */
  matches(request: Value): Generator<void, boolean>;
}

/**
 * Compiles a CEL expression over `request`, the spec of a v1 SubjectAccessReview, in steps. Returns
 * the error if it does not compile or is not a condition.
 */
export function* compileMatchCondition(
  expression: string,
  options: { readonly selectors: 'included' | 'omitted' },
): Generator<void, MatchCondition | { readonly problem: string }> {
  const request = requestType(options.selectors);
  const environment: Environment = {
    functions: standardFunctions(),
    variables: new Map([['request', request]]),
  };
  let compiled: Compiled;
  let program: Program;
  try {
    compiled = yield* compileSteps(expression, environment);
    if (compiled.type.name !== 'bool') {
      return { problem: `must evaluate to bool but got ${typeText(compiled.type)}` };
    }
    program = yield* compiled.programSteps();
  } catch (error) {
    if (error instanceof CelCompileError) {
      return { problem: `compilation failed: ${error.message}` };
    }
    if (!(error instanceof CelError)) throw error;
    return { problem: `program instantiation failed: ${error.message}` };
  }
  return { expression, matches: (value) => evaluate(program, { expression, value }) };
}

function* evaluate(
  program: Program,
  at: { readonly expression: string; readonly value: Value },
): Generator<void, boolean> {
  const head = `cel evaluation error: expression '${at.expression}'`;
  const { value, error } = yield* program.steps(new Map([['request', at.value]]), costMax);
  if (error !== undefined) throw new CelError(`${head} resulted in error: ${error.message}`);
  if (typeof value === 'boolean') return value;
  throw new CelError(`${head} eval result type should be bool`);
}

/**
 * Whether all conditions are true, evaluated in steps. A false condition takes precedence over
 * failed ones; throws CelError if some failed and none is false.
 */
export function* matchesAll(
  conditions: readonly MatchCondition[],
  spec: JsonObject,
): Generator<void, boolean> {
  const request = requestValue(spec);
  const failures: string[] = [];
  for (const condition of conditions) {
    try {
      if (!(yield* condition.matches(request))) return false;
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      failures.push(error.message);
    }
  }
  if (failures.length === 0) return true;
  throw new CelError(aggregateText(failures));
}

const texts = listType(stringType);
const requirement = kubernetesType('SelectorRequirement', {
  key: stringType,
  operator: stringType,
  values: texts,
});
const selector = (name: string): Type =>
  kubernetesType(name, { rawSelector: stringType, requirements: listType(requirement) });

const resourceTexts = [
  'namespace',
  'verb',
  'group',
  'version',
  'resource',
  'subresource',
  'name',
] as const;

function requestType(selectors: 'included' | 'omitted'): Type {
  return kubernetesType('SubjectAccessReviewSpec', {
    resourceAttributes: kubernetesType('ResourceAttributes', {
      ...Object.fromEntries(resourceTexts.map((name) => [name, stringType])),
      ...(selectors === 'included'
        ? {
            fieldSelector: selector('FieldSelectorAttributes'),
            labelSelector: selector('LabelSelectorAttributes'),
          }
        : {}),
    }),
    nonResourceAttributes: kubernetesType('NonResourceAttributes', {
      path: stringType,
      verb: stringType,
    }),
    user: stringType,
    groups: texts,
    extra: mapType(stringType, texts),
    uid: stringType,
  });
}

function typeText({ name, args }: Type): string {
  if (args.length > 0) return `${name}(${args.map(typeText).join(', ')})`;
  return name === 'null' ? 'null_type' : name;
}

/** The value of `request`; unlike in the review, empty strings and lists of values are present. */
function requestValue(spec: JsonObject): Value {
  const resource = member(spec, 'resourceAttributes');
  const path = member(spec, 'nonResourceAttributes');
  return toValue({
    user: '',
    groups: [],
    uid: '',
    extra: {},
    ...spec,
    ...(isObject(resource) ? { resourceAttributes: withEmptyMembers(resource) } : {}),
    ...(isObject(path) ? { nonResourceAttributes: withEmpty(path, ['path', 'verb']) } : {}),
  });
}

function withEmptyMembers(resource: JsonObject): JsonObject {
  const filled = withEmpty(resource, resourceTexts);
  for (const name of ['fieldSelector', 'labelSelector']) {
    const selected = objectsAt(resource, name, 'requirements');
    if (selected.length === 0) continue;
    filled[name] = { requirements: selected.map((term) => ({ values: [], ...term })) };
  }
  return filled;
}

function withEmpty(fields: JsonObject, names: readonly string[]): JsonObject {
  return { ...Object.fromEntries(names.map((name) => [name, ''])), ...fields };
}

function toValue(json: JsonValue): Value {
  if (Array.isArray(json)) return new List(json.map(toValue));
  if (!isObject(json)) return json;
  const entries = new Map<string, readonly [Value, Value]>();
  for (const name of Object.keys(json))
    setEntry(entries, name, toValue(member(json, name) ?? null));
  return new EntryMap(entries);
}
