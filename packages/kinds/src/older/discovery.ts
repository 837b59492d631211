import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import type { OlderKind } from './contract.ts';

/**
 * EndpointSlice: where an endpoint is was told by labels of its node in `topology`; now zone and
 * node have members of their own, and the other labels are only shown.
 */
export function olderDiscovery(dialect: Dialect): readonly OlderKind[] {
  const zoneLabel = dialect.label('zone', 'topology');
  const nodeLabel = dialect.label('hostname');
  const separate = (endpoint: JsonObject): void => {
    const topology = { ...objectAt(endpoint, 'topology') };
    delete endpoint['topology'];
    const { [zoneLabel]: zone, ...others } = topology;
    if (zone !== undefined) endpoint['zone'] = zone;
    const node = others[nodeLabel];
    if (node !== undefined) {
      endpoint['nodeName'] ??= node;
      // Another node's name is odd, but what was written.
      if (endpoint['nodeName'] === node) delete others[nodeLabel];
    }
    if (Object.keys(others).length > 0) endpoint['deprecatedTopology'] = others;
  };
  const join = (endpoint: JsonObject): void => {
    const { zone, nodeName } = endpoint;
    const others = objectAt(endpoint, 'deprecatedTopology');
    delete endpoint['deprecatedTopology'];
    delete endpoint['zone'];
    if (others === undefined && zone === undefined && nodeName === undefined) return;
    const topology: JsonObject = { ...others };
    if (zone !== undefined) topology[zoneLabel] = zone;
    if (nodeName !== undefined && textAt(topology, nodeLabel) === '') {
      topology[nodeLabel] = nodeName;
    }
    endpoint['topology'] = topology;
  };
  return [
    {
      facts: 'discovery',
      kind: 'EndpointSlice',
      older: [
        {
          facts: 'discovery',
          version: 'v1beta1',
          toStorage(object) {
            for (const endpoint of objectsAt(object, 'endpoints')) separate(endpoint);
            return object;
          },
          fromStorage(object) {
            for (const endpoint of objectsAt(object, 'endpoints')) join(endpoint);
            return object;
          },
        },
      ],
    },
  ];
}
