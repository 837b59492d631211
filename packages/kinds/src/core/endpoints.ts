import {
  appendAll,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  hostInUrl,
  qualifiedName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  Endpoints,
} from '../gen/types/core/v1.ts';
import { validateChoiceIn, validatePortNumber } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';
import { fill, forEachSteps, objectsAt } from '../rules/fill.ts';
import { validateIp, validateNonSpecialIp } from './addresses.ts';

/** Endpoints: the addresses behind a Service; EndpointSlices replace it. */
export function endpoints(dialect: Dialect): ResourceDef {
  const endpointsColumn = column('Endpoints', addresses, { description: 'Addresses and ports.' });
  return {
    ...defineKind<Endpoints>({
      dialect,
      facts: 'core',
      kind: 'Endpoints',
      resource: 'endpoints',
      scope: 'Namespaced',
      shortNames: ['ep'],
      versions: [
        {
          version: 'v1',
          ...steppedDefaults(fillSteps),
          columns: [nameColumn, endpointsColumn, ageColumn],
        },
      ],
      storage: { prefix: '/registry/services/endpoints/' },
      strategy: {
        extraMetadataChecks: { '': ['change', 'whole'] },
        validateName: dnsSubdomain,
        validateCreate: (_, object) => validate(object),
        validateUpdate: (_, object) => validate(object),
        allowCreateOnUpdate: true,
      },
      example: () => ({ subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 8080 }] }] }),
    }),
    singular: 'endpoints',
  };
}

const shownMax = 3;

/** The cell with the first addresses, and the number of omitted ones. */
function addresses(object: Stored<Endpoints>): string {
  const subsets = object.subsets ?? [];
  if (subsets.length === 0) return '<none>';
  let count = 0;
  const shown: string[] = [];
  for (const { addresses: all = [], ports = [] } of subsets) {
    // Each address has each port, so the list of all pairs may be too long to build.
    count += (all ?? []).length * Math.max((ports ?? []).length, 1);
    const ips = (all ?? []).slice(0, shownMax).map(({ ip }) => ip ?? '');
    const first = (ports ?? []).slice(0, shownMax).map(({ port }) => port ?? 0);
    const pairs = first.flatMap((port) => ips.map((ip) => `${hostInUrl(ip)}:${port}`));
    appendAll(shown, (first.length === 0 ? ips : pairs).slice(0, shownMax - shown.length));
  }
  const more = count - shownMax;
  return more > 0 ? `${shown.join(',')} + ${more} more...` : shown.join(',');
}

const fillSteps = (object: Stored<Endpoints>): Generator<void, void> =>
  forEachSteps(object.subsets ?? [], ({ ports }) =>
    forEachSteps(ports ?? [], (port) => fill(port, { protocol: 'TCP' })),
  );

const validate = (object: Stored<Endpoints>) =>
  flatMapSteps(object.subsets ?? [], (subset, index) =>
    validateSubset(subset, `subsets[${index}]`),
  );

function* validateSubset(
  subset: Stored<EndpointSubset>,
  path: string,
): Generator<void, FieldError[]> {
  const lists = ['addresses', 'notReadyAddresses'];
  const errors = yield* flatMapSteps(lists, (name) =>
    flatMapSteps(objectsAt(subset, name), (address, index) =>
      validateAddress(address, `${path}.${name}[${index}]`),
    ),
  );
  if (lists.every((name) => listAt(subset, name).length === 0)) {
    errors.push(required(path, 'must specify `addresses` or `notReadyAddresses`'));
  }
  const ports = subset.ports ?? [];
  return [
    ...errors,
    ...(yield* flatMapSteps(ports, (port, index) =>
      validatePort(port, `${path}.ports[${index}]`, { mustHaveName: ports.length > 1 }),
    )),
  ];
}

function validateAddress(address: Stored<EndpointAddress>, path: string): FieldError[] {
  const ip = address.ip ?? '';
  const hostname = address.hostname ?? '';
  const nodeName = address.nodeName;
  return [
    ...validateIp(`${path}.ip`, ip),
    ...(hostname === '' ? [] : ruleErrors(`${path}.hostname`, hostname, dnsLabel)),
    ...(typeof nodeName === 'string' ? ruleErrors(`${path}.nodeName`, nodeName, dnsSubdomain) : []),
    ...validateNonSpecialIp(`${path}.ip`, ip),
  ];
}

function validatePort(
  port: Stored<EndpointPort>,
  path: string,
  options: { readonly mustHaveName: boolean },
): FieldError[] {
  const name = port.name ?? '';
  const application = port.appProtocol;
  const field = `${path}.name`;
  const unnamed = options.mustHaveName ? [required(field)] : [];
  return [
    ...(name === '' ? unnamed : ruleErrors(field, name, dnsLabel)),
    ...validatePortNumber(`${path}.port`, port.port ?? 0),
    ...validateChoiceIn(port, path, 'protocol', ['SCTP', 'TCP', 'UDP']),
    ...(typeof application === 'string'
      ? ruleErrors(`${path}.appProtocol`, application, qualifiedName)
      : []),
  ];
}
