import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';

/** Kinds that no current version is left of. */
export function endedKinds(_dialect: Dialect): readonly ResourceDef[] {
  return [];
}
