import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  decoded,
  kindOf,
  type Mutation,
  mutated,
  type Row,
  testCreates,
  updateErrors,
} from '../kind.suite.ts';

const range = 'must be between 1 and 65535, inclusive';
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
  "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for " +
  "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

describe('Ingress', () => {
  test.each([
    [[], '*'],
    [['', ''], '*'],
    [['a', 'b', 'c'], 'a,b,c'],
    [['a', '', 'b', 'c'], 'a,b,c'],
    [['a', 'b', 'c', ''], 'a,b,c + 1 more...'],
    [['a', '', 'b', 'c', 'd'], 'a,b,c + 2 more...'],
  ])('the cell of hosts %j is %s', (hosts, cell) => {
    const [version] = kindOf('Ingress').versions;
    const column = version?.columns?.find(({ name }) => name === 'Hosts');
    const rules = hosts.map((host) => (host === '' ? {} : { host }));
    expect(column?.cell({ spec: { rules } }, 0)).toBe(cell);
  });
});

describe('NetworkPolicy', () => {
  const def = kindOf('NetworkPolicy');
  const good: JsonObject = {
    spec: {
      podSelector: { matchLabels: { a: 'b' } },
      ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 80 }] }],
    },
  };
  const port = (more: JsonObject): Mutation => ({ 'spec.ingress.0.ports.0': more });
  const block = (more: JsonObject): Mutation => ({ 'spec.egress': [{ to: [{ ipBlock: more }] }] });
  const rows: readonly Row[] = [
    [{}, []],
    [port({ port: 0 }), [`spec.ingress[0].ports[0].port: Invalid value: 0: ${range}`]],
    [port({ port: 80, endPort: 90 }), []],
    [
      port({ port: 80, endPort: 70 }),
      [
        'spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`',
      ],
    ],
    [
      port({ port: 'web', endPort: 90 }),
      [
        'spec.ingress[0].ports[0].endPort: Invalid value: 90: ' +
          'may not be specified when `port` is non-numeric',
      ],
    ],
    [
      port({ endPort: 90 }),
      [
        'spec.ingress[0].ports[0].endPort: Invalid value: 90: ' +
          'may not be specified when `port` is not specified',
      ],
    ],
    [
      port({ port: 1, protocol: 'ICMP' }),
      [
        'spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": ' +
          'supported values: "TCP", "UDP", "SCTP"',
      ],
    ],
    [
      { 'spec.ingress.0.from': [{}] },
      ['spec.ingress[0].from[0]: Required value: must specify a peer'],
    ],
    [
      { 'spec.ingress.0.from': [{ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }] },
      ['spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer'],
    ],
    [
      { 'spec.ingress.0.from': [{ podSelector: { matchLabels: { 'a b': '' } } }] },
      [expect.stringContaining('spec.ingress[0].from[0].podSelector.matchLabels') as string],
    ],
    [block({ cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] }), []],
    [block({}), ['spec.egress[0].to[0].ipBlock.cidr: Required value']],
    [
      block({ cidr: '10.0.0.0' }),
      [
        'spec.egress[0].to[0].ipBlock.cidr: Invalid value: "10.0.0.0": ' +
          'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      ],
    ],
    [
      block({ cidr: '10.0.0.0/8', except: ['10.0.0.0/8', '11.0.0.0/16'] }),
      [
        'spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "10.0.0.0/8": ' +
          'must be a strict subset of `cidr`',
        'spec.egress[0].to[0].ipBlock.except[1]: Invalid value: "11.0.0.0/16": ' +
          'must be a strict subset of `cidr`',
      ],
    ],
    [
      { 'spec.policyTypes': ['Ingress', 'Both'] },
      ['spec.policyTypes[1]: Unsupported value: "Both": supported values: "Ingress", "Egress"'],
    ],
    [
      { 'spec.policyTypes': ['Ingress', 'Egress', 'Egress'] },
      [
        'spec.policyTypes: Invalid value: []networking.PolicyType{"Ingress", "Egress", "Egress"}: ' +
          'may not specify more than two policyTypes',
      ],
    ],
  ];
  testCreates(def, good, rows);
});

describe('Ingress', () => {
  const def = kindOf('Ingress');
  const backend = { service: { name: 's', port: { number: 80 } } };
  const good: JsonObject = {
    spec: {
      rules: [
        { host: 'a.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } },
      ],
    },
  };
  const path = (more: JsonObject): Mutation => ({
    'spec.rules.0.http.paths.0': { backend, ...more },
  });
  const to = (more: JsonObject): Mutation => ({ 'spec.rules.0.http.paths.0.backend': more });
  const field = 'spec.rules[0].http.paths[0]';
  const rows: readonly Row[] = [
    [{}, []],
    [
      { spec: {} },
      [
        'spec: Invalid value: []networking.IngressRule(nil): ' +
          'either `defaultBackend` or `rules` must be specified',
      ],
    ],
    [
      { 'spec.rules.0.host': '1.2.3.4' },
      ['spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ],
    [{ 'spec.rules.0.host': 'A' }, [`spec.rules[0].host: Invalid value: "A": ${subdomain}`]],
    [{ 'spec.rules.0.host': '*.example.com' }, []],
    [
      { 'spec.rules.0.host': 'a.*.com' },
      [
        'spec.rules[0].host: Invalid value: "a.*.com": a wildcard DNS-1123 subdomain must start with ' +
          "'*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric " +
          "characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex " +
          "used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [{ 'spec.rules.0.http.paths': [] }, ['spec.rules[0].http.paths: Required value']],
    [path({ path: '/' }), [`${field}.pathType: Required value: pathType must be specified`]],
    [
      path({ path: '/', pathType: 'Odd' }),
      [
        `${field}.pathType: Unsupported value: "Odd": ` +
          'supported values: "Exact", "ImplementationSpecific", "Prefix"',
      ],
    ],
    [
      path({ path: 'a', pathType: 'Exact' }),
      [`${field}.path: Invalid value: "a": must be an absolute path`],
    ],
    [path({ path: '', pathType: 'ImplementationSpecific' }), []],
    [
      path({ path: '/a//b/..', pathType: 'Prefix' }),
      [
        `${field}.path: Invalid value: "/a//b/..": must not contain '//'`,
        `${field}.path: Invalid value: "/a//b/..": cannot end with '/..'`,
      ],
    ],
    [to({}), [`${field}.backend: Invalid value: "": resource or service backend is required`]],
    [
      to({ service: { name: 's' }, resource: { kind: 'K', name: 'n' } }),
      [`${field}.backend: Invalid value: "": cannot set both resource and service backends`],
    ],
    [
      to({ resource: {} }),
      [
        `${field}.backend.resource.kind: Required value: kind is required`,
        `${field}.backend.resource.name: Required value: name is required`,
      ],
    ],
    [
      to({ service: {} }),
      [
        `${field}.backend.service.name: Required value`,
        `${field}.backend: Required value: port name or number is required`,
      ],
    ],
    [
      to({ service: { name: 's', port: { name: 'web', number: 80 } } }),
      [`${field}.backend: Invalid value: "": cannot set both port name & port number`],
    ],
    [
      to({ service: { name: 's', port: { number: 70000 } } }),
      [`${field}.backend.service.port.number: Invalid value: 70000: ${range}`],
    ],
    [
      { 'spec.tls': [{ hosts: ['A'], secretName: 'B' }] },
      [
        `spec.tls[0].hosts[0]: Invalid value: "A": ${subdomain}`,
        `spec.tls[0].secretName: Invalid value: "B": ${subdomain}`,
      ],
    ],
    [{ 'spec.ingressClassName': 'A' }, [`spec.ingressClassName: Invalid value: "A": ${subdomain}`]],
    [
      { 'spec.ingressClassName': 'a', 'metadata.annotations': { 'svc.io/ingress.class': 'b' } },
      [
        'annotations.svc.io/ingress.class: Invalid value: "b": ' +
          'must match `ingressClassName` when both are specified',
      ],
    ],
  ];
  testCreates(def, good, rows);

  test('a new Ingress that states its class only in the annotation causes a warning', () => {
    const { warnings } = def.strategy;
    const annotation = { 'metadata.annotations': { 'svc.io/ingress.class': 'a' } };
    const alone = decoded(def, mutated(good, annotation));
    const both = decoded(def, mutated(good, { ...annotation, 'spec.ingressClassName': 'a' }));
    expect(warnings?.(alone, undefined)).toEqual([
      'annotation "svc.io/ingress.class" is deprecated, please use \'spec.ingressClassName\' instead',
    ]);
    expect(warnings?.(alone, alone)).toEqual([]);
    expect(warnings?.(both, undefined)).toEqual([]);
    expect(warnings?.(decoded(def, good), undefined)).toEqual([]);
  });

  test('an update may keep errors of the old object', () => {
    const from = mutated(good, { 'spec.tls': [{ secretName: 'B' }] });
    const to = mutated(from, { 'spec.rules.0.host': 'b.example.com' });
    expect(updateErrors(def, { from, to })).toEqual([]);
    expect(updateErrors(def, { from: good, to })).toHaveLength(1);
  });

  test('addresses in its status are validated', () => {
    const to = mutated(good, {
      'status.loadBalancer.ingress': [{ ip: 'x' }, { hostname: '1.2.3.4' }],
    });
    expect(updateErrors(def, { from: good, to }, { subresource: 'status' })).toEqual([
      'status.loadBalancer.ingress[0].ip: Invalid value: "x": ' +
        'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": ' +
        'must be a DNS name, not an IP address',
    ]);
  });
});

describe('IngressClass', () => {
  const def = kindOf('IngressClass');
  const parameters = { kind: 'K', name: 'n' };
  const good: JsonObject = { spec: { controller: 'example.com/c', parameters } };
  const rows: readonly Row[] = [
    [{}, []],
    [{ 'spec.controller': undefined }, ['spec.controller: Required value']],
    [
      { 'spec.controller': 'c' },
      [
        'spec.controller: Invalid value: "c": must be a domain-prefixed path (such as "acme.io/foo")',
      ],
    ],
    [
      { 'spec.controller': 'example.com/a b' },
      [
        'spec.controller: Invalid value: "a b": Invalid path (regex used for validation is ' +
          "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
      ],
    ],
    [
      { 'spec.controller': `example.com/${'a'.repeat(240)}` },
      ['spec.controller: Too long: may not be more than 250 bytes'],
    ],
    [
      { 'spec.parameters.scope': 'Odd' },
      ['spec.parameters.scope: Unsupported value: "Odd": supported values: "Cluster", "Namespace"'],
    ],
    [
      { 'spec.parameters.scope': 'Namespace' },
      ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ],
    [
      { 'spec.parameters.namespace': 'a' },
      ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ],
  ];
  testCreates(def, good, rows);

  test('its controller is immutable', () => {
    const to = mutated(good, { 'spec.controller': 'example.com/d' });
    expect(updateErrors(def, { from: good, to })).toEqual([
      'spec.controller: Invalid value: "example.com/d": field is immutable',
    ]);
  });
});

describe('Endpoints', () => {
  const def = kindOf('Endpoints');
  const good: JsonObject = {
    subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
  };
  const ip = 'subsets[0].addresses[0].ip';
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'subsets.0.addresses': undefined },
      ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`'],
    ],
    [
      { 'subsets.0.addresses.0.ip': 'x' },
      [
        `${ip}: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
        `${ip}: Invalid value: "x": must be a valid IP address`,
      ],
    ],
    [
      { 'subsets.0.addresses.0.ip': '169.254.1.1' },
      [
        `${ip}: Invalid value: "169.254.1.1": ` +
          'may not be in the link-local range (169.254.0.0/16, fe80::/10)',
      ],
    ],
    [
      { 'subsets.0.addresses.0.ip': '224.0.0.1' },
      [
        `${ip}: Invalid value: "224.0.0.1": ` +
          'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
      ],
    ],
    [
      { 'subsets.0.addresses.0.ip': 'ff12::1' },
      [
        `${ip}: Invalid value: "ff12::1": ` +
          'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
      ],
    ],
    [
      { 'subsets.0.addresses.0.ip': '::' },
      [`${ip}: Invalid value: "::": may not be unspecified (::)`],
    ],
    [
      { 'subsets.0.addresses.0.nodeName': 'A' },
      [`subsets[0].addresses[0].nodeName: Invalid value: "A": ${subdomain}`],
    ],
    [
      { 'subsets.0.ports': [{ port: 1 }, { port: 0, protocol: 'X', name: 'b' }] },
      [
        'subsets[0].ports[0].name: Required value',
        `subsets[0].ports[1].port: Invalid value: 0: ${range}`,
        'subsets[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
      ],
    ],
  ];
  testCreates(def, good, rows);
});

describe('EndpointSlice', () => {
  const def = kindOf('EndpointSlice');
  const good: JsonObject = {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ports: [{ name: 'a', port: 80 }],
  };
  const rows: readonly Row[] = [
    [{}, []],
    [{ addressType: undefined }, ['addressType: Required value']],
    [
      { addressType: 'IPv6' },
      ['endpoints[0].addresses[0]: Invalid value: "10.0.0.1": must be a valid IPv6 address'],
    ],
    [
      { addressType: 'FQDN', 'endpoints.0.addresses': ['host', 'a.b'] },
      [
        'endpoints[0].addresses[0]: Invalid value: "host": ' +
          'should be a domain with at least two segments separated by dots',
      ],
    ],
    [
      { addressType: 'FQDN', 'endpoints.0.addresses': [`a.${'x'.repeat(64)}.b`] },
      [
        `endpoints[0].addresses[0]: Invalid value: "${'x'.repeat(64)}": ` +
          'must be no more than 63 characters',
      ],
    ],
    [
      { 'endpoints.0.addresses': [] },
      ['endpoints[0].addresses: Required value: must contain at least 1 address'],
    ],
    [
      { 'endpoints.0.addresses': Array(101).fill('10.0.0.1') },
      ['endpoints[0].addresses: Too many: 101: must have at most 100 items'],
    ],
    [
      { endpoints: Array(1001).fill({ addresses: ['10.0.0.1'] }) },
      ['endpoints: Too many: 1001: must have at most 1000 items'],
    ],
    [
      { 'endpoints.0.hints.forZones': [{ name: 'a' }, { name: 'a' }] },
      ['endpoints[0].hints.forZones[1].name: Duplicate value: "a"'],
    ],
    [
      { 'endpoints.0.addresses': ['127.0.0.1'] },
      [
        'endpoints[0].addresses[0]: Invalid value: "127.0.0.1": ' +
          'may not be in the loopback range (127.0.0.0/8, ::1/128)',
      ],
    ],
    [
      { ports: [{ name: 'a' }, { name: 'a', protocol: 'X' }] },
      [
        'ports[1].name: Duplicate value: "a"',
        'ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
      ],
    ],
  ];
  testCreates(def, good, rows);
});
