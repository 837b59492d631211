import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, numberAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { FlowSchema } from '../gen/types/flowcontrol/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { ensure } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateFlowConditions, validateFlowSchema } from './flow-schema-rules.ts';

function fillDefaults(object: Stored<FlowSchema>): void {
  const spec = ensure(object, 'spec');
  if ((spec.matchingPrecedence ?? 0) === 0) spec.matchingPrecedence = 1000;
}

/** As they are tried. */
function inOrderOfMatching(one: Stored<FlowSchema>, other: Stored<FlowSchema>): number {
  const [first, second] = [one, other].map((each) => numberAt(each, 'spec', 'matchingPrecedence'));
  if (first !== second) return first! - second!;
  return (one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1;
}

function missing(object: Stored<FlowSchema>): string {
  const dangling = (object.status?.conditions ?? []).find((one) => (one.type ?? '') === 'Dangling');
  return (dangling?.status ?? '') || '?';
}

/** FlowSchema: which requests belong to which priority level (OPS-3). */
export function flowSchema(dialect: Dialect): ResourceDef {
  return defineKind<FlowSchema>({
    dialect,
    facts: 'flowcontrol',
    kind: 'FlowSchema',
    resource: 'flowschemas',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        rowOrder: inOrderOfMatching,
        columns: [
          nameColumn,
          column('PriorityLevel', (object) => object.spec?.priorityLevelConfiguration?.name ?? '', {
            description: 'Level of the requests.',
          }),
          column('MatchingPrecedence', (object) => object.spec?.matchingPrecedence ?? 0, {
            description: 'Lower is tried first.',
          }),
          column(
            'DistinguisherMethod',
            (object) => (object.spec?.distinguisherMethod?.type ?? '') || '<none>',
            { description: 'How flows are told apart.' },
          ),
          ageColumn,
          column('MissingPL', missing, { description: 'Whether the level is missing.' }),
        ],
      },
    ],
    generation: true,
    strategy: {
      metadataTold: { '': ['whole'], status: [] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      validateCreate: (_, object) => validateFlowSchema(object, dialect),
      validateUpdate: (context, object) =>
        context.subresource === 'status'
          ? validateFlowConditions(object)
          : validateFlowSchema(object, dialect),
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: `${dialect.group('flowcontrol.apiserver')}/v1`,
      kind: 'FlowSchema',
      metadata: { name: 'example' },
      spec: { priorityLevelConfiguration: { name: 'example' } },
    }),
  });
}
