import { compareText } from '../../base/text-order.ts';
import { StatusError } from '../../meta/status.ts';
import { parseIdentity } from './managed-fields.ts';
import { showPath } from './path-element.ts';
import type { Conflict } from './updater.ts';

/** The 409 of an apply that would take fields from others, one cause per field (SSA-3). */
export function applyConflict(conflicts: readonly Conflict[]): StatusError {
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: conflictMessage(conflicts),
    details: {
      causes: conflicts.map(({ manager, path }) => ({
        reason: 'FieldManagerConflict',
        message: `conflict with ${showManager(manager)}`,
        field: showPath(path),
      })),
    },
  });
}

function conflictMessage(conflicts: readonly Conflict[]): string {
  const [only] = conflicts;
  if (only !== undefined && conflicts.length === 1) {
    const what = `${showManager(only.manager)}: ${showPath(only.path)}`;
    return `Apply failed with 1 conflict: conflict with ${what}`;
  }
  const byManager = new Map<string, string[]>();
  for (const { manager, path } of conflicts) {
    const lines = byManager.get(manager) ?? [];
    lines.push(`- ${showPath(path)}`);
    byManager.set(manager, lines);
  }
  const managers = [...byManager.keys()].sort(compareText);
  const lines = managers.flatMap((manager) => [
    `conflicts with ${showManager(manager)}:`,
    ...byManager.get(manager)!,
  ]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}

/** `"kubectl" with subresource "status" using apps/v1`; appliers are named without a version. */
function showManager(identity: string): string {
  const { manager, subresource, operation, apiVersion } = parseIdentity(identity);
  const name = JSON.stringify(manager ?? '');
  const through =
    subresource === undefined ? name : `${name} with subresource ${JSON.stringify(subresource)}`;
  return operation === 'Update' ? `${through} using ${apiVersion ?? ''}` : through;
}
