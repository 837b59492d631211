import {
  dnsLabel,
  dnsSubdomain,
  exceedsBytes,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  joined,
  type NameRule,
  qualifiedName,
  required,
  ruleErrors,
  underscoreSubdomain,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import { validateIp } from '../../core/addresses.ts';
import type { PodSpec } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps, goStrings, keyed } from '../../rules/checks.ts';
import { amountsOfSteps, containerAmountsSteps, podLevelResources } from '../amounts.ts';
import {
  labelErrorSteps,
  notSupportedGo,
  validateChoiceIn,
  validateOptionalChoice,
  validateRange,
} from '../fields.ts';
import type { Allowances, PodRules } from '../rules.ts';
import { affinityErrorSteps } from './affinity.ts';
import { validateContainers, validateHostNetworkPorts } from './containers.ts';
import { relaxedNames } from './environment.ts';
import { validateSchedulingGates, validateSpread, validateToleration } from './placement.ts';
import { claimNames, validateClaims, validateClaimUses } from './resource-claims.ts';
import { resourceErrorSteps, validateAnyResourceName } from './resources.ts';
import {
  validateHostProcesses,
  validateHostUsers,
  validatePodSecurity,
  validateSystem,
} from './security.ts';
import { validateVolumes } from './volumes.ts';

const restartPolicies = ['Always', 'OnFailure', 'Never'];
const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];

/**
 * Validates the spec of a pod or template in steps; errors are in kube-apiserver's order.
 * @param path the path of the spec, such as `spec` or `spec.template.spec`
 */
export function* validatePodSpec(
  spec: Stored<PodSpec>,
  path: string,
  podRules: PodRules,
): Generator<void, FieldError[]> {
  const rules = yield* withKeptNames(spec, podRules);
  const grace = `${path}.terminationGracePeriodSeconds`;
  const { errors, volumes } = yield* validateVolumes(spec.volumes ?? [], `${path}.volumes`, rules);
  return joined<FieldError>(
    spec.terminationGracePeriodSeconds != null ? [] : [required(grace)],
    errors,
    yield* validateClaims(spec, `${path}.resourceClaims`, rules),
    yield* validateContainers(spec, path, { rules, volumes }),
    yield* validatePodResources(spec, `${path}.resources`, rules),
    yield* validateHostNetworkPorts(spec, path, rules),
    validateChoiceIn(spec, path, 'restartPolicy', restartPolicies),
    validateChoiceIn(spec, path, 'dnsPolicy', dnsPolicies),
    yield* labelErrorSteps(spec.nodeSelector, `${path}.nodeSelector`),
    yield* validatePodSecurity(spec, `${path}.securityContext`, rules),
    yield* affinityErrorSteps(spec, `${path}.affinity`, rules),
    yield* validateDnsConfig(spec, `${path}.dnsConfig`, rules),
    yield* validateReadinessGates(spec, `${path}.readinessGates`),
    yield* validateSchedulingGates(spec, `${path}.schedulingGates`),
    yield* validateSpread(spec, `${path}.topologySpreadConstraints`, rules),
    validateHostProcesses(spec, path),
    validateHostUsers(spec, path),
    yield* validateReferences(spec, path),
    validatePriority(spec, path),
    yield* validateOverhead(spec, path, rules),
    validateSystem(spec, path),
  );
}

/** Allows relaxed names of variables if the spec keeps one of the old object. */
function* withKeptNames(spec: Stored<PodSpec>, rules: PodRules): Generator<void, PodRules> {
  const { allow } = rules;
  if (allow.relaxedVariables || allow.relaxedNames.size === 0) return rules;
  const names = yield* relaxedNames(spec);
  const relaxedVariables = [...names].some((name) => allow.relaxedNames.has(name));
  return { ...rules, allow: { ...allow, relaxedVariables } };
}

/** Validates the resources of a pod as a whole, at `path` (`spec.resources`). */
function* validatePodResources(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const resources = spec.resources;
  if (resources === undefined || !rules.features.enabled('PodLevelResources')) return [];
  const noClaims = 'claims cannot be set for Resources at pod-level';
  return [
    ...(resources.claims != null ? [forbiddenField(`${path}.claims`, noClaims)] : []),
    ...(yield* resourceErrorSteps(resources, path, {
      ...rules,
      validateName: validatePodResourceName,
    })),
    ...(yield* validateClaimUses(resources, `${path}.claims`, claimNames(spec))),
    ...(yield* validateRequests(spec, `${path}.requests`)),
    ...(yield* validateLimits(spec, path)),
  ];
}

function validatePodResourceName(name: string, field: string): FieldError[] {
  const errors = validateAnyResourceName(name, field);
  if (errors.length > 0 || podLevelResources.includes(name)) return errors;
  return [notSupportedGo(field, name, [...podLevelResources])];
}

/** Validates that a pod requests at least as much as its containers together. */
function* validateRequests(spec: Stored<PodSpec>, path: string): Generator<void, FieldError[]> {
  const whole = yield* amountsOfSteps(spec.resources?.requests);
  const sums = yield* containerAmountsSteps(spec, 'requests');
  return yield* flatMapSteps(sums, ([name, sum]) => {
    const request = whole.get(name);
    if (sum.nano <= (request?.nano ?? 0n)) return [];
    const detail = `must be greater than or equal to aggregate container requests of ${sum.text}`;
    return [invalid(keyed(path, name), request?.text ?? '0', detail)];
  });
}

/** Validates that no container has a higher limit than its pod. */
function* validateLimits(spec: Stored<PodSpec>, path: string): Generator<void, FieldError[]> {
  const whole = yield* amountsOfSteps(spec.resources?.limits);
  return yield* flatMapSteps(spec.containers ?? [], function* (container, index) {
    const limits = yield* amountsOfSteps(container.resources?.limits);
    return yield* flatMapSteps(limits, ([name, limit]) => {
      const most = whole.get(name);
      if (most === undefined || limit.nano <= most.nano) return [];
      const detail = `must be less than or equal to pod limits of ${most.text}`;
      const field = `${keyed(`${path}.containers[${index}]`, name)}.limits`;
      return [invalid(field, limit.text, detail)];
    });
  });
}

/** The limit of the Linux resolver. */
const nameserversMax = 3;

/** Validates `dnsConfig`, which must have a nameserver if `dnsPolicy` is `None`. */
function* validateDnsConfig(
  spec: Stored<PodSpec>,
  path: string,
  { allow }: PodRules,
): Generator<void, FieldError[]> {
  const config = spec.dnsConfig;
  const servers = config?.nameservers ?? [];
  if ((spec.dnsPolicy ?? '') === 'None') {
    if (config === undefined) {
      return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    }
    if (servers.length === 0) {
      const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
      return [required(`${path}.nameservers`, detail)];
    }
  }
  if (config === undefined) return [];
  const errors: FieldError[] = [];
  if (servers.length > nameserversMax) {
    const detail = `must not have more than ${nameserversMax} nameservers`;
    errors.push(invalidGo(`${path}.nameservers`, () => goStrings(servers), detail));
  }
  const ofServers = yield* flatMapSteps(servers, (server, index) =>
    validateIp(`${path}.nameservers[${index}]`, server),
  );
  return joined<FieldError>(
    errors,
    ofServers,
    yield* validateSearches(config.searches ?? [], `${path}.searches`, allow),
    yield* flatMapSteps(config.options ?? [], (option, index) =>
      (option.name ?? '') === ''
        ? [required(`${path}.options[${index}]`, 'must not be empty')]
        : [],
    ),
  );
}

const searchPathsMax = 32;
const searchCharactersMax = 2048;

function* validateSearches(
  searches: readonly string[],
  path: string,
  { relaxedSearches }: Allowances,
): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  const refuse = (detail: string) =>
    errors.push(invalidGo(path, () => goStrings(searches), detail));
  if (searches.length > searchPathsMax) {
    refuse(`must not have more than ${searchPathsMax} search paths`);
  }
  if (exceedsBytes(searches.join(' '), searchCharactersMax)) {
    refuse(
      `must not have more than ${searchCharactersMax} characters (including spaces) in the search list`,
    );
  }
  const ofSearches = yield* flatMapSteps(searches, (search, index) => {
    if (relaxedSearches && search === '.') return [];
    const name = search.endsWith('.') ? search.slice(0, -1) : search;
    const rule = relaxedSearches ? underscoreSubdomain : dnsSubdomain;
    return ruleErrors(`${path}[${index}]`, name, rule);
  });
  return joined(errors, ofSearches);
}

function validateReadinessGates(
  spec: Stored<PodSpec>,
  path: string,
): Generator<void, FieldError[]> {
  return flatMapSteps(spec.readinessGates ?? [], (gate, index) =>
    ruleErrors(`${path}[${index}].conditionType`, gate.conditionType ?? '', qualifiedName),
  );
}

const deadlineSecondsMax = 2 ** 31 - 1;

function* validateReferences(spec: Stored<PodSpec>, path: string): Generator<void, FieldError[]> {
  const name = (member: string, rule: NameRule) => {
    const value = textAt(spec, member);
    return value === '' ? [] : ruleErrors(`${path}.${member}`, value, rule);
  };
  return joined<FieldError>(
    name('serviceAccountName', dnsSubdomain),
    name('nodeName', dnsSubdomain),
    validateRange(spec, path, 'activeDeadlineSeconds', [1, deadlineSecondsMax]),
    name('hostname', dnsLabel),
    name('subdomain', dnsLabel),
    yield* flatMapSteps(spec.tolerations ?? [], (toleration, index) =>
      validateToleration(toleration, `${path}.tolerations[${index}]`),
    ),
    yield* validateHostAliases(spec, `${path}.hostAliases`),
    name('priorityClassName', dnsSubdomain),
  );
}

/** Validates the entries that a node adds to the hosts file of a pod. */
function validateHostAliases(spec: Stored<PodSpec>, path: string): Generator<void, FieldError[]> {
  return flatMapSteps(spec.hostAliases ?? [], function* (alias, index) {
    return [
      ...validateIp(`${path}[${index}].ip`, alias.ip ?? ''),
      ...(yield* flatMapSteps(alias.hostnames ?? [], (name, at) =>
        ruleErrors(`${path}[${index}].hostnames[${at}]`, name, dnsSubdomain),
      )),
    ];
  });
}

const preemptionPolicies = ['PreemptLowerPriority', 'Never'];

function validatePriority(spec: Stored<PodSpec>, path: string): FieldError[] {
  const runtimeClass = spec.runtimeClassName;
  const field = `${path}.preemptionPolicy`;
  const isEmpty = spec.preemptionPolicy === '';
  return [
    ...(runtimeClass === undefined
      ? []
      : ruleErrors(`${path}.runtimeClassName`, runtimeClass, dnsSubdomain)),
    ...(isEmpty
      ? [required(field)]
      : validateOptionalChoice(spec, path, 'preemptionPolicy', preemptionPolicies)),
  ];
}

/** Validates the overhead of a runtime by the rules for the limits of a container. */
function* validateOverhead(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const limits = spec.overhead;
  if (limits === undefined) return [];
  return yield* resourceErrorSteps({ limits }, `${path}.overhead`, rules);
}
