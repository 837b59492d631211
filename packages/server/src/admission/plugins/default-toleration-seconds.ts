import { objectsAt, textAt } from '@wheelhouse/kinds';
import type { AdmissionPlugin } from '../chain.ts';
import { specOf, writtenPod } from '../pods.ts';
import type { AdmissionTools } from '../tools.ts';

/**
 * Adds tolerations for unready and unreachable nodes to pods without their own (ADM-1): for five
 * minutes, or as flags say.
 */
export function defaultTolerationSeconds(tools: AdmissionTools): AdmissionPlugin {
  const { dialect, settings } = tools;
  const added = [
    [dialect.label('not-ready', 'node'), settings.notReadyTolerationSeconds],
    [dialect.label('unreachable', 'node'), settings.unreachableTolerationSeconds],
  ] as const;
  return {
    name: 'DefaultTolerationSeconds',
    mutate(call) {
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      if (pod === undefined) return undefined;
      const spec = specOf(pod);
      const present = objectsAt(spec, 'tolerations');
      const bears = (key: string) =>
        present.some((toleration) => {
          const [own, effect] = [textAt(toleration, 'key'), textAt(toleration, 'effect')];
          return (own === key || own === '') && (effect === 'NoExecute' || effect === '');
        });
      const missing = added.filter(([key]) => !bears(key));
      if (missing.length === 0) return undefined;
      spec['tolerations'] = [
        ...present,
        ...missing.map(([key, tolerationSeconds]) => ({
          key,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds,
        })),
      ];
      return undefined;
    },
  };
}
