import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Endpoint, EndpointSlice } from '../gen/types/discovery/v1.ts';
import type { ColumnDef, ResourceDef, StrategyContext } from '../resource-def.ts';
import { immutable, sameOrEmpty } from '../rules/checks.ts';
import { fillAbsent, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateEndpointSlice } from './endpoint-slice-rules.ts';

function fillDefaults(object: Stored<EndpointSlice>): void {
  for (const port of object.ports ?? []) {
    if (port.name === undefined) port.name = '';
    fillAbsent(port, { protocol: 'TCP' });
  }
}

/** At most three, then how many more there are. */
function shorten(all: readonly string[], none: string): string {
  if (all.length === 0) return none;
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown;
}

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('AddressType', (object) => textAt(object, 'addressType'), {
    description: 'Kind of the addresses.',
  }),
  column(
    'Ports',
    (object) =>
      shorten(
        objectsAt(object, 'ports').map((port) => String(port['port'] ?? port['name'] ?? '*')),
        '<unset>',
      ),
    { description: 'Ports of all endpoints.' },
  ),
  column(
    'Endpoints',
    (object) =>
      shorten(
        objectsAt(object, 'endpoints').flatMap((one) => listAt(one, 'addresses').map(String)),
        '<unset>',
      ),
    { description: 'Addresses.' },
  ),
  ageColumn,
];

/**
 * Old labels of an endpoint are shown but not taken: those who send the endpoints as they read them
 * do not lose the node's name by that.
 */
function dropTopology(
  context: StrategyContext,
  object: Stored<EndpointSlice>,
  old: Stored<EndpointSlice> | undefined,
  nodeLabel: string,
): void {
  if (context.version === 'v1beta1') return;
  if (old !== undefined && sameOrEmpty(object.endpoints, old.endpoints)) return;
  const topologyOf = (endpoint: Stored<Endpoint>) => endpoint.deprecatedTopology;
  const oldNodes = new Set(
    (old?.endpoints ?? []).map((endpoint) => textAt(topologyOf(endpoint), nodeLabel)),
  );
  for (const endpoint of object.endpoints ?? []) {
    const node = textAt(topologyOf(endpoint), nodeLabel);
    if (endpoint.nodeName === undefined && node !== '' && oldNodes.has(node)) {
      endpoint.nodeName = node;
    }
    delete endpoint.deprecatedTopology;
  }
}

/** Counts a change of labels too, and of what is then not taken. */
function countGeneration(object: Stored<EndpointSlice>, old: Stored<EndpointSlice>): void {
  const { labels, generation = 0 } = old.metadata;
  const isSame =
    sameOrEmpty(object.metadata.labels, labels) &&
    (['addressType', 'endpoints', 'ports'] as const).every((name) =>
      sameOrEmpty(object[name], old[name]),
    );
  if (!isSame) object.metadata.generation = generation + 1;
}

/** EndpointSlice: some of the addresses behind a Service. */
export function endpointSlice(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const nodeLabel = dialect.label('hostname');
  return defineKind<EndpointSlice>({
    dialect,
    features,
    facts: 'discovery',
    kind: 'EndpointSlice',
    resource: 'endpointslices',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns,
      },
    ],
    generation: true,
    strategy: {
      metadataTold: { '': ['whole'] },
      validateName: dnsSubdomain,
      prepareForCreate: (context, object) => dropTopology(context, object, undefined, nodeLabel),
      prepareForUpdate: (context, object, old) => {
        countGeneration(object, old);
        dropTopology(context, object, old, nodeLabel);
      },
      validateCreate: (_, object) => validateEndpointSlice(object),
      validateUpdate: (_, object, old) => [
        ...validateEndpointSlice(object),
        ...immutable('addressType', object.addressType, old.addressType),
      ],
      warnings: (object, old) =>
        old === undefined && (object.addressType ?? '') === 'FQDN'
          ? ['spec.addressType: FQDN endpoints are deprecated']
          : [],
    },
    example: () => ({
      apiVersion: `${dialect.group('discovery')}/v1`,
      kind: 'EndpointSlice',
      metadata: { name: 'example-1', namespace: 'default' },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 8080 }],
    }),
  });
}
