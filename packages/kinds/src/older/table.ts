import type { Dialect } from '@wheelhouse/machinery';
import { olderAdmissionPolicies } from './admission-policies.ts';
import { olderAdmission } from './admissionregistration.ts';
import { olderAlpha } from './alpha.ts';
import { olderApiExtensions } from './apiextensions.ts';
import { olderApps } from './apps.ts';
import { olderAuthorization } from './authorization.ts';
import { olderAutoscaling } from './autoscaling.ts';
import { olderCertificates } from './certificates.ts';
import type { OlderKind, OlderKinds } from './contract.ts';
import { olderDiscovery } from './discovery.ts';
import { olderEvents } from './events.ts';
import { olderFlowControl } from './flowcontrol.ts';
import { olderNetworking } from './networking.ts';
import { olderPolicy } from './policy.ts';
import { unchangedKinds } from './unchanged.ts';

const groups: readonly OlderKinds[] = [
  unchangedKinds,
  olderApiExtensions,
  olderAdmission,
  olderAdmissionPolicies,
  olderAlpha,
  olderApps,
  olderAuthorization,
  olderAutoscaling,
  olderCertificates,
  olderDiscovery,
  olderEvents,
  olderFlowControl,
  olderNetworking,
  olderPolicy,
];

/** Every version that a release has removed, by kind (VER-2). */
export function olderKinds(dialect: Dialect): readonly OlderKind[] {
  return groups.flatMap((group) => group(dialect));
}
