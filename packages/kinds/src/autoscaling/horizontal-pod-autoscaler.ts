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
import type { ColumnDef, ResourceDef, Stored } from '../resource-def.ts';
import { ensure, objectAt, objectsAt } from '../rules/fill.ts';
import { validateAutoscaler, validateAutoscalerStatus } from './autoscaler-rules.ts';
import {
  dropAnnotations,
  emptyAbsentPolicies,
  fromFirstVersion,
  toFirstVersion,
} from './conversions.ts';

/** HorizontalPodAutoscaler: adjusts the replicas of a workload to metrics. */
export function horizontalPodAutoscaler(
  dialect: Dialect,
  features: Features = defaultFeatures,
): ResourceDef {
  const defaultMinReplicasMin = features.enabled('HPAScaleToZero') ? 0 : 1;
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
        defaults: (object) => fillFirstVersion(object, dialect),
        toStorage,
        fromStorage: (object) => toFirstVersion(object, dialect),
        columns: columns((object) => targetsOf(toStorage(asApiObject(structuredClone(object))))),
        storedColumns: columns(targetsOf),
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) =>
        validateAutoscaler(object, { minReplicasMin: defaultMinReplicasMin, dialect }),
      validateUpdate: (context, object, old) => {
        if (context.subresource === 'status') return validateAutoscalerStatus(object);
        // An update may keep a value of 0.
        const minReplicasMin = old.spec?.minReplicas === 0 ? 0 : defaultMinReplicasMin;
        return validateAutoscaler(object, { minReplicasMin, dialect });
      },
    },
    subresources: [statusSubresource],
    example: () => ({
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'example' },
        maxReplicas: 5,
      },
    }),
  });
}

/** Fills in the default metrics and the defaults of behavior. */
function fillMetrics(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  if (objectsAt(spec, 'metrics').length === 0) spec['metrics'] = [defaultMetric()];
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

/** The metric of an autoscaler that states none. */
const defaultMetric = (): JsonObject => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
});

/** Fills in absent members only, because validation rejects empty ones. */
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

/**
 * Fills in the defaults of `v1`. Fields from the annotations belong to the request's manager,
 * because kube-apiserver computes managed fields after converting the object to the stored form and
 * back.
 */
function fillFirstVersion(object: Stored<HorizontalPodAutoscaler>, dialect: Dialect): void {
  const spec = ensure(object, 'spec');
  if (spec.minReplicas === undefined) spec.minReplicas = 1;
  const converted = fromFirstVersion(asApiObject(object), dialect);
  emptyAbsentPolicies(converted);
  fillMetrics(converted);
  toFirstVersion(converted, dialect);
}

function columns(targets: ColumnDef['cell']): readonly ColumnDef[] {
  return [
    nameColumn,
    column('Reference', reference, { description: 'Resource that is scaled.' }),
    column('Targets', targets, { description: 'Current and target values of the metrics.' }),
    column('MinPods', (object) => String(at(object, 'spec', 'minReplicas') ?? '<unset>'), {
      description: 'Minimum number of replicas.',
    }),
    asStringColumn(countColumn('MaxPods', ['spec', 'maxReplicas'], 'Maximum number of replicas.')),
    asStringColumn(
      countColumn('Replicas', ['status', 'currentReplicas'], 'Current number of replicas.'),
    ),
    ageColumn,
  ];
}

function reference(object: Stored<HorizontalPodAutoscaler>): string {
  const ref = object.spec?.scaleTargetRef ?? undefined;
  return `${ref?.kind ?? ''}/${ref?.name ?? ''}`;
}

const shownMax = 2;

/** The cell with current and target values of two metrics, and the number of omitted ones. */
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
  const target = objectAt(metric, member, 'target');
  if (target === undefined) return '<unknown type>';
  const current = objectAt(measured, member, 'current');
  if (type === 'Pods') return pair(current, target, 'averageValue', { isAlways: true });
  if (type === 'External' || type === 'Object') return valuePart(current, target);
  return `${textAt(metric, member, 'name')}: ${resourcePart(current, target)}`;
}

const unknown = '<unknown>';

/**
 * Prints `current/target`.
 * @param options.isAlways whether Go prints a nil quantity for a missing value of a present status
 */
function pair(
  current: JsonObject | undefined,
  target: JsonObject,
  name: string,
  options: { readonly isAlways: boolean },
): string {
  const none = options.isAlways && current !== undefined ? '<nil>' : unknown;
  return `${current?.[name] ?? none}/${target[name] ?? '<nil>'}`;
}

/** Prints a value for all pods, or an average per pod. */
function valuePart(current: JsonObject | undefined, target: JsonObject): string {
  return target['averageValue'] === undefined
    ? pair(current, target, 'value', { isAlways: true })
    : `${pair(current, target, 'averageValue', { isAlways: false })} (avg)`;
}

function resourcePart(current: JsonObject | undefined, target: JsonObject): string {
  if (target['averageValue'] !== undefined) {
    return pair(current, target, 'averageValue', { isAlways: true });
  }
  const name = 'averageUtilization';
  const percent = (value: unknown, none: string) => (value === undefined ? none : `${value}%`);
  return `${percent(at(current, name), unknown)}/${percent(target[name], '<auto>')}`;
}
