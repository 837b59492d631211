import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, pairsText, textAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import { metadataLines } from './metadata.ts';
import { longTime } from './pod-template.ts';
import type { RelatedDescriber } from './related.ts';
import { headLines } from './tabs.ts';

const numberText = (value: JsonValue | undefined): string => String(value ?? 0);

const describeAutoscaler: RelatedDescriber = (scaler) => {
  const [spec, status] = [objectAt(scaler, 'spec'), objectAt(scaler, 'status')];
  const target = objectAt(spec, 'scaleTargetRef');
  const kind = textAt(target, 'kind');
  const current = listAt(status, 'currentMetrics');
  const conditions = listAt(status, 'conditions').map((condition) => {
    const cells = ['type', 'status', 'reason', 'message'].map((name) => textAt(condition, name));
    return `  ${cells.join('\t')}`;
  });
  const replicas = ['currentReplicas', 'desiredReplicas'].map((name) => numberText(status[name]));
  return [
    `Name:\t${nameOf(scaler)}`,
    `Namespace:\t${namespaceOf(scaler)}`,
    ...metadataLines(scaler),
    `CreationTimestamp:\t${longTime(textAt(scaler, 'metadata', 'creationTimestamp'))}`,
    `Reference:\t${kind}/${textAt(target, 'name')}`,
    'Metrics:\t( current / target )',
    ...listAt(spec, 'metrics').map((metric, at) => `  ${metricText(metric, current[at] ?? {})}`),
    `Min replicas:\t${String(spec['minReplicas'] ?? '<unset>')}`,
    `Max replicas:\t${numberText(spec['maxReplicas'])}`,
    ...behaviorLines(spec['behavior']),
    `${kind} pods:\t${replicas[0]} current / ${replicas[1]} desired`,
    ...(conditions.length === 0
      ? []
      : [
          'Conditions:',
          ...headLines(['Type', 'Status', 'Reason', 'Message'], '  '),
          ...conditions,
        ]),
  ];
};

/** A metric with its current value, which is unknown until the autoscaler has read it. */
function metricText(metric: JsonObject, current: JsonObject): string {
  const type = textAt(metric, 'type');
  const source = `${type.charAt(0).toLowerCase()}${type.slice(1)}`;
  const part = objectAt(metric, source);
  const target = objectAt(part, 'target');
  const values = objectAt(current, source, 'current');
  const isAverage = target['averageValue'] !== undefined;
  const pair = (name: string) =>
    `\t${String(values[name] ?? '<unknown>')} / ${String(target[name] ?? '')}`;
  const metricName = textAt(part, 'metric', 'name');
  const amount = isAverage
    ? `(target average value):${pair('averageValue')}`
    : `(target value):${pair('value')}`;
  switch (type) {
    case 'External':
      return `${JSON.stringify(metricName)} ${amount}`;
    case 'Pods':
      return `${JSON.stringify(metricName)} on pods:${pair('averageValue')}`;
    case 'Object': {
      const { kind, name } = objectAt(part, 'describedObject');
      return `"${metricName}" on ${String(kind)}/${String(name)} ${amount}`;
    }
    case 'Resource':
    case 'ContainerResource': {
      const container = type === 'Resource' ? '' : ` of container "${textAt(part, 'container')}"`;
      const title = `resource ${textAt(part, 'name')}${container} on pods`;
      if (isAverage) return `${title}:${pair('averageValue')}`;
      return `${title}  (as a percentage of request):\t${usageText(values, target)}`;
    }
    default:
      return `<unknown metric type ${JSON.stringify(type)}>`;
  }
}

/** `12% (34m) / 50%`: the used share of what Pods request, and its target. */
function usageText(values: JsonObject, target: JsonObject): string {
  const [used, wanted] = [values, target].map((part) => part['averageUtilization']);
  const current =
    used === undefined ? '<unknown>' : `${String(used)}% (${numberText(values['averageValue'])})`;
  return `${current} / ${wanted === undefined ? '<auto>' : `${String(wanted)}%`}`;
}

function behaviorLines(behavior: JsonValue | undefined): string[] {
  if (!isObject(behavior)) return [];
  const directions = [
    ['Scale Up', behavior['scaleUp']],
    ['Scale Down', behavior['scaleDown']],
  ] as const;
  return [
    'Behavior:',
    ...directions.flatMap(([title, rules]) => {
      if (!isObject(rules)) return [];
      const seconds = rules['stabilizationWindowSeconds'];
      const policies = listAt(rules, 'policies').map(
        ({ type, value, periodSeconds }) =>
          `      - Type: ${String(type)}\tValue: ${String(value)}\t` +
          `Period: ${String(periodSeconds)} seconds`,
      );
      const window = `    Stabilization Window: ${String(seconds)} seconds`;
      const choice = `    Select Policy: ${textAt(rules, 'selectPolicy') || 'Max'}`;
      return [
        `  ${title}:`,
        ...(seconds === undefined ? [] : [window]),
        ...(policies.length === 0 ? [] : [choice, '    Policies:', ...policies]),
      ];
    }),
  ];
}

const describeBudget: RelatedDescriber = (budget) => {
  const [spec, status] = [objectAt(budget, 'spec'), objectAt(budget, 'status')];
  const { minAvailable, maxUnavailable, selector } = spec;
  const bound =
    minAvailable === undefined
      ? maxUnavailable === undefined
        ? []
        : [`Max unavailable:\t${String(maxUnavailable)}`]
      : [`Min available:\t${String(minAvailable)}`];
  const counts = [
    ['Allowed disruptions', 'disruptionsAllowed'],
    ['Current', 'currentHealthy'],
    ['Desired', 'desiredHealthy'],
    ['Total', 'expectedPods'],
  ] as const;
  return [
    `Name:\t${nameOf(budget)}`,
    `Namespace:\t${namespaceOf(budget)}`,
    ...bound,
    `Selector:\t${isObject(selector) ? selectorText(selector) || '<none>' : '<unset>'}`,
    'Status:',
    ...counts.map(([title, name]) => `    ${title}:\t${numberText(status[name])}`),
  ];
};

const describePriorityClass: RelatedDescriber = (object) => {
  const annotations = pairsText(objectAt(object, 'metadata', 'annotations'));
  return [
    `Name:\t${nameOf(object)}`,
    `Value:\t${numberText(object['value'])}`,
    `GlobalDefault:\t${object['globalDefault'] === true}`,
    `PreemptionPolicy:\t${textAt(object, 'preemptionPolicy')}`,
    `Description:\t${textAt(object, 'description')}`,
    `Annotations:\t${annotations}`,
  ];
};

/** Describers of what limits or changes the number of Pods, by kind, with the stem of the group. */
export const scalingDescribers: Readonly<Record<string, RelatedDescriber>> = {
  'autoscaling/HorizontalPodAutoscaler': describeAutoscaler,
  'policy/PodDisruptionBudget': describeBudget,
  'scheduling/PriorityClass': describePriorityClass,
};
