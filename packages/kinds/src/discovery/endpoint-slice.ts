import {
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  invalid,
  type JsonValue,
  labelValue,
  notSupported,
  parseIpAddress,
  qualifiedName,
  required,
  ruleErrors,
  tooMany,
} from '@wheelhouse/machinery';
import { ageColumn, column, firstValues, listAt, nameColumn, sizeAt, textAt } from '../cells.ts';
import { validateNonSpecialIp } from '../core/addresses.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../gen/types/discovery/v1.ts';
import { labelErrorSteps, validateChoice } from '../pod/fields.ts';
import type { ColumnDef, ResourceDef, Stored, StrategyContext } from '../resource-def.ts';
import { flatMapSteps, immutable, sameOrEmpty, sameOrEmptySteps } from '../rules/checks.ts';
import { fillAbsent, forEachSteps, objectsAt } from '../rules/fill.ts';

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('AddressType', (object) => textAt(object, 'addressType'), {
    description: 'Type of the addresses.',
  }),
  column(
    'Ports',
    (object) =>
      listCell(
        objectsAt(object, 'ports').map((port) => String(port['port'] ?? port['name'] ?? '*')),
      ),
    { description: 'Ports of all endpoints.' },
  ),
  column(
    'Endpoints',
    (object) =>
      listCell(
        objectsAt(object, 'endpoints').flatMap((endpoint) =>
          listAt(endpoint, 'addresses').map(String),
        ),
      ),
    { description: 'Addresses of the endpoints.' },
  ),
  ageColumn,
];

/** EndpointSlice: a subset of the addresses behind a Service. */
export function endpointSlice(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const nodeLabel = dialect.label('hostname');
  return defineKind<EndpointSlice>({
    dialect,
    features,
    facts: 'discovery',
    kind: 'EndpointSlice',
    scope: 'Namespaced',
    versions: [{ version: 'v1', ...steppedDefaults(fillSteps), columns }],
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      prepareForCreate: (context, object) => {
        object.metadata.generation = 1;
        return dropTopology(context, object, undefined, nodeLabel);
      },
      *prepareForUpdate(context, object, old) {
        const areSame = yield* sameOrEmptySteps(object.endpoints, old.endpoints);
        if (!areSame || !(yield* isRestSame(object, old))) {
          object.metadata.generation = (old.metadata.generation ?? 0) + 1;
        }
        if (!areSame) yield* dropTopology(context, object, old, nodeLabel);
      },
      validateCreate: (_, object) => validateEndpointSlice(object),
      *validateUpdate(_, object, old) {
        const errors = yield* validateEndpointSlice(object);
        return [...errors, ...immutable('addressType', object.addressType, old.addressType)];
      },
      warnings: (object, old) =>
        old === undefined && (object.addressType ?? '') === 'FQDN'
          ? ['spec.addressType: FQDN endpoints are deprecated']
          : [],
    },
    example: () => ({
      metadata: { name: 'example-1', namespace: 'default' },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 8080 }],
    }),
  });
}

const fillSteps = (object: Stored<EndpointSlice>): Generator<void, void> =>
  forEachSteps(object.ports ?? [], (port) => {
    if (port.name === undefined) port.name = '';
    fillAbsent(port, { protocol: 'TCP' });
  });

const listCell = (values: readonly string[]): string => firstValues(values) || '<unset>';

/**
 * Drops the deprecated topology labels of new or changed endpoints that a client writes, but takes
 * the node's name from them if the old object has it there, so that writing back a read object does
 * not lose it. Takes steps (TRUST-2).
 */
function* dropTopology(
  context: StrategyContext,
  object: Stored<EndpointSlice>,
  old: Stored<EndpointSlice> | undefined,
  nodeLabel: string,
): Generator<void, void> {
  if (context.version === 'v1beta1') return;
  const nodeOf = (endpoint: Stored<Endpoint>) => textAt(endpoint.deprecatedTopology, nodeLabel);
  const oldNodes = new Set<string>();
  yield* forEachSteps(old?.endpoints ?? [], (endpoint) => {
    oldNodes.add(nodeOf(endpoint));
  });
  yield* forEachSteps(object.endpoints ?? [], (endpoint) => {
    const node = nodeOf(endpoint);
    if (endpoint.nodeName === undefined && node !== '' && oldNodes.has(node)) {
      endpoint.nodeName = node;
    }
    delete endpoint.deprecatedTopology;
  });
}

/** Whether an update changes neither the labels nor any other member than `endpoints`, in steps. */
function* isRestSame(
  object: Stored<EndpointSlice>,
  old: Stored<EndpointSlice>,
): Generator<void, boolean> {
  return (
    (yield* sameOrEmptySteps(object.metadata.labels, old.metadata.labels)) &&
    (yield* sameOrEmptySteps(object.ports, old.ports)) &&
    sameOrEmpty(object.addressType, old.addressType)
  );
}

/** Validates an EndpointSlice except its metadata. */
function* validateEndpointSlice(object: Stored<EndpointSlice>): Generator<void, FieldError[]> {
  return [
    ...validateChoice('addressType', object.addressType ?? '', ['FQDN', 'IPv4', 'IPv6']),
    ...(yield* validateEndpoints(object)),
    ...(yield* validatePorts(object.ports ?? [])),
  ];
}

const endpointsMax = 1000;

function* validateEndpoints(object: Stored<EndpointSlice>): Generator<void, FieldError[]> {
  const endpoints = object.endpoints ?? [];
  if (endpoints.length > endpointsMax) {
    return [tooMany('endpoints', endpoints.length, endpointsMax)];
  }
  const addressType = object.addressType ?? '';
  return yield* flatMapSteps(endpoints, function* (endpoint, index) {
    const path = `endpoints[${index}]`;
    const nodeName = endpoint.nodeName;
    const hostname = endpoint.hostname;
    return [
      ...(yield* validateAddresses(endpoint, `${path}.addresses`, addressType)),
      ...optionalName(nodeName, `${path}.nodeName`, dnsSubdomain),
      ...(yield* validateTopology(endpoint, `${path}.deprecatedTopology`)),
      ...optionalName(hostname, `${path}.hostname`, dnsLabel),
      ...validateHints(endpoint, `${path}.hints.forZones`),
    ];
  });
}

const addressesMax = 100;

type AddressRule = (field: string, address: string) => FieldError[];

const ofFamily =
  (family: 4 | 6): AddressRule =>
  (field, address) => {
    const isValid = parseIpAddress(address)?.family === family;
    const detail = `must be a valid IPv${family} address`;
    const errors = isValid ? [] : [invalid(field, address, detail)];
    return [...errors, ...validateNonSpecialIp(field, address)];
  };

const addressRules: Readonly<Record<string, AddressRule>> = {
  IPv4: ofFamily(4),
  IPv6: ofFamily(6),
  FQDN: (field, address) => {
    if (address === '') return [required(field)];
    const name = address.replace(/\.$/, '');
    const messages = dnsSubdomain(name);
    if (messages.length > 0) return [invalid(field, name, messages.join(','))];
    const labels = name.split('.');
    if (labels.length < 2) {
      return [
        invalid(field, name, 'should be a domain with at least two segments separated by dots'),
      ];
    }
    const wrong = labels.find((label) => dnsLabel(label).length > 0);
    return wrong === undefined ? [] : [invalid(field, wrong, dnsLabel(wrong).join(','))];
  },
};

function* validateAddresses(
  endpoint: Stored<Endpoint>,
  path: string,
  type: string,
): Generator<void, FieldError[]> {
  const addresses = (endpoint.addresses ?? []).map(String);
  const errors: FieldError[] = [];
  if (addresses.length === 0) errors.push(required(path, 'must contain at least 1 address'));
  if (addresses.length > addressesMax) errors.push(tooMany(path, addresses.length, addressesMax));
  const rule = Object.hasOwn(addressRules, type) ? addressRules[type] : undefined;
  if (rule === undefined) return errors;
  const ofEach = yield* flatMapSteps(addresses, (address, index) =>
    rule(`${path}[${index}]`, address),
  );
  return [...errors, ...ofEach];
}

const optionalName = (value: JsonValue | undefined, field: string, rule: typeof dnsLabel) =>
  typeof value === 'string' ? ruleErrors(field, value, rule) : [];

const topologyLabelsMax = 16;

function* validateTopology(
  endpoint: Stored<Endpoint>,
  path: string,
): Generator<void, FieldError[]> {
  const size = sizeAt(endpoint, 'deprecatedTopology');
  return [
    ...(size > topologyLabelsMax ? [tooMany(path, size, topologyLabelsMax)] : []),
    ...(yield* labelErrorSteps(endpoint.deprecatedTopology, path)),
  ];
}

const zoneHintsMax = 8;

function validateHints(endpoint: Stored<Endpoint>, path: string): FieldError[] {
  const zones = endpoint.hints?.forZones ?? [];
  if (zones.length > zoneHintsMax) return [tooMany(path, zones.length, zoneHintsMax)];
  const names = new Set<string>();
  return zones.flatMap((zone, index) => {
    const name = zone.name ?? '';
    const field = `${path}[${index}].name`;
    const repeated = names.has(name) ? [duplicate(field, name)] : [];
    names.add(name);
    return [...repeated, ...ruleErrors(field, name, labelValue)];
  });
}

const portsMax = 20000;

function* validatePorts(ports: readonly Stored<EndpointPort>[]): Generator<void, FieldError[]> {
  if (ports.length > portsMax) return [tooMany('ports', ports.length, portsMax)];
  const names = new Set<string>();
  return yield* flatMapSteps(ports, (port, index) => {
    const path = `ports[${index}]`;
    const name = port.name ?? '';
    const errors = name === '' ? [] : ruleErrors(`${path}.name`, name, dnsLabel);
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
    return [
      ...errors,
      ...validateProtocol(port, `${path}.protocol`),
      ...optionalName(port.appProtocol, `${path}.appProtocol`, qualifiedName),
    ];
  });
}

function validateProtocol(port: Stored<EndpointPort>, field: string): FieldError[] {
  const protocol = port.protocol;
  if (protocol === undefined) return [required(field)];
  const allowed = ['SCTP', 'TCP', 'UDP'];
  return allowed.includes(String(protocol)) ? [] : [notSupported(field, protocol, allowed)];
}
