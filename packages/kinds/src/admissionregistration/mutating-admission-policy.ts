import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  type JsonObject,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type {
  JSONPatch,
  MutatingAdmissionPolicy,
  Mutation,
} from '../gen/types/admissionregistration/v1alpha1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { expressionsPerStep, flatMapSteps } from '../rules/checks.ts';
import { ensure, fillAbsent, objectAt, objectsAt } from '../rules/fill.ts';
import {
  type AdmissionKindOptions,
  checkedExpression,
  type ExpressionChecker,
  namesFor,
} from './expressions.ts';
import { fillMatchResources, matchOf } from './match-resources.ts';
import {
  type PolicyScope,
  paramKindColumn,
  policyScope,
  validatePolicyBasis,
} from './policy-rules.ts';
import {
  bindingKind,
  fillMissingAction,
  validateBindingBasis,
} from './validating-admission-policy.ts';

/** MutatingAdmissionPolicy and its binding: expressions that change writes (ADM-3). */
export function mutatingPolicyKinds(
  dialect: Dialect,
  options: AdmissionKindOptions,
): readonly ResourceDef[] {
  return [mutatingAdmissionPolicy(dialect, options), mutatingAdmissionPolicyBinding(dialect)];
}

function mutatingAdmissionPolicy(dialect: Dialect, options: AdmissionKindOptions): ResourceDef {
  const { checkExpression: check } = options;
  return defineKind<MutatingAdmissionPolicy>({
    dialect,
    facts: 'admissionregistration',
    kind: 'MutatingAdmissionPolicy',
    scope: 'Cluster',
    categories: ['api-extensions'],
    generation: true,
    versions: [
      {
        version: 'v1alpha1',
        ...steppedDefaults(function* (object: Stored<MutatingAdmissionPolicy>) {
          fillAbsent(ensure(object, 'spec'), { failurePolicy: 'Fail' });
          yield* fillMatchResources(matchOf(object, 'matchConstraints'));
        }),
        columns: [
          nameColumn,
          column('Mutations', (object) => (object.spec?.mutations ?? []).length, {
            type: 'integer',
            description: 'Number of mutations.',
          }),
          paramKindColumn,
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validatePolicy(object, { check }),
      validateUpdate: (_, object, old) => validatePolicy(object, { check, old }),
    },
    example: () => ({
      spec: {
        reinvocationPolicy: 'Never',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['apps'],
              apiVersions: ['v1'],
              operations: ['CREATE'],
              resources: ['deployments'],
            },
          ],
        },
        mutations: [
          {
            patchType: 'ApplyConfiguration',
            applyConfiguration: { expression: 'Object{spec: Object.spec{replicas: 1}}' },
          },
        ],
      },
    }),
  });
}

const reinvocations = ['IfNeeded', 'Never'];

function* validatePolicy(
  object: Stored<MutatingAdmissionPolicy>,
  options: {
    readonly check: ExpressionChecker | undefined;
    readonly old?: Stored<MutatingAdmissionPolicy>;
  },
): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  // kube-apiserver declares the name `variables` even if there are none.
  const scope = { ...(yield* policyScope(spec, options)), variables: true };
  const mutations = spec.mutations ?? [];
  const field = 'spec.reinvocationPolicy';
  const policy = spec.reinvocationPolicy ?? '';
  return [
    ...(yield* validatePolicyBasis(object, { ...options, scope, validateOperations })),
    ...(mutations.length === 0
      ? [required('spec.mutations', 'mutations must contain at least one item')]
      : yield* flatMapSteps(
          mutations,
          (mutation, index) => validateMutation(mutation, `spec.mutations[${index}]`, scope),
          expressionsPerStep,
        )),
    ...(policy === '' ? [required(field)] : []),
    ...(policy === '' || reinvocations.includes(policy)
      ? []
      : [notSupported(field, policy, reinvocations)]),
  ];
}

/** A deletion carries no object that a policy could change. */
const operations = ['*', 'CONNECT', 'CREATE', 'UPDATE'];

function validateOperations(
  match: JsonObject | undefined,
  path: string,
): Generator<void, FieldError[]> {
  const named = objectsAt(match ?? {}, 'resourceRules').flatMap((rule) =>
    listAt(rule, 'operations').map(String),
  );
  return flatMapSteps(named, (operation) =>
    operations.includes(operation)
      ? []
      : [notSupported(`${path}.resourceRules.operations`, operation, operations)],
  );
}

/** The result type of each type of patch. */
const patchTypes: Readonly<
  Record<string, { readonly member: string; readonly resultType: string }>
> = {
  ApplyConfiguration: { member: 'applyConfiguration', resultType: 'Object' },
  JSONPatch: { member: 'jsonPatch', resultType: 'list(JSONPatch)' },
};

function* validateMutation(
  mutation: Stored<Mutation>,
  path: string,
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const type = mutation.patchType ?? '';
  const field = `${path}.patchType`;
  if (type === '') return [required(field)];
  const own = Object.hasOwn(patchTypes, type) ? patchTypes[type] : undefined;
  if (own === undefined) return [notSupported(field, type, Object.keys(patchTypes))];
  const patchBody = objectAt(mutation, own.member);
  const errors: FieldError[] = [];
  if (patchBody === undefined) {
    const detail = `must be specified when patchType is ${type}`;
    errors.push(required(`${path}.${own.member}`, detail));
  } else
    appendAll(
      errors,
      yield* validatePatch(patchBody, `${path}.${own.member}.expression`, own, scope),
    );
  for (const { member } of Object.values(patchTypes)) {
    if (member === own.member || objectAt(mutation, member) === undefined) continue;
    const detail = `must not be specified when patchType is ${type}`;
    errors.push(invalid(`${path}.${member}`, `{${member}}`, detail));
  }
  return errors;
}

function* validatePatch(
  patch: Stored<JSONPatch>,
  field: string,
  { resultType }: { readonly resultType: string },
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const expression = (patch.expression ?? '').trim();
  if (expression === '') return [required(field)];
  const { check, own } = scope;
  const use = {
    field,
    check,
    variables: namesFor(scope),
    resultTypes: [resultType],
    own,
    patches: true,
  };
  return yield* checkedExpression(expression, use);
}

function mutatingAdmissionPolicyBinding(dialect: Dialect): ResourceDef {
  return bindingKind(dialect, {
    kind: 'MutatingAdmissionPolicyBinding',
    version: 'v1alpha1',
    defaults: fillMissingAction,
    *validate(object) {
      return [
        ...(yield* validateBindingBasis(object)),
        ...(yield* validateOperations(matchOf(object, 'matchResources'), 'spec.matchResources')),
      ];
    },
    spec: {},
  });
}
