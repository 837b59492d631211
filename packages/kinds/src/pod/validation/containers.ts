import {
  appendAll,
  dnsLabel,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  joined,
  notSupported,
  portName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { at, listAt, numberAt, textAt } from '../../cells.ts';
import type {
  Container,
  ContainerPort,
  ContainerResizePolicy,
  EphemeralContainer,
  LifecycleHandler,
  PodSpec,
  Probe,
} from '../../gen/types/core/v1.ts';
import type { Findings, Stored } from '../../resource-def.ts';
import { errorSteps, flatMapSteps } from '../../rules/checks.ts';
import { objectAt, objectsAt, wholeNumber } from '../../rules/fill.ts';
import {
  duplicateGo,
  forbidPresent,
  intAt,
  isSet,
  isTrue,
  notFoundValue,
  notSupportedGo,
  pullPolicies,
  requireTexts,
  validateChoice,
  validateChoiceIn,
  validateNonNegative,
  validatePortNumber,
  validatePortNumberOrName,
} from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { validateEnvironment, validateEnvironmentSources } from './environment.ts';
import { type ClaimNames, claimNames, validateClaimUses } from './resource-claims.ts';
import { resourceErrorSteps } from './resources.ts';
import { sharesUserNamespace, validateContainerSecurity } from './security.ts';
import { type Volumes, validateDevices, validateMounts } from './volumes.ts';

/**
 * Validates that each port of a container equals its host port in a pod that uses the host's
 * network.
 */
export function* validateHostNetworkPorts(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  if (!isTrue(spec, 'hostNetwork')) return [];
  return yield* flatMapSteps(spec.containers ?? [], (container, at) =>
    flatMapSteps(container.ports ?? [], (port, index) => {
      const hostPort = port.hostPort ?? 0;
      const applies = rules.pod !== undefined || hostPort !== 0;
      if (!applies || hostPort === (port.containerPort ?? 0)) return [];
      const detail = 'must match `containerPort` when `hostNetwork` is true';
      return [invalid(`${path}.containers[${at}].ports[${index}].hostPort`, hostPort, detail)];
    }),
  );
}

/** Context of the rules of the containers of a spec. */
interface ContainerContext {
  readonly rules: PodRules;
  readonly volumes: Volumes;
  readonly claims: ClaimNames;
  readonly hostUsers: boolean;
  /** The restart policy of the pod. */
  readonly podPolicy: string;
}

/** Validates the regular, init, and ephemeral containers of a spec in steps. */
export function* validateContainers(
  spec: Stored<PodSpec>,
  path: string,
  { rules, volumes }: Pick<ContainerContext, 'rules' | 'volumes'>,
): Generator<void, FieldError[]> {
  const graceSeconds = wholeNumber(spec.terminationGracePeriodSeconds);
  const claims = claimNames(spec);
  const context = {
    rules,
    volumes,
    claims,
    hostUsers: sharesUserNamespace(spec),
    podPolicy: spec.restartPolicy ?? '',
    graceSeconds,
  };
  return [
    ...(yield* validateRegularContainers(spec, `${path}.containers`, context)),
    ...(yield* validateInitContainers(spec, `${path}.initContainers`, context)),
    ...(yield* validateEphemeralContainers(spec, `${path}.ephemeralContainers`, context)),
  ];
}

/** Context of containers that may have hooks. */
interface HookContext extends ContainerContext {
  /** The grace period of the pod in seconds; undefined if it is not a whole number. */
  readonly graceSeconds: number | undefined;
}

function* validateRegularContainers(
  spec: Stored<PodSpec>,
  path: string,
  context: HookContext,
): Generator<void, FieldError[]> {
  const containers = spec.containers ?? [];
  if (containers.length === 0) return [required(path)];
  const names = new Set<string>();
  const errors = yield* flatMapSteps(containers, function* (container, index) {
    const field = `${path}[${index}]`;
    const name = container.name ?? '';
    const containerErrors = yield* validateCommon(container, field, context);
    if (names.has(name)) containerErrors.push(duplicate(`${field}.name`, name));
    names.add(name);
    appendAll(containerErrors, yield* validateHooksAndProbes(container, field, context));
    const why = 'may not be set for non-init containers';
    appendAll(containerErrors, forbidPresent(container, ['restartPolicy'], { path: field, why }));
    return containerErrors;
  });
  return joined(errors, yield* hostPortConflicts(containers, path));
}

const messagePolicies = ['File', 'FallbackToLogsOnError'];

function* validateCommon(
  container: Stored<Container | EphemeralContainer>,
  path: string,
  context: ContainerContext,
): Generator<void, FieldError[]> {
  const name = container.name ?? '';
  const { rules, volumes } = context;
  return [
    ...(name === '' ? [required(`${path}.name`)] : ruleErrors(`${path}.name`, name, dnsLabel)),
    ...((container.image ?? '') === '' ? [required(`${path}.image`)] : []),
    ...validateChoiceIn(container, path, 'terminationMessagePolicy', messagePolicies),
    ...(yield* validatePorts(container.ports ?? [], `${path}.ports`)),
    ...(yield* validateEnvironment(container.env ?? [], `${path}.env`, rules)),
    ...(yield* validateEnvironmentSources(container.envFrom ?? [], `${path}.envFrom`, rules)),
    ...(yield* validateMounts(container, `${path}.volumeMounts`, volumes)),
    ...(yield* validateDevices(container, `${path}.volumeDevices`, volumes)),
    ...validateChoiceIn(container, path, 'imagePullPolicy', pullPolicies),
    ...(yield* resourceErrorSteps(container.resources, `${path}.resources`, rules)),
    ...(yield* validateClaimUses(container.resources, `${path}.resources.claims`, context.claims)),
    ...(yield* validateResizePolicy(container.resizePolicy, `${path}.resizePolicy`, context)),
    ...validateContainerSecurity(container.securityContext, `${path}.securityContext`, context),
  ];
}

const protocols = ['SCTP', 'TCP', 'UDP'];

/** Validates the ports of one container. */
function validatePorts(
  ports: readonly Stored<ContainerPort>[],
  path: string,
): Generator<void, FieldError[]> {
  const names = new Set<string>();
  return flatMapSteps(ports, (port, index) => {
    const field = `${path}[${index}]`;
    const errors = validatePortName(port.name ?? '', { field: `${field}.name`, names });
    const number = port.containerPort ?? 0;
    if (number === 0) errors.push(required(`${field}.containerPort`));
    else appendAll(errors, validatePortNumber(`${field}.containerPort`, number));
    const hostPort = port.hostPort ?? 0;
    if (hostPort !== 0) appendAll(errors, validatePortNumber(`${field}.hostPort`, hostPort));
    appendAll(errors, validateChoiceIn(port, field, 'protocol', protocols));
    return errors;
  });
}

function validatePortName(
  name: string,
  { field, names }: { field: string; names: Set<string> },
): FieldError[] {
  if (name === '') return [];
  const errors = ruleErrors(field, name, portName);
  if (errors.length > 0) return errors;
  if (names.has(name)) return [duplicate(field, name)];
  names.add(name);
  return [];
}

/** Validates the hooks and probes of a container that runs as long as its pod. */
function* validateHooksAndProbes(
  container: Stored<Container>,
  path: string,
  { graceSeconds, rules }: { graceSeconds: number | undefined; rules: PodRules },
): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  const hookActions = { exec, httpGet, tcpSocket, sleep: sleep(graceSeconds, rules) };
  for (const name of ['postStart', 'preStop'] as const) {
    const hook = container.lifecycle?.[name];
    if (hook === undefined) continue;
    appendAll(errors, yield* validateHandler(hook, `${path}.lifecycle.${name}`, hookActions));
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    const probe = container[name];
    if (probe !== undefined) appendAll(errors, yield* validateProbe(probe, `${path}.${name}`));
  }
  return errors;
}

type Rule = (action: JsonObject, path: string) => Findings;

const exec: Rule = (action, path) =>
  listAt(action, 'command').length === 0 ? [required(`${path}.command`)] : [];

const schemes = ['HTTP', 'HTTPS'];
const headerDetail =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', " +
  "regex used for validation is '[-A-Za-z0-9]+')";

function* httpGet(action: JsonObject, path: string): Generator<void, FieldError[]> {
  const scheme = textAt(action, 'scheme');
  return [
    ...requireTexts(action, path, 'path'),
    ...validatePortNumberOrName(`${path}.port`, at(action, 'port')),
    ...(schemes.includes(scheme) ? [] : [notSupported(`${path}.scheme`, scheme, schemes)]),
    ...(yield* flatMapSteps(objectsAt(action, 'httpHeaders'), (header) => {
      const name = textAt(header, 'name');
      return /^[-A-Za-z0-9]+$/.test(name)
        ? []
        : [invalid(`${path}.httpHeaders`, name, headerDetail)];
    })),
  ];
}

const tcpSocket: Rule = (action, path) =>
  validatePortNumberOrName(`${path}.port`, at(action, 'port'));

/** Returns the rule of a pause, which must not exceed the grace period of the pod. */
const sleep =
  (graceSeconds: number | undefined, { allow }: PodRules): Rule =>
  (action, path) => {
    const seconds = intAt(action, 'seconds') ?? 0;
    const secondsMin = allow.zeroSleep ? 0 : 1;
    const isInRange = seconds >= secondsMin && seconds <= (graceSeconds ?? seconds);
    if (graceSeconds === undefined || isInRange) return [];
    if (allow.zeroSleep) {
      const range = 'must be non-negative and less than terminationGracePeriodSeconds';
      return [invalid(path, seconds, `${range} (${graceSeconds})`)];
    }
    const detail =
      `must be greater than 0 and less than terminationGracePeriodSeconds (${graceSeconds}). ` +
      'Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.';
    return [invalid(path, seconds, detail)];
  };

/** Requires that a handler has exactly one action, and validates it. */
function* validateHandler(
  handler: Stored<LifecycleHandler | Probe>,
  path: string,
  actions: Readonly<Record<string, Rule>>,
): Generator<void, FieldError[]> {
  const actionNames = Object.keys(actions).filter((name) => objectAt(handler, name));
  const [first, ...more] = actionNames;
  if (first === undefined) return [required(path, 'must specify a handler type')];
  const rule = actions[first] as Rule;
  return [
    ...(yield* errorSteps(rule(objectAt(handler, first) ?? {}, `${path}.${first}`))),
    ...more.map((name) =>
      forbiddenField(`${path}.${name}`, 'may not specify more than 1 handler type'),
    ),
  ];
}

const grpc: Rule = (action, path) => validatePortNumber(`${path}.port`, intAt(action, 'port') ?? 0);

const probeActions = { exec, httpGet, tcpSocket, grpc };

const counts = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
];

function* validateProbe(probe: Stored<Probe>, path: string): Generator<void, FieldError[]> {
  const errors = [
    ...(yield* validateHandler(probe, path, probeActions)),
    ...validateNonNegative(probe, path, ...counts),
  ];
  const field = `${path}.terminationGracePeriodSeconds`;
  const grace = wholeNumber(probe.terminationGracePeriodSeconds);
  if (grace !== undefined && grace <= 0) {
    errors.push(invalid(field, grace, 'must be greater than 0'));
  }
  if (path.endsWith('.readinessProbe')) {
    if (grace === undefined) return errors;
    return [...errors, invalid(field, grace, 'must not be set for readinessProbes')];
  }
  const successes = probe.successThreshold ?? 0;
  if (successes !== 1) errors.push(invalid(`${path}.successThreshold`, successes, 'must be 1'));
  return errors;
}

const resizable = ['cpu', 'memory'];
const restartPolicies = ['NotRequired', 'RestartContainer'];

/** Validates `resizePolicy`: whether a change of a resource restarts the container. */
function* validateResizePolicy(
  policies: readonly Stored<ContainerResizePolicy>[] | undefined | null,
  path: string,
  { podPolicy }: { readonly podPolicy: string },
): Generator<void, FieldError[]> {
  if (policies === undefined || policies === null) return [];
  const seen = new Set<string>();
  return yield* flatMapSteps(policies, (policy, index) => {
    const [name, restart] = [policy.resourceName ?? '', policy.restartPolicy ?? ''];
    const errors = seen.has(name) ? [duplicateGo(`${path}[${index}]`, name)] : [];
    seen.add(name);
    if (name === '') errors.push(required(path));
    else if (!resizable.includes(name)) errors.push(notSupportedGo(path, name, resizable));
    appendAll(errors, validateChoice(path, restart, restartPolicies));
    if (podPolicy === 'Never' && restart !== 'NotRequired') {
      const detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
      errors.push(invalid(path, restart, detail));
    }
    return errors;
  });
}

/** Rejects two containers that use the same host port at the same address. */
function hostPortConflicts(
  containers: readonly JsonObject[],
  path: string,
): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(containers, (container, at) =>
    flatMapSteps(objectsAt(container, 'ports'), (port, index) => {
      const hostPort = numberAt(port, 'hostPort');
      if (hostPort === 0) return [];
      const key = `${textAt(port, 'protocol')}/${textAt(port, 'hostIP')}/${hostPort}`;
      if (seen.has(key)) return [duplicate(`${path}[${at}].ports[${index}].hostPort`, key)];
      seen.add(key);
      return [];
    }),
  );
}

const hooksAndProbes = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'];

function* validateInitContainers(
  spec: Stored<PodSpec>,
  path: string,
  context: HookContext,
): Generator<void, FieldError[]> {
  const names = new Set(namesOf(spec, 'containers'));
  return yield* flatMapSteps(spec.initContainers ?? [], function* (container, index) {
    const field = `${path}[${index}]`;
    const name = container.name ?? '';
    const restart = container.restartPolicy;
    const errors = yield* validateCommon(container, field, context);
    if (restart !== undefined && restart !== 'Always') {
      errors.push(notSupported(`${field}.restartPolicy`, restart, ['Always']));
    }
    if (names.has(name)) errors.push(duplicate(`${field}.name`, name));
    else if (name !== '') names.add(name);
    // kube-apiserver passes a list of only this container, so the path always says `[0]`.
    appendAll(errors, yield* hostPortConflicts([container], path));
    if (restart === 'Always') {
      appendAll(errors, yield* validateHooksAndProbes(container, field, context));
    } else {
      const why = 'may not be set for init containers without restartPolicy=Always';
      appendAll(errors, forbidPresent(container, hooksAndProbes, { path: field, why }));
    }
    const policies = container.resizePolicy ?? [];
    if (policies.length > 0 && !context.rules.allow.sidecarResizePolicies) {
      const detail = 'must not be set for init containers';
      errors.push(invalid(`${field}.resizePolicy`, policies, detail));
    }
    return errors;
  });
}

const namesOf = (spec: Stored<PodSpec>, member: string) =>
  objectsAt(spec, member).map((container) => textAt(container, 'name'));

function* validateEphemeralContainers(
  spec: Stored<PodSpec>,
  path: string,
  context: ContainerContext,
): Generator<void, FieldError[]> {
  const added = spec.ephemeralContainers ?? [];
  if (added.length === 0) return [];
  const others = new Set([...namesOf(spec, 'containers'), ...namesOf(spec, 'initContainers')]);
  const names = new Set(others);
  return yield* flatMapSteps(added, function* (container, index) {
    const field = `${path}[${index}]`;
    const name = container.name ?? '';
    const target = container.targetContainerName ?? '';
    const errors = [
      ...(yield* validateCommon(container, field, context)),
      ...validateImageSpacing(container, field),
    ];
    if (names.has(name)) errors.push(duplicate(`${field}.name`, name));
    names.add(name);
    if (target !== '' && !others.has(target)) {
      errors.push(notFoundValue(`${field}.targetContainerName`, target));
    }
    return [...errors, ...refuseForEphemeral(container, field)];
  });
}

/** Rejects the name of an image with spaces around it, which only templates may have. */
export function validateImageSpacing(
  container: Stored<Container | EphemeralContainer>,
  path: string,
): FieldError[] {
  const image = container.image ?? '';
  if (image.trim() === image) return [];
  return [invalid(`${path}.image`, image, 'must not have leading or trailing whitespace')];
}

/** Members that ephemeral containers must not have, in kube-apiserver's order. */
const refusedForEphemeral = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
];

const notForEphemeral = 'cannot be set for an Ephemeral Container';

function refuseForEphemeral(container: Stored<EphemeralContainer>, path: string): FieldError[] {
  const refused = refusedForEphemeral.filter((name) => isPresent(container, name));
  return [
    ...refused.map((name) => forbiddenField(`${path}.${name}`, notForEphemeral)),
    ...(container.volumeMounts ?? []).flatMap((mount, index) =>
      (['subPath', 'subPathExpr'] as const)
        .filter((name) => (mount[name] ?? '') !== '')
        .map((name) => forbiddenField(`${path}.volumeMounts[${index}].${name}`, notForEphemeral)),
    ),
  ];
}

/** Whether a member is present. An empty list is, and empty `resources` are not. */
function isPresent(container: Stored<EphemeralContainer>, name: string): boolean {
  if (name !== 'resources') return isSet(container, name);
  return Object.keys(objectAt(container, name) ?? {}).length > 0;
}
