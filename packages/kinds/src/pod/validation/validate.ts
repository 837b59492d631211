import {
  breaks,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  inOnePiece,
  type NameRule,
  qualifiedName,
  required,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type { PodSpec } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../stored.ts';
import { choice, oneOfIfSet, validateLabels, within } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { validateAffinity } from './affinity.ts';
import { validateContainers } from './containers.ts';
import { validateDnsConfig, validateHostAliases } from './name-service.ts';
import { validateSchedulingGates, validateSpread, validateTolerations } from './placement.ts';
import { validatePodResources } from './pod-resources.ts';
import { validateHostNetworkPorts } from './ports.ts';
import { validateClaims } from './resource-claims.ts';
import { validateResources } from './resources.ts';
import { validateHostUsers, validatePodSecurity } from './security.ts';
import { validateVolumes } from './volumes.ts';
import { validateHostProcesses, validateSystem } from './windows.ts';

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
