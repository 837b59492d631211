import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  int64Max,
  invalid,
  invalidGo,
  type Quantity,
  qualifiedName,
  randomUuid,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type { LimitRange, LimitRangeItem } from '../gen/types/core/v1.ts';
import { goQuantity } from '../pod/go-text.ts';
import {
  mayOvercommit,
  quantitySteps,
  validateAnyResourceName,
  validateResourceName,
} from '../pod/validation/resources.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, keyed } from '../rules/checks.ts';
import { ensure, fillMapSteps, objectAt, roundAmountsSteps } from '../rules/fill.ts';

/** LimitRange: bounds and defaults for the resources of pods in a namespace. */
export function limitRange(dialect: Dialect): ResourceDef {
  return defineKind<LimitRange>({
    dialect,
    facts: 'core',
    kind: 'LimitRange',
    scope: 'Namespaced',
    shortNames: ['limits'],
    versions: [
      { version: 'v1', ...steppedDefaults(fillSteps), columns: [nameColumn, createdAtColumn] },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      prepareForCreate: (_, object) => {
        const { metadata } = object;
        if ((metadata.name ?? '') === '') metadata.name = randomUuid();
      },
      validateCreate: (_, object) => validateLimitRange(object, dialect),
      validateUpdate: (_, object) => validateLimitRange(object, dialect),
      allowCreateOnUpdate: true,
    },
    example: () => ({ spec: { limits: [{ type: 'Container', max: { cpu: '2' } }] } }),
  });
}

const lists = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'];

/**
 * The default limit of a container is its maximum; its default request is the default limit, or
 * else the minimum.
 */
function* fillSteps(object: Stored<LimitRange>): Generator<void, void> {
  for (const [index, limit] of (object.spec?.limits ?? []).entries()) {
    if (index % perStep === perStep - 1) yield;
    for (const list of lists) {
      const amounts = objectAt(limit, list);
      if (amounts !== undefined) yield* roundAmountsSteps(amounts);
    }
    if (limit.type !== 'Container') continue;
    yield* fillMapSteps(ensure(limit, 'default'), limit.max ?? {});
    yield* fillMapSteps(ensure(limit, 'defaultRequest'), limit.default ?? {});
    yield* fillMapSteps(ensure(limit, 'defaultRequest'), limit.min ?? {});
    for (const list of ['default', 'defaultRequest'] as const) {
      if (Object.keys(limit[list] ?? {}).length === 0) delete limit[list];
    }
  }
}

/** Number of limits that one step fills or validates. */
const perStep = 100;

/** Validates a LimitRange except its metadata. */
function* validateLimitRange(
  object: Stored<LimitRange>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const types = new Set<string>();
  const errors: FieldError[] = [];
  for (const [index, limit] of (object.spec?.limits ?? []).entries()) {
    if (index % perStep === perStep - 1) yield;
    const path = `spec.limits[${index}]`;
    const type = limit.type ?? '';
    appendAll(errors, validateType(type, `${path}.type`));
    if (types.has(type)) errors.push(duplicate(`${path}.type`, type));
    types.add(type);
    appendAll(errors, yield* limitErrorSteps(limit, path, dialect));
  }
  return errors;
}

const standardTypes = ['Pod', 'Container', 'PersistentVolumeClaim'];

function validateType(type: string, field: string): FieldError[] {
  const errors = ruleErrors(field, type, qualifiedName);
  if (errors.length > 0 || type.includes('/') || standardTypes.includes(type)) return errors;
  return [invalid(field, type, 'must be a standard limit type or fully qualified')];
}

type Amounts = ReadonlyMap<string, Quantity>;

/** The parsed quantities of a limit. */
interface Limits {
  readonly max: Amounts;
  readonly min: Amounts;
  readonly default: Amounts;
  readonly defaultRequest: Amounts;
  readonly maxLimitRequestRatio: Amounts;
}

function* limitErrorSteps(
  limit: Stored<LimitRangeItem>,
  path: string,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const type = limit.type ?? '';
  const isPod = type === 'Pod';
  const of = (name: string) => quantitySteps(objectAt(limit, name));
  const none: Amounts = new Map();
  const limits: Limits = {
    max: yield* of('max'),
    min: yield* of('min'),
    default: isPod ? none : yield* of('default'),
    defaultRequest: isPod ? none : yield* of('defaultRequest'),
    maxLimitRequestRatio: yield* of('maxLimitRequestRatio'),
  };
  const names = (list: keyof Limits) =>
    flatMapSteps(limits[list].keys(), (name) => {
      const field = keyed(`${path}.${list}`, name);
      return isPod || type === 'Container'
        ? validateResourceName(name, field, dialect)
        : validateAnyResourceName(name, field);
    });
  return [
    ...(yield* names('max')),
    ...(yield* names('min')),
    ...(isPod ? yield* refuseDefaults(limit, path) : []),
    ...(yield* names('default')),
    ...(yield* names('defaultRequest')),
    ...validateStorage(limit, path),
    ...(yield* names('maxLimitRequestRatio')),
    ...(yield* agreementErrorSteps(limits, path, dialect)),
  ];
}

function* refuseDefaults(
  limit: Stored<LimitRangeItem>,
  path: string,
): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  for (const name of ['default', 'defaultRequest'] as const) {
    if ((yield* quantitySteps(limit[name])).size === 0) continue;
    const detail = "may not be specified when `type` is 'Pod'";
    errors.push(forbiddenField(`${path}.${name}`, detail));
  }
  return errors;
}

function validateStorage(limit: Stored<LimitRangeItem>, path: string): FieldError[] {
  const isBound = (['min', 'max'] as const).some((name) => limit[name]?.['storage'] !== undefined);
  if ((limit.type ?? '') !== 'PersistentVolumeClaim' || isBound) return [];
  const detail = 'either minimum or maximum storage value is required, but neither was provided';
  return [required(`${path}.limits`, detail)];
}

/** Validates that the lists are consistent for each resource. */
function* agreementErrorSteps(
  limits: Limits,
  path: string,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const names = new Set<string>();
  for (const list of [limits.max, limits.min, limits.default, limits.defaultRequest]) {
    for (const name of list.keys()) names.add(name);
    yield;
  }
  for (const name of limits.maxLimitRequestRatio.keys()) names.add(name);
  const sorted = [...names].sort();
  yield;
  return yield* flatMapSteps(sorted, (name) => validateResource(name, { limits, path, dialect }));
}

function validateResource(
  name: string,
  of: { limits: Limits; path: string; dialect: Dialect },
): FieldError[] {
  const { limits, path, dialect } = of;
  const list = (member: keyof Limits) => limits[member].get(name);
  const [max, min] = [list('max'), list('min')];
  const [limit, request] = [list('default'), list('defaultRequest')];
  const at = (member: keyof Limits) => keyed(`${path}.${member}`, name);
  const low = { what: 'min value', quantity: min };
  const high = { what: 'max value', quantity: max };
  const requested = { what: 'default request value', quantity: request };
  const limited = { what: 'default value', quantity: limit };
  const pairs = [
    [low, high, 'min', min],
    [low, requested, 'defaultRequest', request],
    [requested, high, 'defaultRequest', request],
    [requested, { ...limited, what: 'default limit value' }, 'defaultRequest', request],
    [low, limited, 'default', min],
    [limited, high, 'default', max],
  ] as const;
  const errors = [
    ...pairs.flatMap(([less, more, member, shown]) =>
      notGreater(less, more, { field: at(member), shown }),
    ),
    ...validateRatio(list('maxLimitRequestRatio'), { min, max }, at('maxLimitRequestRatio')),
  ];
  if (limit === undefined || request === undefined || mayOvercommit(name, dialect)) return errors;
  if (limit.nano === request.nano) return errors;
  const detail = `default value ${limit.text} must equal to defaultRequest value ${request.text} in ${name}`;
  return [...errors, invalidGo(at('defaultRequest'), () => goQuantity(request.text), detail)];
}

interface Named {
  readonly what: string;
  readonly quantity: Quantity | undefined;
}

function notGreater(
  low: Named,
  high: Named,
  report: { readonly field: string; readonly shown: Quantity | undefined },
): FieldError[] {
  const [lower, upper] = [low.quantity, high.quantity];
  if (lower === undefined || upper === undefined || lower.nano <= upper.nano) return [];
  const detail = `${low.what} ${lower.text} is greater than ${high.what} ${upper.text}`;
  return [invalidGo(report.field, () => goQuantity((report.shown ?? lower).text), detail)];
}

const billion = 1_000_000_000n;

/** From this amount on, kube-apiserver compares whole units instead of thousandths. */
const milliLimit = int64Max / 1000n;

function validateRatio(
  ratio: Quantity | undefined,
  { min, max }: { min: Quantity | undefined; max: Quantity | undefined },
  field: string,
): FieldError[] {
  if (ratio === undefined) return [];
  const refuse = (detail: string) => invalidGo(field, () => goQuantity(ratio.text), detail);
  const errors = ratio.nano < billion ? [refuse(`ratio ${ratio.text} is less than 1`)] : [];
  if (min === undefined || max === undefined) return errors;
  const fine = [ratio, min, max].every(({ nano }) => wholes(nano) < milliLimit);
  const amount = (quantity: Quantity) =>
    Number(fine ? roundedUp(quantity.nano, billion / 1000n) : wholes(quantity.nano));
  const value = fine ? amount(ratio) / 1000 : amount(ratio);
  const bound = amount(max) / amount(min);
  if (!(value > bound)) return errors;
  const detail = `ratio ${ratio.text} is greater than max/min = ${goFixed(bound)}`;
  return [...errors, refuse(detail)];
}

/** Prints a float as Go's `%f`, which rounds half to even and knows infinity. */
function goFixed(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  const text = value.toFixed(6);
  // Of floats, only odd multiples of 1/128 are halfway between two of these texts.
  const isHalfway = Number.isInteger(value * 128) && !Number.isInteger(value * 64);
  if (!isHalfway || Number(text.at(-1)) % 2 === 0) return text;
  return (Number(text) - Math.sign(value) * 0.000_001).toFixed(6);
}

const wholes = (nano: bigint): bigint => roundedUp(nano, billion);

/** Rounds away from zero, as Go's quantities do. */
function roundedUp(nano: bigint, unit: bigint): bigint {
  const whole = nano / unit;
  if (nano % unit === 0n) return whole;
  return nano > 0n ? whole + 1n : whole - 1n;
}
