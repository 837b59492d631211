import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  createErrors,
  decoded,
  kindOf,
  mutated,
  type Row,
  rowTitle,
  runPreparation,
  testCreates,
  testUpdates,
  updateErrors,
} from '../kind.suite.ts';

const quantity = (value: string, text: string) =>
  `resource.Quantity{i:resource.int64Amount{${value}}, ` +
  `d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"${text}", Format:"DecimalSI"}`;

describe('ResourceQuota', () => {
  const def = kindOf('ResourceQuota');
  const good: JsonObject = { spec: { hard: { pods: '1', 'requests.cpu': '1' } } };
  const selector = (...expressions: JsonObject[]) => ({
    'spec.scopeSelector.matchExpressions': expressions,
  });
  const at = 'spec.scopeSelector.matchExpressions';
  const rows: readonly Row[] = [
    [{}, []],
    [{ 'spec.hard': { 'count/deployments.apps': '1', 'requests.nvidia.com/gpu': '1' } }, []],
    [
      { 'spec.hard': { foo: '1' } },
      [
        'spec.hard[foo]: Invalid value: foo: must be a standard resource type or fully qualified',
        'spec.hard[foo]: Invalid value: foo: must be a standard resource for quota',
      ],
    ],
    [
      { 'spec.hard': { storage: '1' } },
      ['spec.hard[storage]: Invalid value: storage: must be a standard resource for quota'],
    ],
    [
      { 'spec.hard': { pods: '1500m', memory: '-1' } },
      [
        'spec.hard[memory]: Invalid value: "-1": must be greater than or equal to 0',
        `spec.hard[pods]: Invalid value: ${quantity('value:1500, scale:-3', '1500m')}: must be an integer`,
      ],
    ],
    [
      { 'spec.scopes': ['Odd'] },
      ['spec.scopes: Invalid value: []core.ResourceQuotaScope{"Odd"}: unsupported scope'],
    ],
    [
      { 'spec.scopes': ['BestEffort'] },
      [
        'spec.scopes: Invalid value: []core.ResourceQuotaScope{"BestEffort"}: ' +
          'unsupported scope applied to resource',
      ],
    ],
    [
      { 'spec.hard': { pods: '1' }, 'spec.scopes': ['BestEffort', 'NotBestEffort'] },
      [
        'spec.scopes: Invalid value: []core.ResourceQuotaScope{"BestEffort", "NotBestEffort"}: ' +
          'conflicting scopes',
      ],
    ],
    [selector({ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }), []],
    [
      selector({ scopeName: 'PriorityClass', operator: 'In' }),
      [
        `${at}.values: Required value: must be at least one value when \`operator\` is 'In' or ` +
          "'NotIn' for scope selector",
      ],
    ],
    [
      selector({ scopeName: 'Terminating', operator: 'In', values: ['x'] }),
      [
        `${at}.operator: Invalid value: "In": must be 'Exists' when scope is any of ` +
          'ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ' +
          'ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ' +
          'ResourceQuotaScopeCrossNamespacePodAffinity',
      ],
    ],
    [
      selector({ scopeName: 'Odd', operator: 'Exists', values: ['x'] }),
      [
        `${at}.scopeName: Invalid value: "Odd": unsupported scope`,
        `${at}.values: Invalid value: []string{"x"}: must be no value when \`operator\` is ` +
          "'Exist' or 'DoesNotExist' for scope selector",
      ],
    ],
    [
      selector({ scopeName: 'BestEffort', operator: 'Exists' }),
      [
        `${at}: Invalid value: core.ScopeSelector{MatchExpressions:` +
          '[]core.ScopedResourceSelectorRequirement{core.ScopedResourceSelectorRequirement{' +
          'ScopeName:"BestEffort", Operator:"Exists", Values:[]string(nil)}}}: ' +
          'unsupported scope applied to resource',
      ],
    ],
    [
      selector({ scopeName: 'PriorityClass', operator: 'Odd' }),
      [`${at}.operator: Invalid value: "Odd": not a valid selector operator`],
    ],
  ];
  testCreates(def, good, rows);

  test('its scopes are immutable', () => {
    const to = mutated(good, { 'spec.scopes': ['NotBestEffort'] });
    expect(updateErrors(def, { from: good, to })).toEqual([
      'spec.scopes: Invalid value: []core.ResourceQuotaScope{"NotBestEffort"}: field is immutable',
    ]);
  });

  test('names and amounts of resources in its status are validated', () => {
    const to = mutated(good, { 'status.used': { pods: '-1', odd: '1' } });
    expect(updateErrors(def, { from: good, to }, { subresource: 'status' })).toEqual([
      'status.used[odd]: Invalid value: odd: must be a standard resource type or fully qualified',
      'status.used[odd]: Invalid value: odd: must be a standard resource for quota',
      'status.used[pods]: Invalid value: "-1": must be greater than or equal to 0',
    ]);
  });
});

describe('LimitRange', () => {
  const def = kindOf('LimitRange');
  const good: JsonObject = {
    spec: { limits: [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '1' } }] },
  };
  const limit = (more: JsonObject) => ({ 'spec.limits': [more] });
  const at = 'spec.limits[0]';
  const rows: readonly Row[] = [
    [{}, []],
    [
      limit({ type: 'Node' }),
      [`${at}.type: Invalid value: "Node": must be a standard limit type or fully qualified`],
    ],
    [
      { 'spec.limits': [{ type: 'Container' }, { type: 'Container' }] },
      ['spec.limits[1].type: Duplicate value: "Container"'],
    ],
    [
      limit({ type: 'Pod', max: { pods: '1' } }),
      [`${at}.max[pods]: Invalid value: pods: must be a standard resource for containers`],
    ],
    [
      limit({ type: 'Pod', default: { cpu: '1' } }),
      [`${at}.default: Forbidden: may not be specified when \`type\` is 'Pod'`],
    ],
    [
      limit({ type: 'PersistentVolumeClaim', max: { cpu: '1' } }),
      [
        `${at}.limits: Required value: either minimum or maximum storage value is required, ` +
          'but neither was provided',
      ],
    ],
    [limit({ type: 'PersistentVolumeClaim', max: { storage: '1' } }), []],
    [
      limit({ type: 'Container', min: { cpu: '3' }, max: { cpu: '2' }, default: { cpu: '3' } }),
      [
        `${at}.min[cpu]: Invalid value: ${quantity('value:3, scale:0', '3')}: ` +
          'min value 3 is greater than max value 2',
        `${at}.defaultRequest[cpu]: Invalid value: ${quantity('value:3, scale:0', '3')}: ` +
          'default request value 3 is greater than max value 2',
        `${at}.default[cpu]: Invalid value: ${quantity('value:2, scale:0', '2')}: ` +
          'default value 3 is greater than max value 2',
      ],
    ],
    [
      limit({
        type: 'Container',
        min: { cpu: '2' },
        default: { cpu: '1' },
        defaultRequest: { cpu: '1' },
      }),
      [
        `${at}.defaultRequest[cpu]: Invalid value: ${quantity('value:1, scale:0', '1')}: ` +
          'min value 2 is greater than default request value 1',
        `${at}.default[cpu]: Invalid value: ${quantity('value:2, scale:0', '2')}: ` +
          'min value 2 is greater than default value 1',
      ],
    ],
    [
      limit({ type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '2' } }),
      [
        `${at}.defaultRequest[cpu]: Invalid value: ${quantity('value:2, scale:0', '2')}: ` +
          'default request value 2 is greater than default limit value 1',
      ],
    ],
    [
      limit({ type: 'Pod', maxLimitRequestRatio: { cpu: '500m' } }),
      [
        `${at}.maxLimitRequestRatio[cpu]: Invalid value: ${quantity('value:500, scale:-3', '500m')}: ` +
          'ratio 500m is less than 1',
      ],
    ],
    [
      limit({
        type: 'Pod',
        min: { cpu: '1' },
        max: { cpu: '3' },
        maxLimitRequestRatio: { cpu: '4' },
      }),
      [
        `${at}.maxLimitRequestRatio[cpu]: Invalid value: ${quantity('value:4, scale:0', '4')}: ` +
          'ratio 4 is greater than max/min = 3.000000',
      ],
    ],
    [
      limit({ type: 'Container', default: { 'a.b/gpu': '2' }, defaultRequest: { 'a.b/gpu': '1' } }),
      [
        `${at}.defaultRequest[a.b/gpu]: Invalid value: ${quantity('value:1, scale:0', '1')}: ` +
          'default value 2 must equal to defaultRequest value 1 in a.b/gpu',
      ],
    ],
  ];
  testCreates(def, good, rows);
});

describe('Node', () => {
  const def = kindOf('Node');
  const taint = { key: 'k', value: 'v', effect: 'NoSchedule' };
  const good: JsonObject = {
    spec: { podCIDRs: ['10.0.0.0/24'], taints: [taint], providerID: 'p' },
  };
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'spec.taints': [taint, taint] },
      [
        'metadata.taints[1]: Duplicate value: core.Taint{Key:"k", Value:"v", Effect:"NoSchedule", ' +
          'TimeAdded:<nil>}: taints must be unique by key and effect pair',
      ],
    ],
    [{ 'spec.taints': [{ key: 'k' }] }, ['metadata.taints[0].effect: Required value']],
    [
      { 'spec.podCIDRs': ['x'] },
      [
        'spec.podCIDRs[0]: Invalid value: "x": ' +
          'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      ],
    ],
    [
      { 'spec.podCIDRs': ['10.0.0.0/24', '10.0.0.0/24'] },
      [
        'spec.podCIDRs: Invalid value: []string{"10.0.0.0/24", "10.0.0.0/24"}: ' +
          'may specify no more than one CIDR for each IP family',
        'spec.podCIDRs[1]: Duplicate value: "10.0.0.0/24"',
      ],
    ],
    [{ 'spec.podCIDRs': ['10.0.0.0/24', 'fd00::/64'] }, []],
    [
      { 'status.capacity': { cpu: '-1' } },
      [
        'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
        'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
      ],
    ],
  ];
  testCreates(def, good, rows);

  const updates: readonly Row[] = [
    [{ 'spec.unschedulable': true }, []],
    [
      { 'spec.podCIDRs': ['10.0.1.0/24'] },
      ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
    ],
    [
      { 'spec.providerID': 'q' },
      [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
      ],
    ],
    [{ 'spec.externalID': 'q' }, ['spec.externalID: Forbidden: may not be updated']],
  ];
  testUpdates(def, good, updates);

  const own = (name: string, text: string) => ({
    'metadata.annotations': { [`scheduler.alpha.svc.io/${name}`]: text },
  });
  const path = 'metadata.annotations';
  const [taints, avoid] = ['taints', 'preferAvoidPods'].map(
    (name) => `${path}.scheduler.alpha.svc.io/${name}`,
  );
  const annotated: readonly Row[] = [
    [own('taints', '[{"key":"k","value":"v","effect":"NoSchedule","other":1}]'), []],
    [own('taints', ''), []],
    [own('taints', 'null'), []],
    [
      own('taints', '[{"KEY":"k","Effect":"x"},{"effect":"NoExecute"}]'),
      [
        `${taints}[0].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
        expect.stringMatching(/taints\[1\]\.key: Invalid value: "": name part must be non-empty/),
        expect.stringMatching(/taints\[1\]\.key: Invalid value: "": name part must consist of/),
      ],
    ],
    [
      own('taints', '{}'),
      [
        `${path}: Invalid value: "scheduler.alpha.svc.io/taints": ` +
          'json: cannot unmarshal object into Go value of type []core.Taint',
      ],
    ],
    [
      own('taints', '[x'),
      [expect.stringContaining(`${path}: Invalid value: "scheduler.alpha.svc.io/taints": invalid`)],
    ],
    [
      own(
        'preferAvoidPods',
        JSON.stringify({
          preferAvoidPods: [
            {},
            { podSignature: { podController: { controller: false } } },
            { podSignature: { podController: { controller: true, name: 'x' } } },
          ],
        }),
      ),
      [
        `${avoid}[0].PodSignature: Required value`,
        `${avoid}[1].PodSignature.PodController.Controller: Invalid value: false: must point to a controller`,
      ],
    ],
    [
      own('preferAvoidPods', '[]'),
      [
        `${path}.AvoidPods: Invalid value: "scheduler.alpha.svc.io/preferAvoidPods": ` +
          'json: cannot unmarshal array into Go value of type v1.AvoidPods',
      ],
    ],
  ];
  test.each(annotated.map((row) => [rowTitle(row), ...row] as const))(
    'older annotations: %s',
    (_, mutation, expected) => {
      const to = mutated(good, mutation);
      expect(createErrors(def, to)).toEqual(expected);
      expect(updateErrors(def, { from: good, to })).toEqual([...expected, ...expected]);
    },
  );

  test('addresses in its status must be unique', () => {
    const address = { type: 'Hostname', address: 'h' };
    const to = mutated(good, { 'status.addresses': [address, address] });
    expect(updateErrors(def, { from: good, to }, { subresource: 'status' })).toEqual([
      'status.addresses[1]: Duplicate value: core.NodeAddress{Type:"Hostname", Address:"h"}',
    ]);
  });

  test('podCIDR is the first of podCIDRs', () => {
    expect(decoded(def, { spec: { podCIDR: '10.0.0.0/24' } })['spec']).toMatchObject({
      podCIDRs: ['10.0.0.0/24'],
    });
    expect(decoded(def, good)['spec']).toMatchObject({ podCIDR: '10.0.0.0/24' });
  });
});

describe('PersistentVolume', () => {
  const def = kindOf('PersistentVolume');
  const good: JsonObject = {
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/data' },
    },
  };
  const source = (more: JsonObject) => ({ 'spec.hostPath': undefined, ...prefixed(more) });
  const prefixed = (more: JsonObject) =>
    Object.fromEntries(Object.entries(more).map(([name, value]) => [`spec.${name}`, value]));
  const rows: readonly Row[] = [
    [{}, []],
    [{ 'spec.accessModes': [] }, ['spec.accessModes: Required value']],
    [
      { 'spec.accessModes': ['Odd'] },
      [
        'spec.accessModes: Unsupported value: "Odd": supported values: "ReadOnlyMany", ' +
          '"ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
      ],
    ],
    [
      { 'spec.accessModes': ['ReadWriteOncePod', 'ReadOnlyMany'] },
      ['spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes'],
    ],
    [
      { 'spec.capacity': undefined },
      [
        'spec.capacity: Required value',
        'spec.capacity: Unsupported value: core.ResourceList(nil): supported values: "storage"',
      ],
    ],
    [
      { 'spec.capacity': { storage: '-1' } },
      [
        'spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
        'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
      ],
    ],
    [
      { 'spec.persistentVolumeReclaimPolicy': 'Odd' },
      [
        'spec.persistentVolumeReclaimPolicy: Unsupported value: "Odd": ' +
          'supported values: "Delete", "Recycle", "Retain"',
      ],
    ],
    [
      { 'spec.hostPath.path': '/./', 'spec.persistentVolumeReclaimPolicy': 'Recycle' },
      [
        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
      ],
    ],
    [
      { 'spec.nodeAffinity': {} },
      ['spec.nodeAffinity.required: Required value: must specify required node constraints'],
    ],
    [source({}), ['spec: Required value: must specify a volume type']],
    [
      { 'spec.nfs': { server: 's', path: '/' } },
      ['spec.nfs: Forbidden: may not specify more than 1 volume type'],
    ],
    [
      source({ local: {} }),
      [
        'spec.local.path: Required value',
        'spec.nodeAffinity: Required value: Local volume requires node affinity',
      ],
    ],
    [
      source({ csi: { driver: 'd', nodePublishSecretRef: { name: 'A' } } }),
      [
        'spec.csi.volumeHandle: Required value',
        expect.stringContaining('spec.csi.nodePublishSecretRef.name: Invalid value: "A"') as string,
        'spec.csi.nodePublishSecretRef.namespace: Required value',
      ],
    ],
    [
      source({ azureFile: { secretNamespace: '' } }),
      [
        'spec.azureFile.secretName: Required value',
        'spec.azureFile.shareName: Required value',
        'spec.azureFile.secretNamespace: Required value',
      ],
    ],
    [
      source({ cinder: { volumeID: 'v', secretRef: {} } }),
      [
        'spec.cinder.secretRef.name: Required value',
        'spec.cinder.secretRef.namespace: Required value',
      ],
    ],
    [
      { 'spec.volumeMode': 'Odd' },
      ['spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"'],
    ],
  ];
  testCreates(def, good, rows);

  test('its source and mode are immutable', () => {
    const to = mutated(good, { 'spec.hostPath.path': '/other', 'spec.volumeMode': 'Block' });
    expect(updateErrors(def, { from: good, to })).toEqual([
      expect.stringContaining(
        'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n',
      ),
      'volumeMode: Invalid value: "Block": field is immutable',
    ]);
  });

  test('its node affinity is immutable, except that deprecated labels may be renamed', () => {
    const affinity = (...keys: string[]): JsonObject => ({
      required: {
        nodeSelectorTerms: keys.map((key) => ({
          matchExpressions: [{ key, operator: 'In', values: ['a'] }],
        })),
      },
    });
    const of = (...keys: string[]) => mutated(good, { 'spec.nodeAffinity': affinity(...keys) });
    const names = [
      ['failure-domain.beta.svc.io/zone', 'topology.svc.io/zone'],
      ['failure-domain.beta.svc.io/region', 'topology.svc.io/region'],
      ['beta.svc.io/os', 'svc.io/os'],
      ['beta.svc.io/arch', 'svc.io/arch'],
      ['beta.svc.io/instance-type', 'node.svc.io/instance-type'],
    ] as const;
    for (const [older, newer] of names) {
      expect(updateErrors(def, { from: of('x', older), to: of('x', newer) })).toEqual([]);
      const errors = [expect.stringContaining('field is immutable, except for updating from beta')];
      expect(updateErrors(def, { from: of(newer), to: of(older) })).toEqual(errors);
      expect(updateErrors(def, { from: of('x', older), to: of('y', newer) })).toEqual(errors);
    }
    expect(updateErrors(def, { from: good, to: of('x') })).toEqual([]);
  });

  test('an update may add the secret for expanding it', () => {
    const csi = { driver: 'd', volumeHandle: 'h' };
    const from = mutated(good, source({ csi }));
    const secret = { name: 's', namespace: 'n' };
    const to = mutated(from, { 'spec.csi.controllerExpandSecretRef': secret });
    expect(updateErrors(def, { from, to })).toEqual([]);
    const other = mutated(from, { 'spec.csi.nodePublishSecretRef': secret });
    expect(updateErrors(def, { from, to: other })).toHaveLength(1);
  });

  test('its attributes class is dropped if the feature is disabled', () => {
    const object = decoded(def, mutated(good, { 'spec.volumeAttributesClassName': 'c' }));
    const context = {
      user: { name: '', uid: '', groups: [], extra: {} },
      nowMs: 0,
      dryRun: false,
      subresource: '',
    };
    runPreparation(def.strategy.prepareForCreate?.(context, object));
    expect(object['spec']).not.toHaveProperty('volumeAttributesClassName');
  });
});

describe('PersistentVolumeClaim', () => {
  const def = kindOf('PersistentVolumeClaim');
  const good: JsonObject = {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } },
  };
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'spec.accessModes': [] },
      ['spec.accessModes: Required value: at least 1 access mode is required'],
    ],
    [{ 'spec.resources': undefined }, ['spec.resources[storage]: Required value']],
    [
      { 'spec.resources.requests.storage': '0' },
      ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
    ],
    [
      { 'spec.dataSource': { kind: 'PersistentVolumeClaim' } },
      ['spec.dataSource.name: Required value', 'spec.dataSourceRef.name: Required value'],
    ],
    [
      { 'spec.dataSourceRef': { kind: 'Odd', name: 'n' } },
      [
        'spec.dataSource: Invalid value: "Odd": must be \'PersistentVolumeClaim\' when referencing ' +
          'the default apiGroup',
        'spec.dataSourceRef: Invalid value: "Odd": must be \'PersistentVolumeClaim\' when ' +
          'referencing the default apiGroup',
      ],
    ],
    [
      {
        'spec.dataSource': { kind: 'PersistentVolumeClaim', name: 'a' },
        'spec.dataSourceRef': { kind: 'PersistentVolumeClaim', name: 'b' },
      },
      ['spec: Invalid value: "spec.dataSource": must match dataSourceRef'],
    ],
  ];
  testCreates(def, good, rows);

  const bound = mutated(good, {
    'spec.volumeName': 'v',
    'status.phase': 'Bound',
    'status.capacity': { storage: '1Gi' },
  });
  const frozen =
    'spec is immutable after creation except resources.requests and ' +
    'volumeAttributesClassName for bound claims\n';
  const updates: readonly Row[] = [
    [{ 'spec.resources.requests.storage': '3Gi' }, []],
    [{ 'spec.resources.requests.storage': '1500Mi' }, []],
    [
      { 'spec.resources.requests.storage': '1Gi' },
      ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
    ],
    [
      { 'spec.accessModes': ['ReadOnlyMany'] },
      [expect.stringContaining(`spec: Forbidden: ${frozen}`) as string],
    ],
    [{ 'spec.storageClassName': 'later' }, []],
    [{ 'spec.volumeName': 'w' }, [expect.stringContaining(`spec: Forbidden: ${frozen}`) as string]],
    [
      { 'spec.volumeMode': 'Block' },
      [
        expect.stringContaining(`spec: Forbidden: ${frozen}`) as string,
        'volumeMode: Invalid value: "Block": field is immutable',
      ],
    ],
  ];
  testUpdates(def, bound, updates);

  test('an update may bind it, and may enlarge it only if it is bound', () => {
    const to = mutated(good, { 'spec.volumeName': 'v' });
    expect(updateErrors(def, { from: good, to })).toEqual([]);
    const bigger = mutated(good, { 'spec.resources.requests.storage': '3Gi' });
    expect(updateErrors(def, { from: good, to: bigger })).toHaveLength(1);
  });

  const status: readonly Row[] = [
    [
      {
        'status.allocatedResources': { storage: '1Gi', 'example.com/x': '1' },
        'status.allocatedResourceStatuses': { storage: 'NodeResizePending' },
      },
      [],
    ],
    [
      { 'status.allocatedResources': { cpu: '1', storage: '-1', 'a b': '1' } },
      [
        expect.stringMatching(/^status\.allocatedResources: Invalid value: "a b": name part must/),
        'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
        'status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity',
      ],
    ],
    [
      { 'status.allocatedResourceStatuses': { storage: 'Growing', memory: 'NodeResizePending' } },
      [
        'status.allocatedResourceStatus: Unsupported value: "memory": supported values: "storage"',
        expect.stringMatching(/^status\.allocatedResourceStatus: Unsupported value: storage: /),
      ],
    ],
  ];
  testUpdates(def, bound, status, { subresource: 'status' });

  test('quantities in its status cannot be negative', () => {
    const to = mutated(bound, { 'status.capacity': { storage: '-1' } });
    expect(updateErrors(def, { from: bound, to }, { subresource: 'status' })).toEqual([
      'status.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
    ]);
  });
});

describe('Endpoints', () => {
  const [, column] = kindOf('Endpoints').versions[0]?.columns ?? [];
  const cell = (...subsets: JsonObject[]) => column?.cell({ subsets }, 0);
  const address = (ip: string) => ({ ip });

  test('the table shows three addresses', () => {
    const ports = [{ port: 80 }, { port: 81 }];
    const v4 = address('10.0.0.1');
    expect(cell()).toBe('<none>');
    expect(cell({ addresses: [v4, address('::1')] })).toBe('10.0.0.1,::1');
    expect(cell({ addresses: [v4, address('::1')], ports })).toBe(
      '10.0.0.1:80,[::1]:80,10.0.0.1:81 + 1 more...',
    );
    expect(cell({ addresses: [v4], ports }, { addresses: [v4] }, { addresses: [v4] })).toBe(
      '10.0.0.1:80,10.0.0.1:81,10.0.0.1 + 1 more...',
    );
  });

  test('the table counts all pairs of addresses and ports without building them', () => {
    const addresses = Array.from({ length: 50_000 }, () => address('10.0.0.1'));
    const ports = Array.from({ length: 50_000 }, () => ({ port: 1 }));
    expect(cell({ addresses, ports })).toMatch(/ \+ 2499999997 more\.\.\.$/);
  });
});

describe('Namespace', () => {
  const def = kindOf('Namespace');
  test('errors in finalizers state the index if `finalize` changes them', () => {
    const to = { spec: { finalizers: ['odd'] } };
    const detail =
      'Invalid value: "odd": name is neither a standard finalizer name nor is it fully qualified';
    expect(createErrors(def, to)).toEqual([`spec.finalizers: ${detail}`]);
    expect(updateErrors(def, { from: {}, to }, { subresource: 'finalize' })).toEqual([
      `spec.finalizers[0]: ${detail}`,
    ]);
  });

  test('its phase must agree with its deletionTimestamp', () => {
    const to = { status: { phase: 'Terminating' } };
    expect(updateErrors(def, { from: {}, to }, { subresource: 'status' })).toEqual([
      'status.Phase: Invalid value: "Terminating": ' +
        "may only be 'Active' if `deletionTimestamp` is empty",
    ]);
  });
});
