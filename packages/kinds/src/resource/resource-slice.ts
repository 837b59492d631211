import {
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  goItems,
  invalid,
  invalidGo,
  type JsonObject,
  type JsonValue,
  objectOf,
  required,
  ruleErrors,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, type VersionOptions } from '../define.ts';
import type {
  BasicDevice,
  Device,
  DeviceAttribute,
  ResourceSlice,
  ResourceSliceSpec,
} from '../gen/types/resource/v1beta1.ts';
import { validateDriverName } from '../pod/fields.ts';
import { goNodeSelectorTerm } from '../pod/go-text.ts';
import { nodeSelectorErrorSteps } from '../pod/validation/affinity.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, immutable } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import { validateDeviceName, validateItems, validatePoolName } from './device-class.ts';

/** The alpha version has a quantity where the storage version has an object with a quantity. */
const alphaVersion: VersionOptions = {
  version: 'v1alpha3',
  toStorage(object) {
    eachCapacity(object, (value) => ({ value }));
    return object;
  },
  fromStorage(object) {
    eachCapacity(object, (value) => at(value, 'value') ?? '0');
    return object;
  },
};

/** ResourceSlice: devices that a driver offers on one or more nodes. */
export function resourceSlice(dialect: Dialect): ResourceDef {
  const text = (name: string, path: readonly string[], description: string) =>
    column(name, (object) => textAt(object, ...path), { description });
  const columns = [
    nameColumn,
    text('Node', ['spec', 'nodeName'], 'Node of the devices.'),
    text('Driver', ['spec', 'driver'], 'Driver that publishes the devices.'),
    text('Pool', ['spec', 'pool', 'name'], 'Pool of the devices.'),
    ageColumn,
  ];
  return defineKind<ResourceSlice>({
    dialect,
    facts: 'resource',
    kind: 'ResourceSlice',
    scope: 'Cluster',
    versions: [
      { version: 'v1beta1', columns },
      { ...alphaVersion, columns },
    ],
    storage: {
      fieldsOf: (object) => ({
        'spec.nodeName': object.spec?.nodeName ?? '',
        'spec.driver': object.spec?.driver ?? '',
      }),
    },
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      deleteAnswers: 'object',
      unknownFieldMessage: (label, version) =>
        `field label not supported for ${dialect.group('resource')}/${version}, ` +
        `Kind=ResourceSlice: ${label}`,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => validate(object, old),
    },
    example: () => ({
      spec: {
        driver: 'driver.example.com',
        nodeName: 'n',
        pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
        devices: [{ name: 'd', basic: { capacity: { memory: { value: '1Gi' } } } }],
      },
    }),
  });
}

/** Replaces each capacity of the devices with the result of `change`. */
function eachCapacity(
  object: Stored<ResourceSlice>,
  change: (value: JsonValue) => JsonValue,
): void {
  for (const { basic } of object.spec?.devices ?? []) {
    const device: JsonObject = basic ?? {};
    const capacity = objectAt(device, 'capacity');
    if (capacity === undefined) continue;
    device['capacity'] = Object.fromEntries(
      Object.entries(capacity).map(([name, value]) => [name, change(value ?? '0')]),
    );
  }
}

const devicesMax = 128;

function* validate(
  object: Stored<ResourceSlice>,
  old?: Stored<ResourceSlice>,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  const text = (of: Stored<ResourceSlice> | undefined, ...path: string[]) =>
    textAt(of, 'spec', ...path);
  const unchanged = (...path: string[]) =>
    old === undefined
      ? []
      : immutable(`spec.${path.join('.')}`, text(object, ...path), text(old, ...path));
  const slices = Number(spec.pool?.resourceSliceCount ?? 0);
  const generation = Number(spec.pool?.generation ?? 0);
  const negative = 'must be greater than or equal to zero';
  return [
    ...validateDriverName(text(object, 'driver'), 'spec.driver'),
    ...validatePoolName(text(object, 'pool', 'name'), 'spec.pool.name'),
    ...(slices > 0
      ? []
      : [invalid('spec.pool.resourceSliceCount', slices, 'must be greater than zero')]),
    ...(generation < 0 ? [invalid('spec.pool.generation', generation, negative)] : []),
    ...unchanged('pool', 'name'),
    ...unchanged('driver'),
    ...unchanged('nodeName'),
    ...(yield* validateNodes(spec)),
    ...(yield* validateItems(spec.devices ?? [], 'spec.devices', {
      max: devicesMax,
      item: validateDevice,
      key: (device) => textAt(device, 'name'),
      member: 'name',
    })),
  ];
}

/** Validates which nodes can use the devices: one, those of a selector, or all. */
function* validateNodes(spec: Stored<ResourceSliceSpec>): Generator<void, FieldError[]> {
  const [nodeName, selector] = [spec.nodeName ?? '', spec.nodeSelector];
  const terms = selector?.nodeSelectorTerms ?? [];
  const isAll = spec.allNodes === true;
  const count = [nodeName !== '', selector !== undefined, isAll].filter(Boolean).length;
  const path = 'spec.nodeSelector';
  const detail = 'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required';
  const shown = () => `[]core.NodeSelectorTerm{${goItems(terms, goNodeSelectorTerm)}}`;
  return [
    ...(nodeName === '' ? [] : ruleErrors('spec.nodeName', nodeName, dnsSubdomain)),
    ...(selector === undefined
      ? []
      : yield* nodeSelectorErrorSteps(selector, path, 'label-values')),
    ...(selector !== undefined && terms.length !== 1
      ? [invalidGo(`${path}.nodeSelectorTerms`, shown, 'must have exactly one node selector term')]
      : []),
    ...(count === 0 ? [required('spec', detail)] : []),
    ...(count > 1 ? [invalid('spec', null, detail)] : []),
  ];
}

function* validateDevice(device: Stored<Device>, path: string): Generator<void, FieldError[]> {
  const basic = device.basic;
  return [
    ...ruleErrors(`${path}.name`, device.name ?? '', dnsLabel),
    ...(basic === undefined
      ? [required(`${path}.basic`)]
      : yield* validateBasic(basic, `${path}.basic`)),
  ];
}

const attributesAndCapacitiesMax = 32;

function* validateBasic(basic: Stored<BasicDevice>, path: string): Generator<void, FieldError[]> {
  const attributes = Object.entries(basic.attributes ?? {});
  const capacity = Object.keys(basic.capacity ?? {});
  const count = attributes.length + capacity.length;
  const max = attributesAndCapacitiesMax;
  const detail = `the total number of attributes and capacities must not exceed ${max}`;
  return [
    ...(yield* flatMapSteps(attributes, ([name, value]) => {
      const field = `${path}.attributes[${shortened(name)}]`;
      return [...validateDeviceName(name, field), ...validateAttribute(objectOf(value), field)];
    })),
    ...(yield* flatMapSteps(capacity, (name) =>
      validateDeviceName(name, `${path}.capacity[${shortened(name)}]`),
    )),
    ...(count > max ? [invalid(path, count, detail)] : []),
  ];
}

const nameLengthMax = 63 + 1 + 32;

/** Replaces the middle of a long name with `...`, for a message. */
function shortened(name: string): string {
  if (name.length <= nameLengthMax) return name;
  const rest = nameLengthMax - 3;
  const tail = Math.floor(rest / 2);
  return `${name.slice(0, Math.ceil(rest / 2))}...${name.slice(name.length - tail)}`;
}

const valueBytesMax = 64;

const number = '(0|[1-9]\\d*)';
const preRelease = '(0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)';
const build = '[0-9a-zA-Z-]+';
const version = new RegExp(
  `^${number}\\.${number}\\.${number}(-${preRelease}(\\.${preRelease})*)?(\\+${build}(\\.${build})*)?$`,
);

function validateAttribute(attribute: Stored<DeviceAttribute>, path: string): FieldError[] {
  const values = (['bool', 'int', 'string', 'version'] as const).filter(
    (member) => attribute[member] !== undefined,
  );
  const long = (member: string) =>
    Buffer.byteLength(textAt(attribute, member)) > valueBytesMax
      ? [tooLong(`${path}.${member}`, valueBytesMax)]
      : [];
  const text = attribute.version ?? '';
  // The length bounds the time of the pattern; longer texts are invalid in any case.
  const isVersion = !values.includes('version') || (text.length <= 1024 && version.test(text));
  const detail = 'must be a string compatible with semver.org spec 2.0.0';
  const exactlyOne = 'exactly one value must be specified';
  return [
    ...long('string'),
    ...(isVersion ? [] : [invalid(`${path}.version`, text, detail)]),
    ...long('version'),
    ...(values.length === 0 ? [required(path, exactlyOne)] : []),
    ...(values.length > 1 ? [invalid(path, attribute, exactlyOne)] : []),
  ];
}
