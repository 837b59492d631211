import {
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures } from '../features/features.ts';
import type { Toleration } from '../gen/types/core/v1.ts';
import type { RuntimeClass } from '../gen/types/node/v1.ts';
import { labelErrorSteps } from '../pod/fields.ts';
import { newPodRules } from '../pod/rules.ts';
import { validateToleration } from '../pod/validation/placement.ts';
import { resourceErrorSteps } from '../pod/validation/resources.ts';
import { nodeLabelMessage } from '../pod/warnings.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, immutable, sortedKeys } from '../rules/checks.ts';

/** RuntimeClass: a configuration of the container runtime. */
export function runtimeClass(dialect: Dialect): ResourceDef {
  return defineKind<RuntimeClass>({
    dialect,
    facts: 'node',
    kind: 'RuntimeClass',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Handler', (object) => object.handler ?? '', {
            description: 'Configuration of the container runtime.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object, dialect),
      *validateUpdate(_, object, old) {
        return [
          ...(yield* validate(object, dialect)),
          ...immutable('handler', object.handler ?? '', old.handler ?? ''),
        ];
      },
      warnings: (object) => nodeLabelWarnings(object, dialect),
      allowCreateOnUpdate: true,
      allowUnconditionalUpdate: false,
    },
    example: () => ({ handler: 'example' }),
  });
}

function* validate(object: Stored<RuntimeClass>, dialect: Dialect): Generator<void, FieldError[]> {
  const scheduling = object.scheduling;
  const overhead = object.overhead?.podFixed;
  const rules = newPodRules({ dialect, features: defaultFeatures });
  return [
    ...ruleErrors('handler', object.handler ?? '', dnsLabel),
    ...(overhead === undefined
      ? []
      : yield* resourceErrorSteps({ limits: overhead }, 'overhead', rules)),
    ...(yield* labelErrorSteps(scheduling?.nodeSelector, 'scheduling.nodeSelector')),
    ...(yield* validateUniqueTolerations(scheduling?.tolerations ?? [])),
  ];
}

/** Validates tolerations; kube-apiserver repeats the last name of the path in their errors. */
function* validateUniqueTolerations(
  tolerations: readonly Stored<Toleration>[],
): Generator<void, FieldError[]> {
  const path = 'scheduling.tolerations';
  const seen = new Set<string>();
  const errors = yield* flatMapSteps(tolerations, (toleration, index) =>
    validateToleration(toleration, `${path}.tolerations[${index}]`),
  );
  const repeated = yield* flatMapSteps(tolerations, (toleration, index) => {
    const [key, operator, value, effect] = (['key', 'operator', 'value', 'effect'] as const).map(
      (name) => JSON.stringify(toleration[name] ?? ''),
    );
    const shown = `Key:${key}, Operator:${operator}, Value:${value}, Effect:${effect}`;
    const isRepeated = seen.has(shown);
    seen.add(shown);
    if (!isRepeated) return [];
    const message = `Duplicate value: core.Toleration{${shown}, TolerationSeconds:(*int64)(nil)}`;
    return [{ type: 'FieldValueDuplicate', field: `${path}[${index}]`, message } as const];
  });
  return [...errors, ...repeated];
}

function nodeLabelWarnings(object: Stored<RuntimeClass>, dialect: Dialect): string[] {
  return sortedKeys(object.scheduling?.nodeSelector).flatMap((label) => {
    const message = nodeLabelMessage(label, dialect);
    return message === undefined ? [] : [`scheduling.nodeSelector: ${message}`];
  });
}
