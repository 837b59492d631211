import type { Dialect } from '../../dialect.ts';
import { olderApps } from './apps.ts';
import type { OlderKind, OlderKinds } from './contract.ts';
import { unchangedKinds } from './unchanged.ts';

const groups: readonly OlderKinds[] = [unchangedKinds, olderApps];

/** Every version that a release has removed, by kind (VER-2). */
export function olderKinds(dialect: Dialect): readonly OlderKind[] {
  return groups.flatMap((group) => group(dialect));
}
