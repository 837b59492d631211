import { type ApiObject, type Dialect, dnsSubdomain, type FieldError } from '@wheelhouse/machinery';
import { ageColumn, nameColumn } from '../cells.ts';
import type { Features } from '../features/features.ts';
import { templateOf } from '../pod/disabled.ts';
import type { PodRules } from '../pod/rules.ts';
import { templateRules } from '../pod/template.ts';
import { nameWarnings, templateWarnings } from '../pod/warnings.ts';
import type { ColumnDef, Strategy } from '../resource-def.ts';
import { countColumn, validateCounts } from './workload.ts';

/** What a ReplicaSet and the older ReplicationController share. */

const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
const counts = ['replicas', ...parts, 'observedGeneration'];

/** Columns of a kind that keeps replicas, but for the wide ones. */
export const replicaColumns: readonly ColumnDef[] = [
  nameColumn,
  countColumn('Desired', ['spec', 'replicas'], 'Replicas wanted.'),
  countColumn('Current', ['status', 'replicas'], 'Replicas there are.'),
  countColumn('Ready', ['status', 'readyReplicas'], 'Replicas that are ready.'),
  ageColumn,
];

/**
 * The rules of a kind that keeps replicas of a pod template. `validate` judges the whole; `changed`
 * what may not change besides.
 */
export function replicaStrategy(
  { dialect, features }: { readonly dialect: Dialect; readonly features: Features },
  own: {
    readonly validate: (object: ApiObject, rules: PodRules) => FieldError[];
    readonly changed?: (object: ApiObject, old: ApiObject) => readonly FieldError[];
  },
) {
  return {
    validateName: dnsSubdomain,
    metadataTold: { '': ['whole', 'change'] },
    hasStatus: true,
    validateCreate: (_, object) =>
      own.validate(object, templateRules({ dialect, features }, undefined)),
    validateUpdate: (context, object, old) => {
      if (context.subresource === 'status') return validateCounts(object, counts, parts);
      const errors = own.validate(object, templateRules({ dialect, features }, templateOf(old)));
      // As upstream: what is wrong with the whole is told once as such, once as a change.
      return [...errors, ...errors, ...(own.changed?.(object, old) ?? [])];
    },
    warnings: (object, old) => [
      ...nameWarnings(object, old),
      ...templateWarnings(object, old, { path: ['spec', 'template'], dialect }),
    ],
  } satisfies Partial<Strategy>;
}
