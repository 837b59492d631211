import { objectsAt, textAt } from '@wheelhouse/kinds';
import type { AdmissionPlugin } from '../chain.ts';
import { writtenPod } from '../pods.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

/** Restricts required anti-affinity to the topology of a single node (ADM-1). */
export function limitPodHardAntiAffinityTopology({ dialect }: AdmissionTools): AdmissionPlugin {
  const hostname = dialect.label('hostname');
  const member = 'requiredDuringSchedulingIgnoredDuringExecution';
  return {
    name: 'LimitPodHardAntiAffinityTopology',
    validate(call) {
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      for (const term of objectsAt(pod, 'spec', 'affinity', 'podAntiAffinity', member)) {
        const key = textAt(term, 'topologyKey');
        if (key === hostname) continue;
        throw refusal(
          call,
          `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${key} but only key ${hostname} is allowed`,
        );
      }
      return undefined;
    },
  };
}
