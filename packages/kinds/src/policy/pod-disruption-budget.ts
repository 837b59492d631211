import {
  appendAll,
  type Dialect,
  type FieldError,
  invalid,
  notSupported,
  pathSegment,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { countColumn, validateIntOrPercent, validatePercentMax } from '../apps/workload.ts';
import { ageColumn, at, column, nameColumn } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { PodDisruptionBudget } from '../gen/types/policy/v1.ts';
import { validateNonNegative } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { same, validateConditions } from '../rules/checks.ts';
import { ensure } from '../rules/fill.ts';

/** PodDisruptionBudget: limits the number of pods that may be evicted at the same time. */
export function podDisruptionBudget(dialect: Dialect): ResourceDef {
  return defineKind<PodDisruptionBudget>({
    dialect,
    facts: 'policy',
    kind: 'PodDisruptionBudget',
    scope: 'Namespaced',
    shortNames: ['pdb'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => dropReservedLabel(object, dialect),
        columns: [
          nameColumn,
          limitColumn('Min Available', 'minAvailable', 'Pods that must remain available.'),
          limitColumn('Max Unavailable', 'maxUnavailable', 'Pods that may be unavailable.'),
          countColumn(
            'Allowed Disruptions',
            ['status', 'disruptionsAllowed'],
            'Number of evictions that are allowed now.',
          ),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { '': [], status: [] },
      reportsMetadataLast: true,
      validateName: pathSegment,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? validateStatus(object) : validate(object),
      allowUnconditionalUpdate: false,
    },
    subresources: [statusSubresource],
    example: () => ({ spec: { minAvailable: 1, selector: { matchLabels: { app: 'example' } } } }),
  });
}

/**
 * Removes requirements on the label by which `v1beta1` selectors match all pods or none. A selector
 * that consists only of the requirement that matches none keeps it.
 */
function dropReservedLabel(object: Stored<PodDisruptionBudget>, dialect: Dialect): void {
  const selector = object.spec?.selector;
  const label = dialect.label('deprecated-v1beta1-empty-selector-match', 'pdb');
  const requirements = selector?.matchExpressions ?? [];
  const kept = requirements.filter(({ key }) => key !== label);
  if (selector === undefined || kept.length === requirements.length) return;
  if (same(selector, { matchExpressions: [{ key: label, operator: 'Exists' }] })) return;
  if (kept.length === 0) delete selector.matchExpressions;
  else selector.matchExpressions = kept;
}

const limitColumn = (name: string, member: string, description: string) =>
  column(name, (object) => String(at(object, 'spec', member) ?? 'N/A'), { description });

function validate(object: Stored<PodDisruptionBudget>): FieldError[] {
  const spec = ensure(object, 'spec');
  const { minAvailable, maxUnavailable, unhealthyPodEvictionPolicy: policy } = spec;
  const errors: FieldError[] = [];
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const detail = 'minAvailable and maxUnavailable cannot be both set';
    errors.push(invalid('spec', spec, detail));
  }
  for (const [name, value] of Object.entries({ minAvailable, maxUnavailable })) {
    appendAll(errors, validateIntOrPercent(value, `spec.${name}`));
    appendAll(errors, validatePercentMax(value, `spec.${name}`));
  }
  const selector = spec.selector;
  appendAll(errors, validateLabelSelector(selector, 'spec.selector'));
  const policies = ['AlwaysAllow', 'IfHealthyBudget'];
  if (policy !== undefined && !policies.includes(String(policy))) {
    errors.push(notSupported('spec.unhealthyPodEvictionPolicy', policy as string, policies));
  }
  return errors;
}

const counts = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'];

function* validateStatus(object: Stored<PodDisruptionBudget>): Generator<void, FieldError[]> {
  const status = object.status ?? {};
  return [
    ...(yield* validateConditions(status.conditions ?? [], 'status.conditions')),
    ...validateNonNegative(status, 'status', ...counts),
  ];
}
