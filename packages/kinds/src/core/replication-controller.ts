import {
  type ApiObject,
  type Dialect,
  type FieldError,
  invalidGo,
  type JsonObject,
  required,
} from '@wheelhouse/machinery';
import { exampleTemplate, replicaColumns, replicaStrategy, wideColumns } from '../apps/workload.ts';
import { column, labelsText } from '../cells.ts';
import { defineKind, scaleSubresourceOf, statusSubresource, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { ReplicationController } from '../gen/types/core/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers } from '../pod/defaults.ts';
import { validateNonNegative } from '../pod/fields.ts';
import { goStringMap } from '../pod/go-text.ts';
import type { PodRules } from '../pod/rules.ts';
import { validatePodTemplate, validateRestartPolicy } from '../pod/template.ts';
import { controllerWarnings, templateWarnings } from '../pod/warnings.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { sameOrEmpty, sortedKeys } from '../rules/checks.ts';
import { ensure, fill, objectAt } from '../rules/fill.ts';

/** ReplicationController: the predecessor of ReplicaSet. */
export function replicationController(
  dialect: Dialect,
  features: Features = defaultFeatures,
): ResourceDef {
  return defineKind<ReplicationController>({
    dialect,
    features,
    facts: 'core',
    kind: 'ReplicationController',
    scope: 'Namespaced',
    shortNames: ['rc'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(removingOldInitContainers(dialect, ['spec', 'template'], fillDefaults)),
        columns: [
          ...replicaColumns,
          ...wideColumns().slice(0, 2),
          column('Selector', (object) => labelsText(object.spec?.selector), {
            priority: 1,
            description: 'Selector of the pods.',
          }),
        ],
      },
    ],
    storage: { prefix: '/registry/controllers/', fieldsOf: replicaFields },
    generation: true,
    strategy: {
      ...replicaStrategy(
        { dialect, features },
        {
          validate,
          changed: (object, old) => validateNonConvertible(object, old, dialect),
        },
      ),
      defaultPropagation: 'Orphan',
      prepareForUpdate: ({ subresource }, object, old) => {
        if (subresource === 'status') fillLabels(object, old);
      },
      // Like kube-apiserver, an update warns about the template that it replaces.
      warnings: (object, old) =>
        old === undefined
          ? controllerWarnings(object, old, { path: templatePath, dialect })
          : templateWarnings(old, object, { path: templatePath, dialect }),
    },
    subresources: [
      scaleSubresourceOf({ group: 'autoscaling', resource: 'replicationcontrollers/scale' }),
      statusSubresource,
    ],
    example: () => ({ spec: { selector: { app: 'example' }, template: exampleTemplate() } }),
  });
}

/** Labels and selector default to those of the template. */
function* fillDefaults(object: Stored<ReplicationController>): Generator<void, void> {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1 });
  const labels = spec.template?.metadata?.labels;
  if (labels !== undefined) {
    fill(spec, { selector: { ...labels } });
    fill(ensure(object, 'metadata'), { labels: { ...labels } });
  }
  yield* fillPodSpecSteps(spec.template?.spec);
}

const templatePath = ['spec', 'template'];

/** Gives an object without labels those of the template, as the defaults of a whole object do. */
function fillLabels(
  { metadata }: Stored<ReplicationController>,
  { spec }: Stored<ReplicationController>,
): void {
  const labels = spec?.template?.metadata?.labels;
  if (labels !== undefined) metadata.labels ??= { ...labels };
}

/** The fields that selectors may use. */
const replicaFields = (object: Stored<ReplicationController>): Record<string, string> => ({
  'status.replicas': String(object.status?.replicas ?? 0),
});

function* validate(object: JsonObject, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const path = 'spec.template';
  const selector = objectAt(spec, 'selector') ?? {};
  const template = objectAt(spec, 'template');
  const isEmpty = Object.keys(selector).length === 0;
  const errors = [
    ...validateNonNegative(spec, 'spec', 'minReadySeconds'),
    ...(isEmpty ? [required('spec.selector')] : []),
    ...validateNonNegative(spec, 'spec', 'replicas'),
  ];
  if (template === undefined) return [...errors, required(path)];
  const labels = objectAt(template, 'metadata', 'labels');
  if (!Object.keys(selector).every((key) => labels?.[key] === selector[key])) {
    const detail = '`selector` does not match template `labels`';
    errors.push(invalidGo(`${path}.metadata.labels`, () => goStringMap(labels), detail));
  }
  return [
    ...errors,
    ...(yield* validatePodTemplate(template, path, rules)),
    ...validateRestartPolicy(template, path, 'ReplicationController'),
  ];
}

/**
 * Validates the fields that annotations mark as lost in a conversion: the selector is immutable,
 * and other fields are unknown.
 */
function validateNonConvertible(object: ApiObject, old: ApiObject, dialect: Dialect): FieldError[] {
  const prefix = dialect.label('', 'non-convertible').slice(0, -1);
  const annotations = old.metadata.annotations ?? {};
  const selector = (controller: Stored<ReplicationController>) => controller.spec?.selector;
  return sortedKeys(annotations).flatMap((key) => {
    const [, field = '', ...more] = key.split('/');
    if (!key.startsWith(prefix) || !key.includes('/') || more.length > 0) return [];
    if (!field.includes('selector')) {
      const shown = `Not found: ${JSON.stringify(annotations[key])}`;
      const message = `${shown}: unknown non-convertible field`;
      return [{ type: 'FieldValueNotFound', field, message } as const];
    }
    if (sameOrEmpty(selector(object), selector(old))) return [];
    const shown = goStringMap(selector(object));
    return [invalidGo('spec.selector', () => shown, 'cannot update non-convertible selector')];
  });
}
