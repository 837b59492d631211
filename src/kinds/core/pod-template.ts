import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { exampleTemplate } from '../apps/workload.ts';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { ensure, objectAt, objectsAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { validatePodSpec } from '../pod/validate.ts';

/** PodTemplate: a pod to be made by somebody. */
export function podTemplate(dialect: Dialect): ResourceDef {
  const list = (member: string) => (object: Parameters<typeof objectsAt>[0]) =>
    objectsAt(object, 'template', 'spec', 'containers')
      .map((one) => textAt(one, member))
      .join(',');
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'PodTemplate',
    resource: 'podtemplates',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillPodSpec(objectAt(object, 'template', 'spec')),
        columns: [
          nameColumn,
          column('Containers', list('name'), { description: 'Names of the containers.' }),
          column('Images', list('image'), { description: 'Images of the containers.' }),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) =>
        validatePodSpec(ensure(ensure(object, 'template'), 'spec'), 'template.spec'),
      validateUpdate: (_, object) =>
        validatePodSpec(ensure(ensure(object, 'template'), 'spec'), 'template.spec'),
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
