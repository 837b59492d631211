import {
  appendAll,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type { PodResourceClaim, PodSpec, ResourceRequirements } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps } from '../../rules/checks.ts';
import { annotationsOf, notFoundValue, optionalText } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { mirrorAnnotation } from './annotations.ts';

/** The names of the device claims of a pod. */
export interface ClaimNames {
  has(name: string): boolean;
  /** The error text for other names. It lists all names, so all containers share one copy. */
  readonly absence: string;
}

/** Returns the names of the device claims in a spec. */
export function claimNames(spec: Stored<PodSpec>): ClaimNames {
  const claims = spec.resourceClaims ?? [];
  const names = new Set(claims.map((claim) => claim.name ?? '').filter((name) => name !== ''));
  let absence: string | undefined;
  return {
    has: (name) => names.has(name),
    get absence() {
      absence ??= `must be one of the names in pod.spec.resourceClaims${names.size === 0 ? ' which is empty' : `: ${[...names].sort().join(', ')}`}`;
      return absence;
    },
  };
}

/** Validates the device claims of a pod at `path` (`spec.resourceClaims`), in steps. */
export function* validateClaims(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const claims = spec.resourceClaims ?? [];
  if (rules.pod && Object.hasOwn(annotationsOf(rules.pod), mirrorAnnotation(rules.dialect))) {
    // kube-apiserver reports a path without a name.
    return claims.map(() => forbiddenField('[]', 'static pods do not support resource claims'));
  }
  const names = new Set<string>();
  return yield* flatMapSteps(claims, (claim, index) => {
    const name = claim.name ?? '';
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(`${path}[${index}].name`));
    else if (names.has(name)) errors.push(duplicate(`${path}[${index}].name`, name));
    else appendAll(errors, ruleErrors(`${path}[${index}].name`, name, dnsLabel));
    names.add(name);
    appendAll(errors, validateClaimSource(claim, `${path}[${index}]`));
    return errors;
  });
}

/** Validates that a claim refers to either an existing claim or a template. */
function validateClaimSource(claim: Stored<PodResourceClaim>, path: string): FieldError[] {
  const members = ['resourceClaimName', 'resourceClaimTemplateName'];
  const present = members.filter((member) => optionalText(claim, member) !== undefined);
  const both = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
  const none = 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`';
  return [
    ...(present.length === 2 ? [invalid(path, claim, both)] : []),
    ...(present.length === 0 ? [invalid(path, claim, none)] : []),
    ...present.flatMap((member) =>
      ruleErrors(`${path}.${member}`, textAt(claim, member), dnsSubdomain),
    ),
  ];
}

/**
 * Validates the claims in the resources of a container, in steps: each names a whole claim or one request of
 * it.
 * @param path the path of the list, such as `spec.containers[0].resources.claims`
 * @param claims the claims of the pod
 */
export function* validateClaimUses(
  resources: Stored<ResourceRequirements> | undefined,
  path: string,
  claims: ClaimNames,
): Generator<void, FieldError[]> {
  const uses = resources?.claims ?? [];
  if (uses.length === 0) return [];
  const whole = new Set<string>();
  const parts = new Map<string, Set<string>>();
  return yield* flatMapSteps(uses, (use, index) => {
    const field = `${path}[${index}]`;
    const [name, request] = [use.name ?? '', use.request ?? ''];
    if (name === '') return [required(field)];
    const requests = parts.get(name) ?? new Set();
    const errors: FieldError[] = [];
    if (whole.has(name)) errors.push(duplicate(field, name));
    else if (request === '') {
      for (const _ of requests) errors.push(duplicate(field, name));
      whole.add(name);
    } else {
      appendAll(errors, ruleErrors(`${field}.request`, request, dnsLabel));
      if (requests.has(request)) errors.push(duplicate(field, `${name}/${request}`));
      parts.set(name, requests.add(request));
    }
    if (!claims.has(name)) {
      const { message, ...found } = notFoundValue(field, name);
      errors.push({ ...found, message: `${message}: ${claims.absence}` });
    }
    return errors;
  });
}
