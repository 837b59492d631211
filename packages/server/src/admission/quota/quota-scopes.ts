import { listAt, objectAt, objectsAt, type Stored } from '@wheelhouse/kinds';
import type { PodSpec } from '@wheelhouse/kinds/types/core/v1';

/** What a quota demands of the objects it counts. */
export interface ScopeRequirement {
  readonly scopeName: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** Whether a requirement selects pods of a priority class; an empty name is none. */
export function selectsPriority(
  { operator, values }: ScopeRequirement,
  className: string,
): boolean {
  switch (operator) {
    case 'In':
      return className !== '' && values.includes(className);
    case 'NotIn':
      return className === '' || !values.includes(className);
    case 'Exists':
      return className !== '';
    case 'DoesNotExist':
      return className === '';
    default:
      return false;
  }
}

/** Whether a pod wants to be near, or away from, pods of other namespaces. */
export function crossesNamespaces(spec: Stored<PodSpec>): boolean {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const terms = ['podAffinity', 'podAntiAffinity'].flatMap((member) => [
    ...objectsAt(spec, 'affinity', member, required),
    ...objectsAt(spec, 'affinity', member, preferred).map(
      (one) => objectAt(one, 'podAffinityTerm') ?? {},
    ),
  ]);
  return terms.some(
    (term) =>
      listAt(term, 'namespaces').length > 0 || objectAt(term, 'namespaceSelector') !== undefined,
  );
}
