import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import { objectAt } from '../rules/fill.ts';

/**
 * A kind's defaults, after the annotations are left out in which pods had their init containers
 * before there was a member for them: upstream drops them wherever it meets them. `path` leads to
 * the template in an object that has one, and is empty for a pod itself.
 */
export function leavingOldInitContainers<O extends JsonObject>(
  dialect: Dialect,
  path: readonly string[],
  defaults: (object: O) => void,
): (object: O) => void {
  const keys = ['alpha', 'beta'].flatMap((stage) =>
    ['init-containers', 'init-container-statuses'].map((name) =>
      dialect.label(name, `pod.${stage}`),
    ),
  );
  return (object) => {
    const metadata = objectAt(object, ...path, 'metadata');
    const annotations = objectAt(metadata, 'annotations');
    if (metadata !== undefined && annotations !== undefined) {
      const found = keys.filter((key) => Object.hasOwn(annotations, key));
      for (const key of found) delete annotations[key];
      const isBare = found.length > 0 && Object.keys(annotations).length === 0;
      if (isBare) delete metadata['annotations'];
    }
    defaults(object);
  };
}
