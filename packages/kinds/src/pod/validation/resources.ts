import {
  appendAll,
  type Dialect,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  type JsonObject,
  parseQuantity,
  type Quantity,
  qualifiedName,
  required,
} from '@wheelhouse/machinery';
import type { ResourceRequirements } from '../../gen/types/core/v1.ts';
import { keyed, sortedKeys } from '../../rules/checks.ts';
import type { Stored } from '../../stored.ts';
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

/** One of the server's own resources: without a domain, or within its own. */
export const isNative = (name: string, dialect: Dialect): boolean =>
  !name.includes('/') || name.includes(`${dialect.labelDomain}/`);

/** A resource that some vendor adds; it must also fit a quota, as `requests.<name>`. */
const isExtended = (name: string, dialect: Dialect) =>
  !isNative(name, dialect) &&
  !name.startsWith('requests.') &&
  qualifiedName(`requests.${name}`).length === 0;

/** Whether more may be promised than there is: of cpu and memory, never of devices or huge pages. */
export const mayOvercommit = (name: string, dialect: Dialect) =>
  isNative(name, dialect) && !isHugePages(name);

/** Names of resources print themselves in Go, which is without quotes. */
const invalidName = (field: string, name: string, detail: string) =>
  invalidGo(field, () => name, detail);

/** The name of any resource: qualified, or one of those the server knows. */
export function validateAnyResourceName(name: string, field: string): FieldError[] {
  const errors = qualifiedName(name).map((message) => invalidName(field, name, message));
  const isStandard =
    standardResources.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-');
  if (errors.length > 0 || name.includes('/') || isStandard) return errors;
  return [invalidName(field, name, 'must be a standard resource type or fully qualified')];
}

/** What a quota may count: all that is standard but storage itself, and what has a domain. */
export function validateQuotaResourceName(name: string, field: string): FieldError[] {
  const errors = validateAnyResourceName(name, field);
  if (name.includes('/') || isStandardForQuota(name)) return errors;
  return [...errors, invalidName(field, name, 'must be a standard resource for quota')];
}

/** Whether a quota knows the resource by itself. */
export const isStandardForQuota = (name: string): boolean =>
  (standardResources.has(name) && name !== 'storage') ||
  isHugePages(name) ||
  name.startsWith('requests.hugepages-');

/** The name of something that a container may ask for. */
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

/** An amount of a resource: not negative, and whole for what comes in pieces. */
export function validateAmount(
  amount: { name: string; quantity: Quantity },
  field: string,
  dialect: Dialect,
): FieldError[] {
  const { name, quantity } = amount;
  const errors = quantity.nano < 0n ? [invalid(field, quantity.text, negative)] : [];
  const comesWhole = wholeResources.has(name) || isExtended(name, dialect);
  if (comesWhole && quantity.nano % 1_000_000_000n !== 0n) {
    errors.push(invalidGo(field, () => goQuantity(quantity.text), 'must be an integer'));
  }
  return errors;
}

/** The quantities of a list of resources that can be read. */
export function quantitiesOf(list: JsonObject | undefined): ReadonlyMap<string, Quantity> {
  const quantities = new Map<string, Quantity>();
  if (list === undefined) return quantities;
  for (const name of sortedKeys(list)) {
    const quantity = parseQuantity(String(list[name]));
    if (!('error' in quantity)) quantities.set(name, quantity);
  }
  return quantities;
}

/** Judges the name of a resource at `field`. */
type NameOfResource = (name: string, field: string, dialect: Dialect) => FieldError[];

/** The `limits` and `requests` of a container, or of a pod whose names follow another rule. */
export function validateResources(
  resources: Stored<ResourceRequirements> | undefined,
  path: string,
  podRules: PodRules,
  validateName: NameOfResource = validateResourceName,
): FieldError[] {
  const rules = { ...podRules, validateName };
  const limits = quantitiesOf(resources?.limits);
  const requests = quantitiesOf(resources?.requests);
  const errors: FieldError[] = [];
  for (const [name, quantity] of limits) {
    appendAll(errors, validateEntry({ name, quantity }, keyed(`${path}.limits`, name), rules));
  }
  for (const [name, quantity] of requests) {
    const field = keyed(`${path}.requests`, name);
    const [first, ...rest] = partsOfEntry({ name, quantity }, field, rules);
    appendAll(errors, first ?? []);
    appendAll(errors, requestWithinLimit({ name, quantity }, { limits, path, rules }));
    appendAll(errors, rest.flat());
  }
  const names = [...limits.keys(), ...requests.keys()];
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory')) {
    errors.push(forbiddenField(path, 'HugePages require cpu or memory'));
  }
  return errors;
}

type Amount = { readonly name: string; readonly quantity: Quantity };

interface ResourceRules extends PodRules {
  readonly validateName: NameOfResource;
}

const validateEntry = (amount: Amount, field: string, rules: ResourceRules) =>
  partsOfEntry(amount, field, rules).flat();

/** Name and amount first, then what is about huge pages: upstream judges limits in between. */
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
  return quantity.nano % size.nano === 0n;
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
  const wanted = overcommits ? 'less than or equal to' : 'equal to';
  const detail = `must be ${wanted} ${name} limit of ${limit.text}`;
  return [invalid(`${path}.requests`, quantity.text, detail)];
}
