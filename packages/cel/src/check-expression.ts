import { firstIndex, itemAt } from '@wheelhouse/machinery';
import type { PatternAge } from '@wheelhouse/schema';
import { type Compiled, compileSteps } from './compile.ts';
import { CelCompileError } from './issues.ts';
import { asText } from './library/arguments.ts';
import { authorizerTypes } from './library/authorizer.ts';
import type { Environment } from './types/environment.ts';
import { type Functions, functionsOf, type Library, type StructType } from './types/functions.ts';
import type { DeclaredSize } from './types/schema-types.ts';
import { standardFunctions } from './types/standard-functions.ts';
import {
  boolType,
  composite,
  dynType,
  intType,
  kubernetesType,
  listType,
  mapType,
  stringType,
  type Type,
  type TypesByName,
  timestampType,
} from './types/types.ts';
import { CelError, showWholeType } from './values.ts';

const texts = (names: string): Record<string, Type> =>
  Object.fromEntries(names.split(' ').map((name) => [name, stringType]));

const kindType = kubernetesType('GroupVersionKind', texts('group version kind'));
const resourceType = kubernetesType('GroupVersionResource', texts('group version resource'));
const userType = kubernetesType('UserInfo', {
  ...texts('username uid'),
  groups: listType(stringType),
  extra: mapType(stringType, listType(stringType)),
});

/** The type of `request`: an AdmissionRequest without its objects. */
const requestType = kubernetesType('AdmissionRequest', {
  kind: kindType,
  resource: resourceType,
  requestKind: kindType,
  requestResource: resourceType,
  ...texts('subResource requestSubResource name namespace operation'),
  userInfo: userType,
  dryRun: boolType,
  options: dynType,
});

/** The type of `namespaceObject`: the fields of a Namespace that expressions may use. */
const namespaceType = kubernetesType('Namespace', {
  metadata: kubernetesType('NamespaceMetadata', {
    ...texts('name generateName namespace UID resourceVersion'),
    labels: mapType(stringType, stringType),
    annotations: mapType(stringType, stringType),
    creationTimestamp: timestampType,
    deletionTimestamp: timestampType,
    deletionGracePeriodSeconds: intType,
    generation: intType,
    finalizers: listType(stringType),
  }),
  spec: kubernetesType('NamespaceSpec', { finalizers: listType(stringType) }),
  status: kubernetesType('NamespaceStatus', {
    ...texts('phase'),
    conditions: listType(
      kubernetesType('NamespaceCondition', {
        ...texts('status type message reason'),
        lastTransitionTime: timestampType,
      }),
    ),
  }),
});

/** The variable below `authorizer` that checks the request's own resource. */
export const requestResourceName = 'authorizer.requestResource';

const quantityType: Type = { name: 'kubernetes.Quantity', args: [] };

/** The type of `device` in selectors of devices, with members by domain. */
const deviceType = kubernetesType('DRADevice', {
  ...texts('driver'),
  attributes: mapType(stringType, mapType(stringType, dynType)),
  capacity: mapType(stringType, mapType(stringType, quantityType)),
});

const sizeOf = (max: number): DeclaredSize => ({ max, jsonBytesMin: 0 });

/** A map by domain of maps by name, as large as a device allows. */
function memberSizes(member: DeclaredSize): DeclaredSize {
  const names = { ...sizeOf(32), key: sizeOf(32), item: member, others: member };
  return { ...sizeOf(32), key: sizeOf(63), item: names };
}

const deviceName = 'device';

/** The declared sizes of `device`, which the rules of ResourceSlices limit. */
const deviceSize: DeclaredSize = {
  ...sizeOf(0),
  variable: deviceName,
  fields: new Map([
    ['driver', sizeOf(63)],
    ['attributes', memberSizes(sizeOf(64))],
    ['capacity', memberSizes(sizeOf(0))],
  ]),
};

const variableTypes: Readonly<Record<string, Type>> = {
  object: dynType,
  oldObject: dynType,
  request: requestType,
  namespaceObject: namespaceType,
  params: dynType,
  [deviceName]: deviceType,
  authorizer: { name: authorizerTypes.authorizer, args: [] },
  [requestResourceName]: { name: authorizerTypes.resource, args: [] },
};

const dynamicObject = /^Object(\.[^.]+)*$/;
const patchFields: Readonly<Record<string, Type>> = {
  op: stringType,
  path: stringType,
  from: stringType,
  value: dynType,
};

/**
 * The types that mutations may construct: parts of the object by path, and JSON patch operations.
 */
function patchStructs(name: string): StructType | undefined {
  const type: Type = { name, args: [] };
  if (name === 'JSONPatch') {
    const field = (name: string) =>
      Object.hasOwn(patchFields, name) ? patchFields[name] : undefined;
    return { type, field };
  }
  return dynamicObject.test(name) ? { type, field: () => dynType } : undefined;
}

const jsonPatches: Library = [
  [
    'jsonpatch.escapeKey(string): string',
    ([key]) => asText(key).replaceAll('~', '~0').replaceAll('/', '~1'),
  ],
];

let patchFunctions: Functions | undefined;

function functionsOfPatches(): Functions {
  patchFunctions ??= new Map([...standardFunctions(), ...functionsOf([jsonPatches])]);
  return patchFunctions;
}

/**
 * The environment of an expression of a webhook or policy. `variables` are the policy's own
 * variables with their types; `authorizer` includes the check of the request's own resource.
 */
function requestEnvironment(use: {
  readonly names: readonly string[];
  readonly variables: TypesByName;
  /** Types of a kind for type checking, in which case the request's own resource is unknown. */
  readonly typed: ReadonlyMap<string, Type>;
  /** Whether it is a mutation, which may construct objects and patch operations. */
  readonly patches: boolean;
}): Environment {
  const variables = new Map<string, Type>();
  for (const name of use.names) {
    const type = use.typed.get(name) ?? variableTypes[name];
    if (type !== undefined) variables.set(name, type);
    const resourceType = variableTypes[requestResourceName];
    if (name === 'authorizer' && use.typed.size === 0 && resourceType !== undefined) {
      variables.set(requestResourceName, resourceType);
    }
  }
  if (use.names.includes('variables')) {
    variables.set('variables', { name: 'kubernetes.variables', args: [], fields: use.variables });
  }
  if (use.names.includes(deviceName)) {
    return { functions: standardFunctions(), variables, bindings: 'known' };
  }
  return use.patches
    ? { functions: functionsOfPatches(), variables, structs: patchStructs }
    : { functions: standardFunctions(), variables };
}

/** A variable of a policy: a name for the value of an expression. */
interface PolicyVariable {
  readonly name: string;
  readonly expression: string;
}

/** The variables and the result types of an expression of a webhook or policy. */
export interface ExpressionUse {
  /** Names of its variables: `object`, `request`, `params`, `variables`, … */
  readonly variables: readonly string[];
  /** Allowed result types; empty for any. */
  readonly resultTypes: readonly string[];
  /** The policy's own variables. It may use those before the given index, or all. */
  readonly own?: { readonly list: readonly PolicyVariable[]; readonly before?: number };
  /** Types of variables, for type checking against a kind rather than for evaluation. */
  readonly typed?: ReadonlyMap<string, Type>;
  /** Whether it is a mutation, which may construct objects and patch operations. */
  readonly patches?: boolean;
  /** Maximum estimated cost in units of the runtime limit; unlimited if absent. */
  readonly costMax?: number;
  /** Whether the limit on new patterns applies to literal ones; `stored` if absent. */
  readonly patterns?: PatternAge;
}

/**
 * Types that are declared as they are in kube-apiserver; all others except lists and maps become
 * dyn.
 */
const declared = new Set(
  'any bool bytes double duration int null string timestamp uint'.split(' '),
);

/** The declared type of a variable, derived from the type of its expression. */
function declaredType(type: Type): Type {
  if (type.name !== 'list' && type.name !== 'map') return declared.has(type.name) ? type : dynType;
  return composite(type.name, type.args.map(declaredType));
}

/** A policy's variables by name, each with the indexes of its declarations in ascending order. */
type Declarations = Map<string, { readonly place: number; readonly type: Type }[]>;

/** The declarations of the first variables of a policy. */
interface Declared {
  readonly declarations: Declarations;
  /** Number of variables that were declared, so that each is compiled once and when needed. */
  count: number;
}

/** Declarations of policies, by the list of variables or by the types for checking them. */
const declarationsOfLists = new WeakMap<object, Declared>();

/**
 * The variables of a policy before the index `end` with their types; dyn for those that do not
 * compile.
 */
function* declarationsOf(
  list: readonly PolicyVariable[],
  end: number,
  use: ExpressionUse,
): Generator<void, Declarations> {
  const key = use.typed ?? list;
  const declared = declarationsOfLists.get(key) ?? { declarations: new Map(), count: 0 };
  declarationsOfLists.set(key, declared);
  const { declarations } = declared;
  if (declared.count >= end) return declarations;
  const names = [...new Set([...use.variables, 'authorizer'])];
  while (declared.count < end) {
    yield;
    const place = declared.count;
    const { name, expression } = itemAt(list, place);
    // A variable without an expression does not exist.
    if (expression.trim() === '') {
      declared.count += 1;
      continue;
    }
    const compiled = yield* compiledIn(
      expression,
      { ...use, variables: names, resultTypes: [], patches: false },
      declaredBefore(declarations, place),
    );
    // Another request that uses the variables may have declared this one during a pause.
    if (declared.count > place) continue;
    declared.count += 1;
    const type = 'problem' in compiled ? dynType : declaredType(compiled.type);
    const places = declarations.get(name);
    if (places === undefined) declarations.set(name, [{ place, type }]);
    else places.push({ place, type });
  }
  return declarations;
}

/** The variables visible at an index: for each name, the last declaration before the index. */
function declaredBefore(declarations: Declarations, before: number): TypesByName {
  return {
    get(name) {
      const places = declarations.get(name) ?? [];
      const end = firstIndex(
        { to: places.length },
        (index) => (places[index]?.place ?? before) < before,
      );
      return places[end - 1]?.type;
    },
  };
}

function* fieldsFor(use: ExpressionUse): Generator<void, TypesByName> {
  const { list, before } = use.own ?? { list: [] };
  if (list.length === 0) return new Map();
  const end = before ?? list.length;
  return declaredBefore(yield* declarationsOf(list, end, use), end);
}

/** An expression of a webhook or policy, or the error in kube-apiserver's words. */
type CompiledExpression = Compiled | { readonly problem: string };

/** Compiles an expression and the variables that it may use, in steps (TRUST-2). */
export function* compileExpression(
  source: string,
  use: ExpressionUse,
): Generator<void, CompiledExpression> {
  return yield* compiledIn(source, use, yield* fieldsFor(use));
}

/** Whether an expression selects devices, for which kube-apiserver has a separate environment. */
const isOfDevice = ({ variables }: ExpressionUse) => variables.includes(deviceName);

function* compiledIn(
  source: string,
  use: ExpressionUse,
  variables: TypesByName,
): Generator<void, CompiledExpression> {
  const { typed = new Map<string, Type>(), patches = false } = use;
  const environment = {
    ...requestEnvironment({ names: use.variables, variables, typed, patches }),
    patterns: use.patterns ?? 'stored',
  };
  try {
    const compiled = yield* compileSteps(source, environment);
    const { resultTypes } = use;
    const shown = showWholeType(compiled.type);
    if (resultTypes.length === 0 || resultTypes.includes(shown)) return compiled;
    if (isOfDevice(use)) {
      return { problem: `must evaluate to bool or the unknown type, not ${shown}` };
    }
    const all = resultTypes.length === 1 ? resultTypes[0] : `one of [${resultTypes.join(' ')}]`;
    return { problem: `must evaluate to ${all} but got ${shown}` };
  } catch (error) {
    if (error instanceof CelCompileError) {
      return { problem: `compilation failed: ${error.message}` };
    }
    throw error;
  }
}

/**
 * Why an expression cannot be used: it is invalid, its cost is forbidden, or an internal error
 * occurred.
 */
export interface ExpressionProblem {
  readonly detail: string;
  readonly type: 'invalid' | 'forbidden' | 'internal';
}

/**
 * Why an expression, by default a new one, cannot be used, in steps (TRUST-2); undefined if it can.
 */
export function* expressionProblem(
  source: string,
  use: ExpressionUse,
): Generator<void, ExpressionProblem | undefined> {
  const compiled = yield* compileExpression(source, { patterns: 'new', ...use });
  if ('problem' in compiled) return { detail: compiled.problem, type: 'invalid' };
  try {
    yield* compiled.programSteps();
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { detail: `program instantiation failed: ${error.message}`, type: 'internal' };
  }
  if (use.costMax === undefined) return undefined;
  if ((yield* compiled.costSteps(deviceSize)) <= use.costMax) return undefined;
  return { detail: 'too complex, exceeds cost limit', type: 'forbidden' };
}
