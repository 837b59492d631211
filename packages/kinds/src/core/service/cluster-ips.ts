import {
  appendAll,
  duplicate,
  type FieldError,
  invalid,
  invalidGo,
  itemAt,
  notSupported,
  parseIpAddress,
  required,
  runInOnePiece,
} from '@wheelhouse/machinery';
import { flatMapSteps, goList } from '../../rules/checks.ts';
import { validateIp } from '../addresses.ts';
import {
  isExternalName,
  isHeadless,
  needsClusterIp,
  noAddress,
  type ServiceSpec,
  sameClusterIps,
  sameFamilies,
} from './spec.ts';

const families = ['IPv4', 'IPv6'] as const;
/** A family of addresses. */
export type Family = (typeof families)[number];

/** The address families of the server, its primary one first. */
export type ServedFamilies = readonly [Family, ...Family[]];

/**
 * Sets `ipFamilyPolicy` and `ipFamilies` in place, from the requested values, the old spec, and the
 * server's families. Returns the errors.
 */
export function determineFamilies(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  served: ServedFamilies,
): readonly FieldError[] {
  if (isExternalName(spec) || keepsDualStack(spec, old)) return [];
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? impliedPolicy(spec);
  const inconsistencies = runInOnePiece(validateClusterIps(spec));
  if (inconsistencies.length > 0) return inconsistencies;
  const errors = [
    ...(old === undefined ? [] : dropSecondary(spec, old)),
    ...validateSingleStack(spec),
    ...inferFamilies(spec, served),
  ];
  if (errors.length > 0) return errors;
  if (isHeadlessWithoutSelector(spec)) {
    spec.ipFamilies ??= [served[0]];
    addSecondFamily(spec);
    return [];
  }
  const unserved = validateServed(spec, served);
  if (unserved.length > 0) return unserved;
  spec.ipFamilies ??= [served[0]];
  if (served.length === 2) addSecondFamily(spec);
  return [];
}

/**
 * Whether an update keeps the families of a Service that prefers two, even if the server's families
 * have changed: it does unless the update changes the type, an address, or a family.
 */
export function keepsDualStack(spec: ServiceSpec, old: ServiceSpec | undefined): boolean {
  const prefers = 'PreferDualStack';
  if (old === undefined || spec.ipFamilyPolicy !== prefers) return false;
  if (old.type !== spec.type || !needsClusterIp(spec)) return false;
  if (old.ipFamilyPolicy !== undefined && old.ipFamilyPolicy !== prefers) return false;
  return sameClusterIps(old, spec) && sameFamilies(old, spec);
}

const impliedPolicy = (spec: ServiceSpec): string =>
  isHeadlessWithoutSelector(spec) ? 'RequireDualStack' : 'SingleStack';

const isHeadlessWithoutSelector = ({ clusterIP, selector = {} }: ServiceSpec): boolean =>
  clusterIP === noAddress && Object.keys(selector).length === 0;

/**
 * Number of addresses, and of families, that are validated. There may be at most two of each, so
 * longer lists have errors in any case. An allocation, which cannot pause, validates them too.
 */
const validatedMax = 1000;

/**
 * Validates that `clusterIP`, `clusterIPs`, `ipFamilies`, and `ipFamilyPolicy` are consistent, in
 * steps.
 */
export function* validateClusterIps(spec: ServiceSpec): Generator<void, FieldError[]> {
  if (isExternalName(spec)) return [];
  const single = yield* validateIps(spec);
  const errors = [
    ...validateSync(spec),
    ...(yield* validateFamilies(spec)),
    ...validatePolicy(spec),
    ...single.errors,
  ];
  return single.invalid ? errors : [...errors, ...validatePairs(spec)];
}

/** Validates each address; `invalid` tells whether comparisons of them are meaningless. */
function* validateIps(
  spec: ServiceSpec,
): Generator<void, { errors: FieldError[]; invalid: boolean }> {
  const { clusterIPs = [] } = spec;
  const errors = yield* flatMapSteps(clusterIPs.slice(0, validatedMax), (ip, index) => {
    if (index > 0 || ip !== noAddress) return validateIp(`spec.clusterIPs[${index}]`, ip);
    if (clusterIPs.length === 1) return [];
    const detail = "'None' must be the first and only value";
    return [invalidGo('spec.clusterIPs', () => shownIps(spec), detail)];
  });
  const isWrong = errors.length > 0;
  if (clusterIPs.length > 2) {
    errors.push(invalidGo('spec.clusterIPs', () => shownIps(spec), 'may only hold up to 2 values'));
  }
  return { errors, invalid: isWrong };
}

/** `spec.clusterIPs` as Go prints it in errors. */
export const shownIps = ({ clusterIPs }: ServiceSpec): string => goList('string', clusterIPs);

function validateSync(spec: ServiceSpec): FieldError[] {
  const field = 'spec.clusterIPs';
  const { clusterIP = '', clusterIPs = [] } = spec;
  if (clusterIP === '') {
    if (clusterIPs.length === 0) return [];
    return [
      invalidGo(field, () => shownIps(spec), 'must be empty when `clusterIP` is not specified'),
    ];
  }
  if (clusterIPs.length === 0) return [required(field)];
  if (clusterIPs[0] === clusterIP) return [];
  return [invalidGo(field, () => shownIps(spec), 'first value must match `clusterIP`')];
}

function validateFamilies({ ipFamilies = [] }: ServiceSpec): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(ipFamilies.slice(0, validatedMax), (family, index) => {
    const field = `spec.ipFamilies[${index}]`;
    const isSupported = families.some((supported) => supported === family);
    const errors = isSupported ? [] : [notSupported(field, family, families)];
    if (seen.has(family)) errors.push(duplicate(field, family));
    seen.add(family);
    return errors;
  });
}

const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

function validatePolicy({ ipFamilyPolicy }: ServiceSpec): FieldError[] {
  if (ipFamilyPolicy === undefined || policies.includes(ipFamilyPolicy)) return [];
  return [notSupported('spec.ipFamilyPolicy', ipFamilyPolicy, policies)];
}

function validatePairs(spec: ServiceSpec): FieldError[] {
  const { clusterIPs = [], ipFamilies = [] } = spec;
  const errors: FieldError[] = [];
  if (clusterIPs.length > 1 && !isDualStack(clusterIPs)) {
    const detail = 'may specify no more than one IP for each IP family';
    errors.push(invalidGo('spec.clusterIPs', () => shownIps(spec), detail));
  }
  if (isHeadless(spec)) return errors;
  clusterIPs.slice(0, Math.min(ipFamilies.length, validatedMax)).forEach((ip, index) => {
    const family = itemAt(ipFamilies, index);
    const isWrong = (family === 'IPv6') !== (familyOf(ip) === 'IPv6');
    if (!isWrong || (family !== 'IPv4' && family !== 'IPv6')) return;
    const detail = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
    errors.push(invalid(`spec.clusterIPs[${index}]`, ip, detail));
  });
  return errors;
}

/** Whether two addresses have different families. */
function isDualStack(ips: readonly string[]): boolean {
  const usedFamilies = new Set(ips.slice(0, validatedMax).map(familyOf));
  return usedFamilies.has('IPv4') && usedFamilies.has('IPv6');
}

/** The family of an address; `unknown` for other texts. */
export function familyOf(ip: string): Family | 'unknown' {
  const address = parseIpAddress(ip);
  if (address === undefined) return 'unknown';
  return address.family === 4 ? 'IPv4' : 'IPv6';
}

const policyField = 'spec.ipFamilyPolicy';

/** Drops the secondary family if the policy is SingleStack; otherwise rejects its omission. */
function dropSecondary(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  const { clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec;
  if (ipFamilyPolicy === 'SingleStack') {
    if (sameClusterIps(old, spec) && clusterIPs.length > 1)
      spec.clusterIPs = clusterIPs.slice(0, 1);
    if (sameFamilies(old, spec) && ipFamilies.length > 1) spec.ipFamilies = ipFamilies.slice(0, 1);
    return [];
  }
  const isLess = (now: readonly string[], before: readonly string[] = []) =>
    now.length > 0 && now.length < before.length;
  const refuse = (what: string) =>
    invalid(policyField, ipFamilyPolicy, `must be 'SingleStack' to release the secondary ${what}`);
  return [
    ...(isLess(clusterIPs, old.clusterIPs) ? [refuse('cluster IP')] : []),
    ...(isLess(ipFamilies, old.ipFamilies) ? [refuse('IP family')] : []),
  ];
}

function validateSingleStack(spec: ServiceSpec): FieldError[] {
  const { clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec;
  if (ipFamilyPolicy !== 'SingleStack') return [];
  const refuse = (what: string) => {
    const when = `when multiple ${what} are specified`;
    const detail = `must be 'RequireDualStack' or 'PreferDualStack' ${when}`;
    return invalid(policyField, ipFamilyPolicy, detail);
  };
  return [
    ...(clusterIPs.length === 2 ? [refuse('cluster IPs')] : []),
    ...(ipFamilies.length === 2 ? [refuse('IP families')] : []),
  ];
}

/** Completes the families by those of the requested addresses. */
function inferFamilies(spec: ServiceSpec, served: ServedFamilies): FieldError[] {
  const { clusterIPs = [] } = spec;
  const ipFamilies = [...(spec.ipFamilies ?? [])];
  const errors: FieldError[] = [];
  for (const [index, ip] of clusterIPs.entries()) {
    if (ip === noAddress) break;
    if (index < ipFamilies.length) continue;
    const family = familyOf(ip);
    if (served.some((servedFamily) => servedFamily === family)) ipFamilies.push(family);
    else {
      const detail = `${family} is not configured on this cluster`;
      errors.push(invalidGo(`spec.clusterIPs[${index}]`, () => shownIps(spec), detail));
    }
  }
  if (ipFamilies.length > 0) spec.ipFamilies = ipFamilies;
  return errors;
}

function addSecondFamily(spec: ServiceSpec): void {
  const { ipFamilies = [] } = spec;
  if (spec.ipFamilyPolicy === 'SingleStack' || ipFamilies.length !== 1) return;
  ipFamilies.push(ipFamilies[0] === 'IPv4' ? 'IPv6' : 'IPv4');
}

/** Rejects families that the server does not serve. */
function validateServed(spec: ServiceSpec, served: ServedFamilies): FieldError[] {
  const { ipFamilies = [], ipFamilyPolicy } = spec;
  const errors: FieldError[] = [];
  if (ipFamilyPolicy === 'RequireDualStack' && served.length < 2) {
    const detail = 'this cluster is not configured for dual-stack services';
    errors.push(invalid(policyField, ipFamilyPolicy, detail));
  }
  ipFamilies.forEach((family, index) => {
    if (served.some((servedFamily) => servedFamily === family)) return;
    errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
  });
  return errors;
}

const shownFamilies = ({ ipFamilies }: ServiceSpec): string => goList('core.IPFamily', ipFamilies);

/** Validates an update, which may add or remove the second address, but not change one. */
export function validateClusterIpsUpdate(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (isExternalName(spec) || isExternalName(old)) return [];
  return [...validateIpsUnchanged(spec, old), ...validateFamiliesUnchanged(spec, old)];
}

const immutableOnceSet = 'may not change once set';

function validateIpsUnchanged(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (isHeadless(spec) && isHeadless(old)) return [];
  const [now, before] = [spec.clusterIPs ?? [], old.clusterIPs ?? []];
  const at = (index: number, detail: string) =>
    invalidGo(`spec.clusterIPs[${index}]`, () => shownIps(spec), detail);
  if (now.length === before.length) {
    return before.flatMap((ip, index) => (ip === now[index] ? [] : [at(index, immutableOnceSet)]));
  }
  const errors: FieldError[] = [];
  if (now.length === 0) errors.push(at(0, 'primary clusterIP can not be unset'));
  else if (before.length > 0 && now[0] !== before[0]) errors.push(at(0, immutableOnceSet));
  if (now.length < before.length && now.length === 1) {
    appendAll(errors, mustBeSingle(spec, 'clusterIP'));
  }
  return errors;
}

function mustBeSingle(spec: ServiceSpec, released: string): FieldError[] {
  if (spec.ipFamilyPolicy === 'SingleStack') return [];
  const detail = `must be set to 'SingleStack' when releasing the secondary ${released}`;
  return [invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, detail)];
}

function validateFamiliesUnchanged(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (isHeadless(spec) || isHeadless(old)) return [];
  const [now, before] = [spec.ipFamilies ?? [], old.ipFamilies ?? []];
  const first = (shown: string, detail: string) =>
    invalidGo('spec.ipFamilies[0]', () => shown, detail);
  if (now.length === before.length) {
    const changed = before.filter((family, index) => family !== now[index]);
    return changed.map(() => first(shownFamilies(spec), immutableOnceSet));
  }
  const errors: FieldError[] = [];
  if (now.length < before.length && (spec.clusterIPs ?? []).length === 0) {
    errors.push(first(shownFamilies(spec), 'primary ipFamily can not be unset'));
  }
  if (now.length > 0 && before.length > 0 && now[0] !== before[0]) {
    errors.push(first(shownIps(spec), immutableOnceSet));
  }
  if (now.length < before.length && now.length === 1) {
    appendAll(errors, mustBeSingle(spec, 'ipFamily'));
  }
  return errors;
}
