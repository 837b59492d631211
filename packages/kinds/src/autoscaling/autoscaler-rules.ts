import {
  appendAll,
  type Dialect,
  dnsLabel,
  type FieldError,
  forbiddenField,
  goQuoted,
  invalid,
  invalidGo,
  type JsonObject,
  type JsonValue,
  notSupported,
  parseQuantity,
  pathSegment,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { at, numberAt, textAt } from '../cells.ts';
import type {
  ContainerResourceMetricSource,
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerBehavior,
  HorizontalPodAutoscalerSpec,
  HPAScalingPolicy,
  HPAScalingRules,
  MetricSpec,
} from '../gen/types/autoscaling/v2.ts';
import { notPositive, validateNonNegative } from '../pod/fields.ts';
import { goQuantity } from '../pod/go-text.ts';
import { validateResourceName } from '../pod/validation/resources.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';

const periodSecondsMax = 1800;
const windowSecondsMax = 3600;

interface AutoscalerRules {
  /** Lower bound of `minReplicas`. */
  readonly minReplicasMin: number;
  readonly dialect: Dialect;
}

/** Validates a HorizontalPodAutoscaler except its metadata. */
export function* validateAutoscaler(
  object: Stored<HorizontalPodAutoscaler>,
  rules: AutoscalerRules,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  return [
    ...validateReplicas(spec, rules.minReplicasMin),
    ...validateReference(spec.scaleTargetRef ?? {}, 'spec.scaleTargetRef'),
    ...(yield* validateMetrics(spec, rules)),
    ...(yield* validateBehavior(spec.behavior, 'spec.behavior')),
  ];
}

/** Validates a write to `status`. */
export function validateAutoscalerStatus(object: Stored<HorizontalPodAutoscaler>): FieldError[] {
  const status = object.status ?? {};
  return validateNonNegative(status, 'status', 'currentReplicas', 'desiredReplicas');
}

function validateReplicas(
  spec: Stored<HorizontalPodAutoscalerSpec>,
  minReplicasMin: number,
): FieldError[] {
  const min = spec.minReplicas;
  const max = spec.maxReplicas ?? 0;
  const errors: FieldError[] = [];
  if (min !== undefined && min < minReplicasMin) {
    const detail = `must be greater than or equal to ${minReplicasMin}`;
    errors.push(invalid('spec.minReplicas', min, detail));
  }
  if (max < 1) errors.push(invalid('spec.maxReplicas', max, 'must be greater than 0'));
  if (min !== undefined && max < min) {
    const detail = 'must be greater than or equal to `minReplicas`';
    errors.push(invalid('spec.maxReplicas', max, detail));
  }
  return errors;
}

/** Validates the kind and name of an object in the same namespace. */
function validateReference(
  reference: Stored<CrossVersionObjectReference>,
  path: string,
): FieldError[] {
  return (['kind', 'name'] as const).flatMap((name) => {
    const value = reference[name] ?? '';
    const field = `${path}.${name}`;
    return value === '' ? [required(field)] : ruleErrors(field, value, pathSegment);
  });
}

function* validateMetrics(
  spec: Stored<HorizontalPodAutoscalerSpec>,
  rules: AutoscalerRules,
): Generator<void, FieldError[]> {
  const metrics = spec.metrics ?? [];
  const errors = yield* flatMapSteps(metrics, (metric, index) =>
    validateMetric(metric, `spec.metrics[${index}]`, rules.dialect),
  );
  const canScaleFromZero = metrics.some(({ type }) => type === 'Object' || type === 'External');
  if (spec.minReplicas !== 0 || canScaleFromZero) return errors;
  const detail =
    'must specify at least one Object or External metric to support scaling to zero replicas';
  return [...errors, forbiddenField('spec.metrics', detail)];
}

type SourceRule = (source: JsonObject, path: string, dialect: Dialect) => FieldError[];

/** Metric sources by their member, in the order in which kube-apiserver validates them. */
const sources: Readonly<Record<string, { readonly type: string; readonly rule: SourceRule }>> = {
  object: {
    type: 'Object',
    rule: (source, path) => [
      ...validateReference(objectAt(source, 'describedObject') ?? {}, `${path}.describedObject`),
      ...validateIdentifier(source, path),
      ...validateTarget(source, path),
      ...needsOne(source, path, 'must set either a target value or averageValue'),
    ],
  },
  external: { type: 'External', rule: validateExternal },
  pods: {
    type: 'Pods',
    rule: (source, path) => [
      ...validateIdentifier(source, path),
      ...validateTarget(source, path),
      ...(hasTarget(source, 'averageValue')
        ? []
        : [required(`${path}.target.averageValue`, 'must specify a positive target averageValue')]),
    ],
  },
  resource: {
    type: 'Resource',
    rule: (source, path) => {
      const isNamed = textAt(source, 'name') !== '';
      const unnamed = required(`${path}.name`, 'must specify a resource name');
      return [...(isNamed ? [] : [unnamed]), ...validateResourceTarget(source, path)];
    },
  },
  containerResource: { type: 'ContainerResource', rule: validateContainerResource },
};

const metricTypes = Object.values(sources)
  .map(({ type }) => type)
  .sort();

function validateMetric(metric: Stored<MetricSpec>, path: string, dialect: Dialect): FieldError[] {
  const type = metric.type ?? '';
  const present = Object.keys(sources).filter((name) => objectAt(metric, name) !== undefined);
  const expected = Object.keys(sources).find((name) => sources[name]?.type === type);
  const unknown = notSupported(`${path}.type`, type, metricTypes);
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${path}.type`, 'must specify a metric source type'));
  if (expected === undefined) errors.push(unknown);
  const [first] = present;
  if (first !== undefined) {
    const source = objectAt(metric, first) ?? {};
    appendAll(errors, sources[first]?.rule(source, `${path}.${first}`, dialect) ?? []);
  }
  if (expected === undefined) errors.push(unknown);
  else if (!present.includes(expected)) {
    const detail = 'must populate information for the given metric source';
    errors.push(required(`${path}.${expected}`, detail));
  }
  if (present.length === 1) return errors;
  const others = present.filter((name) => name !== expected);
  return [
    ...errors,
    ...others.map((name) =>
      forbiddenField(`${path}.${name}`, 'must populate the given metric source only'),
    ),
  ];
}

const hasTarget = (source: JsonObject, name: string) => at(source, 'target', name) !== undefined;

const needsOne = (source: JsonObject, path: string, detail: string): FieldError[] =>
  hasTarget(source, 'value') || hasTarget(source, 'averageValue')
    ? []
    : [required(`${path}.target.averageValue`, detail)];

function validateExternal(source: JsonObject, path: string): FieldError[] {
  const errors = [
    ...validateIdentifier(source, path),
    ...validateTarget(source, path),
    ...needsOne(source, path, 'must set either a target value for metric or a per-pod target'),
  ];
  if (!hasTarget(source, 'value') || !hasTarget(source, 'averageValue')) return errors;
  const detail = 'may not set both a target value for metric and a per-pod target';
  return [...errors, forbiddenField(`${path}.target.value`, detail)];
}

function validateContainerResource(
  source: Stored<ContainerResourceMetricSource>,
  path: string,
  dialect: Dialect,
): FieldError[] {
  const [name, container] = [source.name ?? '', source.container ?? ''];
  return [
    ...(name === ''
      ? [required(`${path}.name`, 'must specify a resource name')]
      : validateResourceName(name, `${path}.name`, dialect).map((error) =>
          // kube-apiserver quotes the name in errors about its form.
          /must be a standard resource|extended resource name standard/.test(error.message)
            ? error
            : {
                ...error,
                message: error.message.replace(`: ${name}:`, () => `: ${goQuoted(name)}:`),
              },
        )),
    ...(container === ''
      ? [required(`${path}.container`, 'must specify a container')]
      : ruleErrors(`${path}.container`, container, dnsLabel)),
    ...validateResourceTarget(source, path),
  ];
}

/** Validates the target of a resource metric: an amount, or a percentage of the request. */
function validateResourceTarget(source: JsonObject, path: string): FieldError[] {
  const errors = validateTarget(source, path);
  const hasShare = hasTarget(source, 'averageUtilization');
  const hasAmount = hasTarget(source, 'averageValue');
  if (!hasShare && !hasAmount) {
    const detail = 'must set either a target raw value or a target utilization';
    errors.push(required(`${path}.target.averageUtilization`, detail));
  }
  if (hasShare && hasAmount) {
    const detail = 'may not set both a target raw value and a target utilization';
    errors.push(forbiddenField(`${path}.target.averageValue`, detail));
  }
  return errors;
}

function validateTarget(source: JsonObject, path: string): FieldError[] {
  const field = `${path}.target`;
  const type = textAt(source, 'target', 'type');
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${field}.type`, 'must specify a metric target type'));
  if (!['Utilization', 'Value', 'AverageValue'].includes(type)) {
    const detail = 'must be either Utilization, Value, or AverageValue';
    errors.push(invalid(`${field}.type`, type, detail));
  }
  for (const name of ['value', 'averageValue']) {
    appendAll(errors, positive(at(source, 'target', name), `${field}.${name}`));
  }
  const share = at(source, 'target', 'averageUtilization');
  if (share !== undefined && numberAt(source, 'target', 'averageUtilization') < 1) {
    errors.push(invalid(`${field}.averageUtilization`, share, 'must be greater than 0'));
  }
  return errors;
}

function positive(value: JsonValue | undefined, field: string): FieldError[] {
  const quantity = value === undefined ? undefined : parseQuantity(String(value));
  if (quantity === undefined || 'error' in quantity || quantity.nano > 0n) return [];
  return [invalidGo(field, () => goQuantity(quantity.text), 'must be positive')];
}

function validateIdentifier(source: JsonObject, path: string): FieldError[] {
  const name = textAt(source, 'metric', 'name');
  const field = `${path}.metric.name`;
  return name === ''
    ? [required(field, 'must specify a metric name')]
    : ruleErrors(field, name, pathSegment);
}

function validateBehavior(
  behavior: Stored<HorizontalPodAutoscalerBehavior> | undefined,
  path: string,
): Generator<void, FieldError[]> {
  return flatMapSteps(['scaleUp', 'scaleDown'] as const, (name) => {
    const rules = behavior?.[name];
    return rules === undefined ? [] : validateScaling(rules, `${path}.${name}`);
  });
}

function* validateScaling(
  rules: Stored<HPAScalingRules>,
  path: string,
): Generator<void, FieldError[]> {
  const errors = validateWindow(rules, `${path}.stabilizationWindowSeconds`);
  const select = rules.selectPolicy;
  const selectPolicies = ['Disabled', 'Max', 'Min'];
  if (select !== undefined && !selectPolicies.includes(String(select))) {
    errors.push(notSupported(`${path}.selectPolicy`, select, selectPolicies));
  }
  const policies = rules.policies ?? [];
  if (policies.length === 0) {
    errors.push(required(`${path}.policies`, 'must specify at least one Policy'));
  }
  return [
    ...errors,
    ...(yield* flatMapSteps(policies, (policy, index) =>
      validatePolicy(policy, `${path}.policies[${index}]`),
    )),
  ];
}

function validateWindow(rules: Stored<HPAScalingRules>, field: string): FieldError[] {
  const seconds = rules.stabilizationWindowSeconds ?? 0;
  if (seconds < 0) return [invalid(field, seconds, 'must be greater than or equal to zero')];
  if (seconds <= windowSecondsMax) return [];
  return [invalid(field, seconds, `must be less than or equal to ${windowSecondsMax}`)];
}

function validatePolicy(policy: Stored<HPAScalingPolicy>, path: string): FieldError[] {
  const type = policy.type ?? '';
  const [value, period] = [policy.value ?? 0, policy.periodSeconds ?? 0];
  const errors: FieldError[] = [];
  if (type !== 'Pods' && type !== 'Percent') {
    errors.push(notSupported(`${path}.type`, type, ['Percent', 'Pods']));
  }
  if (value <= 0) errors.push(invalid(`${path}.value`, value, notPositive));
  if (period <= 0) errors.push(invalid(`${path}.periodSeconds`, period, notPositive));
  if (period > periodSecondsMax) {
    const detail = `must be less than or equal to ${periodSecondsMax}`;
    errors.push(invalid(`${path}.periodSeconds`, period, detail));
  }
  return errors;
}
