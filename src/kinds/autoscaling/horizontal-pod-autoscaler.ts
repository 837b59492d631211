import type { JsonObject } from '../../base/json.ts';
import type { ColumnDef, ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, required } from '../../meta/field-error.ts';
import { breaks, dnsSubdomain, pathSegment } from '../../meta/names.ts';
import type { ApiObject } from '../../meta/types.ts';
import { countColumn } from '../apps/workload.ts';
import { ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt, objectsAt } from '../fill.ts';
import { fromFirstVersion, toFirstVersion } from './kept-in-annotations.ts';

/** The metric there is when nothing is said. */
const standardMetric = (): JsonObject => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
});

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { minReplicas: 1 });
  if (objectsAt(spec, 'metrics').length === 0) spec['metrics'] = [standardMetric()];
  const behavior = objectAt(spec, 'behavior');
  if (behavior === undefined) return;
  fill(ensure(behavior, 'scaleUp'), {
    selectPolicy: 'Max',
    stabilizationWindowSeconds: 0,
    policies: [
      { type: 'Pods', value: 4, periodSeconds: 15 },
      { type: 'Percent', value: 100, periodSeconds: 15 },
    ],
  });
  fill(ensure(behavior, 'scaleDown'), {
    selectPolicy: 'Max',
    policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
  });
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors: FieldError[] = [];
  const least = numberAt(spec, 'minReplicas');
  const most = numberAt(spec, 'maxReplicas');
  if (at(spec, 'minReplicas') !== undefined && least < 1) {
    errors.push(invalid('spec.minReplicas', least, 'must be greater than or equal to 1'));
  }
  if (most < 1) errors.push(invalid('spec.maxReplicas', most, 'must be greater than 0'));
  if (most < least) {
    const detail = 'must be greater than or equal to `minReplicas`';
    errors.push(invalid('spec.maxReplicas', most, detail));
  }
  for (const name of ['kind', 'name']) {
    const field = `spec.scaleTargetRef.${name}`;
    const value = textAt(spec, 'scaleTargetRef', name);
    if (value === '') errors.push(required(field));
    else errors.push(...breaks(field, value, pathSegment));
  }
  return errors;
}

function reference(object: JsonObject): string {
  const ref = objectAt(object, 'spec', 'scaleTargetRef');
  return `${textAt(ref, 'kind')}/${textAt(ref, 'name')}`;
}

function columns(targets: ColumnDef['cell']): readonly ColumnDef[] {
  return [
    nameColumn,
    column('Reference', reference, { description: 'What is scaled.' }),
    column('Targets', targets, { description: 'Metrics, current and wanted.' }),
    column('MinPods', (object) => String(at(object, 'spec', 'minReplicas') ?? '<unset>'), {
      description: 'Least replicas.',
    }),
    countColumn('MaxPods', ['spec', 'maxReplicas'], 'Most replicas.'),
    countColumn('Replicas', ['status', 'currentReplicas'], 'Replicas now.'),
    ageColumn,
  ];
}

function targetsOf(object: JsonObject): string {
  const parts = objectsAt(object, 'spec', 'metrics').map((metric, index) => {
    const current = objectsAt(object, 'status', 'currentMetrics')[index];
    const name = textAt(metric, 'resource', 'name');
    const wanted = at(metric, 'resource', 'target', 'averageUtilization');
    if (wanted === undefined) return '<unknown>';
    const used = at(current, 'resource', 'current', 'averageUtilization');
    return `${name}: ${used === undefined ? '<unknown>' : `${used}%`}/${wanted}%`;
  });
  return parts.length === 0 ? '<none>' : parts.join(', ');
}

/** HorizontalPodAutoscaler: scales by metrics. */
export function horizontalPodAutoscaler(dialect: Dialect): ResourceDef {
  const toStorage = (object: ApiObject): ApiObject => {
    fromFirstVersion(object, dialect);
    fillDefaults(object);
    return object;
  };
  return defineKind({
    dialect,
    facts: 'autoscaling',
    kind: 'HorizontalPodAutoscaler',
    resource: 'horizontalpodautoscalers',
    scope: 'Namespaced',
    shortNames: ['hpa'],
    categories: ['all'],
    versions: [
      { version: 'v2', defaults: fillDefaults, columns: columns(targetsOf) },
      {
        version: 'v1',
        defaults: (object) => fill(ensure(object, 'spec'), { minReplicas: 1 }),
        toStorage,
        fromStorage: (object) => toFirstVersion(object, dialect),
        columns: columns((object) => targetsOf(toStorage(structuredClone(object) as ApiObject))),
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? [] : validate(object),
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'example' },
        maxReplicas: 5,
      },
    }),
  });
}
