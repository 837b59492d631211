import {
  appendAll,
  breaks,
  dnsLabel,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { listAt, textAt } from '../../cells.ts';
import type {
  Container,
  ContainerResizePolicy,
  EphemeralContainer,
  PodSpec,
} from '../../gen/types/core/v1.ts';
import { objectAt, objectsAt, wholeNumber } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import { choice, isSet, notFoundValue, pullPolicies, refuseSet } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { validateEnvironment, validateEnvironmentSources } from './environment.ts';
import { hostPortConflicts, validatePorts } from './ports.ts';
import { validateLiveChecks } from './probes.ts';
import { type ClaimNames, claimNames, validateClaimUses } from './resource-claims.ts';
import { validateResources } from './resources.ts';
import { sharesUsers, validateContainerSecurity } from './security.ts';
import { type Volumes, validateDevices, validateMounts } from './volumes.ts';

const resizable = ['cpu', 'memory'];
const restartPolicies = ['NotRequired', 'RestartContainer'];

/** The `resizePolicy` of a container: what a change of a resource does to it. */
function validateResizePolicy(
  policies: readonly Stored<ContainerResizePolicy>[],
  path: string,
  podPolicy: string,
): FieldError[] {
  const seen = new Set<string>();
  return policies.flatMap((policy, index) => {
    const [name, restart] = [policy.resourceName ?? '', policy.restartPolicy ?? ''];
    const errors = seen.has(name) ? [duplicate(`${path}[${index}]`, name)] : [];
    seen.add(name);
    appendAll(errors, oneOf(path, name, resizable));
    appendAll(errors, oneOf(path, restart, restartPolicies));
    if (podPolicy === 'Never' && restart !== 'NotRequired') {
      const detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
      errors.push(invalid(path, restart, detail));
    }
    return errors;
  });
}

function oneOf(path: string, value: string, supported: readonly string[]): FieldError[] {
  if (value === '') return [required(path)];
  return supported.includes(value) ? [] : [notSupported(path, value, [...supported])];
}

/** What the containers of a spec are judged by. */
interface Surroundings {
  readonly rules: PodRules;
  readonly volumes: Volumes;
  readonly claims: ClaimNames;
  readonly hostUsers: boolean;
}

/** All containers of a spec: those that run, those that prepare, those added later. */
export function* validateContainers(
  spec: Stored<PodSpec>,
  path: string,
  { rules, volumes }: Pick<Surroundings, 'rules' | 'volumes'>,
): Generator<void, FieldError[]> {
  const graceSeconds = wholeNumber(spec.terminationGracePeriodSeconds);
  const claims = claimNames(spec);
  const around = { rules, volumes, claims, hostUsers: sharesUsers(spec) };
  return [
    ...(yield* validateRunning(spec, `${path}.containers`, { ...around, graceSeconds })),
    ...(yield* validatePreparing(spec, `${path}.initContainers`, { ...around, graceSeconds })),
    ...validateAdded(spec, `${path}.ephemeralContainers`, around),
  ];
}

const messagePolicies = ['File', 'FallbackToLogsOnError'];

function validateCommon(
  container: Stored<Container | EphemeralContainer>,
  path: string,
  around: Surroundings,
): FieldError[] {
  const name = container.name ?? '';
  const { rules, volumes } = around;
  return [
    ...(name === '' ? [required(`${path}.name`)] : breaks(`${path}.name`, name, dnsLabel)),
    ...((container.image ?? '') === '' ? [required(`${path}.image`)] : []),
    ...choice(container, path, 'terminationMessagePolicy', messagePolicies),
    ...validatePorts(container.ports ?? [], `${path}.ports`),
    ...validateEnvironment(container.env ?? [], `${path}.env`, rules),
    ...validateEnvironmentSources(container.envFrom ?? [], `${path}.envFrom`, rules),
    ...validateMounts(container, `${path}.volumeMounts`, volumes),
    ...validateDevices(container, `${path}.volumeDevices`, volumes),
    ...choice(container, path, 'imagePullPolicy', pullPolicies),
    ...validateResources(container.resources, `${path}.resources`, rules),
    ...validateClaimUses(container.resources, `${path}.resources.claims`, around.claims),
    ...validateContainerSecurity(container.securityContext, `${path}.securityContext`, around),
  ];
}

interface LiveSurroundings extends Surroundings {
  readonly graceSeconds: number | undefined;
}

/** Containers that are judged in one step. */
const containersPerStep = 100;

/** The errors of all containers, in steps. */
function* eachContainer<Container>(
  containers: readonly Container[],
  judge: (container: Container, index: number) => readonly FieldError[],
): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  for (const [index, container] of containers.entries()) {
    if (index % containersPerStep === containersPerStep - 1) yield;
    appendAll(errors, judge(container, index));
  }
  return errors;
}

function* validateRunning(
  spec: Stored<PodSpec>,
  path: string,
  around: LiveSurroundings,
): Generator<void, FieldError[]> {
  const containers = spec.containers ?? [];
  if (containers.length === 0) return [required(path)];
  const names = new Set<string>();
  const errors = yield* eachContainer(containers, (container, index) => {
    const field = `${path}[${index}]`;
    const name = container.name ?? '';
    const found = validateCommon(container, field, around);
    if (names.has(name)) found.push(duplicate(`${field}.name`, name));
    names.add(name);
    appendAll(found, validateLiveChecks(container, field, around));
    const policies = container.resizePolicy ?? [];
    const podPolicy = spec.restartPolicy ?? '';
    appendAll(found, validateResizePolicy(policies, `${field}.resizePolicy`, podPolicy));
    const why = 'may not be set for non-init containers';
    appendAll(found, refuseSet(container, ['restartPolicy'], { path: field, why }));
    return found;
  });
  return [...errors, ...hostPortConflicts(containers, path)];
}

const liveChecks = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'];

const namesOf = (spec: Stored<PodSpec>, member: string) =>
  objectsAt(spec, member).map((container) => textAt(container, 'name'));

function* validatePreparing(
  spec: Stored<PodSpec>,
  path: string,
  around: LiveSurroundings,
): Generator<void, FieldError[]> {
  const names = new Set(namesOf(spec, 'containers'));
  return yield* eachContainer(spec.initContainers ?? [], (container, index) => {
    const field = `${path}[${index}]`;
    const name = container.name ?? '';
    const restart = container.restartPolicy;
    const errors = validateCommon(container, field, around);
    if (restart !== undefined && restart !== 'Always') {
      errors.push(notSupported(`${field}.restartPolicy`, restart, ['Always']));
    }
    const policies = container.resizePolicy;
    if ((container.resizePolicy ?? []).length > 0) {
      errors.push(
        invalid(`${field}.resizePolicy`, policies, 'must not be set for init containers'),
      );
    }
    if (names.has(name)) errors.push(duplicate(`${field}.name`, name));
    else if (name !== '') names.add(name);
    // Upstream counts within a list of this one container, and so always says `[0]`.
    appendAll(errors, hostPortConflicts([container], path));
    if (restart === 'Always') {
      appendAll(errors, validateLiveChecks(container, field, around));
    } else {
      const why = 'may not be set for init containers without restartPolicy=Always';
      appendAll(errors, refuseSet(container, liveChecks, { path: field, why }));
    }
    return errors;
  });
}

const notForAdded = 'cannot be set for an Ephemeral Container';

/** What a container that is added to a running pod cannot have, in upstream's order. */
const refusedForAdded = [
  'ports',
  'resources',
  'restartPolicy',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
];

function validateAdded(spec: Stored<PodSpec>, path: string, around: Surroundings): FieldError[] {
  const added = spec.ephemeralContainers ?? [];
  if (added.length === 0) return [];
  const others = new Set([...namesOf(spec, 'containers'), ...namesOf(spec, 'initContainers')]);
  const names = new Set(others);
  return added.flatMap((container, index) => {
    const field = `${path}[${index}]`;
    const name = container.name ?? '';
    const target = container.targetContainerName ?? '';
    const errors = [
      ...validateCommon(container, field, around),
      ...validateImageSpacing(container, field),
    ];
    if (names.has(name)) errors.push(duplicate(`${field}.name`, name));
    names.add(name);
    if (target !== '' && !others.has(target)) {
      errors.push(notFoundValue(`${field}.targetContainerName`, target));
    }
    return [...errors, ...refuseForAdded(container, field)];
  });
}

function refuseForAdded(container: Stored<EphemeralContainer>, path: string): FieldError[] {
  const refused = refusedForAdded.filter((name) => holdsSomething(container, name));
  return [
    ...refused.map((name) => forbiddenField(`${path}.${name}`, notForAdded)),
    ...(container.volumeMounts ?? []).flatMap((mount, index) =>
      (['subPath', 'subPathExpr'] as const)
        .filter((name) => (mount[name] ?? '') !== '')
        .map((name) => forbiddenField(`${path}.volumeMounts[${index}].${name}`, notForAdded)),
    ),
  ];
}

/** Empty lists and an empty `resources` are the same as none. */
function holdsSomething(container: Stored<EphemeralContainer>, name: string): boolean {
  if (name === 'ports') return listAt(container, name).length > 0;
  if (name !== 'resources') return isSet(container, name);
  return Object.keys(objectAt(container, name) ?? {}).length > 0;
}

/** Spaces around an image: templates may have them, pods not. */
export function validateImageSpacing(
  container: Stored<Container | EphemeralContainer>,
  path: string,
): FieldError[] {
  const image = container.image ?? '';
  if (image.trim() === image) return [];
  return [invalid(`${path}.image`, image, 'must not have leading or trailing whitespace')];
}
