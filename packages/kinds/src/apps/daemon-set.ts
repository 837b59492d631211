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
  problemText,
  required,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { DaemonSet, DaemonSetSpec, RollingUpdateDaemonSet } from '../gen/types/apps/v1.ts';
import { fillPodSpec, leavingOldInitContainers } from '../pod/defaults.ts';
import { noneNegative, notSupportedGo } from '../pod/fields.ts';
import { goIntOrString, goSelector, goStrategy } from '../pod/go-text.ts';
import type { PodRules } from '../pod/rules.ts';
import {
  selectorKept,
  selectsAll,
  templateOf,
  templateRules,
  validateCollisionCount,
  validateEndless,
  validatePodTemplate,
  validateSelected,
} from '../pod/template.ts';
import { templateWarnings } from '../pod/warnings.ts';
import type { ResourceDef } from '../resource-def.ts';
import { same, sortedKeys } from '../rules/checks.ts';
import { ensure, fill, fillAbsent, objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import {
  countColumn,
  exampleTemplate,
  isZero,
  notOverHundred,
  validateIntOrPercent,
  wideColumns,
} from './workload.ts';

/** DaemonSet: one pod on each matching node. */
export function daemonSet(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const count = (name: string, member: string, description: string) =>
    countColumn(name, ['status', member], description);
  const leaveOld = leavingOldInitContainers(dialect, ['spec', 'template'], fillDefaults);
  return defineKind<DaemonSet>({
    dialect,
    features,
    facts: 'apps',
    kind: 'DaemonSet',
    resource: 'daemonsets',
    scope: 'Namespaced',
    shortNames: ['ds'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => {
          checkCount(object);
          leaveOld(object);
        },
        columns: [
          nameColumn,
          count('Desired', 'desiredNumberScheduled', 'Nodes that should have one.'),
          count('Current', 'currentNumberScheduled', 'Nodes that have one.'),
          count('Ready', 'numberReady', 'Nodes where it is ready.'),
          count('Up-to-date', 'updatedNumberScheduled', 'Nodes with the latest sort.'),
          count('Available', 'numberAvailable', 'Nodes where it can be used.'),
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
        countTemplate(object, Math.max(templateGeneration(object), 1));
      },
      prepareForUpdate: (context, object, old) => {
        if (context.subresource === 'status') return countTemplate(object, templateGeneration(old));
        countChange(object, old);
      },
      validateCreate: (_, object) =>
        validate(object, templateRules({ dialect, features }, undefined)),
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return validateStatus(object, old);
        const errors = yield* validate(
          object,
          templateRules({ dialect, features }, templateOf(old)),
        );
        // kube-apiserver validates the whole object both on its own and as part of the change.
        return [...errors, ...errors, ...selectorKept(object, old)];
      },
      warnings: (object, old) =>
        old !== undefined && templateGeneration(object) === templateGeneration(old)
          ? []
          : templateWarnings(object, old, { path: ['spec', 'template'], dialect }),
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'example', namespace: 'default' },
      spec: { selector: { matchLabels: { app: 'example' } }, template: exampleTemplate() },
    }),
  });
}

/** Keeps the count of template changes, which is no longer a member of spec. */
export const templateGenerationAnnotation = 'deprecated.daemonset.template.generation';

function fillDefaults(object: JsonObject): void {
  fillDaemonSet(object);
  // A member that the body does not state is attributed to whoever sends the object.
  const annotations = ensure(ensure(object, 'metadata'), 'annotations');
  fill(annotations, { [templateGenerationAnnotation]: '0' });
}

/** Fills the defaults of all versions, including those with a member for the template's count. */
export function fillDaemonSet(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { revisionHistoryLimit: 10 });
  const strategy = ensure(spec, 'updateStrategy');
  fill(strategy, { type: 'RollingUpdate' });
  if (strategy['type'] === 'RollingUpdate') {
    fillAbsent(ensure(strategy, 'rollingUpdate'), { maxUnavailable: 1, maxSurge: 0 });
  }
  // `OnDelete` does not need these members, but kube-apiserver returns them.
  fillAbsent(objectAt(strategy, 'rollingUpdate'), { maxUnavailable: 0, maxSurge: 0 });
  fillPodSpec(objectAt(spec, 'template', 'spec'));
}

/** kube-apiserver reads the count into an int64. */
function checkCount({ metadata }: ApiObject): void {
  const count = metadata.annotations?.[templateGenerationAnnotation];
  if (count === undefined) return;
  const [, digits] = /^\+?(-?\d{1,100})$/.exec(count) ?? [];
  const number = digits === undefined ? undefined : BigInt(digits);
  if (number !== undefined && BigInt.asIntN(64, number) === number) return;
  const problem = number === undefined ? 'syntax' : 'range';
  const why = problemText({ code: 'number', parser: 'ParseInt', text: count, problem });
  const kind = 'DaemonSet';
  throw badRequest(problemText({ code: 'unfit body', kind, version: 'v1', expected: kind, why }));
}

function nodeSelector(object: Stored<DaemonSet>): string {
  const selector = object.spec?.template?.spec?.nodeSelector;
  const parts = sortedKeys(selector).map((key) => `${key}=${textAt(selector, key)}`);
  return parts.length === 0 ? '<none>' : parts.join(',');
}

function countTemplate(object: Stored<DaemonSet>, generation: number): void {
  const annotations = { ...object.metadata.annotations };
  annotations[templateGenerationAnnotation] = String(generation);
  object.metadata.annotations = annotations;
}

const templateGeneration = (object: Stored<DaemonSet>): number =>
  Number.parseInt(object.metadata.annotations?.[templateGenerationAnnotation] ?? '', 10) || 0;

function countChange(object: Stored<DaemonSet>, old: Stored<DaemonSet>): void {
  const template = (one: Stored<DaemonSet>) => one.spec?.template ?? undefined;
  const isChanged = !same(template(object), template(old));
  countTemplate(object, templateGeneration(old) + (isChanged ? 1 : 0));
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
    ...validateEndless(template, path, 'DaemonSet'),
    ...noneNegative(spec, 'spec', 'minReadySeconds'),
    ...validateStrategy(spec),
    ...noneNegative(spec, 'spec', 'revisionHistoryLimit'),
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
    ...notOverHundred(maxUnavailable, `${path}.maxUnavailable`),
    ...notOverHundred(maxSurge, `${path}.maxSurge`),
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
  ...noneNegative(object.status ?? {}, 'status', ...counts),
  ...validateCollisionCount(object, old),
];
