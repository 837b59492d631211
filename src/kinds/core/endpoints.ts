import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, required } from '../../meta/field-error.ts';
import { breaks, dnsLabel, dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, column, listAt, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { fill, objectsAt } from '../fill.ts';
import { oneOf, portNumber } from '../pod/validate.ts';

function fillDefaults(object: JsonObject): void {
  for (const subset of objectsAt(object, 'subsets')) {
    for (const port of objectsAt(subset, 'ports')) fill(port, { protocol: 'TCP' });
  }
}

function validateSubset(subset: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const addresses = [...listAt(subset, 'addresses'), ...listAt(subset, 'notReadyAddresses')];
  if (addresses.length === 0) {
    errors.push(required(path, 'must specify `addresses` or `notReadyAddresses`'));
  }
  const ports = objectsAt(subset, 'ports');
  ports.forEach((port, index) => {
    const field = `${path}.ports[${index}]`;
    const name = textAt(port, 'name');
    if (name === '' && ports.length > 1) errors.push(required(`${field}.name`));
    if (name !== '') errors.push(...breaks(`${field}.name`, name, dnsLabel));
    errors.push(...portNumber(`${field}.port`, numberAt(port, 'port')));
    errors.push(...oneOf(port, `${field}.protocol`, ['SCTP', 'TCP', 'UDP']));
  });
  return errors;
}

const validate = (object: JsonObject) =>
  objectsAt(object, 'subsets').flatMap((subset, index) =>
    validateSubset(subset, `subsets[${index}]`),
  );

/** At most three addresses, then how many more there are. */
function addresses(object: JsonObject): string {
  const all = objectsAt(object, 'subsets').flatMap((subset) => {
    const ips = objectsAt(subset, 'addresses').map((one) => textAt(one, 'ip'));
    const ports = objectsAt(subset, 'ports').map((one) => numberAt(one, 'port'));
    if (ports.length === 0) return ips;
    return ports.flatMap((port) => ips.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`));
  });
  if (all.length === 0) return '<none>';
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown;
}

/** Endpoints: the addresses behind a Service, in the old form. */
export function endpoints(dialect: Dialect): ResourceDef {
  const endpointsColumn = column('Endpoints', addresses, { description: 'Addresses and ports.' });
  return {
    ...defineKind({
      dialect,
      facts: 'core',
      kind: 'Endpoints',
      resource: 'endpoints',
      scope: 'Namespaced',
      shortNames: ['ep'],
      versions: [
        {
          version: 'v1',
          defaults: fillDefaults,
          columns: [nameColumn, endpointsColumn, ageColumn],
        },
      ],
      storage: { prefix: '/registry/services/endpoints/' },
      strategy: {
        validateName: dnsSubdomain,
        validateCreate: (_, object) => validate(object),
        validateUpdate: (_, object) => validate(object),
        allowCreateOnUpdate: true,
      },
      example: () => ({
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'example', namespace: 'default' },
        subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 8080 }] }],
      }),
    }),
    singular: 'endpoints',
  };
}
