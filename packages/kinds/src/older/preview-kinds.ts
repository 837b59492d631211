import type { Dialect } from '@wheelhouse/machinery';
import type { AdmissionKindOptions } from '../admissionregistration/expressions.ts';
import { storageVersion } from '../apiserverinternal/storage-version.ts';
import { clusterTrustBundle } from '../certificates/cluster-trust-bundle.ts';
import { leaseCandidate } from '../coordination/lease-candidate.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import { ipAddress } from '../networking/ip-address.ts';
import { serviceCidr } from '../networking/service-cidr.ts';
import { deviceClass } from '../resource/device-class.ts';
import { resourceClaim } from '../resource/resource-claim.ts';
import { resourceClaimTemplate } from '../resource/resource-claim-template.ts';
import { resourceSlice } from '../resource/resource-slice.ts';
import type { ResourceDef } from '../resource-def.ts';
import { volumeAttributesClass } from '../storage/volume-attributes-class.ts';
import { storageVersionMigration } from '../storagemigration/storage-version-migration.ts';

/**
 * Kinds without a stable version: served when `--runtime-config` switches them on (and their gate,
 * where they have one).
 */
export function previewKinds(
  dialect: Dialect,
  features: Features = defaultFeatures,
  admission: AdmissionKindOptions = {},
): readonly ResourceDef[] {
  const options = { ...admission, features };
  return [
    clusterTrustBundle(dialect),
    storageVersion(dialect),
    volumeAttributesClass(dialect),
    storageVersionMigration(dialect),
    deviceClass(dialect, admission),
    resourceClaim(dialect, options),
    resourceClaimTemplate(dialect, options),
    resourceSlice(dialect),
    leaseCandidate(dialect),
    ipAddress(dialect),
    serviceCidr(dialect),
  ];
}
