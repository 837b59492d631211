import { containersOf, objectAt, objectsAt, type Stored, textAt } from '@wheelhouse/kinds';
import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import { notSupported } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { refusal } from '../tools.ts';

/** Forces every image to be pulled, so that only users with access to it can run it (ADM-1). */
export const alwaysPullImages: AdmissionPlugin = {
  name: 'AlwaysPullImages',
  mutate(call) {
    for (const container of concerned(call)) container['imagePullPolicy'] = 'Always';
    return undefined;
  },
  validate(call) {
    const spec = objectAt(call.object, 'spec');
    const checked = new Set(concerned(call));
    for (const member of ['initContainers', 'containers', 'ephemeralContainers']) {
      objectsAt(spec, member).forEach((container, index) => {
        const policy = textAt(container, 'imagePullPolicy');
        if (!checked.has(container) || policy === 'Always') return;
        const path = `spec.${member}[${index}].imagePullPolicy`;
        const { message } = notSupported(path, policy, ['Always']);
        throw refusal(call, `${path}: ${message}`);
      });
    }
    return undefined;
  },
};

/** An update without a new image keeps the pull policy. */
function concerned({ target, operation, object, old }: AdmissionCall) {
  const isPod = target.subresource === '' || target.subresource === 'ephemeralcontainers';
  if (!isPod || operation === 'DELETE' || object === undefined) return [];
  const containers = (pod: Stored<Pod> | undefined) => containersOf(pod?.spec);
  const oldImages = new Set(containers(old).map((one) => textAt(one, 'image')));
  const isNews = containers(object).some((one) => !oldImages.has(textAt(one, 'image')));
  return operation === 'CREATE' || isNews ? containers(object) : [];
}
