import {
  type ApiObject,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  invalidGo,
  type JsonObject,
  type JsonValue,
  joined,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import type { Features } from '../features/features.ts';
import type { LabelSelector } from '../gen/types/meta/v1.ts';
import { negative, validateNonNegative } from '../pod/fields.ts';
import { goIntOrString } from '../pod/go-text.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import { templateOf, templateRules } from '../pod/template.ts';
import { controllerWarnings } from '../pod/warnings.ts';
import type { ColumnDef, Findings, Stored, Strategy } from '../resource-def.ts';
import { errorSteps, reportedTwice, sortedKeys } from '../rules/checks.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';

/** Columns and rules that kinds with replicas of pods share. */

/** The columns of a kind with replicas, without the wide ones. */
export const replicaColumns: readonly ColumnDef[] = [
  nameColumn,
  countColumn('Desired', ['spec', 'replicas'], 'Desired number of replicas.'),
  countColumn('Current', ['status', 'replicas'], 'Current number of replicas.'),
  countColumn('Ready', ['status', 'readyReplicas'], 'Number of ready replicas.'),
  ageColumn,
];

/** A column of the whole number at `path`. */
export function countColumn(name: string, path: readonly string[], description: string): ColumnDef {
  return column(name, (object) => numberAt(object, ...path), { type: 'integer', description });
}

const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
const counts = ['replicas', ...parts, 'observedGeneration'];

/**
 * Returns the strategy of a kind that keeps replicas of a pod template running.
 * @param own.validate validates the whole object
 * @param own.changed validates an update of immutable fields
 */
export function replicaStrategy(
  { dialect, features }: { readonly dialect: Dialect; readonly features: Features },
  own: {
    readonly validate: (object: ApiObject, rules: PodRules) => Generator<void, FieldError[]>;
    readonly changed: (object: ApiObject, old: ApiObject) => Findings;
  },
) {
  return {
    validateName: dnsSubdomain,
    extraMetadataChecks: { '': ['whole', 'change'] },
    hasStatus: true,
    validateCreate: (_, object) => own.validate(object, newPodRules({ dialect, features })),
    *validateUpdate(context, object, old) {
      if (context.subresource === 'status') return validateCounts(object, counts, parts);
      const rules = yield* templateRules({ dialect, features }, templateOf(old));
      const errors = reportedTwice(yield* own.validate(object, rules));
      return joined(errors, yield* errorSteps(own.changed(object, old)));
    },
    warnings: (object, old) =>
      controllerWarnings(object, old, { path: ['spec', 'template'], dialect }),
  } satisfies Partial<Strategy>;
}

/**
 * Validates the counts of a status, which cannot be negative.
 * @param parts counts that cannot exceed `status.replicas`
 * @param options.availableOf name of the limit of `availableReplicas` in its error
 */
export function validateCounts(
  object: JsonObject,
  counts: readonly string[],
  parts: readonly string[],
  options: { availableOf: string } = { availableOf: 'readyReplicas' },
): FieldError[] {
  const status = objectAt(object, 'status') ?? {};
  const count = (name: string) => numberAt(status, name);
  const over = (name: string, limit: string, shown: string) =>
    count(name) > count(limit)
      ? [invalid(`status.${name}`, count(name), `cannot be greater than ${shown}`)]
      : [];
  return [
    ...validateNonNegative(status, 'status', ...counts),
    ...parts.flatMap((name) => over(name, 'replicas', 'status.replicas')),
    ...over('availableReplicas', 'readyReplicas', options.availableOf),
  ];
}

/** Validates a whole number or percentage that must not be negative. */
export function validateIntOrPercent(value: JsonValue | undefined, field: string): FieldError[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'number') return value >= 0 ? [] : [invalid(field, value, negative)];
  if (typeof value === 'string' && /^[0-9]+%$/.test(value)) return [];
  const regex = "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
  const detail = `a valid percent string must be a numeric string followed by an ending '%' ${regex}`;
  return [invalidGo(field, () => goIntOrString(value), detail)];
}

/** Rejects a percentage above 100; other values are not validated. */
export function validatePercentMax(value: JsonValue | undefined, field: string): FieldError[] {
  if (typeof value !== 'string' || !/^[0-9]+%$/.test(value)) return [];
  return Number(value.slice(0, -1)) > 100
    ? [invalidGo(field, () => goIntOrString(value), 'must not be greater than 100%')]
    : [];
}

/** Whether the value is `0` or `0%`, or a string that is neither a number nor a percentage. */
export function isZero(value: JsonValue | undefined): boolean {
  if (typeof value !== 'string') return (value ?? 0) === 0;
  return !/^(?:[0-9]+%|[+-]?[0-9]+)$/.test(value) || Number.parseInt(value, 10) === 0;
}

/** A label selector in one line, as tables show it. */
export function selectorText(selector: Stored<LabelSelector> | undefined): string {
  if (selector === undefined) return '<none>';
  const { matchExpressions = [] } = selector;
  const labels = selector.matchLabels;
  const parts = sortedKeys(labels).map((key) => ({ key, text: `${key}=${textAt(labels, key)}` }));
  for (const { key = '', operator = '', values = [] } of matchExpressions) {
    const list = `(${[...values].sort().join(',')})`;
    const exists = operator === 'Exists' ? key : `!${key}`;
    const isListed = operator === 'In' || operator === 'NotIn';
    parts.push({ key, text: isListed ? `${key} ${operator.toLowerCase()} ${list}` : exists });
  }
  const byKey = parts.sort(
    (left, right) => Number(left.key > right.key) - Number(left.key < right.key),
  );
  return byKey.map(({ text }) => text).join(',') || '<none>';
}

/**
 * The wide columns: names and images of the template's containers, and the selector.
 * @param path path of the pod spec
 */
export function wideColumns(
  path: readonly string[] = ['spec', 'template', 'spec'],
): readonly ColumnDef[] {
  return [
    column('Containers', (object) => containerList(object, path, 'name'), {
      priority: 1,
      description: 'Names of the containers.',
    }),
    column('Images', (object) => containerList(object, path, 'image'), {
      priority: 1,
      description: 'Images of the containers.',
    }),
    column('Selector', (object) => selectorText(objectAt(object, 'spec', 'selector')), {
      priority: 1,
      description: 'Selector of the pods.',
    }),
  ];
}

const containerList = (object: JsonObject, path: readonly string[], member: string) =>
  objectsAt(object, ...path, 'containers')
    .map((container) => textAt(container, member))
    .join(',');

/** The column with the numbers of ready and desired replicas (`1/2`). */
export const readyColumn: ColumnDef = column(
  'Ready',
  (object) =>
    `${numberAt(object, 'status', 'readyReplicas')}/${Number(at(object, 'spec', 'replicas') ?? 1)}`,
  { description: 'Number of ready and of desired replicas.' },
);

/** A selector of the pods of `exampleTemplate`, and that template. */
export const exampleSelection = () => ({
  selector: { matchLabels: { app: 'example' } },
  template: exampleTemplate(),
});

/** A small template for examples. */
export const exampleTemplate = (): JsonObject => ({
  metadata: { labels: { app: 'example' } },
  spec: { containers: [{ name: 'main', image: 'example.com/main:1.0' }] },
});
