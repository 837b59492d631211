import {
  type Dialect,
  dnsLabel,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, nameColumn } from '../cells.ts';
import { defineKind, scaleSubresource, statusSubresource, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type {
  RollingUpdateStatefulSetStrategy,
  StatefulSet,
  StatefulSetSpec,
} from '../gen/types/apps/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers, resourceSteps } from '../pod/defaults.ts';
import { validateNonNegative } from '../pod/fields.ts';
import { goIntOrString, goSelector, goStrategy } from '../pod/go-text.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import {
  isValidSelector,
  selectsAll,
  templateOf,
  templateRules,
  validateCollisionCount,
  validateRestartPolicy,
  validateSelected,
  validateSelector,
  validateTemplateMetadata,
} from '../pod/template.ts';
import { claimWarnings, templateWarnings } from '../pod/warnings.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, sameOrEmpty } from '../rules/checks.ts';
import { ensure, fill, fillAbsent, forEachSteps } from '../rules/fill.ts';
import {
  exampleSelection,
  isZero,
  readyColumn,
  validateCounts,
  validateIntOrPercent,
  validatePercentMax,
  wideColumns,
} from './workload.ts';

/** StatefulSet: keeps replicas of a pod with stable names and their own storage running. */
export function statefulSet(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<StatefulSet>({
    dialect,
    features,
    facts: 'apps',
    kind: 'StatefulSet',
    scope: 'Namespaced',
    shortNames: ['sts'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(
          removingOldInitContainers(dialect, ['spec', 'template'], (object: Stored<StatefulSet>) =>
            fillDefaults(object, features),
          ),
        ),
        columns: [nameColumn, readyColumn, ageColumn, ...wideColumns().slice(0, 2)],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsLabel,
      hasStatus: true,
      validateCreate: (_, object) => validate(object, newPodRules({ dialect, features })),
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return validateStatus(object, old);
        const rules = yield* templateRules({ dialect, features }, templateOf(old));
        return yield* validateChange(object, old, rules);
      },
      warnings: (object, old) => warnings(object, old, dialect),
    },
    subresources: [scaleSubresource, statusSubresource],
    example: () => ({ spec: { serviceName: 'example', ...exampleSelection() } }),
  });
}

function* fillDefaults(object: Stored<StatefulSet>, features: Features): Generator<void, void> {
  const spec = ensure(object, 'spec');
  fill(spec, { podManagementPolicy: 'OrderedReady', replicas: 1, revisionHistoryLimit: 10 });
  const strategy = ensure(spec, 'updateStrategy');
  if ((strategy.type ?? '') === '') {
    strategy.type = 'RollingUpdate';
    ensure(strategy, 'rollingUpdate');
  }
  if (strategy.type === 'RollingUpdate') {
    fill(strategy.rollingUpdate, { partition: 0 });
    if (features.enabled('MaxUnavailableStatefulSet')) {
      fillAbsent(strategy.rollingUpdate, { maxUnavailable: 1 });
    }
  }
  fill(ensure(spec, 'persistentVolumeClaimRetentionPolicy'), {
    whenDeleted: 'Retain',
    whenScaled: 'Retain',
  });
  yield* fillPodSpecSteps(spec.template?.spec);
  yield* forEachSteps(spec.volumeClaimTemplates ?? [], (claim) => {
    const claimSpec = ensure(claim, 'spec');
    fillAbsent(claimSpec, { volumeMode: 'Filesystem' });
    fill(ensure(claim, 'status'), { phase: 'Pending' });
    claim.apiVersion = 'v1';
    claim.kind = 'PersistentVolumeClaim';
    return claimSpec.resources && resourceSteps(claimSpec.resources);
  });
}

function* validateChange(
  object: Stored<StatefulSet>,
  old: Stored<StatefulSet>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  return [...(yield* validate(object, rules)), ...validateImmutableFields(object, old)];
}

function* validate(object: Stored<StatefulSet>, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const ordinals = spec.ordinals;
  return [
    ...validatePolicy(spec),
    ...validateStrategy(spec),
    ...validateRetention(spec),
    ...validateNonNegative(spec, 'spec', 'replicas'),
    ...validateNonNegative(spec, 'spec', 'minReadySeconds'),
    ...(ordinals === undefined ? [] : validateNonNegative(ordinals, 'spec.ordinals', 'start')),
    ...validateSelector(object, 'statefulset'),
    ...(yield* validateOwnTemplate(object, rules)),
  ];
}

const policies = ['OrderedReady', 'Parallel'];

function validatePolicy(spec: Stored<StatefulSetSpec>): FieldError[] {
  const policy = spec.podManagementPolicy ?? '';
  if (policy === '') return [required('spec.podManagementPolicy')];
  if (policies.includes(policy)) return [];
  return [invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'")];
}

const settingsType = '*apps.RollingUpdateStatefulSetStrategy';

function validateStrategy(spec: Stored<StatefulSetSpec>): FieldError[] {
  const path = 'spec.updateStrategy';
  const strategy = ensure(spec, 'updateStrategy');
  const rolling = strategy.rollingUpdate;
  const type = strategy.type ?? '';
  if (type === '') return [required(path)];
  if (type === 'RollingUpdate') {
    return rolling === undefined ? [] : validateRolling(rolling, `${path}.rollingUpdate`);
  }
  if (type === 'OnDelete') {
    if (rolling === undefined) return [];
    const partition = rolling.partition ?? 0;
    const shown = `${settingsType.slice(1)}{Partition:${partition}, MaxUnavailable:(*intstr.IntOrString)(nil)}`;
    const detail = "only allowed for updateStrategy 'RollingUpdate'";
    return [invalidGo(`${path}.rollingUpdate`, () => shown, detail)];
  }
  const shown = goStrategy('apps.StatefulSetUpdateStrategy', type, settingsType);
  return [invalidGo(path, () => shown, "must be 'RollingUpdate' or 'OnDelete'")];
}

function validateRolling(
  rolling: Stored<RollingUpdateStatefulSetStrategy>,
  path: string,
): FieldError[] {
  const { maxUnavailable } = rolling;
  const field = `${path}.maxUnavailable`;
  const isNone = maxUnavailable !== undefined && isZero(maxUnavailable);
  return [
    ...validateNonNegative(rolling, path, 'partition'),
    ...validateIntOrPercent(maxUnavailable, field),
    ...(isNone ? [invalidGo(field, () => goIntOrString(maxUnavailable), 'cannot be 0')] : []),
    ...validatePercentMax(maxUnavailable, field),
  ];
}

function validateRetention(spec: Stored<StatefulSetSpec>): FieldError[] {
  const path = 'spec.persistentVolumeClaimRetentionPolicy';
  const policy = spec.persistentVolumeClaimRetentionPolicy;
  const allowed = ['Retain', 'Delete'];
  if (policy === undefined) return [];
  return (['whenDeleted', 'whenScaled'] as const).flatMap((name) => {
    const value = policy[name] ?? '';
    return allowed.includes(value) ? [] : [notSupported(`${path}.${name}`, value, allowed)];
  });
}

/**
 * Validates the labels, annotations, and restart policy of the template. kube-apiserver does not
 * validate the rest of the pod spec, whose mounts may refer to claims that are not its volumes.
 */
function* validateOwnTemplate(
  object: Stored<StatefulSet>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const path = 'spec.template';
  const template = ensure(ensure(object, 'spec'), 'template');
  const selector = object.spec?.selector ?? undefined;
  const restartErrors = validateRestartPolicy(template, path, 'StatefulSet');
  if (!isValidSelector(selector)) {
    return [invalidGo('spec.selector', () => goSelector(selector), ''), ...restartErrors];
  }
  return [
    ...(selectsAll(selector) ? [] : validateSelected(object, path)),
    ...(yield* validateTemplateMetadata(template, path, rules)),
    ...restartErrors,
  ];
}

const parts = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'];
const counts = ['replicas', ...parts, 'observedGeneration', 'collisionCount'];

function validateStatus(object: Stored<StatefulSet>, old: Stored<StatefulSet>): FieldError[] {
  const limits = { availableOf: 'status.readyReplicas' };
  return [...validateCounts(object, counts, parts, limits), ...validateCollisionCount(object, old)];
}

const mutable = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

function validateImmutableFields(
  object: Stored<StatefulSet>,
  old: Stored<StatefulSet>,
): FieldError[] {
  const strip = (spec: Stored<StatefulSetSpec>) =>
    Object.fromEntries(Object.entries(spec).filter(([name]) => !mutable.includes(name)));
  if (sameOrEmpty(strip(ensure(object, 'spec')), strip(ensure(old, 'spec')))) return [];
  const detail =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', " +
    "'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
  return [forbiddenField('spec', detail)];
}

function* warnings(
  object: Stored<StatefulSet>,
  old: Stored<StatefulSet> | undefined,
  dialect: Dialect,
): Generator<void, readonly string[]> {
  const found = yield* templateWarnings(object, old, { path: ['spec', 'template'], dialect });
  // kube-apiserver reports another path for the claims of an updated set.
  const member = old === undefined ? '' : '.Spec';
  const ofClaims = yield* flatMapSteps(object.spec?.volumeClaimTemplates ?? [], (claim, index) =>
    claimWarnings(claim.spec, `spec.volumeClaimTemplates[${index}]${member}`),
  );
  return [...found, ...ofClaims];
}
