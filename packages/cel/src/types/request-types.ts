import { authorizerTypes } from '../library/authorizer.ts';
import type { Environment } from './environment.ts';
import { type Functions, functionsOf, type Library } from './functions.ts';
import { standardFunctions } from './standard-functions.ts';
import type { StructType } from './struct-type.ts';
import {
  boolType,
  dynType,
  intType,
  listType,
  mapType,
  stringType,
  type Type,
  timestampType,
} from './types.ts';

function objectType(name: string, fields: Readonly<Record<string, Type>>): Type {
  return { name: `kubernetes.${name}`, args: [], fields: new Map(Object.entries(fields)) };
}

const texts = (names: string): Record<string, Type> =>
  Object.fromEntries(names.split(' ').map((name) => [name, stringType]));

const kindType = objectType('GroupVersionKind', texts('group version kind'));
const resourceType = objectType('GroupVersionResource', texts('group version resource'));
const userType = objectType('UserInfo', {
  ...texts('username uid'),
  groups: listType(stringType),
  extra: mapType(stringType, listType(stringType)),
});

/** The type of `request`: an AdmissionRequest without its objects. */
const requestType = objectType('AdmissionRequest', {
  kind: kindType,
  resource: resourceType,
  requestKind: kindType,
  requestResource: resourceType,
  ...texts('subResource requestSubResource name namespace operation'),
  userInfo: userType,
  dryRun: boolType,
  options: dynType,
});

/** The type of `namespaceObject`: what of a Namespace expressions may look at. */
const namespaceType = objectType('Namespace', {
  metadata: objectType('NamespaceMetadata', {
    ...texts('name generateName namespace UID resourceVersion'),
    labels: mapType(stringType, stringType),
    annotations: mapType(stringType, stringType),
    creationTimestamp: timestampType,
    deletionTimestamp: timestampType,
    deletionGracePeriodSeconds: intType,
    generation: intType,
    finalizers: listType(stringType),
  }),
  spec: objectType('NamespaceSpec', { finalizers: listType(stringType) }),
  status: objectType('NamespaceStatus', {
    ...texts('phase'),
    conditions: listType(
      objectType('NamespaceCondition', {
        ...texts('status type message reason'),
        lastTransitionTime: timestampType,
      }),
    ),
  }),
});

/** The variable below `authorizer` that checks the resource of the request itself. */
export const requestResourceName = 'authorizer.requestResource';

const quantityType: Type = { name: 'kubernetes.Quantity', args: [] };

/** The type of `device`: what selectors of devices look at, its members by their domains. */
const deviceType = objectType('DRADevice', {
  ...texts('driver'),
  attributes: mapType(stringType, mapType(stringType, dynType)),
  capacity: mapType(stringType, mapType(stringType, quantityType)),
});

const variableTypes: Readonly<Record<string, Type>> = {
  object: dynType,
  oldObject: dynType,
  request: requestType,
  namespaceObject: namespaceType,
  params: dynType,
  device: deviceType,
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

/** What mutations may make: parts of the object by their paths, and operations of a JSON patch. */
function patchStructs(name: string): StructType | undefined {
  const type: Type = { name, args: [] };
  if (name === 'JSONPatch') {
    const field = (one: string) => (Object.hasOwn(patchFields, one) ? patchFields[one] : undefined);
    return { type, field };
  }
  return dynamicObject.test(name) ? { type, field: () => dynType } : undefined;
}

const jsonPatches: Library = [
  [
    'jsonpatch.escapeKey(string): string',
    ([key]) => (key as string).replaceAll('~', '~0').replaceAll('/', '~1'),
  ],
];

let made: Functions | undefined;

function functionsOfPatches(): Functions {
  made ??= new Map([...standardFunctions(), ...functionsOf([jsonPatches])]);
  return made;
}

/**
 * What an expression of a webhook or policy may use. `variables` are the policy's own, with the
 * types their expressions have; with `authorizer` comes the check of the request's own resource.
 */
export function requestEnvironment(use: {
  readonly names: readonly string[];
  readonly variables: ReadonlyMap<string, Type>;
  /** Types of a kind that it is checked by; the request's own resource is not known then. */
  readonly typed: ReadonlyMap<string, Type>;
  /** It makes a change: objects and operations of patches may be written. */
  readonly patches: boolean;
}): Environment {
  const variables = new Map<string, Type>();
  for (const name of use.names) {
    const type = use.typed.get(name) ?? variableTypes[name];
    if (type !== undefined) variables.set(name, type);
    if (name === 'authorizer' && use.typed.size === 0) {
      variables.set(requestResourceName, variableTypes[requestResourceName] as Type);
    }
  }
  if (use.names.includes('variables')) {
    variables.set('variables', { name: 'kubernetes.variables', args: [], fields: use.variables });
  }
  return use.patches
    ? { functions: functionsOfPatches(), variables, structs: patchStructs }
    : { functions: standardFunctions(), variables };
}
