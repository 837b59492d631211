import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { PriorityLevelConfiguration } from '../gen/types/flowcontrol/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { ensure, fill } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateFlowConditions } from './flow-schema-rules.ts';
import { validatePriorityLevel } from './priority-level-rules.ts';

function fillDefaults(object: Stored<PriorityLevelConfiguration>): void {
  const spec = ensure(object, 'spec');
  fill(spec.exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
  const limited = spec.limited;
  fill(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 });
  const queuing = limited?.limitResponse?.queuing;
  if (queuing === undefined) return;
  queuing.queues ||= 64;
  queuing.handSize ||= 8;
  queuing.queueLengthLimit ||= 50;
}

const limitColumn = (name: string, path: readonly string[], description: string) =>
  column(name, (object) => at(object, 'spec', 'limited', ...path) ?? '<none>', { description });

/** PriorityLevelConfiguration: how much of the server a level of requests may use (OPS-3). */
export function priorityLevelConfiguration(dialect: Dialect): ResourceDef {
  const queuing = (name: string, member: string, description: string) =>
    limitColumn(name, ['limitResponse', 'queuing', member], description);
  return defineKind<PriorityLevelConfiguration>({
    dialect,
    facts: 'flowcontrol',
    kind: 'PriorityLevelConfiguration',
    resource: 'prioritylevelconfigurations',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          column('Type', (object) => object.spec?.type ?? '', {
            description: 'Exempt or Limited.',
          }),
          limitColumn(
            'NominalConcurrencyShares',
            ['nominalConcurrencyShares'],
            'Share of the whole.',
          ),
          queuing('Queues', 'queues', 'Number of queues.'),
          queuing('HandSize', 'handSize', 'Queues a flow may use.'),
          queuing('QueueLengthLimit', 'queueLengthLimit', 'Most requests in a queue.'),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: {
      metadataTold: { '': ['whole'], status: [] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      validateCreate: (_, object) => validatePriorityLevel(object, dialect),
      validateUpdate: (context, object) =>
        context.subresource === 'status'
          ? validateFlowConditions(object)
          : validatePriorityLevel(object, dialect),
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: `${dialect.group('flowcontrol.apiserver')}/v1`,
      kind: 'PriorityLevelConfiguration',
      metadata: { name: 'example' },
      spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
    }),
  });
}
