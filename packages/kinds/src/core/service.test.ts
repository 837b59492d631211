import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  decoded,
  kindOf,
  mutated,
  type Row,
  testCreates,
  testUpdates,
  updateErrors,
} from '../kind.suite.ts';

const def = kindOf('Service');
const good: JsonObject = {
  spec: {
    type: 'NodePort',
    ports: [{ name: 'web', port: 80 }],
    selector: { app: 'a' },
    clusterIP: '10.0.0.5',
    clusterIPs: ['10.0.0.5'],
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  },
};
const dns1123 =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must " +
  "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " +
  "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const range = 'must be between 1 and 65535, inclusive';

const creates: readonly Row[] = [
  [{}, []],
  [{ 'spec.ports': undefined }, ['spec.ports: Required value']],
  [
    { 'spec.ports.0.port': 0 },
    [
      `spec.ports[0].port: Invalid value: 0: ${range}`,
      `spec.ports[0].targetPort: Invalid value: 0: ${range}`,
    ],
  ],
  [{ 'spec.ports.0.name': 'A' }, [`spec.ports[0].name: Invalid value: "A": ${dns1123}`]],
  [
    { 'spec.ports.0.protocol': 'ICMP' },
    ['spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"'],
  ],
  [
    { 'spec.ports.0.targetPort': 'no_good' },
    [
      'spec.ports[0].targetPort: Invalid value: "no_good": ' +
        'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
    ],
  ],
  [{ 'spec.ports.1': { port: 81 } }, ['spec.ports[1].name: Required value']],
  [{ 'spec.ports.1': { name: 'web', port: 81 } }, ['spec.ports[1].name: Duplicate value: "web"']],
  [
    { 'spec.ports.1': { name: 'two', port: 80 } },
    [
      'spec.ports[1]: Duplicate value: core.ServicePort{Name:"", Protocol:"TCP", ' +
        'AppProtocol:(*string)(nil), Port:80, ' +
        'TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:""}, NodePort:0}',
    ],
  ],
  [
    {
      'spec.ports': [
        { name: 'a', port: 1, nodePort: 30000 },
        { name: 'b', port: 2, nodePort: 30000 },
      ],
    },
    ['spec.ports[1].nodePort: Duplicate value: 30000'],
  ],
  [
    { 'spec.type': 'ClusterIP', 'spec.ports.0.nodePort': 30000 },
    ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
  ],
  [
    { 'spec.type': 'Other' },
    [
      'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", ' +
        '"LoadBalancer", "NodePort"',
    ],
  ],
  [
    { 'spec.sessionAffinity': 'Odd' },
    ['spec.sessionAffinity: Unsupported value: "Odd": supported values: "ClientIP", "None"'],
  ],
  [
    {
      'spec.sessionAffinity': 'ClientIP',
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds': 86401,
    },
    [
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: ' +
        'must be greater than 0 and less than 86400',
    ],
  ],
  [
    { 'spec.selector': { 'a b': 'c' } },
    [
      expect.stringMatching(/^spec\.selector: Invalid value: "a b": name part must consist of/),
    ] as unknown as string[],
  ],
  [
    { 'spec.clusterIP': 'None', 'spec.clusterIPs': ['None'] },
    ['spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for NodePort services'],
  ],
  [
    { 'spec.clusterIP': '10.0.0.6' },
    ['spec.clusterIPs: Invalid value: []string{"10.0.0.5"}: first value must match `clusterIP`'],
  ],
  [
    { 'spec.clusterIP': undefined },
    [
      'spec.clusterIPs: Invalid value: []string{"10.0.0.5"}: ' +
        'must be empty when `clusterIP` is not specified',
    ],
  ],
  [
    { 'spec.clusterIP': 'x', 'spec.clusterIPs': ['x'] },
    [
      'spec.clusterIPs[0]: Invalid value: "x": ' +
        'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
  ],
  [
    { 'spec.clusterIPs': ['10.0.0.5', '10.0.0.6'] },
    [
      'spec.clusterIPs: Invalid value: []string{"10.0.0.5", "10.0.0.6"}: ' +
        'may specify no more than one IP for each IP family',
    ],
  ],
  [
    { 'spec.clusterIPs': ['10.0.0.5', 'fd00::1', 'fd00::2'] },
    [
      'spec.clusterIPs: Invalid value: []string{"10.0.0.5", "fd00::1", "fd00::2"}: ' +
        'may only hold up to 2 values',
    ],
  ],
  [
    { 'spec.ipFamilies': ['IPv6'] },
    [
      'spec.clusterIPs[0]: Invalid value: "10.0.0.5": ' +
        'expected an IPv6 value as indicated by `ipFamilies[0]`',
    ],
  ],
  [
    { 'spec.ipFamilies': ['IPv4', 'IPv4', 'IPx'] },
    [
      'spec.ipFamilies[1]: Duplicate value: "IPv4"',
      'spec.ipFamilies[2]: Unsupported value: "IPx": supported values: "IPv4", "IPv6"',
    ],
  ],
  [
    { 'spec.ipFamilyPolicy': 'Any' },
    [
      'spec.ipFamilyPolicy: Unsupported value: "Any": supported values: "PreferDualStack", ' +
        '"RequireDualStack", "SingleStack"',
    ],
  ],
  [
    { 'spec.externalIPs': ['127.0.0.1', 'x'] },
    [
      'spec.externalIPs[0]: Invalid value: "127.0.0.1": ' +
        'may not be in the loopback range (127.0.0.0/8, ::1/128)',
      'spec.externalIPs[1]: Invalid value: "x": ' +
        'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
  ],
  [
    { 'spec.loadBalancerSourceRanges': ['10.0.0.0/99'] },
    [
      "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
      'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.0/99": ' +
        'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
  ],
  [
    { 'spec.allocateLoadBalancerNodePorts': true, 'spec.loadBalancerClass': 'a.b/c' },
    [
      "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
      "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
    ],
  ],
  [
    { 'spec.externalTrafficPolicy': 'Odd' },
    ['spec.externalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"'],
  ],
  [
    { 'spec.type': 'ClusterIP', 'spec.externalTrafficPolicy': 'Local' },
    [
      'spec.externalTrafficPolicy: Invalid value: "Local": ' +
        'may only be set for externally-accessible services',
    ],
  ],
  [
    { 'spec.healthCheckNodePort': 30000 },
    [
      'spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is ' +
        "'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    ],
  ],
  [
    { 'spec.type': 'LoadBalancer', 'spec.externalTrafficPolicy': 'Local' },
    ['spec.healthCheckNodePort: Required value'],
  ],
  [
    { 'spec.internalTrafficPolicy': 'Odd', 'spec.trafficDistribution': 'Odd' },
    [
      'spec.internalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"',
      'spec.trafficDistribution: Unsupported value: "Odd": supported values: "PreferClose"',
    ],
  ],
  [
    {
      spec: {
        type: 'ExternalName',
        ipFamilyPolicy: 'SingleStack',
        ipFamilies: ['IPv4'],
        clusterIPs: ['None'],
      },
    },
    [
      'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
      'spec.ipFamilies: Forbidden: may not be set for ExternalName services',
      'spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services',
      'spec.externalName: Required value',
    ],
  ],
  [{ spec: { type: 'ExternalName', externalName: 'example.com.' } }, []],
  [
    {
      'metadata.annotations': {
        'service.svc.io/topology-aware-hints': 'auto',
        'service.svc.io/topology-mode': 'Auto',
      },
    },
    [
      'metadata.annotations[service.svc.io/topology-mode]: Invalid value: "Auto": must match ' +
        'annotations[service.svc.io/topology-aware-hints] when both are specified',
    ],
  ],
];

describe('creates', () => {
  testCreates(def, good, creates);
});

const immutableDetail = 'may not change once set';
const updates: readonly Row[] = [
  [{ 'spec.selector': { app: 'b' } }, []],
  [
    { 'spec.clusterIP': '10.0.0.6', 'spec.clusterIPs': ['10.0.0.6'] },
    [`spec.clusterIPs[0]: Invalid value: []string{"10.0.0.6"}: ${immutableDetail}`],
  ],
  [
    { 'spec.clusterIP': undefined, 'spec.clusterIPs': undefined },
    ['spec.clusterIPs[0]: Invalid value: []string(nil): primary clusterIP can not be unset'],
  ],
  [
    { 'spec.ipFamilies': ['IPv6'] },
    [
      `spec.ipFamilies[0]: Invalid value: []core.IPFamily{"IPv6"}: ${immutableDetail}`,
      'spec.clusterIPs[0]: Invalid value: "10.0.0.5": ' +
        'expected an IPv6 value as indicated by `ipFamilies[0]`',
    ],
  ],
  [{ 'spec.clusterIPs': ['10.0.0.5', 'fd00::1'], 'spec.ipFamilies': ['IPv4', 'IPv6'] }, []],
];

describe('updates', () => {
  testUpdates(def, good, updates);

  test('the load balancer class is immutable', () => {
    const from = mutated(good, { 'spec.type': 'LoadBalancer', 'spec.loadBalancerClass': 'a/b' });
    const to = mutated(from, { 'spec.loadBalancerClass': 'a/c' });
    expect(updateErrors(def, { from, to })).toEqual([
      `spec.loadBalancerClass: Invalid value: "a/c": ${immutableDetail}`,
    ]);
  });

  test.each<[JsonObject, readonly string[]]>([
    [{ ip: '1.2.3.4' }, []],
    [
      { ip: '1.2.3.4', ipMode: 'Odd' },
      [
        'status.loadBalancer.ingress[0].ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"',
      ],
    ],
    [
      { hostname: '1.2.3.4', ipMode: 'VIP' },
      [
        'status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set',
        'status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": ' +
          'must be a DNS name, not an IP address',
      ],
    ],
  ])('status %j', (ingress, expected) => {
    const from = mutated(good, { 'spec.type': 'LoadBalancer' });
    const to = mutated(from, { 'status.loadBalancer.ingress': [ingress] });
    expect(updateErrors(def, { from, to }, { subresource: 'status' })).toEqual(expected);
  });

  test('only the status of a load balancer may have addresses', () => {
    const to = mutated(good, { 'status.loadBalancer.ingress': [{ ip: '1.2.3.4' }] });
    expect(updateErrors(def, { from: good, to }, { subresource: 'status' })).toEqual([
      "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
    ]);
  });
});

describe('defaults', () => {
  test.each<[JsonObject, JsonObject]>([
    [{ type: 'ClusterIP' }, { internalTrafficPolicy: 'Cluster', sessionAffinity: 'None' }],
    [{ externalIPs: ['1.2.3.4'] }, { externalTrafficPolicy: 'Cluster' }],
    [{ type: 'LoadBalancer' }, { allocateLoadBalancerNodePorts: true }],
    [
      { sessionAffinity: 'ClientIP' },
      { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } } },
    ],
    [{ ports: [{ port: 8 }] }, { ports: [{ port: 8, protocol: 'TCP', targetPort: 8 }] }],
  ])('%j', (spec, expected) => {
    expect(decoded(def, { spec })['spec']).toMatchObject(expected);
  });

  test('an ExternalName has no traffic policies', () => {
    const { spec } = decoded(def, { spec: { type: 'ExternalName' } }) as unknown as {
      spec: object;
    };
    expect(spec).not.toHaveProperty('internalTrafficPolicy');
    expect(spec).not.toHaveProperty('externalTrafficPolicy');
  });
});
