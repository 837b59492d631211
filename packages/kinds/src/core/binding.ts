import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';

/** Binding: assigns a Pod to a node; the older alternative to the Pod's `binding` subresource. */
export function binding(dialect: Dialect): ResourceDef {
  const def = virtualKind({ dialect, facts: 'core', kind: 'Binding', scope: 'Namespaced' });
  return {
    ...def,
    example: () => ({
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'example', namespace: 'default' },
      target: { kind: 'Node', name: 'node-1' },
    }),
  };
}
