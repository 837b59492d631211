import type { JsonObject } from '../../base/json.ts';
import { objectAt, objectsAt } from '../fill.ts';
import { isSet } from './fields.ts';
import { eachContainer } from './visit.ts';

/**
 * Members whose features release 1.32 has off: what a new spec says of them is dropped, unless the
 * old one has them already.
 */
const ofSpec = ['hostUsers', 'resourceClaims', 'resources'];
const ofSecurity = ['seLinuxChangePolicy', 'supplementalGroupsPolicy'];

/** Drops from a pod's spec, wherever it stands, what belongs to features that are off. */
export function dropDisabled(spec: JsonObject | undefined, old?: JsonObject): void {
  if (spec === undefined) return;
  dropMembers(spec, old, ofSpec);
  dropMembers(objectAt(spec, 'securityContext'), objectAt(old, 'securityContext'), ofSecurity);
  for (const volume of objectsAt(spec, 'volumes')) dropFromVolume(volume, old);
  const containers = eachContainer(spec, '');
  const before = eachContainer(old, '').map(({ container }) => container);
  const usesResize = before.some((container) => isSet(container, 'resizePolicy'));
  const usesClaims = isSet(old, 'resourceClaims');
  const unmasked = before.some(
    (container) => objectAt(container, 'securityContext')?.['procMount'] === 'Unmasked',
  );
  for (const { container } of containers) {
    if (!usesResize) delete container['resizePolicy'];
    const resources = objectAt(container, 'resources');
    if (!usesClaims && resources !== undefined) delete resources['claims'];
    const context = objectAt(container, 'securityContext');
    // Not dropped, as older objects have it written.
    if (!unmasked && isSet(context, 'procMount') && context) context['procMount'] = 'Default';
  }
}

function dropMembers(
  holder: JsonObject | undefined,
  old: JsonObject | undefined,
  names: readonly string[],
): void {
  if (holder === undefined) return;
  for (const name of names) if (!isSet(old, name)) delete holder[name];
}

function dropFromVolume(volume: JsonObject, old: JsonObject | undefined): void {
  const before = objectsAt(old, 'volumes');
  if (!before.some((one) => isSet(one, 'image'))) delete volume['image'];
  const usesBundles = before.some((one) =>
    objectsAt(one, 'projected', 'sources').some((source) => isSet(source, 'clusterTrustBundle')),
  );
  if (usesBundles) return;
  for (const source of objectsAt(volume, 'projected', 'sources')) {
    delete source['clusterTrustBundle'];
  }
}

const lists = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'];
const ofContainerStatus = ['allocatedResources', 'resources', 'allocatedResourcesStatus', 'user'];

/** Drops from a pod's status what belongs to features that are off. */
export function dropDisabledStatus(status: JsonObject | undefined): void {
  if (status === undefined) return;
  for (const name of ['resize', 'resourceClaimStatuses']) delete status[name];
  for (const one of lists.flatMap((list) => objectsAt(status, list))) {
    for (const name of ofContainerStatus) delete one[name];
  }
}

/** The template of a controller's pods. */
export const templateOf = (object: JsonObject | undefined): JsonObject | undefined =>
  objectAt(object, 'spec', 'template');

/** Drops from a controller's template what belongs to features that are off. */
export function dropDisabledOfTemplate(object: JsonObject, old?: JsonObject): void {
  dropDisabled(objectAt(templateOf(object), 'spec'), objectAt(templateOf(old), 'spec'));
}
