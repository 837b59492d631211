import {
  CelError,
  isMapValue,
  List,
  type Program,
  ResultReader,
  StructValue,
  type Value,
} from '@wheelhouse/cel';
import { schemaOf } from '@wheelhouse/kinds';
import {
  type ApiObject,
  BoundedTexts,
  type Clock,
  type Counter,
  cloneJsonSteps,
  forbidden,
  internalError,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqualSteps,
  longerPath,
  type MetricRegistry,
  problemText,
  runInSlices,
  StatusError,
  WorkExceeded,
} from '@wheelhouse/machinery';
import { DecodeError, FoundPaths, type Schema } from '@wheelhouse/schema';
import {
  fitting,
  type JsonPatchOperation,
  jsonPatchWork,
  mergeSteps,
  PatchError,
  resourceType,
  TypedError,
  type ValueType,
  validateTypedSteps,
} from '@wheelhouse/structured-merge';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import {
  Budget,
  type CompiledCondition,
  compileConditions,
  compiledOnce,
  compileEach,
  evaluateConditions,
  OutOfBudget,
  programOf,
  runExpression,
} from '../cel/run.ts';
import { factsOf, type KindFact, kindFor, showKind } from '../matching/rules.ts';
import {
  convertTo,
  type ReviewedRequest,
  redecodedSteps,
  replaceContent,
  type Served,
  schemaFor,
  withType,
} from '../matching/versioned.ts';
import { Reinvocable } from '../reinvocation.ts';
import { type AdmissionTools, nameOf } from '../tools.ts';
import { type EvaluatePolicies, type PolicyBasis, specObjects } from './hooks.ts';
import {
  type Invocation,
  invocationsOf,
  isMisconfigured,
  PolicySubject,
  UnconvertibleError,
} from './invocations.ts';
import { namesOf, scopeOf, type VariablePrograms, variablePrograms } from './validation.ts';

/** A reason to reject the request. */
interface Refusal {
  readonly policy: string;
  readonly binding: string | undefined;
  readonly message: string;
  readonly reason: 'Invalid' | undefined;
}

interface Run extends ReviewedRequest {
  readonly reinvocable: Reinvocable;
  readonly refusals: Refusal[];
  readonly checks: MutationMetrics;
}

type MutationMetrics = ReturnType<typeof mutationMetrics>;

const pluginName = 'MutatingAdmissionPolicy';
const compiledFor = compiledOnce(compileMutations);

/** Applies mutating policies one after the other. */
export function mutatingEvaluator(tools: AdmissionTools): EvaluatePolicies {
  const checks = mutationMetrics(tools.metrics);
  return async (call, hooks) => {
    const reviewed = { call, facts: factsOf(call), tools };
    const steps = await invocationsOf(hooks, reviewed);
    const reinvocable = Reinvocable.of(call, pluginName);
    // As in kube-apiserver, what is unusable is reported before what fails.
    const refusals: Refusal[] = steps
      .filter(isMisconfigured)
      .map(({ policy, binding, message }) => ({
        policy: policy.name,
        binding: binding?.name,
        message,
        reason: undefined,
      }));
    const run: Run = { ...reviewed, reinvocable, refusals, checks };
    let isChanged = false;
    for (const invocation of steps) {
      if (isMisconfigured(invocation)) continue;
      try {
        if (await changeBy(invocation, run)) isChanged = true;
      } catch (error) {
        if (!(error instanceof UnconvertibleError)) throw error;
        const { name, failurePolicy } = invocation.policy;
        if (failurePolicy === 'Ignore') continue;
        const message = `failed to configure policy: ${error.message}`;
        refusals.push({ policy: name, binding: undefined, message, reason: undefined });
      }
    }
    // As in kube-apiserver, a policy that may run again does so even after its own change alone.
    if (isChanged) reinvocable.objectChanged();
    reinvocable.leave(call.object);
    if (refusals.length > 0) throw refusalOf(refusals, call);
  };
}

/** @returns whether the object changed */
async function changeBy(invocation: Invocation, run: Run): Promise<boolean> {
  const { policy, binding, params } = invocation;
  const compilation = compiledFor(policy, run.tools.clock);
  const mutations = compilation instanceof Promise ? await compilation : compilation;
  let isChanged = false;
  for (const param of params) {
    const { namespace = '', name = '' } = param?.metadata ?? {};
    const key = JSON.stringify([policy.name, binding.name, namespace, name]);
    if (!(await meetsConditions(mutations, { invocation, param, run }))) continue;
    if (!run.reinvocable.isDue(key)) continue;
    if (await changeWith(mutations, { invocation, param, run })) {
      run.reinvocable.objectChanged();
      isChanged = true;
    }
    if (mutations.isReinvocable) run.reinvocable.recordCall(key);
  }
  return isChanged;
}

/** One use of a policy. */
interface PolicyUse {
  readonly invocation: Invocation;
  readonly param: ApiObject | undefined;
  readonly run: Run;
}

async function meetsConditions(
  mutations: CompiledMutations,
  { invocation, param, run }: PolicyUse,
): Promise<boolean> {
  if (mutations.conditions.length === 0) return true;
  const inputs = await new PolicySubject(run).variables(invocation.form, param);
  const { variables, own } = scopeOf({ compiled: mutations, inputs });
  const result = await evaluateConditions(mutations.conditions, variables, {
    own,
    clock: run.tools.clock,
  });
  if (result.failures === undefined) return result.matches;
  refuse(invocation, run, result.failures);
  return false;
}

/** Applies all mutations of a policy. @returns whether the object changed */
async function changeWith(
  mutations: CompiledMutations,
  { invocation, param, run }: PolicyUse,
): Promise<boolean> {
  const { policy, binding, form } = invocation;
  const { call, facts, tools } = run;
  let changed = false;
  for (const mutation of mutations.mutations) {
    if (call.object === undefined) return changed;
    const startMs = tools.clock.monotonic();
    const record = (error: string) =>
      run.checks(policy.name, binding.name, error, tools.clock.monotonic() - startMs);
    try {
      // A new subject reflects earlier changes of the object.
      const subject = new PolicySubject(run);
      const inputs = await subject.variables(form, param);
      const object = await subject.objectIn(form);
      if (object === undefined) return changed;
      const kind = kindFor(form.def, form.version, facts.subresource);
      const { clock } = tools;
      const at = { compiled: mutations, inputs, clock, object, served: form, kind };
      const result = await mutated(mutation, at);
      record('no_error');
      if (await runInSlices(jsonEqualSteps(result, object), clock)) continue;
      replaceContent(call.object, await convertTo(result, call.target, tools));
      changed = true;
    } catch (error) {
      record('invalid_error');
      if (!(error instanceof MutationError)) throw error;
      refuse(invocation, run, error.message);
    }
  }
  return changed;
}

function refuse({ policy, binding }: Invocation, run: Run, message: string): void {
  if (policy.failurePolicy === 'Ignore') return;
  const reason = 'Invalid' as const;
  run.refusals.push({ policy: policy.name, binding: binding.name, message, reason });
}

/** A 403 for the first refusal in kube-apiserver's format, with the others as causes. */
function refusalOf(refusals: readonly Refusal[], call: AdmissionCall): StatusError {
  const messages = refusals.map(({ policy, binding, message }) =>
    binding === undefined
      ? `policy ${JSON.stringify(policy)} denied request: ${message}`
      : `policy '${policy}' with binding '${binding}' denied request: ${message}`,
  );
  const plain = forbidden(groupResourceOf(call.target.def), nameOf(call), '');
  return new StatusError({
    code: 403,
    reason: refusals[0]?.reason ?? 'Forbidden',
    message: messages[0] ?? '',
    details: { ...plain.status.details, causes: messages.map((message) => ({ message })) },
  });
}

function mutationMetrics(registry: MetricRegistry) {
  const labels = ['policy', 'policy_binding', 'error_type'];
  const checks = registry.counter({
    name: 'apiserver_mutating_admission_policy_check_total',
    help: 'Mutation admission policy check total, labeled by policy and further identified by binding.',
    stability: 'ALPHA',
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_mutating_admission_policy_check_duration_seconds',
    help: 'Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.',
    stability: 'ALPHA',
    labels,
    buckets: [0.000_000_5, 0.001, 0.01, 0.1, 1],
  });
  return (policy: string, binding: string, error: string, durationMs: number): void => {
    const counter: Counter = checks.of(policy, binding, error);
    counter.add(1);
    durations.of(policy, binding, error).observe(durationMs / 1000);
  };
}

/** One compiled mutation of a policy. */
interface CompiledMutation {
  readonly type: 'ApplyConfiguration' | 'JSONPatch';
  readonly expression: string;
  readonly program: Program | { readonly problem: string };
}

/** A compiled MutatingAdmissionPolicy. */
interface CompiledMutations {
  readonly policy: PolicyBasis;
  readonly conditions: readonly CompiledCondition[];
  readonly variables: VariablePrograms;
  readonly mutations: readonly CompiledMutation[];
  readonly isReinvocable: boolean;
}

/** Compiles a policy in steps. An expression that does not compile fails when it is evaluated. */
function* compileMutations(policy: PolicyBasis): Generator<void, CompiledMutations> {
  const names = namesOf(policy);
  const scope = { variables: names, own: { list: policy.variables } };
  return {
    policy,
    conditions: yield* compileConditions(policy.conditions, scope),
    variables: yield* variablePrograms({ names, variables: policy.variables }),
    isReinvocable: policy.spec['reinvocationPolicy'] === 'IfNeeded',
    mutations: yield* compileEach(specObjects(policy.spec, 'mutations'), function* (mutation) {
      const isPatch = mutation['patchType'] === 'JSONPatch';
      const patchSpec = mutation[isPatch ? 'jsonPatch' : 'applyConfiguration'];
      const expression = isObject(patchSpec) ? String(patchSpec['expression'] ?? '') : '';
      const resultTypes = [isPatch ? 'list(JSONPatch)' : 'Object'];
      const program = yield* programOf(expression, { ...scope, resultTypes, patches: true });
      const type = isPatch ? 'JSONPatch' : 'ApplyConfiguration';
      return { type, expression, program } as const;
    }),
  };
}

const costMax = 10_000_000;

/**
 * The result of one mutation, decoded and defaulted. Throws MutationError, with the message for the
 * client, for a change that cannot be made, and 500 for a result that is not a valid object of its
 * kind.
 */
async function mutated(
  mutation: CompiledMutation,
  at: {
    readonly compiled: CompiledMutations;
    readonly inputs: ReadonlyMap<string, Value>;
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly object: ApiObject;
    readonly served: Served;
    readonly kind: KindFact;
  },
): Promise<ApiObject> {
  const { kind, clock } = at;
  const value = await evaluated(mutation, at);
  const isPatch = mutation.type === 'JSONPatch';
  try {
    return await runInSlices(isPatch ? patchedSteps(value, at) : configuredSteps(value, at), clock);
  } catch (error) {
    if (error instanceof CelError) throw new MutationError(error.message);
    if (!(error instanceof DecodeError)) throw error;
    if (isPatch) throw internalError(error.message, error);
    const target = showKind(kind);
    throw new MutationError(`unable to convert unstructured object to ${target}: ${error.message}`);
  }
}

/** An object, and how it is served. */
interface Subject {
  readonly object: ApiObject;
  readonly served: Served;
  readonly kind: KindFact;
}

/** The object after a JSON patch. Throws 500 if it has fields that its kind does not have. */
function* patchedSteps(
  value: Value,
  { object, served, kind }: Subject,
): Generator<void, ApiObject> {
  const at = { served, kind };
  const changed = yield* patched(object, yield* operationsOf(value));
  if (changed === undefined) return object;
  const unknown = new FoundPaths();
  const result = yield* redecodedSteps(withType(changed, at), { ...at, unknown });
  if (unknown.count === 0) return result;
  const problems = unknown.paths.map((path) => problemText({ code: 'unknown field', path }));
  throw internalError(problemText({ code: 'strict', problems }));
}

async function evaluated(
  { program, expression }: CompiledMutation,
  at: {
    readonly compiled: CompiledMutations;
    readonly inputs: ReadonlyMap<string, Value>;
    readonly clock: Pick<Clock, 'monotonic'>;
  },
): Promise<Value> {
  if ('problem' in program) throw new MutationError(program.problem);
  const { variables, own } = scopeOf(at);
  try {
    const measured = await runExpression(program, variables, {
      budget: new Budget(costMax),
      own,
      clock: at.clock,
    });
    if (measured.error === undefined) return measured.value;
    const why = measured.error.message;
    throw new MutationError(`expression '${expression}' resulted in error: ${why}`);
  } catch (error) {
    if (error instanceof OutOfBudget) throw new MutationError(error.message);
    throw error;
  }
}

function* configurationOf(value: Value): Generator<void, JsonObject> {
  yield* checkNames(value, { path: 'Object', reader: new ResultReader() });
  const json = yield* new ResultReader().toJson(value);
  if (!isObject(json)) throw new MutationError('invalid return type');
  return json;
}

/** Objects must carry the type name of their position, which CEL types do not check. */
function* checkNames(
  value: Value,
  at: { readonly path: string; readonly reader: ResultReader },
): Generator<void, void> {
  const { path, reader } = at;
  if (reader.count()) yield;
  if (value instanceof List) for (const item of value.items) yield* checkNames(item, at);
  if (!isMapValue(value)) return;
  const isStruct = value instanceof StructValue;
  if (isStruct && value.objectType !== path) {
    const names = `unexpected type name ${JSON.stringify(value.objectType)}`;
    throw new MutationError(
      `type mismatch: ${names}, expected ${JSON.stringify(path)}, which matches field name path ` +
        'from root Object type',
    );
  }
  for (const key of value.keys()) {
    const child = value.get(key);
    const childAt = isStruct ? { path: `${path}.${String(key)}`, reader } : at;
    if (child !== undefined) yield* checkNames(child, childAt);
  }
}

function* operationsOf(value: Value): Generator<void, readonly JsonPatchOperation[]> {
  if (!(value instanceof List)) throw new MutationError('type mismatch: it is no list');
  const [names, values] = [new ResultReader(), new ResultReader()];
  const operations: JsonPatchOperation[] = [];
  for (const item of value.items) {
    if (!isMapValue(item)) throw new MutationError('type mismatch: it is no JSONPatch');
    const text = (name: string) => {
      const field = item.get(name);
      return typeof field === 'string' && field !== '' ? field : undefined;
    };
    const itemValue = item.get('value');
    if (itemValue instanceof StructValue) {
      yield* checkNames(itemValue, { path: itemValue.objectType, reader: names });
    }
    const json = yield* patchValue(itemValue ?? null, values);
    const [op, path] = [text('op') ?? '', text('path') ?? ''];
    operations.push({ op, path, from: text('from'), value: json });
  }
  return operations;
}

function* patchValue(value: Value, reader: ResultReader): Generator<void, JsonValue> {
  try {
    return yield* reader.toJson(value);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    const problem = 'valueExpression evaluated to a type that could not marshal to JSON';
    throw new MutationError(`JSONPath ${problem}: ${error.message}`);
  }
}

/** Undefined if a test of the patch failed: then nothing changes. */
function* patched(
  object: ApiObject,
  operations: readonly JsonPatchOperation[],
): Generator<void, JsonObject | undefined> {
  try {
    const copy = yield* cloneJsonSteps<JsonValue>(object);
    const result = yield* jsonPatchWork(copy, operations, { rules: 'lenient', absent: 'nothing' });
    if (isObject(result)) return result;
    throw new MutationError('JSON Patch: the result is not an object');
  } catch (error) {
    if (error instanceof WorkExceeded) throw new MutationError(`JSON Patch: ${error.message}`);
    if (!(error instanceof PatchError)) throw error;
    if (error.message.endsWith(': test failed')) return undefined;
    throw new MutationError(`JSON Patch: ${error.message}`);
  }
}

/** A change that cannot be made; the message has kube-apiserver's wording. */
class MutationError extends Error {}

/**
 * Merges an apply configuration into the object like server-side apply, but without owners. Throws
 * MutationError for one that does not fit, or would replace an atomic value.
 */
function* configuredSteps(
  value: Value,
  { object, served, kind }: Subject,
): Generator<void, ApiObject> {
  const at = { served, kind };
  const merged = yield* mergedSteps(object, yield* configurationOf(value), schemaFor(at));
  return yield* redecodedSteps(merged, at);
}

function* mergedSteps(
  object: ApiObject,
  configuration: JsonObject,
  schema: Schema,
): Generator<void, JsonObject> {
  const { apiVersion, kind } = object;
  const patch: JsonObject = { ...configuration, apiVersion, kind };
  const type = resourceType(schema, schemaOf('meta.v1.ObjectMeta'));
  yield* explained(
    'failed to convert patch object to typed object',
    validateTypedSteps(type, patch, { allowDuplicates: false, nulls: 'refused' }),
  );
  const atomics = new BoundedTexts('path');
  findAtomics(type, patch, { path: '', atomics });
  if (!atomics.isEmpty) {
    const problem = 'may not mutate atomic arrays, maps or structs';
    throw new MutationError(
      `error applying patch: invalid ApplyConfiguration: ${problem}: ${atomics.list.join(', ')}`,
    );
  }
  yield* explained(
    'failed to convert original object to typed object',
    validateTypedSteps(type, object, { allowDuplicates: false }),
  );
  const merged = yield* explained('failed to merge patch', mergeSteps(type, object, patch));
  return isObject(merged) ? merged : object;
}

function* explained<T>(problem: string, steps: Generator<void, T>): Generator<void, T> {
  try {
    return yield* steps;
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    throw new MutationError(`error applying patch: ${problem}: ${error.message}`);
  }
}

/** Adds the paths that an apply would replace as a whole. */
function findAtomics(
  type: ValueType,
  value: JsonValue,
  at: { readonly path: string; readonly atomics: BoundedTexts },
): void {
  const { path, atomics } = at;
  const { map, list } = fitting(type, value);
  if (isObject(value) && map !== undefined) {
    if (map.atomic) atomics.add(path);
    for (const [name, child] of Object.entries(value)) {
      const field = map.fields.get(name)?.type.get();
      if (child === undefined || field === undefined) continue;
      findAtomics(field, child, { path: longerPath(path, `.${name}`), atomics });
    }
  } else if (Array.isArray(value) && list !== undefined) {
    if (list.atomic) atomics.add(path);
    const element = list.element.get();
    for (const [index, item] of value.entries()) {
      findAtomics(element, item, { path: longerPath(path, `[${index}]`), atomics });
    }
  }
}
