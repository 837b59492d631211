import {
  type ApiObject,
  asApiObject,
  type Dialect,
  dnsSubdomain,
  type JsonObject,
} from '@wheelhouse/machinery';
import { countColumn } from '../apps/workload.ts';
import { ageColumn, asStringColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
} from '../gen/types/autoscaling/v2.ts';
import type { ColumnDef, ResourceDef } from '../resource-def.ts';
import { ensure, objectAt, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateAutoscaler, validateAutoscalerStatus } from './autoscaler-rules.ts';
import { dropAnnotations, fromFirstVersion, toFirstVersion } from './conversions.ts';

/** HorizontalPodAutoscaler: scales a workload by metrics. */
export function horizontalPodAutoscaler(
  dialect: Dialect,
  features: Features = defaultFeatures,
): ResourceDef {
  const usualLeast = features.enabled('HPAScaleToZero') ? 0 : 1;
  const toStorage = (object: ApiObject): ApiObject => {
    fromFirstVersion(object, dialect);
    fillMetrics(object);
    return object;
  };
  return defineKind<HorizontalPodAutoscaler>({
    dialect,
    features,
    facts: 'autoscaling',
    kind: 'HorizontalPodAutoscaler',
    resource: 'horizontalpodautoscalers',
    scope: 'Namespaced',
    shortNames: ['hpa'],
    categories: ['all'],
    versions: [
      {
        version: 'v2',
        defaults: (object) => {
          // Older versions run these defaults first and then read annotations.
          if (['', 'autoscaling/v2'].includes(object.apiVersion ?? '')) {
            dropAnnotations(asApiObject(object), dialect);
          }
          fillDefaults(object);
        },
        columns: columns(targetsOf),
      },
      {
        version: 'v1',
        // Members that the annotations carry are attributed to the sender: kube-apiserver
        // determines the writers of an object after converting it to the stored form and back.
        defaults: (object) => {
          const spec = ensure(object, 'spec');
          if (spec.minReplicas === undefined) spec.minReplicas = 1;
          toFirstVersion(toStorage(asApiObject(object)), dialect);
        },
        toStorage,
        fromStorage: (object) => toFirstVersion(object, dialect),
        columns: columns((object) => targetsOf(toStorage(asApiObject(structuredClone(object))))),
        storedColumns: columns(targetsOf),
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validateAutoscaler(object, { least: usualLeast, dialect }),
      validateUpdate: (context, object, old) => {
        if (context.subresource === 'status') return validateAutoscalerStatus(object);
        // A value of 0 that was set before 0 was rejected may stay.
        const least = old.spec?.minReplicas === 0 ? 0 : usualLeast;
        return validateAutoscaler(object, { least, dialect });
      },
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

/** Default metrics of an object that is converted from an older version. */
function fillMetrics(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  if (objectsAt(spec, 'metrics').length === 0) spec['metrics'] = [standardMetric()];
  const behavior = objectAt(spec, 'behavior');
  if (behavior === undefined) return;
  fillRules(ensure(behavior, 'scaleUp'), {
    selectPolicy: 'Max',
    stabilizationWindowSeconds: 0,
    policies: [
      { type: 'Pods', value: 4, periodSeconds: 15 },
      { type: 'Percent', value: 100, periodSeconds: 15 },
    ],
  });
  fillRules(ensure(behavior, 'scaleDown'), {
    selectPolicy: 'Max',
    policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
  });
}

/** The metric that applies when none is given. */
const standardMetric = (): JsonObject => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
});

/** Fills absent members only: validation rejects an empty policy. */
function fillRules(rules: JsonObject, defaults: JsonObject): void {
  for (const [name, value] of Object.entries(defaults)) {
    if (rules[name] === undefined && value !== undefined) rules[name] = value;
  }
}

function fillDefaults(object: Stored<HorizontalPodAutoscaler>): void {
  const spec = ensure(object, 'spec');
  if (spec.minReplicas === undefined) spec.minReplicas = 1;
  fillMetrics(object);
}

function columns(targets: ColumnDef['cell']): readonly ColumnDef[] {
  return [
    nameColumn,
    column('Reference', reference, { description: 'Resource that is scaled.' }),
    column('Targets', targets, { description: 'Current and target values of the metrics.' }),
    column('MinPods', (object) => String(at(object, 'spec', 'minReplicas') ?? '<unset>'), {
      description: 'Minimum number of replicas.',
    }),
    asStringColumn(countColumn('MaxPods', ['spec', 'maxReplicas'], 'Most replicas.')),
    asStringColumn(countColumn('Replicas', ['status', 'currentReplicas'], 'Replicas now.')),
    ageColumn,
  ];
}

function reference(object: Stored<HorizontalPodAutoscaler>): string {
  const ref = object.spec?.scaleTargetRef ?? undefined;
  return `${ref?.kind ?? ''}/${ref?.name ?? ''}`;
}

const shownMax = 2;

/** Current and target values of at most two metrics, and the number of further ones. */
function targetsOf(object: Stored<HorizontalPodAutoscaler>): string {
  const metrics = object.spec?.metrics ?? [];
  if (metrics.length === 0) return '<none>';
  const measured = object.status?.currentMetrics ?? [];
  const parts = metrics.slice(0, shownMax).map((metric, index) => part(metric, measured[index]));
  const more = metrics.length - shownMax;
  return more > 0 ? `${parts.join(', ')} + ${more} more...` : parts.join(', ');
}

/** The member that describes a metric of each type. */
const members: Readonly<Record<string, string>> = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
};

function part(metric: Stored<MetricSpec>, measured: Stored<MetricStatus> | undefined): string {
  const type = metric.type ?? '';
  const member = Object.hasOwn(members, type) ? members[type]! : '';
  const wanted = objectAt(metric, member, 'target');
  if (wanted === undefined) return '<unknown type>';
  const current = objectAt(measured, member, 'current');
  if (type === 'Pods') return pair(current, wanted, 'averageValue', { isAlways: true });
  if (type === 'External' || type === 'Object') return valuePart(current, wanted);
  return `${textAt(metric, member, 'name')}: ${resourcePart(current, wanted)}`;
}

const unknown = '<unknown>';

/** With `isAlways`, the current value is not a pointer in Go, so its zero value is printed. */
function pair(
  current: JsonObject | undefined,
  wanted: JsonObject,
  name: string,
  options: { readonly isAlways: boolean },
): string {
  const none = options.isAlways && current !== undefined ? '<nil>' : unknown;
  return `${current?.[name] ?? none}/${wanted[name] ?? '<nil>'}`;
}

/** A value for all pods, or an average per pod. */
function valuePart(current: JsonObject | undefined, wanted: JsonObject): string {
  return wanted['averageValue'] === undefined
    ? pair(current, wanted, 'value', { isAlways: true })
    : `${pair(current, wanted, 'averageValue', { isAlways: false })} (avg)`;
}

function resourcePart(current: JsonObject | undefined, wanted: JsonObject): string {
  if (wanted['averageValue'] !== undefined) {
    return pair(current, wanted, 'averageValue', { isAlways: true });
  }
  const name = 'averageUtilization';
  const percent = (value: unknown, none: string) => (value === undefined ? none : `${value}%`);
  return `${percent(at(current, name), unknown)}/${percent(wanted[name], '<auto>')}`;
}
