import { objectAt, objectsAt } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import type { AdmissionPlugin } from '../chain.ts';
import { setTolerations, specOf, writtenPod } from '../pods.ts';
import type { AdmissionTools } from '../tools.ts';

/** Adds tolerations for nodes reserved for the extended resources that a pod requests (ADM-1). */
export function extendedResourceToleration({ dialect }: AdmissionTools): AdmissionPlugin {
  return {
    name: 'ExtendedResourceToleration',
    mutate(call) {
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      if (pod === undefined) return undefined;
      const spec = specOf(pod);
      const containers = [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')];
      const requestedNames = containers.flatMap((container) =>
        Object.keys(objectAt(container, 'resources', 'requests') ?? {}),
      );
      const extended = [...new Set(requestedNames)]
        .filter((name) => isExtended(name, dialect))
        .sort();
      if (extended.length === 0) return undefined;
      setTolerations(
        spec,
        extended.map((key) => ({ key, operator: 'Exists', effect: 'NoSchedule' })),
      );
      return undefined;
    },
  };
}

/** Resource names of a domain other than the project's own are extended resources. */
function isExtended(name: string, dialect: Dialect): boolean {
  const isNative = !name.includes('/') || name.includes(dialect.label(''));
  return !isNative && !name.startsWith('requests.');
}
