import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  duplicate,
  type FieldError,
  firstByName,
  invalid,
  invalidGo,
  type JsonObject,
  type JsonValue,
  notSupported,
  parseQuantity,
  pathSegment,
  qualifiedName,
  required,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type {
  CSIDriver,
  CSINode,
  CSINodeDriver,
  CSIStorageCapacity,
  TokenRequest,
} from '../gen/types/storage/v1.ts';
import { negative, validateDriverName, validateNonNegative } from '../pod/fields.ts';
import { goSelector } from '../pod/go-text.ts';
import { nodeLabelMessage, nodeTermWarnings } from '../pod/warnings.ts';
import type { ColumnDef, ResourceDef, Stored } from '../resource-def.ts';
import {
  flatMapSteps,
  goList,
  immutable,
  reportedTwice,
  sameOrAbsent,
  sameOrEmptySteps,
  sortedKeys,
  tokenLifetimeErrors,
} from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';

const flagColumn = (name: string, member: string, description: string): ColumnDef =>
  column(name, (object) => at(object, 'spec', member) === true, { type: 'boolean', description });

const columns: readonly ColumnDef[] = [
  nameColumn,
  flagColumn('AttachRequired', 'attachRequired', 'Volumes are attached before they are mounted.'),
  flagColumn('PodInfoOnMount', 'podInfoOnMount', 'The driver gets to know the pod on mount.'),
  flagColumn('StorageCapacity', 'storageCapacity', 'The driver publishes its capacity.'),
  column(
    'TokenRequests',
    (object) => {
      const audiences = listAt(object, 'spec', 'tokenRequests').map((request) =>
        textAt(request, 'audience'),
      );
      return audiences.length === 0 ? '<unset>' : audiences.join(',');
    },
    { description: 'Audiences of the tokens that the driver receives.' },
  ),
  flagColumn('RequiresRepublish', 'requiresRepublish', 'Publish calls are repeated.'),
  column(
    'Modes',
    (object) => {
      const modes = listAt(object, 'spec', 'volumeLifecycleModes');
      return modes.length === 0 ? '<none>' : modes.join(',');
    },
    { description: 'Volume lifecycles the driver supports.' },
  ),
  ageColumn,
];

/** CSIDriver: requirements and abilities of a storage driver (CSI-1, CSI-2). */
export function csiDriver(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<CSIDriver>({
    dialect,
    features,
    facts: 'storage',
    kind: 'CSIDriver',
    scope: 'Cluster',
    versions: [{ version: 'v1', defaults: (object) => fillDefaults(object, features), columns }],
    strategy: {
      validateName: pathSegment,
      *validateCreate(_, object) {
        const { name = '' } = object.metadata;
        const ofName = name === '' ? [] : validateDriverName(name, 'metadata.name');
        return [...ofName, ...(yield* validateSpec(object))];
      },
      prepareForUpdate: (_, object, old) => countGeneration(object, old),
      validateUpdate: (_, object, old) => validateUpdate(object, old),
      allowUnconditionalUpdate: false,
      deleteAnswers: 'object',
    },
    example: () => ({
      metadata: { name: 'driver.example.com' },
      spec: { attachRequired: true, tokenRequests: [{ audience: 'vault' }] },
    }),
  });
}

type CsiDriver = Stored<CSIDriver>;

function fillDefaults(object: CsiDriver, features: Features): void {
  const { spec } = object;
  if (spec === undefined || spec === null) return;
  spec.attachRequired ??= true;
  spec.podInfoOnMount ??= false;
  spec.storageCapacity ??= false;
  spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
  spec.requiresRepublish ??= false;
  if (features.enabled('SELinuxMountReadWriteOncePod')) spec.seLinuxMount ??= false;
  if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ['Persistent'];
}

const groupPolicies = ['File', 'None', 'ReadWriteOnceWithFSType'];
const lifecycleModes = ['Persistent', 'Ephemeral'];

function* validateSpec({ spec }: CsiDriver): Generator<void, FieldError[]> {
  if (spec === undefined || spec === null) return [required('spec')];
  const errors: FieldError[] = [];
  const { fsGroupPolicy = '', volumeLifecycleModes = [], tokenRequests = [] } = spec;
  if (!groupPolicies.includes(fsGroupPolicy)) {
    errors.push(notSupported('spec.fsGroupPolicy', fsGroupPolicy, groupPolicies));
  }
  appendAll(errors, yield* validateTokenRequests(tokenRequests));
  const ofModes = yield* flatMapSteps(volumeLifecycleModes, (mode) =>
    lifecycleModes.includes(mode)
      ? []
      : [notSupported('spec.volumeLifecycleModes', mode, lifecycleModes)],
  );
  return [...errors, ...ofModes];
}

function validateTokenRequests(
  requests: readonly Stored<TokenRequest>[],
): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(requests, ({ audience, expirationSeconds }, index) => {
    const path = `spec.tokenRequests[${index}]`;
    if (audience === undefined) return [required(`${path}.audience`)];
    if (seen.has(audience)) return [duplicate(`${path}.audience`, audience)];
    seen.add(audience);
    if (expirationSeconds === undefined || expirationSeconds === null) return [];
    return tokenLifetimeErrors(`${path}.expirationSeconds`, expirationSeconds);
  });
}

/** Increases the generation if the spec changes; it starts at 0 (absent). */
function* countGeneration(object: CsiDriver, old: CsiDriver): Generator<void, void> {
  if (yield* sameOrEmptySteps(object.spec, old.spec)) return;
  object.metadata.generation = (old.metadata.generation ?? 0) + 1;
}

function* validateUpdate(object: CsiDriver, old: CsiDriver): Generator<void, FieldError[]> {
  const [spec, before] = [object.spec, old.spec];
  if (!spec || !before) return yield* validateSpec(object);
  return [
    ...(yield* validateSpec(object)),
    // kube-apiserver misspells the name in this message.
    ...immutable('spec.attachedRequired', spec.attachRequired, before.attachRequired),
    ...validateModesUnchanged(spec.volumeLifecycleModes ?? [], before.volumeLifecycleModes ?? []),
  ];
}

function validateModesUnchanged(modes: readonly string[], old: readonly string[]): FieldError[] {
  if (modes.length === old.length && modes.every((mode, index) => mode === old[index])) return [];
  const shown = goList('storage.VolumeLifecycleMode', modes);
  return [invalidGo('spec.volumeLifecycleModes', () => shown, 'field is immutable')];
}

/** CSINode: the storage drivers on a node. */
export function csiNode(dialect: Dialect): ResourceDef {
  return defineKind<CSINode>({
    dialect,
    facts: 'storage',
    kind: 'CSINode',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Drivers', (object) => (object.spec?.drivers ?? []).length, {
            type: 'integer',
            description: 'Number of drivers.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateCsiNode(object),
      *validateUpdate(_, object, old) {
        const errors = reportedTwice(yield* validateCsiNode(object));
        return [...errors, ...(yield* validateDrivers(object, old))];
      },
      allowUnconditionalUpdate: false,
      deleteAnswers: 'object',
    },
    example: () => ({
      metadata: { name: 'node-1' },
      spec: { drivers: [{ name: 'driver.example.com', nodeID: 'n1', topologyKeys: null }] },
    }),
  });
}

function validateCsiNode(object: Stored<CSINode>): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(object.spec?.drivers ?? [], function* (driver, index) {
    const path = `spec.drivers[${index}]`;
    const name = driver.name ?? '';
    const errors = [
      ...validateDriverName(name, `${path}.name`),
      ...validateNodeId(driver.nodeID ?? '', `${path}.nodeID`),
      ...validateNonNegative(driver.allocatable ?? {}, `${path}.allocatable`, 'count'),
    ];
    if (seen.has(name)) errors.push(duplicate(`${path}.name`, name));
    seen.add(name);
    return [...errors, ...(yield* validateTopologyKeys(driver, path))];
  });
}

const nodeIdBytesMax = 256;

function validateNodeId(id: string, field: string): FieldError[] {
  if (id === '') return [required(field)];
  if (Buffer.byteLength(id) <= nodeIdBytesMax) return [];
  return [invalid(field, id, `must be ${nodeIdBytesMax} characters or less`)];
}

function validateTopologyKeys(
  driver: Stored<CSINodeDriver>,
  path: string,
): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(driver.topologyKeys ?? [], (key) => {
    const errors = key === '' ? [required(path)] : [];
    if (seen.has(key)) errors.push(duplicate(path, key));
    seen.add(key);
    return [...errors, ...ruleErrors(path, key, qualifiedName)];
  });
}

/** Rejects changes of a driver; drivers may be added and removed. */
function* validateDrivers(
  object: Stored<CSINode>,
  old: Stored<CSINode>,
): Generator<void, FieldError[]> {
  const driversByName = new Map<string, JsonObject[]>();
  for (const driver of object.spec?.drivers ?? []) {
    const name = driver.name ?? '';
    const equallyNamed = driversByName.get(name);
    if (equallyNamed === undefined) driversByName.set(name, [driver]);
    else equallyNamed.push(driver);
  }
  yield;
  // Names of stored drivers are unique.
  const olds = firstByName(old.spec?.drivers ?? [], ({ name = '' }) => name);
  return yield* flatMapSteps(olds, ([name, before]) =>
    flatMapSteps(driversByName.get(name) ?? [], function* (driver) {
      const isSame = yield* sameOrEmptySteps(driver, before);
      return isSame ? [] : [invalid('CSINodeDriver', driver, 'field is immutable')];
    }),
  );
}

/**
 * CSIStorageCapacity: the storage of a class that a driver can still provide on the nodes of one
 * topology.
 */
export function csiStorageCapacity(dialect: Dialect): ResourceDef {
  return defineKind<CSIStorageCapacity>({
    dialect,
    facts: 'storage',
    kind: 'CSIStorageCapacity',
    scope: 'Namespaced',
    versions: [{ version: 'v1' }],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateStorageCapacity(object),
      validateUpdate: (_, object, old) => [
        ...validateStorageCapacity(object),
        ...validateClassAndTopology(object, old),
      ],
      warnings: (object) => topologyWarnings(object, dialect),
      allowUnconditionalUpdate: false,
    },
    example: () => ({ storageClassName: 'example', capacity: '10Gi' }),
  });
}

function validateStorageCapacity(object: Stored<CSIStorageCapacity>): FieldError[] {
  const className = object.storageClassName ?? '';
  const topology = object.nodeTopology;
  return [
    ...validateLabelSelector(topology, 'nodeTopology'),
    ...ruleErrors('storageClassName', className, dnsSubdomain),
    ...validateAmount(object.capacity),
  ];
}

function validateAmount(capacity: JsonValue | undefined): FieldError[] {
  const quantity = parseQuantity(String(capacity ?? '0'));
  if ('error' in quantity || quantity.nano >= 0n) return [];
  return [invalid('capacity', quantity.text, negative)];
}

function validateClassAndTopology(
  object: Stored<CSIStorageCapacity>,
  old: Stored<CSIStorageCapacity>,
): FieldError[] {
  const topology = 'nodeTopology';
  const shown = goSelector(objectAt(object, topology));
  const className = 'storageClassName';
  return [
    ...(sameOrAbsent(object[topology], old[topology])
      ? []
      : [invalidGo(topology, () => shown, 'field is immutable')]),
    ...immutable(className, textAt(object, className), textAt(old, className)),
  ];
}

function* topologyWarnings(
  object: Stored<CSIStorageCapacity>,
  dialect: Dialect,
): Generator<void, string[]> {
  const path = 'nodeTopology';
  const labels = sortedKeys(objectAt(object, path, 'matchLabels'));
  return [
    ...(yield* nodeTermWarnings(objectAt(object, path), path, dialect)),
    ...(yield* flatMapSteps(labels, (label) => {
      const message = nodeLabelMessage(label, dialect);
      return message === undefined ? [] : [`${path}.matchLabels.${label}: ${message}`];
    })),
  ];
}
