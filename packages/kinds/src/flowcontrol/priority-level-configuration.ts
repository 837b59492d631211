import { type Dialect, dnsSubdomain, type JsonObject } from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';
import { ensure, fill, objectAt } from '../rules/fill.ts';
import { validateFlowConditions } from './flow-schema-rules.ts';
import { validatePriorityLevel } from './priority-level-rules.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(objectAt(spec, 'exempt'), { nominalConcurrencyShares: 0, lendablePercent: 0 });
  const limited = objectAt(spec, 'limited');
  fill(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 });
  const queuing = objectAt(limited, 'limitResponse', 'queuing');
  if (queuing === undefined) return;
  const standard = { queues: 64, handSize: 8, queueLengthLimit: 50 };
  for (const [name, value] of Object.entries(standard)) {
    if (queuing[name] === undefined || queuing[name] === 0) queuing[name] = value;
  }
}

const limitColumn = (name: string, path: readonly string[], description: string) =>
  column(name, (object) => at(object, 'spec', 'limited', ...path) ?? '<none>', { description });

/** PriorityLevelConfiguration: how much of the server a level of requests may use (OPS-3). */
export function priorityLevelConfiguration(dialect: Dialect): ResourceDef {
  const queuing = (name: string, member: string, description: string) =>
    limitColumn(name, ['limitResponse', 'queuing', member], description);
  return defineKind({
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
          column('Type', (object) => textAt(object, 'spec', 'type'), {
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
