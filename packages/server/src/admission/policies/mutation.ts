import {
  CelError,
  isMapValue,
  List,
  type Program,
  StructValue,
  toJson,
  type Value,
} from '@wheelhouse/cel';
import {
  type ApiObject,
  internalError,
  isObject,
  type JsonObject,
  type JsonValue,
  WorkExceeded,
} from '@wheelhouse/machinery';
import { DecodeError } from '@wheelhouse/schema';
import { applyJsonPatch, type JsonPatchOperation, PatchError } from '@wheelhouse/structured-merge';
import { type CompiledCondition, compileConditions } from '../cel/conditions.ts';
import { Budget, OutOfBudget, programOf, runExpression } from '../cel/run.ts';
import type { KindFact } from '../matching/facts.ts';
import { reshaped, schemaFor } from '../matching/reshape.ts';
import type { Served } from '../matching/versioned.ts';
import { MutationError, withConfiguration } from './apply-configuration.ts';
import { type PolicyBasis, specObjects } from './definition.ts';
import { namesOf, scopeOf } from './validation.ts';
import { type VariablePrograms, variablePrograms } from './variables.ts';

/** One change that a policy makes, compiled. */
export interface CompiledMutation {
  readonly type: 'ApplyConfiguration' | 'JSONPatch';
  readonly expression: string;
  readonly program: Program | { readonly problem: string };
}

/** A MutatingAdmissionPolicy, compiled. */
export interface CompiledMutations {
  readonly policy: PolicyBasis;
  readonly conditions: readonly CompiledCondition[];
  readonly variables: VariablePrograms;
  readonly mutations: readonly CompiledMutation[];
  readonly isReinvocable: boolean;
}

/** Compiles a policy. An expression that does not compile fails when it is evaluated. */
export function compileMutations(policy: PolicyBasis): CompiledMutations {
  const names = namesOf(policy);
  const scope = { variables: names, own: { list: policy.variables } };
  return {
    policy,
    conditions: compileConditions(policy.conditions, scope),
    variables: variablePrograms({ names, variables: policy.variables }),
    isReinvocable: policy.spec['reinvocationPolicy'] === 'IfNeeded',
    mutations: specObjects(policy.spec, 'mutations').map((mutation) => {
      const isPatch = mutation['patchType'] === 'JSONPatch';
      const patchSpec = mutation[isPatch ? 'jsonPatch' : 'applyConfiguration'];
      const expression = isObject(patchSpec) ? String(patchSpec['expression'] ?? '') : '';
      const wanted = [isPatch ? 'list(JSONPatch)' : 'Object'];
      const program = programOf(expression, { ...scope, wanted, patches: true });
      return { type: isPatch ? 'JSONPatch' : 'ApplyConfiguration', expression, program };
    }),
  };
}

const costMax = 10_000_000;

/**
 * The object as one mutation makes it, decoded and defaulted anew. Throws MutationError, with what the
 * client is told, for a change that cannot be made; 500 for one that makes no object of its kind.
 */
export async function mutated(
  mutation: CompiledMutation,
  at: {
    readonly compiled: CompiledMutations;
    readonly inputs: ReadonlyMap<string, Value>;
    readonly object: ApiObject;
    readonly served: Served;
    readonly kind: KindFact;
  },
): Promise<ApiObject> {
  const { object, served, kind } = at;
  const value = await evaluated(mutation, at);
  try {
    const changed =
      mutation.type === 'JSONPatch'
        ? patched(object, operationsOf(value))
        : withConfiguration(object, configurationOf(value), schemaFor({ served, kind }));
    return changed === undefined ? object : reshaped(changed, { served, kind });
  } catch (error) {
    if (error instanceof DecodeError) throw internalError(error.message, error);
    if (error instanceof CelError) throw new MutationError(error.message);
    throw error;
  }
}

async function evaluated(
  { program, expression }: CompiledMutation,
  at: { readonly compiled: CompiledMutations; readonly inputs: ReadonlyMap<string, Value> },
): Promise<Value> {
  if ('problem' in program) throw new MutationError(program.problem);
  const { variables, own } = scopeOf(at);
  try {
    const measured = await runExpression(program, variables, { budget: new Budget(costMax), own });
    if (measured.error === undefined) return measured.value;
    const why = measured.error.message;
    throw new MutationError(`expression '${expression}' resulted in error: ${why}`);
  } catch (error) {
    if (error instanceof OutOfBudget) throw new MutationError(error.message);
    throw error;
  }
}

function configurationOf(value: Value): JsonObject {
  checkNames(value, 'Object');
  const json = toJson(value);
  if (!isObject(json)) throw new MutationError('invalid return type');
  return json;
}

/** Objects must be written under the names of where they stand: types say nothing of it. */
function checkNames(value: Value, path: string): void {
  if (value instanceof List) for (const item of value.items) checkNames(item, path);
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
    if (child !== undefined) checkNames(child, isStruct ? `${path}.${String(key)}` : path);
  }
}

function operationsOf(value: Value): readonly JsonPatchOperation[] {
  if (!(value instanceof List)) throw new MutationError('type mismatch: it is no list');
  return value.items.map((item) => {
    if (!isMapValue(item)) throw new MutationError('type mismatch: it is no JSONPatch');
    const text = (name: string) => {
      const field = item.get(name);
      return typeof field === 'string' && field !== '' ? field : undefined;
    };
    const itemValue = item.get('value');
    if (itemValue instanceof StructValue) checkNames(itemValue, itemValue.objectType);
    const json: JsonValue = itemValue === undefined ? null : toJson(itemValue);
    return { op: text('op') ?? '', path: text('path') ?? '', from: text('from'), value: json };
  });
}

/** Undefined where a test of the patch did not hold: then nothing is to be changed. */
function patched(
  object: ApiObject,
  operations: readonly JsonPatchOperation[],
): JsonObject | undefined {
  try {
    const result = applyJsonPatch(object, operations, { rules: 'lenient' });
    if (isObject(result)) return result;
    throw new MutationError('JSON Patch: the result is no object');
  } catch (error) {
    if (error instanceof WorkExceeded) throw new MutationError(`JSON Patch: ${error.message}`);
    if (!(error instanceof PatchError)) throw error;
    if (error.message.endsWith(': test failed')) return undefined;
    throw new MutationError(`JSON Patch: ${error.message}`);
  }
}
