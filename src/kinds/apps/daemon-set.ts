import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import type { ApiObject } from '../../meta/types.ts';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { same, sortedKeys } from '../checks.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { selectorKept, validateSelector, validateTemplate } from '../pod/template.ts';
import { notNegative, oneOf } from '../pod/validate.ts';
import {
  countColumn,
  exampleTemplate,
  isZero,
  validateIntOrPercent,
  wideColumns,
} from './workload.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { revisionHistoryLimit: 10 });
  const strategy = ensure(spec, 'updateStrategy');
  fill(strategy, { type: 'RollingUpdate' });
  if (strategy['type'] === 'RollingUpdate') {
    fill(ensure(strategy, 'rollingUpdate'), { maxUnavailable: 1, maxSurge: 0 });
  }
  fillPodSpec(objectAt(spec, 'template', 'spec'));
}

function validateStrategy(spec: JsonObject): FieldError[] {
  const strategy = ensure(spec, 'updateStrategy');
  const path = 'spec.updateStrategy.rollingUpdate';
  const errors = oneOf(strategy, 'spec.updateStrategy.type', ['OnDelete', 'RollingUpdate']);
  const rolling = objectAt(strategy, 'rollingUpdate');
  if (rolling === undefined) return errors;
  const { maxUnavailable, maxSurge } = rolling;
  errors.push(...validateIntOrPercent(maxUnavailable, `${path}.maxUnavailable`));
  errors.push(...validateIntOrPercent(maxSurge, `${path}.maxSurge`));
  if (isZero(maxUnavailable) && isZero(maxSurge)) {
    const detail = 'cannot be 0 when maxSurge is 0';
    errors.push(invalid(`${path}.maxUnavailable`, maxUnavailable, detail));
  }
  if (!isZero(maxUnavailable) && !isZero(maxSurge)) {
    const detail = 'may not be set when maxUnavailable is non-zero';
    errors.push(invalid(`${path}.maxSurge`, maxSurge, detail));
  }
  return errors;
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  return [
    ...validateSelector(object, 'daemonset'),
    ...validateTemplate(object, { restart: ['Always'], controller: 'DaemonSet' }),
    ...notNegative(spec, 'spec.minReadySeconds'),
    ...validateStrategy(spec),
    ...notNegative(spec, 'spec.revisionHistoryLimit'),
  ];
}

/** Where the count of the template's changes went when it was no longer a member of spec. */
export const templateGenerationAnnotation = 'deprecated.daemonset.template.generation';

const templateGeneration = (object: ApiObject): number =>
  Number.parseInt(object.metadata.annotations?.[templateGenerationAnnotation] ?? '', 10) || 0;

function countTemplate(object: ApiObject, generation: number): void {
  const annotations = { ...object.metadata.annotations };
  annotations[templateGenerationAnnotation] = String(generation);
  object.metadata.annotations = annotations;
}

function countChange(object: ApiObject, old: ApiObject): void {
  const template = (one: ApiObject) => objectAt(one, 'spec', 'template');
  const isChanged = !same(template(object), template(old));
  countTemplate(object, templateGeneration(old) + (isChanged ? 1 : 0));
}

function nodeSelector(object: JsonObject): string {
  const selector = objectAt(object, 'spec', 'template', 'spec', 'nodeSelector');
  const parts = sortedKeys(selector).map((key) => `${key}=${textAt(selector, key)}`);
  return parts.length === 0 ? '<none>' : parts.join(',');
}

/** DaemonSet: one pod on each node that fits. */
export function daemonSet(dialect: Dialect): ResourceDef {
  const count = (name: string, member: string, description: string) =>
    countColumn(name, ['status', member], description);
  return defineKind({
    dialect,
    facts: 'apps',
    kind: 'DaemonSet',
    resource: 'daemonsets',
    scope: 'Namespaced',
    shortNames: ['ds'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          count('Desired', 'desiredNumberScheduled', 'Nodes that should have one.'),
          count('Current', 'currentNumberScheduled', 'Nodes that have one.'),
          count('Ready', 'numberReady', 'Nodes where it is ready.'),
          count('Up-to-date', 'updatedNumberScheduled', 'Nodes with the latest sort.'),
          count('Available', 'numberAvailable', 'Nodes where it can be used.'),
          column('Node Selector', nodeSelector, { description: 'Which nodes fit.' }),
          ageColumn,
          ...wideColumns(),
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => {
        countTemplate(object, Math.max(templateGeneration(object), 1));
      },
      prepareForUpdate: (context, object, old) => {
        if (context.subresource !== 'status') countChange(object, old);
      },
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status' ? [] : [...validate(object), ...selectorKept(object, old)],
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
