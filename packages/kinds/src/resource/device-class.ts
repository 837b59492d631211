import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  type JsonObject,
} from '@wheelhouse/machinery';
import type {
  AdmissionKindOptions,
  ExpressionChecker,
} from '../admissionregistration/expressions.ts';
import { ageColumn, at, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { DeviceClass } from '../gen/types/resource/v1beta1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { sameOrEmpty } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';
import { validateConfigurations, validateSelectors } from './device-rules.ts';

/** DeviceClass: a name under which claims request devices. */
export function deviceClass(dialect: Dialect, options: AdmissionKindOptions): ResourceDef {
  const check = options.checkExpression;
  const columns = [nameColumn, ageColumn];
  return defineKind({
    dialect,
    facts: 'resource',
    kind: 'DeviceClass',
    resource: 'deviceclasses',
    scope: 'Cluster',
    versions: ['v1beta1', 'v1alpha3'].map((version) => ({ version, columns })),
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      deleteAnswers: 'object',
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateCreate: (_, object) => validate(object, undefined, check),
      *validateUpdate(_, object, old) {
        // kube-apiserver validates the whole object both on its own and as part of the change.
        const errors = yield* validate(object, undefined, check);
        return [...errors, ...(yield* validate(object, old, check))];
      },
    },
    example: () => ({
      apiVersion: `${dialect.group('resource')}/v1beta1`,
      kind: 'DeviceClass',
      metadata: { name: 'example' },
      spec: {},
    }),
  });
}

function* validate(
  object: Stored<DeviceClass>,
  old: JsonObject | undefined,
  check: ExpressionChecker | undefined,
): Generator<void, FieldError[]> {
  const partsOf = (member: string) => {
    const [now, before] = [object, old].map((version) => at(version, 'spec', member));
    return old !== undefined && sameOrEmpty(now, before) ? 'stored' : 'new';
  };
  const contextOf = (member: string) => ({ parts: partsOf(member), check }) as const;
  return [
    ...(yield* validateSelectors(
      object.spec?.selectors ?? [],
      'spec.selectors',
      contextOf('selectors'),
    )),
    ...(yield* validateConfigurations(
      object.spec?.config ?? [],
      'spec.config',
      contextOf('config'),
    )),
  ];
}
