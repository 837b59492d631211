import {
  breaks,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  inOnePiece,
  invalid,
  type NameRule,
  qualifiedName,
  required,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type { PodSpec } from '../../gen/types/core/v1.ts';
import { keyed } from '../../rules/checks.ts';
import type { Stored } from '../../stored.ts';
import { amountsOf, containerAmounts, podLevelResources } from '../amounts.ts';
import { choice, notSupportedGo, oneOfIfSet, validateLabels, within } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { validateAffinity } from './affinity.ts';
import { validateContainers } from './containers.ts';
import { validateDnsConfig, validateHostAliases } from './name-service.ts';
import { validateSchedulingGates, validateSpread, validateTolerations } from './placement.ts';
import { validateHostNetworkPorts } from './ports.ts';
import { claimNames, validateClaims, validateClaimUses } from './resource-claims.ts';
import { validateAnyResourceName, validateResources } from './resources.ts';
import { validateHostUsers, validatePodSecurity } from './security.ts';
import { validateVolumes } from './volumes.ts';
import { validateHostProcesses, validateSystem } from './windows.ts';

/** The amounts of a pod as a whole, at `path` (`spec.resources`). */
function validatePodResources(spec: Stored<PodSpec>, path: string, rules: PodRules): FieldError[] {
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

const restartPolicies = ['Always', 'OnFailure', 'Never'];
const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const preemptionPolicies = ['PreemptLowerPriority', 'Never'];
const deadlineSecondsMax = 2 ** 31 - 1;

/** Rules of a pod's spec at `path` (`spec`, `spec.template.spec`), in upstream's order. */
export function validatePodSpec(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): FieldError[] {
  return inOnePiece(podSpecErrorSteps(spec, path, rules));
}

/** `validatePodSpec` in steps, for pods of many containers. */
export function* podSpecErrorSteps(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const grace = `${path}.terminationGracePeriodSeconds`;
  const { errors, volumes } = validateVolumes(spec.volumes ?? [], `${path}.volumes`, rules);
  return [
    ...(spec.terminationGracePeriodSeconds != null ? [] : [required(grace)]),
    ...errors,
    ...validateClaims(spec, `${path}.resourceClaims`, rules),
    ...(yield* validateContainers(spec, path, { rules, volumes })),
    ...validatePodResources(spec, `${path}.resources`, rules),
    ...validateHostNetworkPorts(spec, path, rules),
    ...choice(spec, path, 'restartPolicy', restartPolicies),
    ...choice(spec, path, 'dnsPolicy', dnsPolicies),
    ...validateLabels(spec.nodeSelector, `${path}.nodeSelector`),
    ...validatePodSecurity(spec, `${path}.securityContext`, rules),
    ...validateAffinity(spec, `${path}.affinity`, rules),
    ...validateDnsConfig(spec, `${path}.dnsConfig`, rules),
    ...validateReadinessGates(spec, `${path}.readinessGates`),
    ...validateSchedulingGates(spec, `${path}.schedulingGates`),
    ...validateSpread(spec, `${path}.topologySpreadConstraints`, rules),
    ...validateHostProcesses(spec, path),
    ...validateHostUsers(spec, path),
    ...validateReferences(spec, path),
    ...validatePriority(spec, path),
    ...validateOverhead(spec, path, rules),
    ...validateSystem(spec, path),
  ];
}

function validateReadinessGates(spec: Stored<PodSpec>, path: string): FieldError[] {
  return (spec.readinessGates ?? []).flatMap((gate, index) =>
    breaks(`${path}[${index}].conditionType`, gate.conditionType ?? '', qualifiedName),
  );
}

function validateReferences(spec: Stored<PodSpec>, path: string): FieldError[] {
  const name = (member: string, rule: NameRule) => {
    const value = textAt(spec, member);
    return value === '' ? [] : breaks(`${path}.${member}`, value, rule);
  };
  return [
    ...name('serviceAccountName', dnsSubdomain),
    ...name('nodeName', dnsSubdomain),
    ...within(spec, path, 'activeDeadlineSeconds', [1, deadlineSecondsMax]),
    ...name('hostname', dnsLabel),
    ...name('subdomain', dnsLabel),
    ...validateTolerations(spec.tolerations ?? [], `${path}.tolerations`),
    ...validateHostAliases(spec, `${path}.hostAliases`),
    ...name('priorityClassName', dnsSubdomain),
  ];
}

function validatePriority(spec: Stored<PodSpec>, path: string): FieldError[] {
  const runtimeClass = spec.runtimeClassName;
  const field = `${path}.preemptionPolicy`;
  const isEmpty = spec.preemptionPolicy === '';
  return [
    ...(runtimeClass === undefined
      ? []
      : breaks(`${path}.runtimeClassName`, runtimeClass, dnsSubdomain)),
    ...(isEmpty
      ? [required(field)]
      : oneOfIfSet(spec, path, 'preemptionPolicy', preemptionPolicies)),
  ];
}

/** What the runtime takes for itself is judged as a container's limits are. */
function validateOverhead(spec: Stored<PodSpec>, path: string, rules: PodRules): FieldError[] {
  const overhead = spec.overhead;
  if (overhead === undefined) return [];
  return validateResources({ limits: overhead }, `${path}.overhead`, rules);
}
