import { containersOf, objectAt, objectsAt, type Stored, textAt } from '@wheelhouse/kinds';
import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import { type JsonObject, notSupported } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { refusal } from '../tools.ts';

/**
 * Forces every image of a container or volume to be pulled, so that only users with access to it
 * can run it (ADM-1).
 */
export const alwaysPullImages: AdmissionPlugin = {
  name: 'AlwaysPullImages',
  mutate(call) {
    for (const { source, member } of pullsOf(call)) source[member] = 'Always';
    return undefined;
  },
  validate(call) {
    for (const { source, member, place } of pullsOf(call)) {
      const policy = textAt(source, member);
      if (policy === 'Always') continue;
      const path = `spec.${place}.${member}`;
      const { message } = notSupported(path, policy, ['Always']);
      throw refusal(call, `${path}: ${message}`);
    }
    return undefined;
  },
};

/** A container or an image volume, and its member that holds the pull policy. */
interface Pull {
  readonly source: JsonObject;
  readonly member: string;
  /** The path of the source below the spec. */
  readonly place: string;
}

/** All images of a pod; none for an update without a new image, which keeps the pull policies. */
function pullsOf({ target, operation, object, old }: AdmissionCall): readonly Pull[] {
  const isPod = target.subresource === '' || target.subresource === 'ephemeralcontainers';
  if (!isPod || operation === 'DELETE' || object === undefined) return [];
  const imagesOf = (pod: Stored<Pod> | undefined) =>
    containersOf(pod?.spec).map((container) => textAt(container, 'image'));
  const oldImages = new Set(imagesOf(old));
  if (operation !== 'CREATE' && imagesOf(object).every((image) => oldImages.has(image))) return [];
  const containers = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    objectsAt(object, 'spec', list).map((source, index) => ({
      source,
      member: 'imagePullPolicy',
      place: `${list}[${index}]`,
    })),
  );
  const volumes = objectsAt(object, 'spec', 'volumes').flatMap((volume, index) => {
    const source = objectAt(volume, 'image');
    if (source === undefined) return [];
    return [{ source, member: 'pullPolicy', place: `volumes[${index}].image` }];
  });
  return [...containers, ...volumes];
}
