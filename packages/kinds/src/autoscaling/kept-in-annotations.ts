import {
  type ApiObject,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
  parseJson,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTyped } from '@wheelhouse/schema';
import { at, textAt } from '../cells.ts';
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerBehavior,
  MetricSpec,
} from '../gen/types/autoscaling/v2.ts';
import { ensure, objectAt, objectsAt } from '../rules/fill.ts';
import { schemaOf } from '../schema-of.ts';
import type { Stored } from '../stored.ts';
import { metricFromOlder, metricToOlder, statusFromOlder, statusToOlder } from './older-metrics.ts';

/**
 * What the older versions of a HorizontalPodAutoscaler have no members for, they carry in
 * annotations, so that nothing is lost on the way there and back.
 */

const names = ['metrics', 'current-metrics', 'conditions', 'behavior'] as const;

/** Leaves out what an older version carries in annotations. */
export function dropAnnotations(object: ApiObject, dialect: Dialect): void {
  const { annotations } = object.metadata;
  if (annotations === undefined) return;
  const keys = new Set(names.map((name) => keyOf(dialect, name)));
  const kept = Object.entries(annotations).filter(([key]) => !keys.has(key));
  if (kept.length === 0) delete object.metadata.annotations;
  else object.metadata.annotations = Object.fromEntries(kept);
}

type Name = (typeof names)[number];

const keyOf = (dialect: Dialect, name: Name): string => dialect.label(name, 'autoscaling.alpha');

/** The current form in `v1`, which knows a single target. */
export function toFirstVersion(object: ApiObject, dialect: Dialect): ApiObject {
  dropAnnotations(object, dialect);
  const spec = ensure(object, 'spec');
  const metrics = objectsAt(spec, 'metrics');
  delete spec['metrics'];
  const share = metrics.map((one) => cpuShare(one, 'target')).find((one) => one !== undefined);
  if (share !== undefined) spec['targetCPUUtilizationPercentage'] = share;
  const others = metrics.filter((one) => cpuShare(one, 'target') === undefined).map(metricToOlder);
  if (others.length > 0) {
    annotate(object, keyOf(dialect, 'metrics'), shaped('MetricSpec', others));
  }
  const status = ensure(object, 'status');
  for (const name of ['currentReplicas', 'desiredReplicas']) status[name] ??= 0;
  const current = objectsAt(status, 'currentMetrics');
  const conditions = objectsAt(status, 'conditions');
  delete status['currentMetrics'];
  delete status['conditions'];
  const used = current.map((one) => cpuShare(one, 'current')).find((one) => one !== undefined);
  if (used !== undefined) status['currentCPUUtilizationPercentage'] = used;
  if (current.length > 0) {
    const older = shaped('MetricStatus', current.map(statusToOlder));
    annotate(object, keyOf(dialect, 'current-metrics'), older);
  }
  behaviorToAnnotation(object, dialect);
  if (conditions.length > 0) {
    const older = shaped('HorizontalPodAutoscalerCondition', conditions);
    annotate(object, keyOf(dialect, 'conditions'), older);
  }
  return object;
}

function cpuShare(metric: Stored<MetricSpec>, value: 'target' | 'current'): JsonValue | undefined {
  if (metric.type !== 'Resource' || (metric.resource?.name ?? '') !== 'cpu') {
    return undefined;
  }
  return at(metric, 'resource', value, 'averageUtilization');
}

function annotate(object: ApiObject, key: string, value: JsonValue): void {
  object.metadata.annotations = { ...object.metadata.annotations, [key]: JSON.stringify(value) };
}

const shaped = (type: string, items: readonly JsonObject[]): JsonObject[] =>
  items.map((item) => decodeTyped(schemaOf(`autoscaling.v1.${type}`))(item));

function behaviorToAnnotation(object: Stored<HorizontalPodAutoscaler>, dialect: Dialect): void {
  const spec = object.spec;
  const behavior = spec?.behavior;
  if (spec === undefined || behavior === undefined) return;
  delete spec.behavior;
  annotate(object, keyOf(dialect, 'behavior'), behaviorText(behavior));
}

/** Upstream writes a type of its own here, which has Go's names and leaves out no member. */
function behaviorText(behavior: Stored<HorizontalPodAutoscalerBehavior>): JsonValue {
  return capitalized(behavior, ['scaleUp', 'scaleDown'], rulesText);
}

function capitalized(
  value: JsonValue,
  members: readonly string[],
  text: (member: JsonValue) => JsonValue,
): JsonValue {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    members.map((name) => [
      name.charAt(0).toUpperCase() + name.slice(1),
      text(value[name] ?? null),
    ]),
  );
}

function rulesText(rules: JsonValue): JsonValue {
  const policyText = (policy: JsonValue) =>
    capitalized(policy, ['type', 'value', 'periodSeconds'], (member) => member);
  return capitalized(rules, ['stabilizationWindowSeconds', 'selectPolicy', 'policies'], (member) =>
    Array.isArray(member) ? member.map(policyText) : member,
  );
}

/** `v1` in the current form, but for what is defaulted. */
export function fromFirstVersion(object: ApiObject, dialect: Dialect): ApiObject {
  const spec = ensure(object, 'spec');
  const share = at(spec, 'targetCPUUtilizationPercentage');
  delete spec['targetCPUUtilizationPercentage'];
  const others = listIn(object, keyOf(dialect, 'metrics'), 'MetricSpec') ?? [];
  const metrics = others.map(metricFromOlder);
  if (share !== undefined && share !== null) {
    const target = { type: 'Utilization', averageUtilization: share };
    metrics.push({ type: 'Resource', resource: { name: 'cpu', target } });
  }
  if (metrics.length > 0) spec['metrics'] = metrics;
  statusFromFirst(object, dialect);
  behaviorFromAnnotation(object, dialect);
  dropAnnotations(object, dialect);
  return object;
}

/** The items of a list in the annotation, in a type's form; undefined when it is no such list. */
function listIn(object: ApiObject, key: string, type: string): JsonObject[] | undefined {
  const list = parsed(object, key);
  if (!Array.isArray(list)) return undefined;
  try {
    return list.map((item) => decodeTyped(schemaOf(`autoscaling.v1.${type}`))(item));
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** The longest annotation read: all of an object's may have 256 KiB. */
const textLengthMax = 256 * 1024;

function parsed(object: ApiObject, key: string): JsonValue | undefined {
  const text = textAt(jsonObject(object), 'metadata', 'annotations', key);
  if (text === '' || text.length > textLengthMax) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function statusFromFirst(object: ApiObject, dialect: Dialect): void {
  const status = ensure(object, 'status');
  const used = at(status, 'currentCPUUtilizationPercentage');
  delete status['currentCPUUtilizationPercentage'];
  if (status['currentReplicas'] === 0) delete status['currentReplicas'];
  if (used !== undefined && used !== null) {
    const current = { averageUtilization: used };
    status['currentMetrics'] = [{ type: 'Resource', resource: { name: 'cpu', current } }];
  }
  const current = listIn(object, keyOf(dialect, 'current-metrics'), 'MetricStatus');
  if (current !== undefined) status['currentMetrics'] = current.map(statusFromOlder);
  const type = 'HorizontalPodAutoscalerCondition';
  const conditions = listIn(object, keyOf(dialect, 'conditions'), type);
  if (conditions !== undefined) status['conditions'] = conditions;
  // The one member that the current form always shows.
  status['currentMetrics'] ??= null;
}

function behaviorFromAnnotation(object: ApiObject, dialect: Dialect): void {
  const value = parsed(object, keyOf(dialect, 'behavior'));
  if (!isObject(value)) return;
  const behavior = jsonObject(behaviorFrom(value));
  if (Object.keys(behavior).length > 0) ensure(object, 'spec')['behavior'] = behavior;
}

function behaviorFrom(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(behaviorFrom);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null && member !== undefined)
      .map(([name, member]) => [
        name.charAt(0).toLowerCase() + name.slice(1),
        behaviorFrom(member ?? null),
      ]),
  );
}

/** The current form in `v2beta1`, which has all metrics but no behaviour. */
export function toFlatMetrics(object: ApiObject, dialect: Dialect): ApiObject {
  dropAnnotations(object, dialect);
  behaviorToAnnotation(object, dialect);
  return changeMetrics(object, { spec: metricToOlder, status: statusToOlder });
}

type Part = (metric: JsonObject) => JsonObject;

/** The metrics of spec and status, each in another form. */
function changeMetrics(object: ApiObject, change: { spec: Part; status: Part }): ApiObject {
  const spec = objectAt(object, 'spec');
  const metrics = objectsAt(spec, 'metrics');
  if (spec !== undefined && metrics.length > 0) spec['metrics'] = metrics.map(change.spec);
  const status = objectAt(object, 'status');
  const current = objectsAt(status, 'currentMetrics');
  if (status !== undefined && current.length > 0) {
    status['currentMetrics'] = current.map(change.status);
  }
  return object;
}

/** `v2beta1` in the current form. */
export function fromFlatMetrics(object: ApiObject, dialect: Dialect): ApiObject {
  behaviorFromAnnotation(object, dialect);
  dropAnnotations(object, dialect);
  return changeMetrics(object, { spec: metricFromOlder, status: statusFromOlder });
}
