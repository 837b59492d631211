import type { Dialect } from '@wheelhouse/machinery';
import { defineKind } from './define.ts';
import type { ResourceDef } from './resource-def.ts';

/**
 * A kind that is only asked: POST is its one verb, its answer is the object with the status filled
 * in, and nothing is stored (API-6).
 */
export function virtualKind(options: {
  readonly dialect: Dialect;
  /** Directory of the group's facts. */
  readonly facts: string;
  readonly kind: string;
  readonly scope?: ResourceDef['scope'];
  readonly spec?: object;
  /** Versions besides `v1`. */
  readonly olderVersions?: readonly string[];
}): ResourceDef {
  const { dialect, facts, kind, scope = 'Cluster', spec, olderVersions = [] } = options;
  const def = defineKind({
    dialect,
    facts,
    kind,
    resource: `${kind.toLowerCase()}s`,
    scope,
    verbs: ['create'],
    versions: ['v1', ...olderVersions].map((version) => ({ version })),
    strategy: { validateName: () => [] },
    example: () => ({
      apiVersion: `${dialect.group(facts)}/v1`,
      kind,
      metadata: scope === 'Namespaced' ? { namespace: 'default' } : {},
      ...(spec === undefined ? {} : { spec: { ...spec } }),
    }),
  });
  return { ...def, isVirtual: true };
}
