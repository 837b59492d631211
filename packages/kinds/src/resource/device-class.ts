import { jsonText } from '@wheelhouse/codec';
import {
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  internal,
  invalid,
  isObject,
  type JsonObject,
  type JsonValue,
  joined,
  notSupported,
  required,
  ruleErrors,
  seenBefore,
  tooLong,
  tooMany,
  typeInvalid,
} from '@wheelhouse/machinery';
import {
  type AdmissionKindOptions,
  type ExpressionChecker,
  storedChecker,
} from '../admissionregistration/expressions.ts';
import { ageColumn, at, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type {
  DeviceAllocationConfiguration,
  DeviceClaim,
  DeviceClaimConfiguration,
  DeviceClass,
  DeviceClassConfiguration,
  DeviceConstraint,
  DeviceRequest,
  DeviceSelector,
} from '../gen/types/resource/v1beta1.ts';
import { validateDriverName } from '../pod/fields.ts';
import type { Findings, ResourceDef, Stored } from '../resource-def.ts';
import { expressionsPerStep, flatMapSteps, sameOrEmpty } from '../rules/checks.ts';

/** DeviceClass: a name under which claims request devices. */
export function deviceClass(dialect: Dialect, options: AdmissionKindOptions): ResourceDef {
  const check = options.checkExpression;
  const columns = [nameColumn, ageColumn];
  return defineKind({
    dialect,
    facts: 'resource',
    kind: 'DeviceClass',
    scope: 'Cluster',
    versions: ['v1beta1', 'v1alpha3'].map((version) => ({ version, columns })),
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      deleteAnswers: 'object',
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateCreate: (_, object) => validate(object, undefined, check),
      *validateUpdate(_, object, old) {
        // kube-apiserver validates the whole object both on its own and as part of the change.
        const checker = checkerOfUpdate(object, old, check);
        const errors = yield* validate(object, undefined, checker);
        return [...errors, ...(yield* validate(object, old, checker))];
      },
    },
    example: () => ({ spec: {} }),
  });
}

/** The checker of an update, for which expressions are not new if it keeps the spec. */
export function checkerOfUpdate(
  object: JsonObject,
  old: JsonObject,
  check: ExpressionChecker | undefined,
): ExpressionChecker | undefined {
  return sameOrEmpty(at(object, 'spec'), at(old, 'spec')) ? storedChecker(check) : check;
}

function* validate(
  object: Stored<DeviceClass>,
  old: JsonObject | undefined,
  check: ExpressionChecker | undefined,
): Generator<void, FieldError[]> {
  const partsOf = (member: string) => {
    const [now, before] = [object, old].map((version) => at(version, 'spec', member));
    return old !== undefined && sameOrEmpty(now, before) ? 'stored' : 'new';
  };
  const contextOf = (member: string) => ({ parts: partsOf(member), check }) as const;
  return [
    ...(yield* validateSelectors(
      object.spec?.selectors ?? [],
      'spec.selectors',
      contextOf('selectors'),
    )),
    ...(yield* validateConfigurations(
      object.spec?.config ?? [],
      'spec.config',
      contextOf('config'),
    )),
  ];
}

const selectorsMax = 32;
const configurationsMax = 32;
const constraintsMax = 32;
const expressionBytesMax = 10 * 1024;
/** About a tenth of a second for each device that a scheduler evaluates. */
const expressionCostMax = 1_000_000;
const parametersBytesMax = 10 * 1024;
const identifierBytesMax = 32;
const poolNameBytesMax = 253;

/** Upper bound of the requests of a claim, and of the results of an allocation. */
export const requestsMax = 32;

/** Context of the rules that the kinds of `resource/v1beta1` share. */
interface DeviceRuleContext {
  /** Whether the validated parts are stored, so that they may break rules that became stricter. */
  readonly parts: 'new' | 'stored';
  readonly check: ExpressionChecker | undefined;
}

/** Rules for the items of a list. */
interface ItemRules<Item> {
  readonly max: number;
  readonly item: (item: Item, path: string) => Findings;
  /** Returns the key of an item; without it, items may be equal. */
  readonly key?: (item: Item) => string;
  /** The member with the key, for the path of errors; absent if the item is the key. */
  readonly member?: string;
  /** Returns the error of a repeated key, if it shows the key in another form. */
  readonly repeated?: (path: string, key: string) => FieldError;
}

/**
 * Validates each item of a list, their number, and that their keys are unique, in steps (TRUST-2).
 * Items may contain expressions.
 */
export function* validateItems<Item>(
  list: readonly Item[],
  path: string,
  rules: ItemRules<Item>,
): Generator<void, FieldError[]> {
  const { max, item, key, member = '', repeated: errorOf = duplicate } = rules;
  const errors = yield* flatMapSteps(
    list,
    (element, index) => item(element, `${path}[${index}]`),
    expressionsPerStep,
  );
  if (list.length > max) errors.push(tooMany(path, list.length, max));
  yield;
  if (key === undefined) return errors;
  const isRepeated = seenBefore();
  const at = member === '' ? '' : `.${member}`;
  const repeated = yield* flatMapSteps(list, (element, index) =>
    isRepeated(key(element)) ? [errorOf(`${path}[${index}]${at}`, key(element))] : [],
  );
  return joined(errors, repeated);
}

/** Validates the name of a pool: DNS subdomains separated by slashes. */
export function validatePoolName(name: string, path: string): FieldError[] {
  if (name === '') return [required(path)];
  return [
    ...(Buffer.byteLength(name) > poolNameBytesMax ? [tooLong(path, poolNameBytesMax)] : []),
    ...name.split('/').flatMap((part) => ruleErrors(path, part, dnsSubdomain)),
  ];
}

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;
const identifierDetail =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of " +
  "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for " +
  "validation is '[A-Za-z_][A-Za-z0-9_]*')";

function validateIdentifier(name: string, path: string): FieldError[] {
  return [
    ...(Buffer.byteLength(name) > identifierBytesMax ? [tooLong(path, identifierBytesMax)] : []),
    ...(identifier.test(name) ? [] : [typeInvalid(path, name, identifierDetail)]),
  ];
}

/**
 * Validates the name of an attribute or capacity: an identifier, optionally after a domain and
 * `/`.
 */
export function validateDeviceName(name: string, path: string): FieldError[] {
  if (name === '') return [required(path, 'name required')];
  const parts = name.split('/');
  const [domain = '', id = ''] = parts;
  if (parts.length === 1) return validateIdentifier(domain, path);
  if (parts.length > 2) return [];
  return [
    ...(domain === ''
      ? [required(path, 'the domain must not be empty')]
      : validateDriverName(domain, path)),
    ...(id === '' ? [required(path, 'the name must not be empty')] : validateIdentifier(id, path)),
  ];
}

function validateMatchAttribute(name: string, path: string): FieldError[] {
  const errors = validateDeviceName(name, path);
  const lacksDomain = name !== '' && !name.includes('/');
  return lacksDomain ? [...errors, invalid(path, name, 'must include a domain')] : errors;
}

/** Validates device selectors, CEL expressions about `device`, in steps (TRUST-2). */
function* validateSelectors(
  selectors: readonly Stored<DeviceSelector>[],
  path: string,
  context: DeviceRuleContext,
): Generator<void, FieldError[]> {
  const item = (selector: Stored<DeviceSelector>, itemPath: string) => {
    const cel = selector.cel;
    if (cel === undefined) return [required(`${itemPath}.cel`)];
    return validateExpression(cel.expression ?? '', `${itemPath}.cel.expression`, context);
  };
  return yield* validateItems(selectors, path, { max: selectorsMax, item });
}

function* validateExpression(
  source: string,
  path: string,
  context: DeviceRuleContext,
): Generator<void, FieldError[]> {
  if (Buffer.byteLength(source) > expressionBytesMax) return [tooLong(path, expressionBytesMax)];
  const use = { variables: ['device'], resultTypes: ['bool', 'dyn'], costMax: expressionCostMax };
  const problem = context.check === undefined ? undefined : yield* context.check(source, use);
  if (problem === undefined) return [];
  const { detail, type } = problem;
  if (type === 'forbidden') return [forbiddenField(path, detail)];
  return [type === 'internal' ? internal(path, detail) : invalid(path, source, detail)];
}

/** Validates parameters of any form, which must be a JSON object of limited size. */
export function validateParameters(
  parameters: JsonValue | undefined,
  path: string,
  parts: DeviceRuleContext['parts'],
): FieldError[] {
  if (parameters === undefined || parameters === null) return [required(path)];
  const isLong = Buffer.byteLength(jsonText(parameters)) > parametersBytesMax;
  if (parts === 'new' && isLong) return [tooLong(path, parametersBytesMax)];
  if (isObject(parameters)) return [];
  return [invalid(path, '<value omitted>', 'parameters must be a valid JSON object')];
}

/** Validates a device configuration: opaque parameters for a driver. */
function validateConfiguration(
  configuration: Stored<DeviceClaimConfiguration>,
  path: string,
  { parts }: DeviceRuleContext,
): FieldError[] {
  const opaque = configuration.opaque;
  if (opaque === undefined) return [required(`${path}.opaque`)];
  return [
    ...validateDriverName(opaque.driver ?? '', `${path}.opaque.driver`),
    ...validateParameters(opaque.parameters, `${path}.opaque.parameters`, parts),
  ];
}

/**
 * Validates a list of configurations.
 * @param context.requests the names that the configurations may refer to; absent for a class
 * @param context.more further rules for each configuration
 */
export function* validateConfigurations(
  configurations: readonly Stored<
    DeviceClaimConfiguration | DeviceClassConfiguration | DeviceAllocationConfiguration
  >[],
  path: string,
  context: DeviceRuleContext & {
    readonly requests?: ReadonlySet<string>;
    readonly max?: number;
    readonly more?: (configuration: JsonObject, path: string) => readonly FieldError[];
  },
): Generator<void, FieldError[]> {
  const { requests, max = configurationsMax, more } = context;
  function* item(configuration: JsonObject, itemPath: string): Generator<void, FieldError[]> {
    const names = listAt(configuration, 'requests');
    return joined<FieldError>(
      more?.(configuration, itemPath) ?? [],
      requests === undefined
        ? []
        : yield* validateReferences(names, `${itemPath}.requests`, requests),
      validateConfiguration(configuration, itemPath, context),
    );
  }
  return yield* validateItems(configurations, path, { max, item });
}

/** Validates the name of a request, which the claim must have. */
export function validateRequestReference(
  name: string,
  path: string,
  requests: ReadonlySet<string>,
): FieldError[] {
  const errors = ruleErrors(path, name, dnsLabel);
  if (requests.has(name)) return errors;
  return [...errors, invalid(path, name, 'must be the name of a request in the claim')];
}

function validateReferences(
  names: readonly JsonValue[],
  path: string,
  requests: ReadonlySet<string>,
): Generator<void, FieldError[]> {
  return validateItems(names.map(String), path, {
    max: requestsMax,
    item: (name, itemPath) => validateRequestReference(name, itemPath, requests),
    key: (name) => name,
  });
}

/** Returns the names of the requests in the `devices` of a claim. */
export const requestNames = (devices: Stored<DeviceClaim> | undefined): ReadonlySet<string> =>
  new Set((devices?.requests ?? []).map((request) => request.name ?? ''));

/** Validates the `devices` of the spec of a claim at `path`, in steps (TRUST-2). */
export function* validateClaimedDevices(
  devices: Stored<DeviceClaim> | undefined,
  path: string,
  context: DeviceRuleContext,
): Generator<void, FieldError[]> {
  const requests = requestNames(devices);
  return joined<FieldError>(
    yield* validateItems(devices?.requests ?? [], `${path}.requests`, {
      max: requestsMax,
      item: (request, itemPath) => validateRequest(request, itemPath, context),
      key: (request) => textAt(request, 'name'),
      member: 'name',
    }),
    yield* validateItems(devices?.constraints ?? [], `${path}.constraints`, {
      max: constraintsMax,
      item: (constraint, itemPath) => validateConstraint(constraint, itemPath, requests),
    }),
    yield* validateConfigurations(devices?.config ?? [], `${path}.config`, {
      ...context,
      requests,
    }),
  );
}

const modes = ['All', 'ExactCount'];

function* validateRequest(
  request: Stored<DeviceRequest>,
  path: string,
  context: DeviceRuleContext,
): Generator<void, FieldError[]> {
  const className = request.deviceClassName ?? '';
  const classPath = `${path}.deviceClassName`;
  return joined<FieldError>(
    ruleErrors(`${path}.name`, request.name ?? '', dnsLabel),
    className === '' ? [required(classPath)] : ruleErrors(classPath, className, dnsSubdomain),
    yield* validateSelectors(request.selectors ?? [], `${path}.selectors`, context),
    validateMode(request, path),
  );
}

function validateMode(request: Stored<DeviceRequest>, path: string): FieldError[] {
  const [mode, count] = [request.allocationMode ?? '', Number(request.count ?? 0)];
  if (!modes.includes(mode)) return [notSupported(`${path}.allocationMode`, mode, modes)];
  if (mode === 'All' && count !== 0) {
    const detail = "must not be specified when allocationMode is 'All'";
    return [invalid(`${path}.count`, count, detail)];
  }
  const isTooFew = mode === 'ExactCount' && count <= 0;
  return isTooFew ? [invalid(`${path}.count`, count, 'must be greater than zero')] : [];
}

function* validateConstraint(
  constraint: Stored<DeviceConstraint>,
  path: string,
  requests: ReadonlySet<string>,
): Generator<void, FieldError[]> {
  const attribute = constraint.matchAttribute;
  const attributePath = `${path}.matchAttribute`;
  return joined<FieldError>(
    yield* validateReferences(constraint.requests ?? [], `${path}.requests`, requests),
    typeof attribute === 'string'
      ? validateMatchAttribute(attribute, attributePath)
      : [required(attributePath)],
  );
}

/** Fills the defaults of the requests of a claim. */
export function fillRequests(devices: Stored<DeviceClaim> | undefined): void {
  for (const request of devices?.requests ?? []) {
    if ((request.allocationMode ?? '') === '') request.allocationMode = 'ExactCount';
    const isExact = (request.allocationMode ?? '') === 'ExactCount';
    if (isExact && Number(request.count ?? 0) === 0) request.count = 1;
  }
}
