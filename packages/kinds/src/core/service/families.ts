import { type FieldError, invalid, invalidGo } from '@wheelhouse/machinery';
import { type Family, familyOf, shownIps, validateClusterIps } from './cluster-ips.ts';
import {
  isExternalName,
  needsClusterIp,
  noAddress,
  type ServiceSpec,
  sameClusterIps,
  sameFamilies,
} from './spec.ts';

const policyField = 'spec.ipFamilyPolicy';

/** The families of which the server has addresses to give, its own first. */
export type ServedFamilies = readonly [Family, ...Family[]];

/**
 * Settles `ipFamilyPolicy` and `ipFamilies` in place: what the writer did not say follows from what
 * he did, from what stood there before, and from what the server has. Gives what is wrong.
 */
export function settleFamilies(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  served: ServedFamilies,
): readonly FieldError[] {
  if (isExternalName(spec) || keepsDualStack(spec, old)) return [];
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? impliedPolicy(spec);
  const loose = validateClusterIps(spec);
  if (loose.length > 0) return loose;
  const errors = [
    ...(old === undefined ? [] : settleReduction(spec, old)),
    ...tooManyForSingle(spec),
    ...inferFromIps(spec, served),
  ];
  if (errors.length > 0) return errors;
  if (isHeadlessWithoutSelector(spec)) {
    spec.ipFamilies ??= [served[0]];
    addSecond(spec);
    return [];
  }
  const unserved = refuseUnserved(spec, served);
  if (unserved.length > 0) return unserved;
  spec.ipFamilies ??= [served[0]];
  if (served.length === 2) addSecond(spec);
  return [];
}

/**
 * A Service that prefers two families is not changed because the server gained or lost one: only
 * its writer's word adds an address or takes one away.
 */
export function keepsDualStack(spec: ServiceSpec, old: ServiceSpec | undefined): boolean {
  const prefers = 'PreferDualStack';
  if (old === undefined || spec.ipFamilyPolicy !== prefers) return false;
  if (old.type !== spec.type || !needsClusterIp(spec)) return false;
  if (old.ipFamilyPolicy !== undefined && old.ipFamilyPolicy !== prefers) return false;
  return sameClusterIps(old, spec) && sameFamilies(old, spec);
}

const isHeadlessWithoutSelector = ({ clusterIP, selector = {} }: ServiceSpec): boolean =>
  clusterIP === noAddress && Object.keys(selector).length === 0;

const impliedPolicy = (spec: ServiceSpec): string =>
  isHeadlessWithoutSelector(spec) ? 'RequireDualStack' : 'SingleStack';

/** Going down to one family by policy alone is a clear wish; by leaving one out it is not. */
function settleReduction(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
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

function tooManyForSingle(spec: ServiceSpec): FieldError[] {
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

/** An address says its family. */
function inferFromIps(spec: ServiceSpec, served: ServedFamilies): FieldError[] {
  const { clusterIPs = [] } = spec;
  const found = [...(spec.ipFamilies ?? [])];
  const errors: FieldError[] = [];
  for (const [index, ip] of clusterIPs.entries()) {
    if (ip === noAddress) break;
    if (index < found.length) continue;
    const family = familyOf(ip);
    if (served.some((one) => one === family)) found.push(family);
    else {
      const detail = `${family} is not configured on this cluster`;
      errors.push(invalidGo(`spec.clusterIPs[${index}]`, () => shownIps(spec), detail));
    }
  }
  if (found.length > 0) spec.ipFamilies = found;
  return errors;
}

function refuseUnserved(spec: ServiceSpec, served: ServedFamilies): FieldError[] {
  const { ipFamilies = [], ipFamilyPolicy } = spec;
  const errors: FieldError[] = [];
  if (ipFamilyPolicy === 'RequireDualStack' && served.length < 2) {
    const detail = 'this cluster is not configured for dual-stack services';
    errors.push(invalid(policyField, ipFamilyPolicy, detail));
  }
  ipFamilies.forEach((family, index) => {
    if (served.some((one) => one === family)) return;
    errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
  });
  return errors;
}

function addSecond(spec: ServiceSpec): void {
  const { ipFamilies = [] } = spec;
  if (spec.ipFamilyPolicy === 'SingleStack' || ipFamilies.length !== 1) return;
  ipFamilies.push(ipFamilies[0] === 'IPv4' ? 'IPv6' : 'IPv4');
}
