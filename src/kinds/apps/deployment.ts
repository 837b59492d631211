import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, forbiddenField, invalid } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, nameColumn, numberAt } from '../cells.ts';
import { defineKind, scaleSubresource, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { selectorKept, validateSelector, validateTemplate } from '../pod/template.ts';
import { notNegative, oneOf } from '../pod/validate.ts';
import {
  countColumn,
  exampleTemplate,
  isZero,
  notOverHundred,
  readyColumn,
  validateIntOrPercent,
  wideColumns,
} from './workload.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 });
  const strategy = ensure(spec, 'strategy');
  fill(strategy, { type: 'RollingUpdate' });
  if (strategy['type'] === 'RollingUpdate') {
    fill(ensure(strategy, 'rollingUpdate'), { maxUnavailable: '25%', maxSurge: '25%' });
  }
  fillPodSpec(objectAt(spec, 'template', 'spec'));
}

function validateStrategy(spec: JsonObject): FieldError[] {
  const strategy = ensure(spec, 'strategy');
  const path = 'spec.strategy';
  const rolling = objectAt(strategy, 'rollingUpdate');
  const errors = oneOf(strategy, `${path}.type`, ['Recreate', 'RollingUpdate']);
  if (strategy['type'] === 'Recreate' && rolling !== undefined) {
    const detail = "may not be specified when strategy `type` is 'Recreate'";
    errors.push(forbiddenField(`${path}.rollingUpdate`, detail));
  }
  if (strategy['type'] !== 'RollingUpdate' || rolling === undefined) return errors;
  const { maxUnavailable, maxSurge } = rolling;
  const field = `${path}.rollingUpdate.maxUnavailable`;
  errors.push(...validateIntOrPercent(maxUnavailable, field));
  errors.push(...validateIntOrPercent(maxSurge, `${path}.rollingUpdate.maxSurge`));
  if (isZero(maxUnavailable) && isZero(maxSurge)) {
    errors.push(invalid(field, maxUnavailable, 'may not be 0 when `maxSurge` is 0'));
  }
  return [...errors, ...notOverHundred(maxUnavailable, field)];
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors = [
    ...notNegative(spec, 'spec.replicas'),
    ...validateSelector(object, 'deployment'),
    ...validateTemplate(object, { restart: ['Always'], controller: 'ReplicaSet' }),
    ...validateStrategy(spec),
    ...notNegative(spec, 'spec.minReadySeconds'),
    ...notNegative(spec, 'spec.revisionHistoryLimit'),
    ...notNegative(spec, 'spec.progressDeadlineSeconds'),
  ];
  const deadline = at(spec, 'progressDeadlineSeconds');
  if (typeof deadline === 'number' && deadline <= numberAt(spec, 'minReadySeconds')) {
    const detail = 'must be greater than minReadySeconds';
    errors.push(invalid('spec.progressDeadlineSeconds', deadline, detail));
  }
  return errors;
}

function validateStatus(object: JsonObject): FieldError[] {
  const status = ensure(object, 'status');
  const counts = ['observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas'];
  const errors = [...counts, 'availableReplicas', 'unavailableReplicas', 'collisionCount'].flatMap(
    (name) => notNegative(status, `status.${name}`),
  );
  const count = (name: string) => numberAt(status, name);
  const within = (name: string, limit: string) => {
    if (count(name) > count(limit)) {
      const detail = `cannot be greater than status.${limit}`;
      errors.push(invalid(`status.${name}`, count(name), detail));
    }
  };
  within('updatedReplicas', 'replicas');
  within('readyReplicas', 'replicas');
  within('availableReplicas', 'replicas');
  within('availableReplicas', 'readyReplicas');
  return errors;
}

/** Deployment: keeps replicas of a pod running and replaces them gradually. */
export function deployment(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'apps',
    kind: 'Deployment',
    resource: 'deployments',
    scope: 'Namespaced',
    shortNames: ['deploy'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          readyColumn,
          countColumn('Up-to-date', ['status', 'updatedReplicas'], 'Replicas of the latest sort.'),
          countColumn('Available', ['status', 'availableReplicas'], 'Replicas that can be used.'),
          ageColumn,
          ...wideColumns(),
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateStatus(object)
          : [...validate(object), ...selectorKept(object, old)],
      resetFields: { '': ['status'], status: ['spec', 'metadata.labels'] },
    },
    subresources: [scaleSubresource, statusSubresource],
    example: () => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'example' } },
        template: exampleTemplate(),
      },
    }),
  });
}
