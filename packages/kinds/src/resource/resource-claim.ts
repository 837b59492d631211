import {
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  formatIpAddress,
  invalidGo,
  type JsonObject,
  joined,
  notSupported,
  parseIpBlock,
  required,
  ruleErrors,
  tooLong,
  tooMany,
} from '@wheelhouse/machinery';
import type {
  AdmissionKindOptions,
  ExpressionChecker,
} from '../admissionregistration/expressions.ts';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { validateCidr } from '../core/addresses.ts';
import { validateTemplateMetadata } from '../core/storage/claim-rules.ts';
import { defineKind, keepMetadata } from '../define.ts';
import type { Features } from '../features/features.ts';
import type {
  AllocatedDeviceStatus,
  DeviceAllocationConfiguration,
  DeviceRequestAllocationResult,
  NetworkDeviceData,
  ResourceClaim,
  ResourceClaimConsumerReference,
  ResourceClaimTemplate,
} from '../gen/types/resource/v1beta1.ts';
import { duplicateGo, validateDriverName } from '../pod/fields.ts';
import { nodeSelectorErrorSteps } from '../pod/validation/affinity.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { immutable, validateConditions } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import {
  checkerOfUpdate,
  fillRequests,
  requestNames,
  requestsMax,
  validateClaimedDevices,
  validateConfigurations,
  validateItems,
  validateParameters,
  validatePoolName,
  validateRequestReference,
} from './device-class.ts';

/** ResourceClaim: devices that pods request, and those that are allocated to them. */
export function resourceClaim(
  dialect: Dialect,
  options: AdmissionKindOptions & { readonly features?: Features },
): ResourceDef {
  const check = options.checkExpression;
  const state = column('State', claimState, { description: 'Allocation state of the claim.' });
  const columns = [nameColumn, state, ageColumn];
  const defaults = (object: Stored<ResourceClaim>) => fillRequests(object.spec?.devices);
  const validateParts = (object: Stored<ResourceClaim>, parts: 'new' | 'stored', checker = check) =>
    validateClaimedDevices(object.spec?.devices, 'spec.devices', { parts, check: checker });
  return defineKind({
    dialect,
    ...(options.features === undefined ? {} : { features: options.features }),
    facts: 'resource',
    kind: 'ResourceClaim',
    scope: 'Namespaced',
    versions: ['v1beta1', 'v1alpha3'].map((version) => ({ version, columns, defaults })),
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      deleteAnswers: 'object',
      extraMetadataChecks: { '': ['whole', 'change'] },
      *prepareForUpdate(context, object, old) {
        if (context.subresource !== 'status') return;
        // Unlike with `resetFields`, the client's manager still owns the metadata that it sends.
        yield* keepMetadata(object, old);
        dropDeallocated(object, old);
      },
      validateCreate: (_, object) => validateParts(object, 'new'),
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return yield* validateStatus(object, old);
        return yield* validateChange(object, old, { check, validateParts });
      },
    },
    example: () => ({
      spec: { devices: { requests: [{ name: 'r', deviceClassName: 'example' }] } },
    }),
  });
}

/** Validates an update of a claim or a template, whose spec is immutable. */
function* validateChange<Kind extends JsonObject>(
  object: Kind,
  old: Kind,
  rules: {
    readonly check: ExpressionChecker | undefined;
    readonly validateParts: (
      object: Kind,
      parts: 'new' | 'stored',
      checker: ExpressionChecker | undefined,
    ) => Generator<void, FieldError[]>;
  },
): Generator<void, FieldError[]> {
  const { check, validateParts } = rules;
  const checker = checkerOfUpdate(object, old, check);
  return [
    ...(yield* validateParts(object, 'new', checker)),
    ...immutable('spec', at(object, 'spec'), at(old, 'spec')),
    ...(yield* validateParts(object, 'stored', checker)),
  ];
}

/** Returns the state of a claim for its column, such as `allocated,reserved`. */
function claimState(object: Stored<ResourceClaim>): string {
  const isDeleted = object.metadata.deletionTimestamp !== undefined;
  if (object.status?.allocation === undefined) return isDeleted ? 'deleted' : 'pending';
  const deleted = isDeleted ? ['deleted'] : [];
  const reserved = (object.status?.reservedFor ?? []).length > 0 ? ['reserved'] : [];
  return [...deleted, 'allocated', ...reserved].join(',');
}

/** Removes the status of devices that are no longer allocated. */
function dropDeallocated(object: Stored<ResourceClaim>, old: Stored<ResourceClaim>): void {
  const status = object.status;
  const devices = status?.devices ?? [];
  if (status === undefined || devices.length === 0) return;
  const allocated = allocatedDevices(object);
  const deallocated = new Set([...allocatedDevices(old)].filter((id) => !allocated.has(id)));
  const remaining = devices.filter((device) => !deallocated.has(deviceId(device)));
  if (remaining.length === 0) delete status.devices;
  else status.devices = remaining;
}

const allocatedDevices = (object: Stored<ResourceClaim>): ReadonlySet<string> =>
  new Set((object.status?.allocation?.devices?.results ?? []).map(deviceId));

/** The identity of a device: its driver, pool, and name. */
const deviceId = (device: Stored<AllocatedDeviceStatus | DeviceRequestAllocationResult>): string =>
  (['driver', 'pool', 'device'] as const).map((member) => device[member] ?? '').join('/');

const consumersMax = 256;

function* validateStatus(
  object: Stored<ResourceClaim>,
  old: Stored<ResourceClaim>,
): Generator<void, FieldError[]> {
  const consumers = object.status?.reservedFor ?? [];
  const allocated = allocatedDevices(object);
  const path = 'status.reservedFor';
  const [allocation, before] = [object, old].map((claim) =>
    objectAt(claim, 'status', 'allocation'),
  );
  const oldConsumers = new Set((old.status?.reservedFor ?? []).map(consumerId));
  const isDeleted = object.metadata.deletionTimestamp !== undefined;
  const isNew = isDeleted && consumers.some((consumer) => !oldConsumers.has(consumerId(consumer)));
  const lateDetail =
    'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set';
  const unallocated = 'may not be specified when `allocated` is not set';
  const late = isNew ? [forbiddenField(path, lateDetail)] : [];
  const misplaced = allocation === undefined ? [forbiddenField(path, unallocated)] : late;
  return [
    ...(yield* validateItems(consumers, path, {
      max: consumersMax,
      item: validateConsumer,
      key: (consumer) => textAt(consumer, 'uid'),
      member: 'uid',
    })),
    ...(yield* validateItems(object.status?.devices ?? [], 'status.devices', {
      max: Number.POSITIVE_INFINITY,
      item: (device, itemPath) => validateDeviceStatus(device, itemPath, allocated),
      key: deviceId,
      member: 'deviceID',
      repeated: duplicateGo,
    })),
    ...(consumers.length > 0 ? misplaced : []),
    ...(allocation !== undefined && before !== undefined
      ? immutable('status.allocation', allocation, before)
      : allocation === undefined
        ? []
        : yield* validateAllocation(object)),
  ];
}

const consumerId = (consumer: Stored<ResourceClaimConsumerReference>): string =>
  JSON.stringify(
    (['apiGroup', 'resource', 'name', 'uid'] as const).map((member) => consumer[member] ?? ''),
  );

function validateConsumer(
  consumer: Stored<ResourceClaimConsumerReference>,
  path: string,
): FieldError[] {
  return (['resource', 'name', 'uid'] as const).flatMap((member) =>
    (consumer[member] ?? '') === '' ? [required(`${path}.${member}`)] : [],
  );
}

const conditionsMax = 8;

function* validateDeviceStatus(
  device: Stored<AllocatedDeviceStatus>,
  path: string,
  allocated: ReadonlySet<string>,
): Generator<void, FieldError[]> {
  const id = deviceId(device);
  const conditions = device.conditions ?? [];
  const data = device.data ?? undefined;
  return [
    ...validateDriverName(device.driver ?? '', `${path}.driver`),
    ...validatePoolName(device.pool ?? '', `${path}.pool`),
    ...ruleErrors(`${path}.device`, device.device ?? '', dnsLabel),
    ...(allocated.has(id)
      ? []
      : [invalidGo(path, () => id, 'must be an allocated device in the claim')]),
    ...(conditions.length > conditionsMax
      ? [tooMany(`${path}.conditions`, conditions.length, conditionsMax)]
      : []),
    ...(yield* validateConditions(conditions, `${path}.conditions`)),
    ...(data === undefined ? [] : validateParameters(data, `${path}.data`, 'new')),
    ...(yield* validateNetworkData(device.networkData, `${path}.networkData`)),
  ];
}

const interfaceNameBytesMax = 256;
const hardwareAddressBytesMax = 128;

const addressesMax = 16;

function* validateNetworkData(
  data: Stored<NetworkDeviceData> | undefined,
  path: string,
): Generator<void, FieldError[]> {
  if (data === undefined) return [];
  const long = (member: string, max: number) =>
    Buffer.byteLength(textAt(data, member)) > max ? [tooLong(`${path}.${member}`, max)] : [];
  const canonical = (text: string) => {
    const block = parseIpBlock(text);
    return block === undefined ? '' : `${formatIpAddress(block.address)}/${block.writtenBits}`;
  };
  return [
    ...long('interfaceName', interfaceNameBytesMax),
    ...long('hardwareAddress', hardwareAddressBytesMax),
    ...(yield* validateItems((data.ips ?? []).map(String), `${path}.ips`, {
      max: addressesMax,
      item: (text, itemPath) =>
        parseIpBlock(text) === undefined ? validateCidr(itemPath, text) : [],
      key: canonical,
    })),
  ];
}

const sources = ['FromClaim', 'FromClass'];

function* validateAllocation(object: Stored<ResourceClaim>): Generator<void, FieldError[]> {
  const allocation = object.status?.allocation;
  const path = 'status.allocation';
  const requests = requestNames(object.spec?.devices);
  const source = (configuration: Stored<DeviceAllocationConfiguration>, itemPath: string) => {
    const text = configuration.source ?? '';
    if (text === '') return [required(`${itemPath}.source`)];
    return sources.includes(text) ? [] : [notSupported(`${itemPath}.source`, text, sources)];
  };
  const result = (allocated: Stored<DeviceRequestAllocationResult>, itemPath: string) => [
    ...validateRequestReference(allocated.request ?? '', `${itemPath}.request`, requests),
    ...validateDriverName(allocated.driver ?? '', `${itemPath}.driver`),
    ...validatePoolName(allocated.pool ?? '', `${itemPath}.pool`),
    ...ruleErrors(`${itemPath}.device`, allocated.device ?? '', dnsLabel),
  ];
  const selector = allocation?.nodeSelector;
  return joined<FieldError>(
    yield* validateItems(allocation?.devices?.results ?? [], `${path}.devices.results`, {
      max: requestsMax,
      item: result,
    }),
    yield* validateConfigurations(
      allocation?.devices?.config ?? [],
      `${path}.devices.config`,
      // Configurations of the class and of the claim.
      { parts: 'new', check: undefined, requests, max: 2 * requestsMax, more: source },
    ),
    selector === undefined
      ? []
      : yield* nodeSelectorErrorSteps(selector, `${path}.nodeSelector`, 'label-values'),
  );
}

/** ResourceClaimTemplate: the template of claims that are created for pods. */
export function resourceClaimTemplate(
  dialect: Dialect,
  options: AdmissionKindOptions & { readonly features?: Features },
): ResourceDef {
  const check = options.checkExpression;
  const columns = [nameColumn, ageColumn];
  const devicesOf = (object: Stored<ResourceClaimTemplate>) => object.spec?.spec?.devices;
  const defaults = (object: Stored<ResourceClaimTemplate>) => fillRequests(devicesOf(object));
  function* validateParts(
    object: Stored<ResourceClaimTemplate>,
    parts: 'new' | 'stored',
    checker = check,
  ) {
    return [
      ...(yield* validateTemplateMetadata(object.spec?.metadata, 'spec.metadata')),
      ...(yield* validateClaimedDevices(devicesOf(object), 'spec.spec.devices', {
        parts,
        check: checker,
      })),
    ];
  }
  return defineKind<ResourceClaimTemplate>({
    dialect,
    ...(options.features === undefined ? {} : { features: options.features }),
    facts: 'resource',
    kind: 'ResourceClaimTemplate',
    scope: 'Namespaced',
    versions: ['v1beta1', 'v1alpha3'].map((version) => ({ version, columns, defaults })),
    strategy: {
      validateName: dnsSubdomain,
      deleteAnswers: 'object',
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateCreate: (_, object) => validateParts(object, 'new'),
      validateUpdate: (_, object, old) => validateChange(object, old, { check, validateParts }),
    },
    example: () => ({
      spec: { spec: { devices: { requests: [{ name: 'r', deviceClassName: 'example' }] } } },
    }),
  });
}
