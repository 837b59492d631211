import {
  type ApiObject,
  capitalize,
  type Dialect,
  goEscaped,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
  parseJson,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTyped, type Schema } from '@wheelhouse/schema';
import { at, textAt } from '../cells.ts';
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerBehavior,
  MetricSpec,
} from '../gen/types/autoscaling/v2.ts';
import type { Stored } from '../resource-def.ts';
import { ensure, fillAbsent, objectAt, objectsAt } from '../rules/fill.ts';
import { goNames } from '../rules/old-annotations.ts';
import { schemaOf } from '../schema-of.ts';

/**
 * Conversion of HorizontalPodAutoscalers to and from older versions. `autoscaling/v2beta1` and the
 * annotations of `v1` have flat metrics; the current form has objects for the metric, the target,
 * and the value. Data that an older version has no member for is stored in annotations, so a
 * conversion loses nothing.
 */

const names = ['metrics', 'current-metrics', 'conditions', 'behavior'] as const;

/** Removes the annotations in which older versions store data. */
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

/** Converts the current form to `v1`, which has a single target. */
export function toFirstVersion(object: ApiObject, dialect: Dialect): ApiObject {
  dropAnnotations(object, dialect);
  const spec = ensure(object, 'spec');
  const metrics = objectsAt(spec, 'metrics');
  delete spec['metrics'];
  const share = metrics
    .map((metric) => cpuShare(metric, 'target'))
    .find((value) => value !== undefined);
  if (share !== undefined) spec['targetCPUUtilizationPercentage'] = share;
  const others = metrics
    .filter((metric) => cpuShare(metric, 'target') === undefined)
    .map(metricToOlder);
  if (others.length > 0) annotate(object, keyOf(dialect, 'metrics'), shaped('MetricSpec', others));
  const status = ensure(object, 'status');
  for (const name of ['currentReplicas', 'desiredReplicas']) status[name] ??= 0;
  const current = objectsAt(status, 'currentMetrics');
  const conditions = objectsAt(status, 'conditions');
  delete status['currentMetrics'];
  delete status['conditions'];
  const used = current
    .map((metric) => cpuShare(metric, 'current'))
    .findLast((value) => value !== undefined);
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
  if (metric.type !== 'Resource' || (metric.resource?.name ?? '') !== 'cpu') return undefined;
  return at(metric, 'resource', value, 'averageUtilization');
}

/** Converts a metric of spec to the older form. */
const metricToOlder = (metric: JsonObject): JsonObject =>
  withParts(metric, olderParts('target', resourceTo));

/** Converts a metric of status to the older form. */
const statusToOlder = (metric: JsonObject): JsonObject =>
  withParts(metric, olderParts('current', currentTo));

/** Converts the parts of a metric whose values are in the member `side`. */
function olderParts(
  side: 'target' | 'current',
  resource: MetricPart,
): Readonly<Record<string, MetricPart>> {
  const amountOf = (part: JsonObject) => memberOf(part[side], 'value');
  const averageOf = (part: JsonObject) => memberOf(part[side], 'averageValue');
  return {
    object: (part) => ({
      target: objectAt(part, 'describedObject') ?? {},
      metricName: nameOf(part),
      [`${side}Value`]: valueOrZero(amountOf(part)),
      ...definedMembers({ selector: selectorOf(part), averageValue: averageOf(part) }),
    }),
    pods: (part) => ({
      metricName: nameOf(part),
      [`${side}AverageValue`]: valueOrZero(averageOf(part)),
      ...definedMembers({ selector: selectorOf(part) }),
    }),
    resource,
    containerResource: resource,
    external: (part) => ({
      metricName: nameOf(part),
      ...definedMembers({
        currentValue: side === 'current' ? valueOrZero(amountOf(part)) : undefined,
        metricSelector: selectorOf(part),
        targetValue: side === 'target' ? amountOf(part) : undefined,
        [`${side}AverageValue`]: averageOf(part),
      }),
    }),
  };
}

/** Converts a metric, or a part of one. */
type MetricPart = (part: JsonObject) => JsonObject;

/** Copies a metric with some of its parts converted. */
function withParts(metric: JsonObject, parts: Readonly<Record<string, MetricPart>>): JsonObject {
  const result: JsonObject = { ...metric };
  for (const [name, change] of Object.entries(parts)) {
    const part = objectAt(metric, name);
    if (part !== undefined) result[name] = change(part);
  }
  return result;
}

const nameOf = (part: JsonObject): JsonValue => memberOf(part['metric'], 'name') ?? '';

const memberOf = (value: JsonValue | undefined, name: string): JsonValue | undefined =>
  isObject(value) ? value[name] : undefined;

const valueOrZero = (value: JsonValue | undefined): JsonValue => value ?? '0';

/** The members that are neither undefined nor null. */
function definedMembers(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null),
  );
}

const selectorOf = (part: JsonObject) => memberOf(part['metric'], 'selector');

const resourceTo: MetricPart = ({ target, ...rest }) => ({
  ...rest,
  ...definedMembers({
    targetAverageUtilization: memberOf(target, 'averageUtilization'),
    targetAverageValue: memberOf(target, 'averageValue'),
  }),
});

function annotate(object: ApiObject, key: string, value: JsonValue): void {
  const text = goEscaped(JSON.stringify(value));
  object.metadata.annotations = { ...object.metadata.annotations, [key]: text };
}

const shaped = (type: string, items: readonly JsonValue[]): JsonObject[] =>
  items.map((item) => decodeTyped(schemaOf(`autoscaling.v1.${type}`))(item));

const currentTo: MetricPart = ({ current, ...rest }) => ({
  ...rest,
  currentAverageValue: valueOrZero(memberOf(current, 'averageValue')),
  ...definedMembers({ currentAverageUtilization: memberOf(current, 'averageUtilization') }),
});

function behaviorToAnnotation(object: Stored<HorizontalPodAutoscaler>, dialect: Dialect): void {
  const spec = object.spec;
  const behavior = spec?.behavior;
  if (spec === undefined || behavior === undefined) return;
  delete spec.behavior;
  annotate(object, keyOf(dialect, 'behavior'), behaviorText(behavior));
}

/** The behavior in the form of kube-apiserver's annotation: all members, with Go's field names. */
function behaviorText(behavior: Stored<HorizontalPodAutoscalerBehavior>): JsonValue {
  return capitalized(behavior, ['scaleUp', 'scaleDown'], rulesText);
}

function capitalized(
  value: JsonValue,
  members: readonly string[],
  text: (member: JsonValue) => JsonValue,
): JsonValue {
  if (!isObject(value)) return value;
  return Object.fromEntries(members.map((name) => [capitalize(name), text(value[name] ?? null)]));
}

function rulesText(rules: JsonValue): JsonValue {
  const policyText = (policy: JsonValue) =>
    capitalized(policy, ['type', 'value', 'periodSeconds'], (member) => member);
  return capitalized(rules, ['stabilizationWindowSeconds', 'selectPolicy', 'policies'], (member) =>
    Array.isArray(member) ? member.map(policyText) : member,
  );
}

/** Converts `v1` to the current form, without the defaults. */
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

/** Reads a list of a type from an annotation; undefined if the annotation contains no such list. */
function listIn(object: ApiObject, key: string, type: string): JsonObject[] | undefined {
  const list = parsed(object, key);
  if (!Array.isArray(list)) return undefined;
  const schema = schemaOf(`autoscaling.v1.${type}`);
  const items = list.map((item) => decodedAs(schema, item));
  return items.every((item) => item !== undefined) ? items : undefined;
}

/** Decodes a value of an annotation; undefined if its type is wrong. */
function decodedAs(schema: Schema, value: JsonValue): JsonObject | undefined {
  try {
    return decodeTyped(schema)(goNames(value, schema));
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** Upper bound in characters: the annotations of an object may have 256 KiB in total. */
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

/** Converts a metric of spec to the current form. */
function metricFromOlder(metric: JsonObject): JsonObject {
  return withParts(metric, {
    object: (part) => {
      const type = part['averageValue'] === undefined ? 'Value' : 'AverageValue';
      const target = { type, value: valueOrZero(part['targetValue']) };
      return {
        describedObject: objectAt(part, 'target') ?? {},
        target: { ...target, ...definedMembers({ averageValue: part['averageValue'] }) },
        metric: metricOf(part, 'selector'),
      };
    },
    pods: (part) => ({
      metric: metricOf(part, 'selector'),
      target: { type: 'AverageValue', averageValue: valueOrZero(part['targetAverageValue']) },
    }),
    resource: resourceFrom,
    containerResource: resourceFrom,
    external: (part) => {
      const type = part['targetValue'] === undefined ? 'AverageValue' : 'Value';
      const { targetValue: value, targetAverageValue: averageValue } = part;
      return {
        metric: metricOf(part, 'metricSelector'),
        target: { type, ...definedMembers({ value, averageValue }) },
      };
    },
  });
}

const metricOf = (part: JsonObject, selector: string): JsonObject =>
  definedMembers({ name: part['metricName'] ?? '', selector: part[selector] });

const resourceFrom: MetricPart = (part) => {
  const { targetAverageUtilization, targetAverageValue, ...rest } = part;
  const hasShare = targetAverageUtilization !== undefined && targetAverageUtilization !== null;
  const target = definedMembers({
    type: hasShare ? 'Utilization' : 'AverageValue',
    averageValue: targetAverageValue,
    averageUtilization: targetAverageUtilization,
  });
  return { ...rest, target };
};

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
  // The current form always has this member.
  status['currentMetrics'] ??= null;
}

/** Converts a metric of status to the current form. */
function statusFromOlder(metric: JsonObject): JsonObject {
  return withParts(metric, {
    object: (part) => ({
      describedObject: objectAt(part, 'target') ?? {},
      metric: metricOf(part, 'selector'),
      current: {
        value: valueOrZero(part['currentValue']),
        ...definedMembers({ averageValue: part['averageValue'] }),
      },
    }),
    pods: (part) => ({
      metric: metricOf(part, 'selector'),
      current: { averageValue: valueOrZero(part['currentAverageValue']) },
    }),
    resource: currentFrom,
    containerResource: currentFrom,
    external: (part) => ({
      metric: metricOf(part, 'metricSelector'),
      current: {
        value: valueOrZero(part['currentValue']),
        ...definedMembers({ averageValue: part['currentAverageValue'] }),
      },
    }),
  });
}

const currentFrom: MetricPart = ({ currentAverageUtilization, currentAverageValue, ...rest }) => ({
  ...rest,
  current: {
    averageValue: valueOrZero(currentAverageValue),
    ...definedMembers({ averageUtilization: currentAverageUtilization }),
  },
});

function behaviorFromAnnotation(object: ApiObject, dialect: Dialect): void {
  const value = parsed(object, keyOf(dialect, 'behavior'));
  if (!isObject(value)) return;
  const schema = schemaOf('autoscaling.v2.HorizontalPodAutoscalerBehavior');
  const behavior: Stored<HorizontalPodAutoscalerBehavior> = decodedAs(schema, value) ?? {};
  if (Object.keys(behavior).length > 0) ensure(object, 'spec')['behavior'] = behavior;
}

/**
 * Makes absent policies empty, which is invalid: behavior that a client states in an annotation gets
 * no default policies.
 */
export function emptyAbsentPolicies(object: Stored<HorizontalPodAutoscaler>): void {
  const { scaleUp, scaleDown } = object.spec?.behavior ?? {};
  for (const rules of [scaleUp, scaleDown]) fillAbsent(rules, { policies: [] });
}

/** Converts the current form to `v2beta1`, which has all metrics but no behavior. */
export function toFlatMetrics(object: ApiObject, dialect: Dialect): ApiObject {
  dropAnnotations(object, dialect);
  behaviorToAnnotation(object, dialect);
  return changeMetrics(object, { spec: metricToOlder, status: statusToOlder });
}

/** Converts the metrics of spec and status. */
function changeMetrics(
  object: ApiObject,
  change: { spec: MetricPart; status: MetricPart },
): ApiObject {
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

/** Converts `v2beta1` to the current form. */
export function fromFlatMetrics(object: ApiObject, dialect: Dialect): ApiObject {
  behaviorFromAnnotation(object, dialect);
  emptyAbsentPolicies(object);
  dropAnnotations(object, dialect);
  return changeMetrics(object, { spec: metricFromOlder, status: statusFromOlder });
}
