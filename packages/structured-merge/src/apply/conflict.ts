import {
  boundedList,
  compareText,
  omittedText,
  StatusError,
  shortened,
  shownPathMax,
} from '@wheelhouse/machinery';
import { parseIdentity } from './managed-fields.ts';
import { showPath } from './path-element.ts';
import type { Conflict } from './updater.ts';

/** A conflict as an answer shows it. */
interface ShownConflict {
  readonly manager: string;
  readonly path: string;
}

/**
 * The 409 of an apply that would take fields from others, one cause per field (SSA-3). Of more
 * conflicts than an answer may list (TRUST-3) it has the first; a last line tells how many follow.
 */
export function applyConflict(conflicts: readonly Conflict[]): StatusError {
  const made: ShownConflict[] = [];
  const { items, omitted } = boundedList(conflicts, ({ manager, path }) => {
    const one = { manager, path: shortened(showPath(path), shownPathMax) };
    made.push(one);
    return one.path + one.path + showManager(manager);
  });
  const shown = made.slice(0, items.length);
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: conflictMessage(shown, omitted),
    details: {
      causes: shown.map(({ manager, path }) => ({
        reason: 'FieldManagerConflict',
        message: `conflict with ${showManager(manager)}`,
        field: path,
      })),
    },
  });
}

function conflictMessage(conflicts: readonly ShownConflict[], omitted: number): string {
  const [only] = conflicts;
  if (only !== undefined && conflicts.length + omitted === 1) {
    return `Apply failed with 1 conflict: conflict with ${showManager(only.manager)}: ${only.path}`;
  }
  const byManager = new Map<string, string[]>();
  for (const { manager, path } of conflicts) {
    const lines = byManager.get(manager) ?? [];
    lines.push(`- ${path}`);
    byManager.set(manager, lines);
  }
  const managers = [...byManager.keys()].sort(compareText);
  const lines = managers.flatMap((manager) => [
    `conflicts with ${showManager(manager)}:`,
    ...byManager.get(manager)!,
  ]);
  if (omitted > 0) lines.push(omittedText(omitted, 'conflict'));
  return `Apply failed with ${conflicts.length + omitted} conflicts: ${lines.join('\n')}`;
}

/** `"kubectl" with subresource "status" using apps/v1`; appliers are named without a version. */
function showManager(identity: string): string {
  const { manager, subresource, operation, apiVersion } = parseIdentity(identity);
  const name = JSON.stringify(manager ?? '');
  const through =
    subresource === undefined ? name : `${name} with subresource ${JSON.stringify(subresource)}`;
  return operation === 'Update' ? `${through} using ${apiVersion ?? ''}` : through;
}
