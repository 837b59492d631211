import { type FieldError, forbiddenField, invalid } from '@wheelhouse/machinery';
import type { PodSpec } from '../../gen/types/core/v1.ts';
import { keyed } from '../../rules/checks.ts';
import type { Stored } from '../../stored.ts';
import { amountsOf, containerAmounts, podLevelResources } from '../amounts.ts';
import { notSupportedGo } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { claimNames, validateClaimUses } from './resource-claims.ts';
import { validateAnyResourceName, validateResources } from './resources.ts';

/** The amounts of a pod as a whole, at `path` (`spec.resources`). */
export function validatePodResources(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): FieldError[] {
  const resources = spec.resources;
  if (resources === undefined || !rules.features.enabled('PodLevelResources')) return [];
  const noClaims = 'claims cannot be set for Resources at pod-level';
  return [
    ...(resources.claims != null ? [forbiddenField(`${path}.claims`, noClaims)] : []),
    ...validateResources(resources, path, rules, validatePodResourceName),
    ...validateClaimUses(resources, `${path}.claims`, claimNames(spec)),
    ...validateRequests(spec, `${path}.requests`),
    ...validateLimits(spec, path),
  ];
}

function validatePodResourceName(name: string, field: string): FieldError[] {
  const errors = validateAnyResourceName(name, field);
  if (errors.length > 0 || podLevelResources.includes(name)) return errors;
  return [notSupportedGo(field, name, [...podLevelResources])];
}

/** A pod asks for at least what its containers ask for together. */
function validateRequests(spec: Stored<PodSpec>, path: string): FieldError[] {
  const whole = amountsOf(spec.resources?.requests);
  return [...containerAmounts(spec, 'requests')].flatMap(([name, sum]) => {
    const request = whole.get(name);
    if (sum.nano <= (request?.nano ?? 0n)) return [];
    const detail = `must be greater than or equal to aggregate container requests of ${sum.text}`;
    return [invalid(keyed(path, name), request?.text ?? '0', detail)];
  });
}

/** No container may take more than its pod may. */
function validateLimits(spec: Stored<PodSpec>, path: string): FieldError[] {
  const whole = amountsOf(spec.resources?.limits);
  return (spec.containers ?? []).flatMap((container, index) =>
    [...amountsOf(container.resources?.limits)].flatMap(([name, limit]) => {
      const most = whole.get(name);
      if (most === undefined || limit.nano <= most.nano) return [];
      const detail = `must be less than or equal to pod limits of ${most.text}`;
      const field = `${keyed(`${path}.containers[${index}]`, name)}.limits`;
      return [invalid(field, limit.text, detail)];
    }),
  );
}
