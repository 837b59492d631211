import type { Dialect } from '@wheelhouse/machinery';
import { fromFlatMetrics, toFlatMetrics } from '../autoscaling/kept-in-annotations.ts';
import { ensure, objectsAt } from '../rules/fill.ts';
import type { OlderKind } from './contract.ts';

/** HorizontalPodAutoscaler of the beta versions. */
export function olderAutoscaling(dialect: Dialect): readonly OlderKind[] {
  const facts = 'autoscaling';
  return [
    {
      facts,
      kind: 'HorizontalPodAutoscaler',
      older: [
        { facts, version: 'v2beta2' },
        {
          facts,
          version: 'v2beta1',
          defaults(object) {
            const spec = ensure(object, 'spec');
            if (objectsAt(spec, 'metrics').length > 0) return;
            const resource = { name: 'cpu', targetAverageUtilization: 80 };
            spec['metrics'] = [{ type: 'Resource', resource }];
          },
          toStorage: (object) => fromFlatMetrics(object, dialect),
          fromStorage: (object) => toFlatMetrics(object, dialect),
        },
      ],
    },
  ];
}
