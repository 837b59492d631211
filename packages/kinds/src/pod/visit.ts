import type { JsonObject } from '@wheelhouse/machinery';
import type { PodSpec } from '../gen/types/core/v1.ts';
import { objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

/** Where containers of a spec stand, in the order in which upstream walks them. */
const members = ['initContainers', 'containers', 'ephemeralContainers'];

export interface PlacedContainer {
  readonly container: JsonObject;
  /** `spec.containers[0]` */
  readonly path: string;
}

/** Every container of a spec with its path, those that prepare first. */
export function eachContainer(spec: Stored<PodSpec> | undefined, path: string): PlacedContainer[] {
  return members.flatMap((member) =>
    objectsAt(spec, member).map((container, index) => ({
      container,
      path: path === '' ? `${member}[${index}]` : `${path}.${member}[${index}]`,
    })),
  );
}
