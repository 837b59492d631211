import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { objectAt } from '../rules/fill.ts';

/**
 * Metrics as `autoscaling/v2beta1` and the annotations of `v1` write them: flat, where the current
 * form has a metric, a target and a value of their own.
 */

/** Members without those that are undefined or null. */
function definedMembers(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null),
  );
}

type Part = (part: JsonObject) => JsonObject;

/** A metric with each of its parts in another form. */
function withParts(metric: JsonObject, parts: Readonly<Record<string, Part>>): JsonObject {
  const result: JsonObject = { ...metric };
  for (const [name, change] of Object.entries(parts)) {
    const part = objectAt(metric, name);
    if (part !== undefined) result[name] = change(part);
  }
  return result;
}

const metricOf = (part: JsonObject, selector: string): JsonObject =>
  definedMembers({ name: part['metricName'] ?? '', selector: part[selector] });

const valueOr = (value: JsonValue | undefined): JsonValue => value ?? '0';

const resourceFrom: Part = (part) => {
  const { targetAverageUtilization, targetAverageValue, ...rest } = part;
  const hasShare = targetAverageUtilization !== undefined && targetAverageUtilization !== null;
  const target = definedMembers({
    type: hasShare ? 'Utilization' : 'AverageValue',
    averageValue: targetAverageValue,
    averageUtilization: targetAverageUtilization,
  });
  return { ...rest, target };
};

/** A metric of spec in the current form. */
export function metricFromOlder(metric: JsonObject): JsonObject {
  return withParts(metric, {
    object: (part) => {
      const type = part['averageValue'] === undefined ? 'Value' : 'AverageValue';
      const target = { type, value: valueOr(part['targetValue']) };
      return {
        describedObject: objectAt(part, 'target') ?? {},
        target: { ...target, ...definedMembers({ averageValue: part['averageValue'] }) },
        metric: metricOf(part, 'selector'),
      };
    },
    pods: (part) => ({
      metric: metricOf(part, 'selector'),
      target: { type: 'AverageValue', averageValue: valueOr(part['targetAverageValue']) },
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

const resourceTo: Part = ({ target, ...rest }) => ({
  ...rest,
  ...definedMembers({
    targetAverageUtilization: memberOf(target, 'averageUtilization'),
    targetAverageValue: memberOf(target, 'averageValue'),
  }),
});

const memberOf = (value: JsonValue | undefined, name: string): JsonValue | undefined =>
  isObject(value) ? value[name] : undefined;

const nameOf = (part: JsonObject): JsonValue => memberOf(part['metric'], 'name') ?? '';
const selectorOf = (part: JsonObject) => memberOf(part['metric'], 'selector');

/** A metric of spec in the older form. */
export function metricToOlder(metric: JsonObject): JsonObject {
  return withParts(metric, {
    object: (part) => ({
      target: objectAt(part, 'describedObject') ?? {},
      metricName: nameOf(part),
      targetValue: valueOr(memberOf(part['target'], 'value')),
      ...definedMembers({
        selector: selectorOf(part),
        averageValue: memberOf(part['target'], 'averageValue'),
      }),
    }),
    pods: (part) => ({
      metricName: nameOf(part),
      targetAverageValue: valueOr(memberOf(part['target'], 'averageValue')),
      ...definedMembers({ selector: selectorOf(part) }),
    }),
    resource: resourceTo,
    containerResource: resourceTo,
    external: (part) => ({
      metricName: nameOf(part),
      ...definedMembers({
        metricSelector: selectorOf(part),
        targetValue: memberOf(part['target'], 'value'),
        targetAverageValue: memberOf(part['target'], 'averageValue'),
      }),
    }),
  });
}

const currentFrom: Part = ({ currentAverageUtilization, currentAverageValue, ...rest }) => ({
  ...rest,
  current: {
    averageValue: valueOr(currentAverageValue),
    ...definedMembers({ averageUtilization: currentAverageUtilization }),
  },
});

/** A metric of status in the current form. */
export function statusFromOlder(metric: JsonObject): JsonObject {
  return withParts(metric, {
    object: (part) => ({
      describedObject: objectAt(part, 'target') ?? {},
      metric: metricOf(part, 'selector'),
      current: {
        value: valueOr(part['currentValue']),
        ...definedMembers({ averageValue: part['averageValue'] }),
      },
    }),
    pods: (part) => ({
      metric: metricOf(part, 'selector'),
      current: { averageValue: valueOr(part['currentAverageValue']) },
    }),
    resource: currentFrom,
    containerResource: currentFrom,
    external: (part) => ({
      metric: metricOf(part, 'metricSelector'),
      current: {
        value: valueOr(part['currentValue']),
        ...definedMembers({ averageValue: part['currentAverageValue'] }),
      },
    }),
  });
}

const currentTo: Part = ({ current, ...rest }) => ({
  ...rest,
  currentAverageValue: valueOr(memberOf(current, 'averageValue')),
  ...definedMembers({ currentAverageUtilization: memberOf(current, 'averageUtilization') }),
});

/** A metric of status in the older form. */
export function statusToOlder(metric: JsonObject): JsonObject {
  return withParts(metric, {
    object: (part) => ({
      target: objectAt(part, 'describedObject') ?? {},
      metricName: nameOf(part),
      currentValue: valueOr(memberOf(part['current'], 'value')),
      ...definedMembers({
        selector: selectorOf(part),
        averageValue: memberOf(part['current'], 'averageValue'),
      }),
    }),
    pods: (part) => ({
      metricName: nameOf(part),
      currentAverageValue: valueOr(memberOf(part['current'], 'averageValue')),
      ...definedMembers({ selector: selectorOf(part) }),
    }),
    resource: currentTo,
    containerResource: currentTo,
    external: (part) => ({
      metricName: nameOf(part),
      currentValue: valueOr(memberOf(part['current'], 'value')),
      ...definedMembers({
        metricSelector: selectorOf(part),
        currentAverageValue: memberOf(part['current'], 'averageValue'),
      }),
    }),
  });
}
