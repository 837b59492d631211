import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  createErrors,
  kindOf,
  mutated,
  type Row,
  testCreates,
  updateErrors,
} from '../kind.suite.ts';

const tooLongMap = Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`k${index}`, '']));

describe('StorageClass', () => {
  const def = kindOf('StorageClass');
  const good: JsonObject = { provisioner: 'Example.com/p' };
  const term = { matchLabelExpressions: [{ key: 'zone', values: ['a'] }] };
  const rows: readonly Row[] = [
    [{}, []],
    [{ provisioner: undefined }, ['provisioner: Required value']],
    [{ parameters: tooLongMap }, ['parameters: Too long: may not be more than 512 bytes']],
    [{ parameters: { '': 'x' } }, ['parameters: Invalid value: "": field can not be empty.']],
    [
      { reclaimPolicy: 'Recycle', volumeBindingMode: 'Odd' },
      [
        'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
        'volumeBindingMode: Unsupported value: "Odd": supported values: "Immediate", "WaitForFirstConsumer"',
      ],
    ],
    [
      { allowedTopologies: [term, term] },
      ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
    ],
    [
      {
        allowedTopologies: [
          {
            matchLabelExpressions: [
              { key: 'z', values: [] },
              { key: 'z', values: ['a', 'a'] },
            ],
          },
        ],
      },
      [
        'allowedTopologies[0].matchLabelExpressions[0].values: Required value',
        'allowedTopologies[0].matchLabelExpressions[1].values[1]: Duplicate value: "a"',
        'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "z"',
      ],
    ],
  ];
  testCreates(def, good, rows);

  test('provisioning settings are immutable', () => {
    const to = mutated(good, {
      parameters: { a: 'b' },
      provisioner: 'q',
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    expect(updateErrors(def, { from: good, to })).toEqual([
      'parameters: Forbidden: updates to parameters are forbidden.',
      'provisioner: Forbidden: updates to provisioner are forbidden.',
      'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
      'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
    ]);
  });
});

describe('VolumeAttachment', () => {
  const def = kindOf('VolumeAttachment');
  const good: JsonObject = {
    spec: { attacher: 'a', nodeName: 'n', source: { persistentVolumeName: 'v' } },
  };
  const both = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
  const inline = { accessModes: ['ReadWriteOnce'], csi: { driver: 'd', volumeHandle: 'h' } };
  const rows: readonly Row[] = [
    [{}, []],
    [{ 'spec.source': {} }, [`spec.source: Required value: ${both}`]],
    [{ 'spec.source.inlineVolumeSpec': inline }, [`spec.source: Forbidden: ${both}`]],
    [{ 'spec.source': { inlineVolumeSpec: inline } }, []],
    [
      {
        'spec.source': {
          inlineVolumeSpec: { ...inline, capacity: { storage: '1' }, storageClassName: 'c' },
        },
      },
      [
        'spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes',
      ],
    ],
    [
      {
        'spec.source': {
          inlineVolumeSpec: {
            accessModes: ['ReadWriteOnce'],
            local: { path: '/data' },
            nodeAffinity: { required: { nodeSelectorTerms: [] } },
          },
        },
      },
      [
        'spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes',
        'spec.source.inlineVolumeSpec.nodeAffinity: Required value: Local volume requires node affinity',
      ],
    ],
    [
      { 'spec.source.persistentVolumeName': '' },
      [
        'spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName',
        expect.stringContaining('spec.source.persistentVolumeName: Invalid value: ""') as string,
      ],
    ],
    [
      { 'spec.attacher': 'a'.repeat(64) },
      ['spec.attacher: Too long: may not be more than 63 bytes'],
    ],
  ];
  testCreates(def, good, rows);
});

describe('CSINode', () => {
  const def = kindOf('CSINode');
  const good: JsonObject = { spec: { drivers: [{ name: 'd', nodeID: 'n', topologyKeys: ['k'] }] } };
  const at = 'spec.drivers[0]';
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'spec.drivers.0.nodeID': 'x'.repeat(257) },
      [`${at}.nodeID: Invalid value: "${'x'.repeat(257)}": must be 256 characters or less`],
    ],
    [
      { 'spec.drivers.0.nodeID': 'é'.repeat(129) },
      [`${at}.nodeID: Invalid value: "${'é'.repeat(129)}": must be 256 characters or less`],
    ],
    [
      { 'spec.drivers.0.allocatable': { count: -1 } },
      [`${at}.allocatable.count: Invalid value: -1: must be greater than or equal to 0`],
    ],
    [{ 'spec.drivers.0.topologyKeys': ['k', 'k'] }, [`${at}: Duplicate value: "k"`]],
    [
      { 'spec.drivers.1': { name: 'd', nodeID: 'm' } },
      ['spec.drivers[1].name: Duplicate value: "d"'],
    ],
  ];
  testCreates(def, good, rows);

  test('the entry of a driver is immutable', () => {
    const to = mutated(good, { 'spec.drivers.0.nodeID': 'm' });
    const [error] = updateErrors(def, { from: good, to });
    expect(error).toMatch(/^CSINodeDriver: Invalid value: .*: field is immutable$/);
  });
});

describe('CSIStorageCapacity', () => {
  const def = kindOf('CSIStorageCapacity');
  const good: JsonObject = { storageClassName: 'c', capacity: '1Gi' };
  test('the capacity is not negative, and the class is immutable', () => {
    const bad = mutated(good, { capacity: '-1' });
    expect(createErrors(def, bad)).toEqual([
      'capacity: Invalid value: "-1": must be greater than or equal to 0',
    ]);
    const to = mutated(good, { storageClassName: 'd' });
    expect(updateErrors(def, { from: good, to })).toEqual([
      'storageClassName: Invalid value: "d": field is immutable',
    ]);
  });
});

describe('PriorityClass', () => {
  const def = kindOf('PriorityClass');
  const system = (name: string, value: number, more: JsonObject = {}) =>
    createErrors(def, { metadata: { name }, value, ...more });
  const reserved =
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: ";
  test('the classes of the system have fixed values', () => {
    expect(system('system-node-critical', 2_000_001_000)).toEqual([]);
    expect(system('system-node-critical', 1)).toEqual([
      `${reserved}value of system-node-critical PriorityClass must be 2000001000`,
    ]);
    expect(system('system-node-critical', 2_000_001_000, { globalDefault: true })).toEqual([
      `${reserved}globalDefault of system-node-critical PriorityClass must be false`,
    ]);
    expect(system('system-mine', 1)).toEqual([
      `${reserved}system-mine is not a known system priority class`,
    ]);
  });

  test('the value is immutable', () => {
    expect(updateErrors(def, { from: { value: 1 }, to: { value: 2 } })).toEqual([
      'value: Forbidden: may not be changed in an update.',
    ]);
  });
});

describe('RuntimeClass', () => {
  const def = kindOf('RuntimeClass');
  const toleration = { key: 'k', operator: 'Exists' };
  test.each<[JsonObject, readonly string[]]>([
    [{ handler: 'h', overhead: { podFixed: { cpu: '1' } } }, []],
    [
      { handler: 'h', overhead: { podFixed: { pods: '1' } } },
      ['overhead.limits[pods]: Invalid value: pods: must be a standard resource for containers'],
    ],
    [
      { handler: 'h', scheduling: { tolerations: [toleration, toleration] } },
      [
        'scheduling.tolerations[1]: Duplicate value: core.Toleration{Key:"k", Operator:"Exists", ' +
          'Value:"", Effect:"", TolerationSeconds:(*int64)(nil)}',
      ],
    ],
    [
      { handler: 'h', scheduling: { tolerations: [{ operator: 'Equal', effect: 'NoSchedule' }] } },
      [
        'scheduling.tolerations.tolerations[0].operator: Invalid value: "Equal": operator must be ' +
          'Exists when `key` is empty, which means "match all values and all keys"',
      ],
    ],
  ])('%j', (body, expected) => {
    expect(createErrors(def, body)).toEqual(expected);
  });
});
