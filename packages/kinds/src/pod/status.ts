import {
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  inRange,
  internal,
  invalid,
  invalidGo,
  type JsonObject,
  notSupported,
  pairErrorsMax,
  parseIpAddress,
  qualifiedName,
  ruleErrors,
  seenBefore,
} from '@wheelhouse/machinery';
import { at, listAt, numberAt, textAt } from '../cells.ts';
import { validateIp } from '../core/addresses.ts';
import type { ContainerUser, Pod, PodSpec, PodStatus } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';
import { forEachSteps, objectAt, objectsAt } from '../rules/fill.ts';
import { annotationsOf, duplicateGo } from './fields.ts';
import { goStructs } from './go-text.ts';
import { newlyAllowed, type PodPorts } from './rules.ts';
import { validateAnnotationUpdate } from './update.ts';
import { isDeletionCost } from './validation/annotations.ts';

/** Validates the status that a node reports for a pod, in steps (TRUST-2). */
export function* validatePodStatus(
  object: Stored<Pod>,
  old: Stored<Pod>,
  ports: PodPorts,
): Generator<void, FieldError[]> {
  const [status, before] = [object.status ?? {}, old.status ?? {}];
  const spec = old.spec ?? {};
  const policy = spec.restartPolicy ?? '';
  const restarting = restartable(spec);
  // The other allowances concern the spec, which does not change.
  const allowed = newlyAllowed(ports.features);
  const keepsCost = !isDeletionCost(annotationsOf(old), ports.dialect);
  const allow = { ...allowed, deletionCost: allowed.deletionCost || keepsCost };
  return [
    ...(yield* validateAnnotationUpdate(object, old, { ...ports, pod: object, allow })),
    ...(yield* validateConditions(status)),
    ...validateNomination(status, before),
    ...validateQuality(status, before),
    ...(yield* flatMapSteps<StatusList, FieldError>(
      [
        { list: 'containerStatuses', policy },
        { list: 'initContainerStatuses', policy, restarting },
        // A node never restarts ephemeral containers, regardless of the pod's policy.
        { list: 'ephemeralContainerStatuses', policy: 'Never' },
      ],
      (statuses) => validateTransitions(status, before, statuses),
    )),
    ...(yield* validateClaimStatuses(status, spec)),
    ...(yield* validateAddresses(status, { list: 'podIPs', type: 'PodIP' })),
    ...(yield* validateHostAddresses(status)),
    ...(yield* validateReportedResources(status, spec)),
  ];
}

const restartable = (spec: Stored<PodSpec>): ReadonlySet<string> =>
  new Set(
    (spec.initContainers ?? [])
      .filter((container) => (container.restartPolicy ?? '') === 'Always')
      .map((container) => container.name ?? ''),
  );

const builtInConditions = new Set(['PodScheduled', 'Ready', 'Initialized']);

/** Validates the types of conditions; kube-apiserver reports `metadata` instead of `status`. */
function validateConditions(status: Stored<PodStatus>): Generator<void, FieldError[]> {
  return flatMapSteps(status.conditions ?? [], (condition, index) => {
    const type = condition.type ?? '';
    if (builtInConditions.has(type)) return [];
    return ruleErrors(`metadata.conditions[${index}].Type`, type, qualifiedName);
  });
}

function validateNomination(status: Stored<PodStatus>, old: Stored<PodStatus>): FieldError[] {
  const name = status.nominatedNodeName ?? '';
  if (name === '' || name === (old.nominatedNodeName ?? '')) return [];
  return ruleErrors('status.nominatedNodeName', name, dnsSubdomain);
}

function validateQuality(status: Stored<PodStatus>, old: Stored<PodStatus>): FieldError[] {
  const quality = status.qosClass ?? '';
  if (quality === (old.qosClass ?? '')) return [];
  return [invalid('status.qosClass', quality, 'field is immutable')];
}

/** A list of statuses of containers. */
interface StatusList {
  /** The member with the statuses. */
  readonly list: string;
  /** The restart policy of the containers. */
  readonly policy: string;
  /** The names of containers that restart regardless of the policy. */
  readonly restarting?: ReadonlySet<string>;
}

/** Rejects the restart of a container that the restart policy never restarts. */
function* validateTransitions(
  status: JsonObject,
  before: JsonObject,
  { list, policy, restarting }: StatusList,
): Generator<void, FieldError[]> {
  if (policy === 'Always') return [];
  const running = new Map<string, number>();
  yield* forEachSteps(objectsAt(status, list), (containerStatus) => {
    const name = textAt(containerStatus, 'name');
    if (!objectAt(containerStatus, 'state', 'terminated'))
      running.set(name, (running.get(name) ?? 0) + 1);
  });
  let pairs = 0;
  return yield* flatMapSteps(objectsAt(before, list), (old, index) => {
    const ended = objectAt(old, 'state', 'terminated');
    const name = textAt(old, 'name');
    if (ended === undefined || restarting?.has(name) === true) return [];
    if (policy === 'OnFailure' && numberAt(ended, 'exitCode') !== 0) return [];
    const restarted = Math.min(running.get(name) ?? 0, pairErrorsMax - pairs);
    pairs += restarted;
    const detail = 'may not be transitioned to non-terminated state';
    return Array.from({ length: restarted }, () =>
      forbiddenField(`status.${list}[${index}].state`, detail),
    );
  });
}

/** Validates that each status names a claim in the spec, and each claim once. */
function validateClaimStatuses(
  status: Stored<PodStatus>,
  spec: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const claimNames = new Set(
    (spec.resourceClaims ?? []).map((resourceClaim) => resourceClaim.name ?? ''),
  );
  const seen = new Set<string>();
  return flatMapSteps(status.resourceClaimStatuses ?? [], (resourceClaimStatus, index) => {
    const field = `status.resourceClaimStatuses[${index}].name`;
    const name = resourceClaimStatus.name ?? '';
    const detail = 'must match the name of an entry in `spec.resourceClaims`';
    const errors = claimNames.has(name)
      ? []
      : [invalidGo(field, () => JSON.stringify(name), detail)];
    if (seen.has(name)) errors.push(duplicate(field, name));
    seen.add(name);
    const claim = resourceClaimStatus.resourceClaimName;
    return typeof claim === 'string'
      ? [...errors, ...ruleErrors(field, claim, dnsSubdomain)]
      : errors;
  });
}

interface AddressList {
  readonly list: string;
  /** The Go type of the items. */
  readonly type: string;
}

/** Validates a list of addresses: at most one of each family. */
function* validateAddresses(
  status: Stored<PodStatus>,
  { list, type }: AddressList,
): Generator<void, FieldError[]> {
  const addresses = addressesOf(status, list);
  const field = `status.${list}`;
  const errors = yield* flatMapSteps(addresses, (address, index) =>
    validateIp(`${field}[${index}]`, address),
  );
  if (addresses.length < 2) return errors;
  const shown = (ip: string) => `core.${type}{IP:${JSON.stringify(ip)}}`;
  const isRepeated = seenBefore();
  const duplicates = yield* flatMapSteps(addresses, (ip, index) =>
    isRepeated(ip) ? [duplicateGo(`${field}[${index}]`, shown(ip))] : [],
  );
  const show = () => goStructs(`core.${type}`, addresses, shown);
  const tooMany = yield* validateFamilies(addresses, { field, show });
  // kube-apiserver checks these in different orders for pods and hosts.
  return list === 'hostIPs'
    ? [...errors, ...duplicates, ...tooMany]
    : [...errors, ...tooMany, ...duplicates];
}

const addressesOf = (status: Stored<PodStatus>, list: string) =>
  objectsAt(status, list).map((address) => textAt(address, 'ip'));

function* validateFamilies(
  addresses: readonly string[],
  { field, show }: { field: string; show: () => string },
): Generator<void, FieldError[]> {
  const families = yield* flatMapSteps(addresses, (ip) => [parseIpAddress(ip)?.family]);
  const unreadable = families.indexOf(undefined);
  const detail = 'may specify no more than one IP for each IP family';
  const tooMany = invalidGo(field, show, detail);
  if (unreadable >= 0) {
    const shownIp = `invalid IP[${unreadable}]: ${addresses[unreadable]}`;
    const why = `failed to check for dual stack with error:${shownIp}`;
    return [internal(field, why), tooMany];
  }
  return addresses.length === 2 && families[0] !== families[1] ? [] : [tooMany];
}

function* validateHostAddresses(status: Stored<PodStatus>): Generator<void, FieldError[]> {
  const [first] = addressesOf(status, 'hostIPs');
  if (first === undefined) return [];
  const detail = 'must be equal to `hostIP`';
  const differs = (status.hostIP ?? '') !== first;
  return [
    ...(differs ? [invalid('status.hostIPs[0].ip', first, detail)] : []),
    ...(yield* validateAddresses(status, { list: 'hostIPs', type: 'HostIP' })),
  ];
}

/** Validates the users and the allocated resources of containers in a status. */
function* validateReportedResources(
  status: Stored<PodStatus>,
  spec: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const isWindows = (spec.os?.name ?? '') === 'windows';
  const isLinux = (spec.os?.name ?? '') === 'linux' || spec.os === undefined;
  const lists = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'];
  const users = yield* flatMapSteps(lists, (list) =>
    flatMapSteps(objectsAt(status, list), (containerStatus, index) => {
      const user = objectAt(containerStatus, 'user', 'linux');
      const field = `status.${list}[${index}].linux`;
      if (user === undefined) return [];
      if (isWindows) return [forbiddenField(field, 'cannot be set for a windows pod')];
      return isLinux ? validateUser(user, field) : [];
    }),
  );
  return [
    ...users,
    ...(yield* validateAllocated(status, spec, { list: 'containerStatuses', of: 'containers' })),
    ...(yield* validateAllocated(status, spec, {
      list: 'initContainerStatuses',
      of: 'initContainers',
    })),
    ...(yield* flatMapSteps(status.ephemeralContainerStatuses ?? [], (containerStatus, index) => {
      const field = `status.ephemeralContainerStatuses[${index}].allocatedResourcesStatus`;
      const isEmpty = (containerStatus.allocatedResourcesStatus ?? []).length === 0;
      return isEmpty ? [] : [forbiddenField(field, 'must not be specified in container status')];
    })),
  ];
}

const idMax = 2147483647;

function* validateUser(user: Stored<ContainerUser>, path: string): Generator<void, FieldError[]> {
  const check = (field: string, value: number) =>
    inRange(value, 0, idMax).map((message) => invalidGo(field, () => String(value), message));
  return [
    ...check(`${path}.uid`, numberAt(user, 'uid')),
    ...check(`${path}.gid`, numberAt(user, 'gid')),
    ...(yield* flatMapSteps(listAt(user, 'supplementalGroups'), (group, index) =>
      check(`${path}.supplementalGroups[${index}]`, Number(group)),
    )),
  ];
}

function validateAllocated(
  status: Stored<PodStatus>,
  spec: Stored<PodSpec>,
  { list, of }: { readonly list: string; readonly of: string },
): Generator<void, FieldError[]> {
  const containerByName = new Map(
    objectsAt(spec, of).map((container) => [textAt(container, 'name'), container]),
  );
  const claimsOf = claimsByContainer();
  return flatMapSteps(objectsAt(status, list), (containerStatus, index) =>
    flatMapSteps(
      objectsAt(containerStatus, 'allocatedResourcesStatus'),
      function* (allocated, number) {
        const field = `status.${list}[${index}].allocatedResourcesStatus[${number}]`;
        // A status may be reported before its container exists.
        const container = containerByName.get(textAt(containerStatus, 'name'));
        return [
          ...(container === undefined
            ? []
            : validateAllocatedName(allocated, { container, claimsOf, field: `${field}.name` })),
          ...(yield* validateHealth(allocated, `${field}.resources`)),
        ];
      },
    ),
  );
}

/**
 * Returns a function that returns the claims of a container by their names in a status; the result
 * for each container is cached.
 */
function claimsByContainer(): (container: JsonObject) => ReadonlySet<string> {
  const cache = new Map<JsonObject, ReadonlySet<string>>();
  return (container) => {
    const cachedClaims = cache.get(container);
    if (cachedClaims !== undefined) return cachedClaims;
    const claims = objectsAt(container, 'resources', 'claims').map((claim) => {
      const request = textAt(claim, 'request');
      return `claim:${textAt(claim, 'name')}${request === '' ? '' : `/${request}`}`;
    });
    const names = new Set(claims);
    cache.set(container, names);
    return names;
  };
}

function validateAllocatedName(
  allocated: JsonObject,
  of: {
    readonly container: JsonObject;
    readonly claimsOf: (container: JsonObject) => ReadonlySet<string>;
    readonly field: string;
  },
): FieldError[] {
  const { container, claimsOf, field } = of;
  const name = textAt(allocated, 'name');
  if (!name.startsWith('claim:')) {
    if (at(container, 'resources', 'requests', name) !== undefined) return [];
    return [invalidGo(field, () => name, "must match one of the container's resource requests")];
  }
  const detail =
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' " +
    "or 'claim:<claimName>' if request is empty";
  return claimsOf(container).has(name) ? [] : [invalidGo(field, () => name, detail)];
}

const states = ['Healthy', 'Unhealthy', 'Unknown'];

function validateHealth(allocated: JsonObject, path: string): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(objectsAt(allocated, 'resources'), (resource, index) => {
    const field = `${path}[${index}]`;
    const id = textAt(resource, 'resourceID');
    const health = textAt(resource, 'health');
    const errors = states.includes(health) ? [] : [notSupported(`${field}.health`, health, states)];
    if (seen.has(id)) errors.push(duplicate(`${field}.resourceID`, id));
    seen.add(id);
    return errors;
  });
}
