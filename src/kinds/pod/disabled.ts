import type { JsonObject } from '../../base/json.ts';
import { textAt } from '../cells.ts';
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
  dropImages(spec, old);
  dropTrustBundles(spec, old);
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

/** Volumes of images go whole, and with them all that mounts them. */
function dropImages(spec: JsonObject, old: JsonObject | undefined): void {
  const isImage = (volume: JsonObject) => isSet(volume, 'image');
  if (objectsAt(old, 'volumes').some(isImage)) return;
  const volumes = objectsAt(spec, 'volumes');
  const dropped = new Set(volumes.filter(isImage).map((volume) => textAt(volume, 'name')));
  if (dropped.size === 0) return;
  setList(
    spec,
    'volumes',
    volumes.filter((volume) => !isImage(volume)),
  );
  for (const { container } of eachContainer(spec, '')) {
    const mounts = objectsAt(container, 'volumeMounts');
    const kept = mounts.filter((mount) => !dropped.has(textAt(mount, 'name')));
    if (kept.length < mounts.length) setList(container, 'volumeMounts', kept);
  }
}

function setList(holder: JsonObject, name: string, list: JsonObject[]): void {
  if (list.length === 0) delete holder[name];
  else holder[name] = list;
}

function dropTrustBundles(spec: JsonObject, old: JsonObject | undefined): void {
  const sourcesOf = (volume: JsonObject) => objectsAt(volume, 'projected', 'sources');
  const isUsed = objectsAt(old, 'volumes').some((volume) =>
    sourcesOf(volume).some((source) => isSet(source, 'clusterTrustBundle')),
  );
  if (isUsed) return;
  for (const volume of objectsAt(spec, 'volumes')) {
    for (const source of sourcesOf(volume)) delete source['clusterTrustBundle'];
  }
}

/** The template of a controller's pods. */
export const templateOf = (object: JsonObject | undefined): JsonObject | undefined =>
  objectAt(object, 'spec', 'template');

/** Drops from a controller's template what belongs to features that are off. */
export function dropDisabledOfTemplate(object: JsonObject, old?: JsonObject): void {
  dropDisabled(objectAt(templateOf(object), 'spec'), objectAt(templateOf(old), 'spec'));
}
