import { type Dialect, dnsSubdomain, randomUuid } from '@wheelhouse/machinery';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { LimitRange } from '../gen/types/core/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { ensure, fill, fillAmounts, objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { limitRangeErrorSteps, validateLimitRange } from './limit-range-rules.ts';

/** A container's default limit is its maximum, its default request the limit or the minimum. */
const lists = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'];

function fillDefaults(object: Stored<LimitRange>): void {
  for (const limit of object.spec?.limits ?? []) {
    for (const list of lists) fillAmounts(objectAt(limit, list));
    if (limit.type !== 'Container') continue;
    fill(ensure(limit, 'default'), { ...limit.max });
    fill(ensure(limit, 'defaultRequest'), { ...limit.default });
    fill(ensure(limit, 'defaultRequest'), { ...limit.min });
    for (const list of ['default', 'defaultRequest'] as const) {
      if (Object.keys(limit[list] ?? {}).length === 0) delete limit[list];
    }
  }
}

/** LimitRange: bounds and defaults for what pods of a namespace may ask for. */
export function limitRange(dialect: Dialect): ResourceDef {
  return defineKind<LimitRange>({
    dialect,
    facts: 'core',
    kind: 'LimitRange',
    resource: 'limitranges',
    scope: 'Namespaced',
    shortNames: ['limits'],
    versions: [{ version: 'v1', defaults: fillDefaults, columns: [nameColumn, createdAtColumn] }],
    strategy: {
      metadataTold: { '': ['whole'] },
      validateName: dnsSubdomain,
      prepareForCreate: (_, object) => {
        const { metadata } = object;
        if ((metadata.name ?? '') === '') metadata.name = randomUuid();
      },
      validateCreate: (_, object) => validateLimitRange(object, dialect),
      validateUpdate: (_, object) => validateLimitRange(object, dialect),
      validateInSteps: (_, object) => limitRangeErrorSteps(object, dialect),
      allowCreateOnUpdate: true,
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'example', namespace: 'default' },
      spec: { limits: [{ type: 'Container', max: { cpu: '2' } }] },
    }),
  });
}
