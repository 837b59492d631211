import type { JsonObject } from '../../base/json.ts';
import type { ColumnDef, ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { age, ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { ensure, fill, objectAt, objectsAt } from '../fill.ts';
import { fillAddresses, fillHostPorts, fillPodSpec, requestsFromLimits } from '../pod/defaults.ts';
import { preparePod, preparePodUpdate } from '../pod/prepare.ts';
import { newPodWarnings, validateNewPod, validatePodChange } from '../pod/strategy.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  requestsFromLimits(spec);
  fillPodSpec(spec);
  fill(spec, { enableServiceLinks: true });
  fillHostPorts(spec);
  fillAddresses(objectAt(object, 'status'));
}

const statuses = (object: JsonObject) => objectsAt(object, 'status', 'containerStatuses');

const ready = (object: JsonObject) =>
  `${statuses(object).filter((one) => one['ready'] === true).length}/${objectsAt(object, 'spec', 'containers').length}`;

/** What keeps a container from running says more than the phase. */
function reason(object: JsonObject): string {
  let text = textAt(object, 'status', 'reason') || textAt(object, 'status', 'phase');
  for (const status of [...statuses(object)].reverse()) {
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    const ended = objectAt(status, 'state', 'terminated');
    if (waiting !== '') text = waiting;
    else if (ended !== undefined) {
      const signal = numberAt(ended, 'signal');
      const why = signal === 0 ? `ExitCode:${numberAt(ended, 'exitCode')}` : `Signal:${signal}`;
      text = textAt(ended, 'reason') || why;
    }
  }
  if (at(object, 'metadata', 'deletionTimestamp') === undefined) return text;
  return textAt(object, 'status', 'reason') === 'NodeLost' ? 'Unknown' : 'Terminating';
}

function restarts(object: JsonObject, nowMs: number): string {
  const count = statuses(object).reduce((sum, one) => sum + numberAt(one, 'restartCount'), 0);
  const ends = statuses(object)
    .map((one) => textAt(one, 'lastState', 'terminated', 'finishedAt'))
    .filter((time) => time !== '')
    .sort();
  const last = ends.at(-1);
  return count === 0 || last === undefined ? String(count) : `${count} (${age(last, nowMs)} ago)`;
}

function readinessGates(object: JsonObject): string {
  const gates = objectsAt(object, 'spec', 'readinessGates');
  if (gates.length === 0) return '<none>';
  const conditions = objectsAt(object, 'status', 'conditions');
  const met = gates.filter((gate) =>
    conditions.some(
      (one) =>
        textAt(one, 'type') === textAt(gate, 'conditionType') && textAt(one, 'status') === 'True',
    ),
  );
  return `${met.length}/${gates.length}`;
}

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Ready', ready, { description: 'Containers that are ready, of all.' }),
  column('Status', reason, { description: 'Phase, or what is in the way.' }),
  column('Restarts', restarts, { description: 'How often containers were started again.' }),
  ageColumn,
  column('IP', (object) => textAt(object, 'status', 'podIP') || '<none>', {
    priority: 1,
    description: 'Address of the pod.',
  }),
  column('Node', (object) => textAt(object, 'spec', 'nodeName') || '<none>', {
    priority: 1,
    description: 'Node it runs on.',
  }),
  column('Nominated Node', (object) => textAt(object, 'status', 'nominatedNodeName') || '<none>', {
    priority: 1,
    description: 'Node it may run on once others have gone.',
  }),
  column('Readiness Gates', readinessGates, {
    priority: 1,
    description: 'Gates that are met, of all.',
  }),
];

function fieldsOf(object: JsonObject): Record<string, string> {
  return {
    'spec.nodeName': textAt(object, 'spec', 'nodeName'),
    'spec.restartPolicy': textAt(object, 'spec', 'restartPolicy'),
    'spec.schedulerName': textAt(object, 'spec', 'schedulerName'),
    'spec.serviceAccountName': textAt(object, 'spec', 'serviceAccountName'),
    'spec.hostNetwork': String(at(object, 'spec', 'hostNetwork') === true),
    'status.phase': textAt(object, 'status', 'phase'),
    'status.podIP': textAt(object, 'status', 'podIP'),
    'status.nominatedNodeName': textAt(object, 'status', 'nominatedNodeName'),
  };
}

const options = (kind: string) => ({ group: '', version: 'v1', kind });

/** Pod: containers that run together. Deletion leaves it time to end. */
export function pod(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'Pod',
    resource: 'pods',
    scope: 'Namespaced',
    shortNames: ['po'],
    categories: ['all'],
    versions: [{ version: 'v1', defaults: fillDefaults, columns }],
    storage: { fieldsOf },
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (context, object) => preparePod(context, object, dialect),
      validateCreate: (_, object) => validateNewPod(object, dialect),
      prepareForUpdate: preparePodUpdate,
      validateUpdate: (context, object, old) =>
        validatePodChange({ subresource: context.subresource, object, old, dialect }),
      warnings: (object, old) => (old === undefined ? newPodWarnings(object, dialect) : []),
      resetFields: {
        '': ['status'],
        status: ['spec', 'metadata.deletionTimestamp', 'metadata.ownerReferences'],
      },
      deleteAnswers: 'object',
      gracePeriod: (object) => {
        const phase = textAt(object, 'status', 'phase');
        const unbound = textAt(object, 'spec', 'nodeName') === '';
        if (unbound || phase === 'Failed' || phase === 'Succeeded') return 0;
        return Number(at(object, 'spec', 'terminationGracePeriodSeconds') ?? 30);
      },
    },
    subresources: [
      { name: 'attach', verbs: ['create', 'get'], kind: options('PodAttachOptions') },
      { name: 'binding', verbs: ['create'], kind: options('Binding') },
      { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
      {
        name: 'eviction',
        verbs: ['create'],
        kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
      },
      { name: 'exec', verbs: ['create', 'get'], kind: options('PodExecOptions') },
      { name: 'log', verbs: ['get'] },
      { name: 'portforward', verbs: ['create', 'get'], kind: options('PodPortForwardOptions') },
      { name: 'status', verbs: ['get', 'patch', 'update'] },
    ],
    example: () => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'example', namespace: 'default', labels: { app: 'example' } },
      spec: {
        containers: [
          { name: 'main', image: 'example.com/main:1.0', ports: [{ containerPort: 8080 }] },
        ],
      },
    }),
  });
}
