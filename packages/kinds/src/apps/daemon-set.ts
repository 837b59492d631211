import {
  type ApiObject,
  appendAll,
  badRequest,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalidGo,
  type JsonObject,
  type LabelSelector,
  parseInt64,
  problemText,
  required,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { DaemonSet, DaemonSetSpec, RollingUpdateDaemonSet } from '../gen/types/apps/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers } from '../pod/defaults.ts';
import { notSupportedGo, validateNonNegative } from '../pod/fields.ts';
import { goIntOrString, goSelector, goStrategy } from '../pod/go-text.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import {
  selectsAll,
  templateOf,
  templateRules,
  validateCollisionCount,
  validatePodTemplate,
  validateRestartPolicy,
  validateSelected,
  validateSelectorUnchanged,
} from '../pod/template.ts';
import { templateWarnings } from '../pod/warnings.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { reportedTwice, sameSteps, sortedKeys } from '../rules/checks.ts';
import { ensure, fill, fillAbsent, objectAt } from '../rules/fill.ts';
import {
  countColumn,
  exampleSelection,
  isZero,
  validateIntOrPercent,
  validatePercentMax,
  wideColumns,
} from './workload.ts';

/** DaemonSet: runs one pod on each matching node. */
export function daemonSet(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const count = (name: string, member: string, description: string) =>
    countColumn(name, ['status', member], description);
  const fillPods = removingOldInitContainers(dialect, ['spec', 'template'], fillDefaults);
  return defineKind<DaemonSet>({
    dialect,
    features,
    facts: 'apps',
    kind: 'DaemonSet',
    scope: 'Namespaced',
    shortNames: ['ds'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults<Stored<DaemonSet>>(function* (object) {
          checkTemplateGeneration(object);
          yield* fillPods(object);
        }),
        columns: [
          nameColumn,
          count('Desired', 'desiredNumberScheduled', 'Number of nodes that should run the pod.'),
          count('Current', 'currentNumberScheduled', 'Number of nodes that run the pod.'),
          count('Ready', 'numberReady', 'Number of nodes with a ready pod.'),
          count('Up-to-date', 'updatedNumberScheduled', 'Number of nodes with an updated pod.'),
          count('Available', 'numberAvailable', 'Number of nodes with an available pod.'),
          column('Node Selector', nodeSelector, { description: 'Node selector of the pods.' }),
          ageColumn,
          ...wideColumns(),
        ],
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => {
        const generation = templateGeneration(object);
        setTemplateGeneration(object, generation < 1n ? 1n : generation);
      },
      prepareForUpdate: ({ subresource }, object, old) =>
        subresource === 'status'
          ? setTemplateGeneration(object, templateGeneration(old))
          : countTemplateChange(object, old),
      validateCreate: (_, object) => validate(object, newPodRules({ dialect, features })),
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return validateStatus(object, old);
        const rules = yield* templateRules({ dialect, features }, templateOf(old));
        return [
          ...reportedTwice(yield* validate(object, rules)),
          ...(yield* validateSelectorUnchanged(object, old)),
        ];
      },
      warnings: (object, old) =>
        old !== undefined && templateGeneration(object) === templateGeneration(old)
          ? []
          : templateWarnings(object, old, { path: ['spec', 'template'], dialect }),
    },
    subresources: [statusSubresource],
    example: () => ({ spec: exampleSelection() }),
  });
}

/** Annotation that replaces `spec.templateGeneration`, the count of template changes. */
export const templateGenerationAnnotation = 'deprecated.daemonset.template.generation';

function* fillDefaults(object: JsonObject): Generator<void, void> {
  yield* fillDaemonSet(object);
  // The annotation belongs to the field manager of the request, like other defaults.
  const annotations = ensure(ensure(object, 'metadata'), 'annotations');
  fill(annotations, { [templateGenerationAnnotation]: '0' });
}

/** Fills in the defaults that all versions share, in steps. */
export function* fillDaemonSet(object: JsonObject): Generator<void, void> {
  const spec = ensure(object, 'spec');
  fill(spec, { revisionHistoryLimit: 10 });
  const strategy = ensure(spec, 'updateStrategy');
  fill(strategy, { type: 'RollingUpdate' });
  if (strategy['type'] === 'RollingUpdate') {
    fillAbsent(ensure(strategy, 'rollingUpdate'), { maxUnavailable: 1, maxSurge: 0 });
  }
  // `OnDelete` does not need these members, but kube-apiserver returns them.
  fillAbsent(objectAt(strategy, 'rollingUpdate'), { maxUnavailable: 0, maxSurge: 0 });
  yield* fillPodSpecSteps(objectAt(spec, 'template', 'spec'));
}

/** Throws a BadRequest if the template generation is not an int64. */
function checkTemplateGeneration({ metadata }: ApiObject): void {
  const count = metadata.annotations?.[templateGenerationAnnotation];
  if (count === undefined) return;
  const problem = parseInt64(count);
  if (typeof problem === 'bigint') return;
  const why = problemText({ code: 'number', parser: 'ParseInt', text: count, problem });
  const kind = 'DaemonSet';
  throw badRequest(problemText({ code: 'unfit body', kind, version: 'v1', expected: kind, why }));
}

function nodeSelector(object: Stored<DaemonSet>): string {
  const selector = object.spec?.template?.spec?.nodeSelector;
  const parts = sortedKeys(selector).map((key) => `${key}=${textAt(selector, key)}`);
  return parts.length === 0 ? '<none>' : parts.join(',');
}

function setTemplateGeneration(object: Stored<DaemonSet>, generation: bigint): void {
  const text = String(generation);
  if (object.metadata.annotations?.[templateGenerationAnnotation] === text) return;
  const annotations = { ...object.metadata.annotations, [templateGenerationAnnotation]: text };
  object.metadata.annotations = annotations;
}

/** The template generation, which is an int64; 0 if it is malformed. */
function templateGeneration(object: Stored<DaemonSet>): bigint {
  const generation = parseInt64(object.metadata.annotations?.[templateGenerationAnnotation] ?? '');
  return typeof generation === 'bigint' ? generation : 0n;
}

/** Increments the template generation if the template has changed, in steps (TRUST-2). */
function* countTemplateChange(
  object: Stored<DaemonSet>,
  old: Stored<DaemonSet>,
): Generator<void, void> {
  const template = ({ spec }: Stored<DaemonSet>) => spec?.template ?? undefined;
  const isChanged = !(yield* sameSteps(template(object), template(old)));
  const generation = templateGeneration(old) + (isChanged ? 1n : 0n);
  setTemplateGeneration(object, BigInt.asIntN(64, generation));
}

function* validate(object: Stored<DaemonSet>, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const path = 'spec.template';
  const template = ensure(spec, 'template');
  const selector = spec.selector ?? undefined;
  const errors = validateLabelSelector(selector as LabelSelector | undefined, 'spec.selector');
  if (errors.length === 0) appendAll(errors, validateSelected(object, path));
  if (selectsAll(selector)) {
    const detail = 'empty selector is invalid for daemonset';
    errors.push(invalidGo('spec.selector', () => goSelector(selector), detail));
  }
  return [
    ...errors,
    ...(yield* validatePodTemplate(template, path, rules)),
    ...validateRestartPolicy(template, path, 'DaemonSet'),
    ...validateNonNegative(spec, 'spec', 'minReadySeconds'),
    ...validateStrategy(spec),
    ...validateNonNegative(spec, 'spec', 'revisionHistoryLimit'),
  ];
}

function validateStrategy(spec: Stored<DaemonSetSpec>): FieldError[] {
  const strategy = ensure(spec, 'updateStrategy');
  const path = 'spec.updateStrategy';
  const type = strategy.type ?? '';
  if (type === 'OnDelete') return [];
  if (type === 'RollingUpdate') {
    const rolling = strategy.rollingUpdate;
    return rolling === undefined ? [required(`${path}.rollingUpdate`)] : validateRolling(rolling);
  }
  const shown = goStrategy('apps.DaemonSetUpdateStrategy', type, '*apps.RollingUpdateDaemonSet');
  return [notSupportedGo(path, shown, ['RollingUpdate', 'OnDelete'])];
}

function validateRolling(rolling: Stored<RollingUpdateDaemonSet>): FieldError[] {
  const path = 'spec.updateStrategy.rollingUpdate';
  const { maxUnavailable, maxSurge } = rolling;
  const errors = [
    ...validateIntOrPercent(maxUnavailable, `${path}.maxUnavailable`),
    ...validateIntOrPercent(maxSurge, `${path}.maxSurge`),
    ...validatePercentMax(maxUnavailable, `${path}.maxUnavailable`),
    ...validatePercentMax(maxSurge, `${path}.maxSurge`),
  ];
  if (isZero(maxUnavailable) && isZero(maxSurge)) {
    errors.push(required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  }
  if (!isZero(maxUnavailable) && !isZero(maxSurge)) {
    const detail = 'may not be set when maxUnavailable is non-zero';
    errors.push(invalidGo(`${path}.maxSurge`, () => goIntOrString(maxSurge), detail));
  }
  return errors;
}

const counts = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
];

const validateStatus = (object: Stored<DaemonSet>, old: Stored<DaemonSet>): FieldError[] => [
  ...validateNonNegative(object.status ?? {}, 'status', ...counts),
  ...validateCollisionCount(object, old),
];
