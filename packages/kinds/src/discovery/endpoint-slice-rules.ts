import {
  appendAll,
  breaks,
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
  tooMany,
} from '@wheelhouse/machinery';
import { sizeAt } from '../cells.ts';
import { nonSpecialIp } from '../core/addresses.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../gen/types/discovery/v1.ts';
import { oneOf } from '../pod/fields.ts';
import { validateLabels } from '../pod/template.ts';
import type { Stored } from '../stored.ts';

const endpointsMax = 1000;
const portsMax = 20000;
const addressesMax = 100;
const topologyLabelsMax = 16;
const zoneHintsMax = 8;

/** All that is wrong with an EndpointSlice but for its metadata. */
export function validateEndpointSlice(object: Stored<EndpointSlice>): FieldError[] {
  return [
    ...oneOf(object, 'addressType', ['FQDN', 'IPv4', 'IPv6']),
    ...validateEndpoints(object),
    ...validatePorts(object.ports ?? []),
  ];
}

function validateEndpoints(object: Stored<EndpointSlice>): FieldError[] {
  const endpoints = object.endpoints ?? [];
  if (endpoints.length > endpointsMax) {
    return [tooMany('endpoints', endpoints.length, endpointsMax)];
  }
  const addressType = object.addressType ?? '';
  return endpoints.flatMap((endpoint, index) => {
    const path = `endpoints[${index}]`;
    const nodeName = endpoint.nodeName;
    const hostname = endpoint.hostname;
    return [
      ...validateAddresses(endpoint, `${path}.addresses`, addressType),
      ...optionalName(nodeName, `${path}.nodeName`, dnsSubdomain),
      ...validateTopology(endpoint, `${path}.deprecatedTopology`),
      ...optionalName(hostname, `${path}.hostname`, dnsLabel),
      ...validateHints(endpoint, `${path}.hints.forZones`),
    ];
  });
}

const optionalName = (value: JsonValue | undefined, field: string, rule: typeof dnsLabel) =>
  typeof value === 'string' ? breaks(field, value, rule) : [];

function validateAddresses(endpoint: Stored<Endpoint>, path: string, type: string): FieldError[] {
  const addresses = (endpoint.addresses ?? []).map(String);
  const errors: FieldError[] = [];
  if (addresses.length === 0) errors.push(required(path, 'must contain at least 1 address'));
  if (addresses.length > addressesMax) {
    errors.push(tooMany(path, addresses.length, addressesMax));
  }
  const rule = Object.hasOwn(addressRules, type) ? addressRules[type] : undefined;
  addresses.forEach((address, index) => {
    appendAll(errors, rule?.(`${path}[${index}]`, address) ?? []);
  });
  return errors;
}

type AddressRule = (field: string, address: string) => FieldError[];

const ofFamily =
  (family: 4 | 6): AddressRule =>
  (field, address) => {
    const isRight = parseIpAddress(address)?.family === family;
    const wrong = isRight ? [] : [invalid(field, address, `must be a valid IPv${family} address`)];
    return [...wrong, ...nonSpecialIp(field, address)];
  };

const addressRules: Readonly<Record<string, AddressRule>> = {
  IPv4: ofFamily(4),
  IPv6: ofFamily(6),
  FQDN: (field, address) => {
    if (address === '') return [required(field)];
    const name = address.replace(/\.$/, '');
    const messages = dnsSubdomain(name);
    if (messages.length > 0) return [invalid(field, name, messages.join(','))];
    if (name.includes('.')) return [];
    return [
      invalid(field, name, 'should be a domain with at least two segments separated by dots'),
    ];
  },
};

function validateTopology(endpoint: Stored<Endpoint>, path: string): FieldError[] {
  const size = sizeAt(endpoint, 'deprecatedTopology');
  return [
    ...(size > topologyLabelsMax ? [tooMany(path, size, topologyLabelsMax)] : []),
    ...validateLabels(endpoint.deprecatedTopology, path),
  ];
}

function validateHints(endpoint: Stored<Endpoint>, path: string): FieldError[] {
  const zones = endpoint.hints?.forZones ?? [];
  if (zones.length > zoneHintsMax) return [tooMany(path, zones.length, zoneHintsMax)];
  const names = new Set<string>();
  return zones.flatMap((zone, index) => {
    const name = zone.name ?? '';
    const field = `${path}[${index}].name`;
    const repeated = names.has(name) ? [duplicate(field, name)] : [];
    names.add(name);
    return [...repeated, ...breaks(field, name, labelValue)];
  });
}

function validatePorts(ports: readonly Stored<EndpointPort>[]): FieldError[] {
  if (ports.length > portsMax) return [tooMany('ports', ports.length, portsMax)];
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const path = `ports[${index}]`;
    const name = port.name ?? '';
    const errors = name === '' ? [] : breaks(`${path}.name`, name, dnsLabel);
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
    return [
      ...errors,
      ...protocolRule(port, `${path}.protocol`),
      ...optionalName(port.appProtocol, `${path}.appProtocol`, qualifiedName),
    ];
  });
}

function protocolRule(port: Stored<EndpointPort>, field: string): FieldError[] {
  const protocol = port.protocol;
  if (protocol === undefined) return [required(field)];
  const allowed = ['SCTP', 'TCP', 'UDP'];
  return allowed.includes(String(protocol)) ? [] : [notSupported(field, protocol, allowed)];
}
