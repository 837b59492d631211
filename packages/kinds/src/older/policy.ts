import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import type { OlderKind } from './contract.ts';

/**
 * PodDisruptionBudget: an empty selector used to select no pod and now selects all. Each is written
 * in the other's version as a requirement on a label that no pod has.
 */
export function olderPolicy(dialect: Dialect): readonly OlderKind[] {
  const key = dialect.label('deprecated-v1beta1-empty-selector-match', 'pdb');
  const requiring = (operator: string): JsonObject => ({ matchExpressions: [{ key, operator }] });
  const means = (selector: JsonObject, operator: string): boolean => {
    const [only, ...others] = objectsAt(selector, 'matchExpressions');
    const isOnly = only !== undefined && others.length === 0;
    const hasLabels = Object.keys(objectAt(selector, 'matchLabels') ?? {}).length > 0;
    return isOnly && !hasLabels && textAt(only, 'key') === key && only['operator'] === operator;
  };
  const swap = (object: JsonObject, to: { ifEmpty: string; empties: string }): void => {
    const spec = objectAt(object, 'spec');
    const selector = objectAt(spec, 'selector');
    if (spec === undefined || selector === undefined) return;
    if (isEmpty(selector)) spec['selector'] = requiring(to.ifEmpty);
    else if (means(selector, to.empties)) spec['selector'] = {};
  };
  return [
    {
      facts: 'policy',
      kind: 'PodDisruptionBudget',
      older: [
        {
          facts: 'policy',
          version: 'v1beta1',
          toStorage(object) {
            swap(object, { ifEmpty: 'Exists', empties: 'DoesNotExist' });
            return object;
          },
          fromStorage(object) {
            swap(object, { ifEmpty: 'DoesNotExist', empties: 'Exists' });
            return object;
          },
        },
      ],
    },
    {
      facts: 'policy',
      kind: 'PodSecurityPolicy',
      older: [{ facts: 'extensions', version: 'v1beta1' }],
    },
  ];
}

function isEmpty(selector: JsonObject): boolean {
  const labels = Object.keys(objectAt(selector, 'matchLabels') ?? {});
  return labels.length === 0 && objectsAt(selector, 'matchExpressions').length === 0;
}
