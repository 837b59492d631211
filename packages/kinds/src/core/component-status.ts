import { type Dialect, pathSegment } from '@wheelhouse/machinery';
import { column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ComponentCondition, ComponentStatus } from '../gen/types/core/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';

/** ComponentStatus: the health of the control plane's parts, computed on request, never stored. */
export function componentStatus(dialect: Dialect): ResourceDef {
  const def = defineKind<ComponentStatus>({
    dialect,
    facts: 'core',
    kind: 'ComponentStatus',
    scope: 'Cluster',
    shortNames: ['cs'],
    verbs: ['get', 'list'],
    versions: [
      {
        version: 'v1',
        deprecationWarning: 'v1 ComponentStatus is deprecated in v1.19+',
        columns: [
          nameColumn,
          column('Status', statusCell, { description: 'Health of the component.' }),
          text('Message', 'message', 'Message of the component.'),
          text('Error', 'error', 'Error of the health check.'),
        ],
      },
    ],
    strategy: { validateName: pathSegment },
    example: () => ({
      metadata: { name: 'scheduler' },
      conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
    }),
  });
  return { ...def, isComputed: true };
}

function statusCell(object: Stored<ComponentStatus>): string {
  const status = healthy(object)?.status ?? '';
  if (status === 'True') return 'Healthy';
  return status === 'False' ? 'Unhealthy' : 'Unknown';
}

const healthy = (object: Stored<ComponentStatus>): Stored<ComponentCondition> | undefined =>
  (object.conditions ?? []).find((condition) => (condition.type ?? '') === 'Healthy');

const text = (name: string, member: 'message' | 'error', description: string) =>
  column<Stored<ComponentStatus>>(name, (object) => healthy(object)?.[member] ?? '', {
    description,
  });
