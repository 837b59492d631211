import {
  breaks,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  internal,
  invalid,
  invalidGo,
  type JsonObject,
  pairErrorsMax,
  parseIpAddress,
  qualifiedName,
  repeats,
} from '@wheelhouse/machinery';
import { numberAt, textAt } from '../cells.ts';
import type { Pod, PodSpec, PodStatus } from '../gen/types/core/v1.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { annotationsOf, validateIp } from './fields.ts';
import { goStructs } from './go-text.ts';
import { newlyAllowed, type PodPorts } from './rules.ts';
import { validateAnnotationUpdate } from './update.ts';
import { isDeletionCost } from './validation/annotations.ts';
import { validateClaimStatuses, validateGiven } from './validation/container-status.ts';

/** What a node may say of a pod that it runs. */
export function validatePodStatus(
  object: Stored<Pod>,
  old: Stored<Pod>,
  ports: PodPorts,
): FieldError[] {
  const [status, before] = [object.status ?? {}, old.status ?? {}];
  const spec = old.spec ?? {};
  const policy = spec.restartPolicy ?? '';
  const restarting = restartable(spec);
  // The rest of what may be kept is about the spec, which stays as it is.
  const allowed = newlyAllowed(ports.features);
  const keepsCost = !isDeletionCost(annotationsOf(old), ports.dialect);
  const allow = { ...allowed, deletionCost: allowed.deletionCost || keepsCost };
  return [
    ...validateAnnotationUpdate(object, old, { ...ports, pod: object, allow }),
    ...validateConditions(status),
    ...validateNomination(status, before),
    ...validateQuality(status, before),
    ...validateTransitions({ status, before, list: 'containerStatuses', policy }),
    ...validateTransitions({ status, before, list: 'initContainerStatuses', policy, restarting }),
    // A node never restarts these, whatever the pod says of others.
    ...validateTransitions({
      status,
      before,
      list: 'ephemeralContainerStatuses',
      policy: 'Never',
    }),
    ...validateClaimStatuses(status, spec),
    ...validateAddresses(status, { list: 'podIPs', type: 'PodIP' }),
    ...validateHostAddresses(status),
    ...validateGiven(status, spec),
  ];
}

const ownConditions = new Set(['PodScheduled', 'Ready', 'Initialized']);

/** Upstream says `metadata` where `status` is meant. */
function validateConditions(status: Stored<PodStatus>): FieldError[] {
  return (status.conditions ?? []).flatMap((condition, index) => {
    const type = condition.type ?? '';
    if (ownConditions.has(type)) return [];
    return breaks(`metadata.conditions[${index}].Type`, type, qualifiedName);
  });
}

function validateNomination(status: Stored<PodStatus>, old: Stored<PodStatus>): FieldError[] {
  const name = status.nominatedNodeName ?? '';
  if (name === '' || name === (old.nominatedNodeName ?? '')) return [];
  return breaks('status.nominatedNodeName', name, dnsSubdomain);
}

function validateQuality(status: Stored<PodStatus>, old: Stored<PodStatus>): FieldError[] {
  const quality = status.qosClass ?? '';
  if (quality === (old.qosClass ?? '')) return [];
  return [invalid('status.qosClass', quality, 'field is immutable')];
}

const restartable = (spec: Stored<PodSpec>): ReadonlySet<string> =>
  new Set(
    (spec.initContainers ?? [])
      .filter((container) => (container.restartPolicy ?? '') === 'Always')
      .map((container) => container.name ?? ''),
  );

/** What has ended for good stays ended. */
function validateTransitions(change: {
  status: JsonObject;
  before: JsonObject;
  list: string;
  policy: string;
  restarting?: ReadonlySet<string>;
}): FieldError[] {
  const { status, before, list, policy, restarting } = change;
  if (policy === 'Always') return [];
  const running = new Map<string, number>();
  for (const one of objectsAt(status, list)) {
    const name = textAt(one, 'name');
    if (!objectAt(one, 'state', 'terminated')) running.set(name, (running.get(name) ?? 0) + 1);
  }
  let pairs = 0;
  return objectsAt(before, list).flatMap((old, index) => {
    const ended = objectAt(old, 'state', 'terminated');
    const name = textAt(old, 'name');
    if (ended === undefined || restarting?.has(name) === true) return [];
    if (policy === 'OnFailure' && numberAt(ended, 'exitCode') !== 0) return [];
    const revived = Math.min(running.get(name) ?? 0, pairErrorsMax - pairs);
    pairs += revived;
    const detail = 'may not be transitioned to non-terminated state';
    return Array.from({ length: revived }, () =>
      forbiddenField(`status.${list}[${index}].state`, detail),
    );
  });
}

interface AddressList {
  readonly list: string;
  /** Its items' type as Go prints them. */
  readonly type: string;
}

const addressesOf = (status: Stored<PodStatus>, list: string) =>
  objectsAt(status, list).map((one) => textAt(one, 'ip'));

/** One address of each family at most. */
function validateAddresses(status: Stored<PodStatus>, { list, type }: AddressList): FieldError[] {
  const addresses = addressesOf(status, list);
  const field = `status.${list}`;
  const errors = addresses.flatMap((one, index) => validateIp(`${field}[${index}]`, one));
  if (addresses.length < 2) return errors;
  const shown = (ip: string) => `core.${type}{IP:${JSON.stringify(ip)}}`;
  const isRepeated = repeats(addresses);
  const doubles = addresses.flatMap((ip, index) =>
    isRepeated[index] === true ? [duplicateGo(`${field}[${index}]`, shown(ip))] : [],
  );
  const show = () => goStructs(`core.${type}`, addresses, shown);
  const tooMany = validateFamilies(addresses, { field, show });
  // Upstream looks for these in one order for pods and in the other for hosts.
  return list === 'hostIPs'
    ? [...errors, ...doubles, ...tooMany]
    : [...errors, ...tooMany, ...doubles];
}

function validateFamilies(
  addresses: readonly string[],
  { field, show }: { field: string; show: () => string },
): FieldError[] {
  const families = new Set(addresses.map((ip) => parseIpAddress(ip)?.family));
  const unreadable = addresses.findIndex((ip) => parseIpAddress(ip) === undefined);
  const detail = 'may specify no more than one IP for each IP family';
  const tooMany = invalidGo(field, show, detail);
  if (unreadable >= 0) {
    const shownIp = `invalid IP[${unreadable}]: ${addresses[unreadable]}`;
    const why = `failed to check for dual stack with error:${shownIp}`;
    return [internal(field, why), tooMany];
  }
  return families.size === 2 && addresses.length === 2 ? [] : [tooMany];
}

const duplicateGo = (field: string, goText: string): FieldError => ({
  type: 'FieldValueDuplicate',
  field,
  message: `Duplicate value: ${goText}`,
});

function validateHostAddresses(status: Stored<PodStatus>): FieldError[] {
  const [first] = addressesOf(status, 'hostIPs');
  if (first === undefined) return [];
  const detail = 'must be equal to `hostIP`';
  const differs = (status.hostIP ?? '') !== first;
  return [
    ...(differs ? [invalid('status.hostIPs[0].ip', first, detail)] : []),
    ...validateAddresses(status, { list: 'hostIPs', type: 'HostIP' }),
  ];
}
