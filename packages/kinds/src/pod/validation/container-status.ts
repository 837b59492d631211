import {
  breaks,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  inRange,
  invalidGo,
  type JsonObject,
  notSupported,
} from '@wheelhouse/machinery';
import { at, listAt, numberAt, textAt } from '../../cells.ts';
import type { ContainerUser, PodSpec, PodStatus } from '../../gen/types/core/v1.ts';
import { objectAt, objectsAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';

/** What the status of a pod says of its claims, its containers' users and what they were given. */
export function validateGiven(status: Stored<PodStatus>, spec: Stored<PodSpec>): FieldError[] {
  const windows = (spec.os?.name ?? '') === 'windows';
  const linux = (spec.os?.name ?? '') === 'linux' || spec.os === undefined;
  const lists = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'];
  const users = lists.flatMap((list) =>
    objectsAt(status, list).flatMap((one, index) => {
      const user = objectAt(one, 'user', 'linux');
      const field = `status.${list}[${index}].linux`;
      if (user === undefined) return [];
      if (windows) return [forbiddenField(field, 'cannot be set for a windows pod')];
      return linux ? validateUser(user, field) : [];
    }),
  );
  return [
    ...users,
    ...validateAllocated(status, spec, { list: 'containerStatuses', of: 'containers' }),
    ...validateAllocated(status, spec, { list: 'initContainerStatuses', of: 'initContainers' }),
    ...(status.ephemeralContainerStatuses ?? []).flatMap((one, index) => {
      const field = `status.ephemeralContainerStatuses[${index}].allocatedResourcesStatus`;
      const isEmpty = (one.allocatedResourcesStatus ?? []).length === 0;
      return isEmpty ? [] : [forbiddenField(field, 'must not be specified in container status')];
    }),
  ];
}

/** Statuses name each claim once, by its name in the spec. */
export function validateClaimStatuses(
  status: Stored<PodStatus>,
  spec: Stored<PodSpec>,
): FieldError[] {
  const claimNames = new Set((spec.resourceClaims ?? []).map((one) => one.name ?? ''));
  const seen = new Set<string>();
  return (status.resourceClaimStatuses ?? []).flatMap((one, index) => {
    const field = `status.resourceClaimStatuses[${index}].name`;
    const name = one.name ?? '';
    const detail = 'must match the name of an entry in `spec.resourceClaims`';
    const errors = claimNames.has(name)
      ? []
      : [invalidGo(field, () => JSON.stringify(name), detail)];
    if (seen.has(name)) errors.push(duplicate(field, name));
    seen.add(name);
    const made = one.resourceClaimName;
    return typeof made === 'string' ? [...errors, ...breaks(field, made, dnsSubdomain)] : errors;
  });
}

const idMax = 2147483647;

function validateUser(user: Stored<ContainerUser>, path: string): FieldError[] {
  const check = (field: string, value: number) =>
    inRange(value, 0, idMax).map((message) => invalidGo(field, () => String(value), message));
  return [
    ...check(`${path}.uid`, numberAt(user, 'uid')),
    ...check(`${path}.gid`, numberAt(user, 'gid')),
    ...listAt(user, 'supplementalGroups').flatMap((group, index) =>
      check(`${path}.supplementalGroups[${index}]`, Number(group)),
    ),
  ];
}

function validateAllocated(
  status: Stored<PodStatus>,
  spec: Stored<PodSpec>,
  { list, of }: { readonly list: string; readonly of: string },
): FieldError[] {
  const named = new Map(objectsAt(spec, of).map((one) => [textAt(one, 'name'), one]));
  const claimsOf = claimsByContainer();
  return objectsAt(status, list).flatMap((one, index) =>
    objectsAt(one, 'allocatedResourcesStatus').flatMap((allocated, number) => {
      const field = `status.${list}[${index}].allocatedResourcesStatus[${number}]`;
      // A status may come before the container that it is about.
      const container = named.get(textAt(one, 'name'));
      return [
        ...(container === undefined
          ? []
          : validateAsked(allocated, { container, claimsOf, field: `${field}.name` })),
        ...validateHealth(allocated, `${field}.resources`),
      ];
    }),
  );
}

/** The claims of containers, as statuses name them; those of one container are listed once. */
function claimsByContainer(): (container: JsonObject) => ReadonlySet<string> {
  const listed = new Map<JsonObject, ReadonlySet<string>>();
  return (container) => {
    const cachedClaims = listed.get(container);
    if (cachedClaims !== undefined) return cachedClaims;
    const claims = objectsAt(container, 'resources', 'claims').map((claim) => {
      const request = textAt(claim, 'request');
      return `claim:${textAt(claim, 'name')}${request === '' ? '' : `/${request}`}`;
    });
    const names = new Set(claims);
    listed.set(container, names);
    return names;
  };
}

function validateAsked(
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

function validateHealth(allocated: JsonObject, path: string): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(allocated, 'resources').flatMap((resource, index) => {
    const field = `${path}[${index}]`;
    const id = textAt(resource, 'resourceID');
    const health = textAt(resource, 'health');
    const errors = states.includes(health) ? [] : [notSupported(`${field}.health`, health, states)];
    if (seen.has(id)) errors.push(duplicate(`${field}.resourceID`, id));
    seen.add(id);
    return errors;
  });
}
