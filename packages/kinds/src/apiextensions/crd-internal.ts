import { jsonEqual } from '@wheelhouse/machinery';
import type { Crd, CrdColumn, CrdSpec, CrdSubresources, CrdVersion } from '../custom/definition.ts';

type Selectable = NonNullable<CrdVersion['selectableFields']>;

/** What a definition says once for all versions, or once per version. */
interface Shared {
  readonly schema?: CrdVersion['schema'];
  readonly subresources?: CrdSubresources;
  readonly additionalPrinterColumns?: CrdColumn[];
  readonly selectableFields?: Selectable;
}

/**
 * The definition in the form upstream validates: what all versions have alike stands once, ahead of
 * them. Errors name that place (`spec.validation.openAPIV3Schema…`), and clients see it.
 */
export interface InternalSpec {
  readonly spec: CrdSpec;
  readonly top: Shared;
  readonly versions: readonly CrdVersion[];
}

const movable = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;

export function internalSpec(crd: Crd): InternalSpec {
  const { spec } = crd;
  const [first, ...others] = spec.versions;
  if (first === undefined) return { spec, top: {}, versions: [] };
  const top: Record<string, unknown> = {};
  const versions = spec.versions.map((version) => ({ ...version }));
  for (const name of movable) {
    if (!others.every((version) => jsonEqual(version[name], first[name]))) continue;
    if (first[name] !== undefined) top[name] = first[name];
    for (const version of versions) delete version[name];
  }
  return { spec, top: top as Shared, versions };
}
