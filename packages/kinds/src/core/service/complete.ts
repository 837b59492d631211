import type { Service } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../stored.ts';
import { type Family, familyOf } from './cluster-ips.ts';
import { asService, isExternalName, needsClusterIp, noAddress, type ServiceSpec } from './spec.ts';

/**
 * Completes a Service that was stored before its members existed: `clusterIPs` (release 1.20),
 * `ipFamilies` and `ipFamilyPolicy` (1.20). Drops the internal traffic policy that releases up to
 * 1.25 stored for an ExternalName.
 *
 * @param primary the family of addresses for Services that ask for none
 */
export function completeService(object: Stored<Service>, primary: Family): void {
  const { spec } = asService(object);
  const { clusterIP = '', clusterIPs = [] } = spec;
  if (clusterIP !== '' && clusterIPs.length === 0) spec.clusterIPs = [clusterIP];
  if (needsClusterIp(spec) && (spec.ipFamilies ?? []).length === 0) fillFamilies(spec, primary);
  if (isExternalName(spec)) delete spec.internalTrafficPolicy;
}

function fillFamilies(spec: ServiceSpec, primary: Family): void {
  const { clusterIP, clusterIPs = [], selector = {} } = spec;
  if (clusterIP !== noAddress) {
    spec.ipFamilies = clusterIPs.map((ip) => (familyOf(ip) === 'IPv6' ? 'IPv6' : 'IPv4'));
    if (clusterIPs.length === 1) spec.ipFamilyPolicy = 'SingleStack';
    else if (clusterIPs.length === 2) spec.ipFamilyPolicy = 'RequireDualStack';
    if (clusterIPs.length === 0) delete spec.ipFamilies;
    return;
  }
  // Nobody knows the families of endpoints that are written by hand: both, as upstream.
  const isByHand = Object.keys(selector).length === 0;
  const other = primary === 'IPv4' ? 'IPv6' : 'IPv4';
  spec.ipFamilies = isByHand ? [primary, other] : [primary];
  spec.ipFamilyPolicy = isByHand ? 'RequireDualStack' : 'SingleStack';
}
