import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, forbiddenField, invalid } from '../../meta/field-error.ts';
import { dnsLabel } from '../../meta/names.ts';
import { ageColumn, nameColumn } from '../cells.ts';
import { sameOrEmpty } from '../checks.ts';
import { defineKind, scaleSubresource, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt, objectsAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { validateSelector, validateTemplate } from '../pod/template.ts';
import { notNegative } from '../pod/validate.ts';
import { exampleTemplate, readyColumn, wideColumns } from './workload.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { podManagementPolicy: 'OrderedReady', replicas: 1, revisionHistoryLimit: 10 });
  const strategy = ensure(spec, 'updateStrategy');
  fill(strategy, { type: 'RollingUpdate' });
  if (strategy['type'] === 'RollingUpdate')
    fill(ensure(strategy, 'rollingUpdate'), { partition: 0 });
  fill(ensure(spec, 'persistentVolumeClaimRetentionPolicy'), {
    whenDeleted: 'Retain',
    whenScaled: 'Retain',
  });
  fillPodSpec(objectAt(spec, 'template', 'spec'));
  for (const claim of objectsAt(spec, 'volumeClaimTemplates')) {
    fill(ensure(claim, 'spec'), { volumeMode: 'Filesystem' });
    fill(ensure(claim, 'status'), { phase: 'Pending' });
    fill(claim, { apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
  }
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors = [
    ...notNegative(spec, 'spec.replicas'),
    ...notNegative(spec, 'spec.minReadySeconds'),
    ...validateSelector(object, 'statefulset'),
    ...validateTemplate(object, { restart: ['Always'], controller: 'StatefulSet' }),
  ];
  const policy = spec['podManagementPolicy'];
  if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    const detail = "must be 'OrderedReady' or 'Parallel'";
    errors.push(invalid('spec.podManagementPolicy', policy, detail));
  }
  const type = objectAt(spec, 'updateStrategy')?.['type'];
  if (type !== 'RollingUpdate' && type !== 'OnDelete') {
    const detail = "must be 'RollingUpdate' or 'OnDelete'";
    errors.push(invalid('spec.updateStrategy', type, detail));
  }
  return errors;
}

const mutable = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

function fixedFieldsKept(object: JsonObject, old: JsonObject): FieldError[] {
  const strip = (spec: JsonObject) =>
    Object.fromEntries(Object.entries(spec).filter(([name]) => !mutable.includes(name)));
  if (sameOrEmpty(strip(ensure(object, 'spec')), strip(ensure(old, 'spec')))) return [];
  const detail =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', " +
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and " +
    "'minReadySeconds' are forbidden";
  return [forbiddenField('spec', detail)];
}

/** StatefulSet: replicas with names and storage of their own. */
export function statefulSet(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'apps',
    kind: 'StatefulSet',
    resource: 'statefulsets',
    scope: 'Namespaced',
    shortNames: ['sts'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [nameColumn, readyColumn, ageColumn, ...wideColumns().slice(0, 2)],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsLabel,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? []
          : [...validate(object), ...fixedFieldsKept(object, old)],
    },
    subresources: [scaleSubresource, statusSubresource],
    example: () => ({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        serviceName: 'example',
        selector: { matchLabels: { app: 'example' } },
        template: exampleTemplate(),
      },
    }),
  });
}
