import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { exampleTemplate } from '../apps/workload.ts';
import { column, labelsText, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { PodTemplate } from '../gen/types/core/v1.ts';
import { fillPodSpec, keepingOldInitContainers } from '../pod/defaults.ts';
import type { PodRules } from '../pod/rules.ts';
import { templateRules, validatePodTemplate } from '../pod/template.ts';
import { templateWarnings } from '../pod/warnings.ts';
import type { ResourceDef } from '../resource-def.ts';
import { ensure, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

/** PodTemplate: a template that other programs make pods from. */
export function podTemplate(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const list = (member: string) => (object: Parameters<typeof objectsAt>[0]) =>
    objectsAt(object, 'template', 'spec', 'containers')
      .map((one) => textAt(one, member))
      .join(',');
  return defineKind<PodTemplate>({
    dialect,
    features,
    facts: 'core',
    kind: 'PodTemplate',
    resource: 'podtemplates',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        defaults: keepingOldInitContainers(dialect, ['template'], (object) =>
          fillPodSpec(object.template?.spec),
        ),
        columns: [
          nameColumn,
          column('Containers', list('name'), { description: 'Names of the containers.' }),
          column('Images', list('image'), { description: 'Images of the containers.' }),
          column('Pod Labels', (object) => labelsText(object.template?.metadata?.labels), {
            description: 'Labels of the pods.',
          }),
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) =>
        validate(object, templateRules({ dialect, features }, undefined)),
      validateUpdate: (_, object, old) =>
        validate(object, templateRules({ dialect, features }, old.template)),
      warnings: (object, old) => templateWarnings(object, old, { path: ['template'], dialect }),
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name: 'example', namespace: 'default' },
      template: exampleTemplate(),
    }),
  });
}

const validate = (object: Stored<PodTemplate>, rules: PodRules) =>
  validatePodTemplate(ensure(object, 'template'), 'template', rules);
