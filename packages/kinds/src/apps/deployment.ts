import {
  type ApiObject,
  badRequest,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  joined,
  parseInt64,
  problemText,
} from '@wheelhouse/machinery';
import { ageColumn, asStringColumn, nameColumn } from '../cells.ts';
import { defineKind, scaleSubresourceOf, statusSubresource, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type {
  Deployment,
  DeploymentSpec,
  ReplicaSet,
  RollingUpdateDeployment,
} from '../gen/types/apps/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers } from '../pod/defaults.ts';
import { notSupportedGo, validateNonNegative } from '../pod/fields.ts';
import { goIntOrString, goStrategy } from '../pod/go-text.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import {
  templateOf,
  templateRules,
  validateCollisionCount,
  validateSelector,
  validateSelectorUnchanged,
  validateTemplate,
} from '../pod/template.ts';
import { controllerWarnings } from '../pod/warnings.ts';
import type { ResourceDef, Stored, StrategyContext } from '../resource-def.ts';
import { sameOrEmptySteps } from '../rules/checks.ts';
import { ensure, fill, fillAbsent, keepMembers } from '../rules/fill.ts';
import {
  countColumn,
  exampleSelection,
  isZero,
  readyColumn,
  replicaColumns,
  replicaStrategy,
  validateCounts,
  validateIntOrPercent,
  validatePercentMax,
  wideColumns,
} from './workload.ts';

/** Deployment: keeps replicas of a pod running and replaces them gradually. */
export function deployment(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const fillPods = removingOldInitContainers(dialect, ['spec', 'template'], fillDefaults);
  return defineKind<Deployment>({
    dialect,
    features,
    facts: 'apps',
    kind: 'Deployment',
    scope: 'Namespaced',
    shortNames: ['deploy'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults<Stored<Deployment>>(function* (object) {
          readRollback(object);
          yield* fillPods(object);
        }),
        columns: [
          nameColumn,
          readyColumn,
          ...[
            countColumn('Up-to-date', ['status', 'updatedReplicas'], 'Number of updated replicas.'),
            countColumn(
              'Available',
              ['status', 'availableReplicas'],
              'Number of available replicas.',
            ),
          ].map(asStringColumn),
          ageColumn,
          ...wideColumns(),
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForUpdate: prepareUpdate,
      validateCreate: (_, object) => validate(object, newPodRules({ dialect, features })),
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return validateStatus(object, old);
        const rules = yield* templateRules({ dialect, features }, templateOf(old));
        return joined(
          yield* validate(object, rules),
          yield* validateSelectorUnchanged(object, old),
        );
      },
      warnings: (object, old) =>
        controllerWarnings(object, old, { path: ['spec', 'template'], dialect }),
      resetFields: { '': ['status'], status: ['spec', 'metadata.labels'] },
    },
    subresources: [
      scaleSubresourceOf({ group: 'apps', resource: 'deployments/scale' }),
      statusSubresource,
    ],
    example: () => ({ spec: { replicas: 2, ...exampleSelection() } }),
  });
}

/** Annotation with the revision of a rollback, for which removed versions have a field. */
/** The annotation that replaces `spec.rollbackTo`, which `apps/v1` does not have. */
export const rollbackAnnotation = 'deprecated.deployment.rollback.to';

/**
 * Writes the revision of a rollback as a plain number, and removes an empty one. Throws a
 * BadRequest if it is not an int64.
 */
function readRollback({ metadata }: ApiObject): void {
  const text = metadata.annotations?.[rollbackAnnotation];
  if (text === undefined) return;
  const { [rollbackAnnotation]: _, ...others } = metadata.annotations ?? {};
  const revision = text === '' ? undefined : parseInt64(text);
  if (typeof revision === 'string') {
    const parsing = problemText({ code: 'number', parser: 'ParseInt', text, problem: revision });
    const why = `failed to parse annotation[${rollbackAnnotation}]=${text} as int64: ${parsing}`;
    const kind = 'Deployment';
    throw badRequest(problemText({ code: 'unfit body', kind, version: 'v1', expected: kind, why }));
  }
  if (revision !== undefined) others[rollbackAnnotation] = String(revision);
  if (Object.keys(others).length > 0) metadata.annotations = others;
  else delete metadata.annotations;
}

function* fillDefaults(object: Stored<Deployment>): Generator<void, void> {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 });
  const strategy = ensure(spec, 'strategy');
  fill(strategy, { type: 'RollingUpdate' });
  if (strategy.type === 'RollingUpdate') {
    fillAbsent(ensure(strategy, 'rollingUpdate'), { maxUnavailable: '25%', maxSurge: '25%' });
  }
  yield* fillPodSpecSteps(spec.template?.spec);
}

/** Changed annotations increment the generation, because ReplicaSets receive them. */
function* prepareUpdate(
  context: StrategyContext,
  object: Stored<Deployment>,
  old: Stored<Deployment>,
): Generator<void, void> {
  if (context.subresource === 'status') {
    yield* keepMembers(object.metadata, old.metadata, ['labels']);
    return;
  }
  if (yield* sameOrEmptySteps(object.metadata.annotations, old.metadata.annotations)) return;
  object.metadata.generation = (old.metadata.generation ?? 0) + 1;
}

function* validate(object: Stored<Deployment>, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const errors = [
    ...validateNonNegative(spec, 'spec', 'replicas'),
    ...validateSelector(object, 'deployment'),
    ...(yield* validateTemplate(object, rules)),
    ...validateStrategy(spec),
    ...validateNonNegative(spec, 'spec', 'minReadySeconds'),
    ...validateNonNegative(spec, 'spec', 'revisionHistoryLimit'),
    ...validateRollback(object),
    ...validateNonNegative(spec, 'spec', 'progressDeadlineSeconds'),
  ];
  const deadline = spec.progressDeadlineSeconds;
  if (typeof deadline === 'number' && deadline <= (spec.minReadySeconds ?? 0)) {
    const detail = 'must be greater than minReadySeconds';
    errors.push(invalid('spec.progressDeadlineSeconds', deadline, detail));
  }
  return errors;
}

function validateStrategy(spec: Stored<DeploymentSpec>): FieldError[] {
  const strategy = ensure(spec, 'strategy');
  const rolling = strategy.rollingUpdate;
  const type = strategy.type ?? '';
  if (type === 'RollingUpdate') return rolling === undefined ? [] : validateRolling(rolling);
  if (type === 'Recreate') {
    const detail = "may not be specified when strategy `type` is 'Recreate'";
    return rolling === undefined ? [] : [forbiddenField('spec.strategy.rollingUpdate', detail)];
  }
  const shown = goStrategy('apps.DeploymentStrategy', type, '*apps.RollingUpdateDeployment');
  return [notSupportedGo('spec.strategy', shown, ['Recreate', 'RollingUpdate'])];
}

function validateRolling(rolling: Stored<RollingUpdateDeployment>): FieldError[] {
  const path = 'spec.strategy.rollingUpdate';
  const { maxUnavailable, maxSurge } = rolling;
  const field = `${path}.maxUnavailable`;
  const errors = [
    ...validateIntOrPercent(maxUnavailable, field),
    ...validateIntOrPercent(maxSurge, `${path}.maxSurge`),
  ];
  if (isZero(maxUnavailable) && isZero(maxSurge)) {
    const shown = goIntOrString(maxUnavailable);
    errors.push(invalidGo(field, () => shown, 'may not be 0 when `maxSurge` is 0'));
  }
  return [...errors, ...validatePercentMax(maxUnavailable, field)];
}

/** Validates the rollback that an annotation requests. */
function validateRollback(object: Stored<Deployment>): FieldError[] {
  const version = parseInt64(object.metadata.annotations?.[rollbackAnnotation] ?? '');
  return typeof version === 'bigint'
    ? validateNonNegative({ version }, 'spec.rollback', 'version')
    : [];
}

const parts = ['updatedReplicas', 'readyReplicas', 'availableReplicas'];
const counts = [
  'observedGeneration',
  'replicas',
  ...parts,
  'unavailableReplicas',
  'collisionCount',
];

const validateStatus = (object: Stored<Deployment>, old: Stored<Deployment>): FieldError[] => [
  ...validateCounts(object, counts, parts),
  ...validateCollisionCount(object, old),
];

/** ReplicaSet: keeps replicas of one pod template running. */
export function replicaSet(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<ReplicaSet>({
    dialect,
    features,
    facts: 'apps',
    kind: 'ReplicaSet',
    scope: 'Namespaced',
    shortNames: ['rs'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(
          removingOldInitContainers(dialect, ['spec', 'template'], fillReplicaSet),
        ),
        columns: [...replicaColumns, ...wideColumns()],
      },
    ],
    generation: true,
    strategy: replicaStrategy(
      { dialect, features },
      { validate: validateReplicaSet, changed: validateSelectorUnchanged },
    ),
    subresources: [
      scaleSubresourceOf({ group: 'apps', resource: 'replicasets/scale' }),
      statusSubresource,
    ],
    example: () => ({ spec: { replicas: 2, ...exampleSelection() } }),
  });
}

function* fillReplicaSet(object: Stored<ReplicaSet>): Generator<void, void> {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1 });
  yield* fillPodSpecSteps(spec.template?.spec);
}

function* validateReplicaSet(
  object: Stored<ReplicaSet>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  return [
    ...validateNonNegative(spec, 'spec', 'replicas'),
    ...validateNonNegative(spec, 'spec', 'minReadySeconds'),
    // kube-apiserver uses the message of a Deployment.
    ...validateSelector(object, 'deployment'),
    ...(yield* validateTemplate(object, rules)),
  ];
}
