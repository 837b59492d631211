import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { exampleTemplate, wideColumns } from '../apps/workload.ts';
import { column, labelsText, nameColumn } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { PodTemplate } from '../gen/types/core/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers } from '../pod/defaults.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import { templateRules, validatePodTemplate } from '../pod/template.ts';
import { templateWarnings } from '../pod/warnings.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { ensure } from '../rules/fill.ts';

/** PodTemplate: a stored template of pods. */
export function podTemplate(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<PodTemplate>({
    dialect,
    features,
    facts: 'core',
    kind: 'PodTemplate',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(
          removingOldInitContainers(dialect, ['template'], (object: Stored<PodTemplate>) =>
            fillPodSpecSteps(object.template?.spec),
          ),
        ),
        columns: [
          nameColumn,
          ...wideColumns(['template', 'spec'])
            .slice(0, 2)
            .map((wide) => ({ ...wide, priority: 0 })),
          column('Pod Labels', (object) => labelsText(object.template?.metadata?.labels), {
            description: 'Labels of the pods.',
          }),
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object, newPodRules({ dialect, features })),
      *validateUpdate(_, object, old) {
        const rules = yield* templateRules({ dialect, features }, old.template);
        return yield* validate(object, rules);
      },
      warnings: (object, old) => templateWarnings(object, old, { path: ['template'], dialect }),
      deleteAnswers: 'object',
    },
    example: () => ({ template: exampleTemplate() }),
  });
}

const validate = (object: Stored<PodTemplate>, rules: PodRules) =>
  validatePodTemplate(ensure(object, 'template'), 'template', rules);
