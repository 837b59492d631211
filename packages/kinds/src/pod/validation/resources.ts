import {
  appendAll,
  type Dialect,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  type JsonObject,
  milliValue,
  parseQuantity,
  type Quantity,
  qualifiedName,
  required,
} from '@wheelhouse/machinery';
import type { Container, ResourceRequirements } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps, keyed, someSteps, sortedKeys } from '../../rules/checks.ts';
import { negative } from '../fields.ts';
import { goQuantity } from '../go-text.ts';
import type { PodRules } from '../rules.ts';

const containerResources = new Set(['cpu', 'memory', 'ephemeral-storage']);

const countedResources = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];

const standardResources = new Set([
  ...countedResources,
  'storage',
  'requests.storage',
  ...[...containerResources].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
]);
const wholeResources = new Set(countedResources);

const hugePages = 'hugepages-';
const isHugePages = (name: string) => name.startsWith(hugePages);

/** Whether a resource is native: its name has no domain, or the dialect's own. */
export const isNative = (name: string, dialect: Dialect): boolean =>
  !name.includes('/') || name.includes(`${dialect.labelDomain}/`);

/** Whether a resource is extended: a vendor's, with a name that is valid after `requests.`. */
const isExtended = (name: string, dialect: Dialect) =>
  !isNative(name, dialect) &&
  !name.startsWith('requests.') &&
  qualifiedName(`requests.${name}`).length === 0;

/** Whether a resource can be overcommitted: cpu and memory can, devices and huge pages cannot. */
export const mayOvercommit = (name: string, dialect: Dialect) =>
  isNative(name, dialect) && !isHugePages(name);

/** Returns an error about the name of a resource, which Go prints without quotes. */
const invalidName = (field: string, name: string, detail: string) =>
  invalidGo(field, () => name, detail);

/** Validates the name of any resource: a name with a domain, or one of the native names. */
export function validateAnyResourceName(name: string, field: string): FieldError[] {
  const errors = qualifiedName(name).map((message) => invalidName(field, name, message));
  const isStandard =
    standardResources.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-');
  if (errors.length > 0 || name.includes('/') || isStandard) return errors;
  return [invalidName(field, name, 'must be a standard resource type or fully qualified')];
}

/**
 * Validates the name of a resource in a quota: a standard one except storage, or one with a
 * domain.
 */
export function validateQuotaResourceName(name: string, field: string): FieldError[] {
  const errors = validateAnyResourceName(name, field);
  if (name.includes('/') || isStandardForQuota(name)) return errors;
  return [...errors, invalidName(field, name, 'must be a standard resource for quota')];
}

/** Whether quotas support a resource without a domain. */
export const isStandardForQuota = (name: string): boolean =>
  (standardResources.has(name) && name !== 'storage') ||
  isHugePages(name) ||
  name.startsWith('requests.hugepages-');

/** Validates the name of a resource that containers may request. */
export function validateResourceName(name: string, field: string, dialect: Dialect): FieldError[] {
  const errors = validateAnyResourceName(name, field);
  const refuse = (detail: string) => errors.push(invalidName(field, name, detail));
  if (!name.includes('/')) {
    if (!containerResources.has(name) && !isHugePages(name)) {
      refuse('must be a standard resource for containers');
    }
  } else if (!isNative(name, dialect) && !isExtended(name, dialect)) {
    refuse("doesn't follow extended resource name standard");
  }
  return errors;
}

/** Validates a quantity: not negative, and an integer for countable resources. */
export function validateAmount(
  amount: { name: string; quantity: Quantity },
  field: string,
  dialect: Dialect,
): FieldError[] {
  const { name, quantity } = amount;
  const errors = quantity.nano < 0n ? [invalid(field, quantity.text, negative)] : [];
  const isCountable = wholeResources.has(name) || isExtended(name, dialect);
  if (isCountable && milliValue(quantity) % 1000n !== 0n) {
    errors.push(invalidGo(field, () => goQuantity(quantity.text), 'must be an integer'));
  }
  return errors;
}

/** Quantities that one step parses. */
const quantitiesPerStep = 200;

/** Returns the valid quantities of a resource list, sorted by name, in steps (TRUST-2). */
export function* quantitySteps(
  list: JsonObject | undefined,
): Generator<void, ReadonlyMap<string, Quantity>> {
  const quantities = new Map<string, Quantity>();
  if (list === undefined) return quantities;
  for (const [index, name] of sortedKeys(list).entries()) {
    if (index % quantitiesPerStep === 0) yield;
    const quantity = parseQuantity(String(list[name]));
    if (!('error' in quantity)) quantities.set(name, quantity);
  }
  return quantities;
}

/**
 * Whether a container limits or requests an amount of huge pages that is no multiple of their size,
 * in steps (TRUST-2).
 */
export function* hasPartialPages(container: Stored<Container>): Generator<void, boolean> {
  const resources = container.resources;
  if (resources === undefined) return false;
  return yield* someSteps([resources.limits, resources.requests], (list) =>
    someSteps(Object.keys(list ?? {}), (name) => {
      if (!isHugePages(name)) return false;
      const quantity = parseQuantity(String(list?.[name]));
      return !('error' in quantity) && !arePagesWhole(name, quantity);
    }),
  );
}

/** Validates the name of a resource at `field`. */
type ResourceNameRule = (name: string, field: string, dialect: Dialect) => FieldError[];

/**
 * Validates the `limits` and `requests` of a container or pod, in steps (TRUST-2). The rule for
 * names is that of containers unless `podRules` has another.
 */
export function* resourceErrorSteps(
  resources: Stored<ResourceRequirements> | undefined,
  path: string,
  podRules: PodRules & Partial<ResourceRules>,
): Generator<void, FieldError[]> {
  const rules = { validateName: validateResourceName, ...podRules };
  const limits = yield* quantitySteps(resources?.limits);
  const requests = yield* quantitySteps(resources?.requests);
  const errors = yield* flatMapSteps(limits, ([name, quantity]) =>
    validateEntry({ name, quantity }, keyed(`${path}.limits`, name), rules),
  );
  const ofRequests = yield* flatMapSteps(requests, ([name, quantity]) => {
    const field = keyed(`${path}.requests`, name);
    const [first = [], ...rest] = partsOfEntry({ name, quantity }, field, rules);
    const within = requestWithinLimit({ name, quantity }, { limits, path, rules });
    return [...first, ...within, ...rest.flat()];
  });
  appendAll(errors, ofRequests);
  const names = [...limits.keys(), ...requests.keys()];
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory')) {
    errors.push(forbiddenField(path, 'HugePages require cpu or memory'));
  }
  return errors;
}

type Amount = { readonly name: string; readonly quantity: Quantity };

interface ResourceRules extends PodRules {
  readonly validateName: ResourceNameRule;
}

const validateEntry = (amount: Amount, field: string, rules: ResourceRules) =>
  partsOfEntry(amount, field, rules).flat();

/**
 * Returns the errors of a name and quantity, and then those of huge pages: kube-apiserver compares
 * requests with limits in between.
 */
function partsOfEntry(amount: Amount, field: string, rules: ResourceRules): FieldError[][] {
  const { dialect } = rules;
  const plain = [
    ...rules.validateName(amount.name, field, dialect),
    ...validateAmount(amount, field, dialect),
  ];
  return isHugePages(amount.name) ? [plain, validateWholePages(amount, field, rules)] : [plain];
}

function validateWholePages(
  { name, quantity }: Amount,
  field: string,
  rules: PodRules,
): FieldError[] {
  if (rules.allow.indivisibleHugePages || arePagesWhole(name, quantity)) return [];
  const detail = `${quantity.text} is not positive integer multiple of ${name}`;
  return [invalid(field, quantity.text, detail)];
}

function arePagesWhole(name: string, quantity: Quantity): boolean {
  const size = parseQuantity(name.slice(hugePages.length));
  if ('error' in size || size.nano <= 0n || size.nano % 1_000_000_000n !== 0n) return false;
  // kube-apiserver rounds up to whole bytes first.
  const billion = 1_000_000_000n;
  const bytes = (quantity.nano + billion - 1n) / billion;
  return (bytes * billion) % size.nano === 0n;
}

function requestWithinLimit(
  { name, quantity }: Amount,
  of: { limits: ReadonlyMap<string, Quantity>; path: string; rules: PodRules },
): FieldError[] {
  const { limits, path, rules } = of;
  const limit = limits.get(name);
  const overcommits = mayOvercommit(name, rules.dialect);
  if (limit === undefined) {
    const detail = 'Limit must be set for non overcommitable resources';
    return overcommits ? [] : [required(`${path}.limits`, detail)];
  }
  const differs = overcommits ? quantity.nano > limit.nano : quantity.nano !== limit.nano;
  if (!differs) return [];
  const relation = overcommits ? 'less than or equal to' : 'equal to';
  const detail = `must be ${relation} ${name} limit of ${limit.text}`;
  return [invalid(`${path}.requests`, quantity.text, detail)];
}
