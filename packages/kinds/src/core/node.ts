import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Node } from '../gen/types/core/v1.ts';
import type { ColumnDef, ResourceDef } from '../resource-def.ts';
import { sortedKeys } from '../rules/checks.ts';
import { fillAmounts } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { dropNodeConfig, syncPodCidrs, validateNode, validateNodeUpdate } from './node-rules.ts';

/** What can be allocated is all there is, unless said otherwise. */
function fillDefaults(object: Stored<Node>): void {
  syncPodCidrs(object);
  const status = object.status;
  const capacity = status?.capacity;
  fillAmounts(capacity);
  fillAmounts(status?.allocatable);
  if (status !== undefined && capacity !== undefined && status.allocatable === undefined) {
    status.allocatable = { ...capacity };
  }
}

function readiness(object: Stored<Node>): string {
  const ready = (object.status?.conditions ?? []).find(
    (condition) => (condition.type ?? '') === 'Ready',
  );
  const state =
    ready === undefined ? 'Unknown' : (ready.status ?? '') === 'True' ? 'Ready' : 'NotReady';
  return object.spec?.unschedulable === true ? `${state},SchedulingDisabled` : state;
}

/** Roles are labels by convention: `node-role.<domain>/<role>` or `<domain>/role: <role>`. */
function roles(object: Stored<Node>, dialect: Dialect): string {
  const prefix = dialect.label('', 'node-role');
  const labels = object.metadata.labels;
  const found = sortedKeys(labels).flatMap((key) => {
    const value = textAt(labels, key);
    if (key.startsWith(prefix)) return key === prefix ? [] : [key.slice(prefix.length)];
    return key === dialect.label('role') && value !== '' ? [value] : [];
  });
  return found.length === 0 ? '<none>' : [...new Set(found)].sort().join(',');
}

function addressOf(object: Stored<Node>, type: string): string {
  const address = (object.status?.addresses ?? []).find((one) => (one.type ?? '') === type);
  return (address?.address ?? '') || '<none>';
}

function columns(dialect: Dialect): readonly ColumnDef[] {
  const info = (name: string, member: string, unknown: string, description: string) =>
    column(name, (object) => textAt(object, 'status', 'nodeInfo', member) || unknown, {
      priority: 1,
      description,
    });
  const address = (name: string, type: string) =>
    column<Stored<Node>>(name, (object) => addressOf(object, type), {
      priority: 1,
      description: `First address of type ${type}.`,
    });
  return [
    nameColumn,
    column('Status', readiness, { description: 'Whether it takes pods.' }),
    column<Stored<Node>>('Roles', (object) => roles(object, dialect), {
      description: 'Roles by its labels.',
    }),
    ageColumn,
    column('Version', (object) => textAt(object, 'status', 'nodeInfo', 'kubeletVersion'), {
      description: 'Version of the node agent.',
    }),
    address('Internal-IP', 'InternalIP'),
    address('External-IP', 'ExternalIP'),
    info('OS-Image', 'osImage', '<unknown>', 'Operating system.'),
    info('Kernel-Version', 'kernelVersion', '<unknown>', 'Kernel.'),
    info('Container-Runtime', 'containerRuntimeVersion', '<unknown>', 'Container runtime.'),
  ];
}

function deprecatedFields(object: Stored<Node>, dialect: Dialect): string[] {
  const unused = `this field is deprecated, and is unused by ${titled(dialect.productName)}`;
  return [
    ...(object.spec?.configSource === undefined
      ? []
      : ['spec.configSource: the feature is removed']),
    ...((object.spec?.externalID ?? '') === '' ? [] : [`spec.externalID: ${unused}`]),
  ];
}

/** `kubernetes` -> `Kubernetes`. */
const titled = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/** Node: a machine; its agent registers it together with its status. */
export function node(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<Node>({
    dialect,
    features,
    facts: 'core',
    kind: 'Node',
    resource: 'nodes',
    scope: 'Cluster',
    shortNames: ['no'],
    versions: [{ version: 'v1', defaults: fillDefaults, columns: columns(dialect) }],
    storage: {
      prefix: '/registry/minions/',
      fieldsOf: (object) => ({
        'spec.unschedulable': String(object.spec?.unschedulable === true),
      }),
    },
    keepsStatusOnCreate: true,
    strategy: {
      metadataTold: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => dropNodeConfig(object),
      prepareForUpdate: (_, object, old) => dropNodeConfig(object, old),
      validateCreate: (_, object) => validateNode(object, dialect),
      validateUpdate: (context, object, old) => [
        ...(context.subresource === 'status' ? [] : validateNode(object, dialect)),
        ...validateNodeUpdate(object, old, dialect),
      ],
      warnings: (object) => deprecatedFields(object, dialect),
    },
    subresources: [
      {
        name: 'proxy',
        verbs: ['create', 'delete', 'get', 'patch', 'update'],
        kind: { group: '', version: 'v1', kind: 'NodeProxyOptions' },
      },
      { name: 'status', verbs: ['get', 'patch', 'update'] },
    ],
    example: () => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-1' },
      spec: { taints: [{ key: 'example.com/gpu', effect: 'NoSchedule' }] },
      status: {
        capacity: { cpu: '4', memory: '8Gi' },
        conditions: [{ type: 'Ready', status: 'True', reason: 'AgentReady' }],
      },
    }),
  });
}
