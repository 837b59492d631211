import { ensure, objectsAt, textAt } from '@wheelhouse/kinds';
import type { AdmissionPlugin } from '../chain.ts';
import type { AdmissionTools } from '../tools.ts';

/** Taints every new node as not ready until a controller removes the taint (ADM-1). */
export function taintNodesByCondition({ dialect }: AdmissionTools): AdmissionPlugin {
  const key = dialect.label('not-ready', 'node');
  const effect = 'NoSchedule';
  return {
    name: 'TaintNodesByCondition',
    mutate({ operation, target, object }) {
      if (operation !== 'CREATE' || target.subresource !== '' || object === undefined) {
        return undefined;
      }
      const spec = ensure(object, 'spec');
      const taints = objectsAt(spec, 'taints');
      const isThere = taints.some(
        (taint) => textAt(taint, 'key') === key && textAt(taint, 'effect') === effect,
      );
      if (!isThere) spec['taints'] = [...taints, { key, effect }];
      return undefined;
    },
  };
}
