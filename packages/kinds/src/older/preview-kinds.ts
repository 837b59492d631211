import { type Dialect, dnsSubdomain, type JsonObject } from '@wheelhouse/machinery';
import type { AdmissionKindOptions } from '../admissionregistration/expressions.ts';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { clusterTrustBundle } from '../certificates/cluster-trust-bundle.ts';
import { leaseCandidate } from '../coordination/lease-candidate.ts';
import { defineKind, type VersionOptions } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import { ipAddress } from '../networking/ip-address.ts';
import { serviceCidr } from '../networking/service-cidr.ts';
import { deviceClass } from '../resource/device-class.ts';
import { resourceClaim } from '../resource/resource-claim.ts';
import { resourceClaimTemplate } from '../resource/resource-claim-template.ts';
import { resourceSlice } from '../resource/resource-slice.ts';
import type { ColumnDef, ResourceDef } from '../resource-def.ts';

/**
 * Kinds without a stable version: served when `--runtime-config` switches them on (and their gate,
 * where they have one). Those of the table are judged by their schemas alone.
 */

interface Preview {
  readonly facts: string;
  readonly kind: string;
  readonly resource: string;
  readonly scope: ResourceDef['scope'];
  /** The stored one first. */
  readonly versions: readonly (string | VersionOptions)[];
  readonly shortNames?: readonly string[];
  readonly gate?: ResourceDef['gate'];
  readonly hasStatus?: boolean;
  /** What a deletion answers; a Status unless said. */
  readonly deleteAnswers?: 'object';
  /** What is printed after the name; the age alone unless said. */
  readonly columns?: readonly ColumnDef[];
  readonly name?: string;
  readonly spec?: JsonObject;
  /** Members beside metadata, for kinds without a spec. */
  readonly members?: JsonObject;
}

/** A column of the text at a path. */
const text = (name: string, path: readonly string[], description: string) =>
  column(name, (object) => textAt(object, ...path), { description });

const shownServersMax = 3;

/** Which server stores what, the first few of them. */
function serverVersions(object: JsonObject): string {
  const all = listAt(object, 'status', 'storageVersions').map(
    (one) => `${textAt(one, 'apiServerID')}=${textAt(one, 'encodingVersion')}`,
  );
  const shown = all.slice(0, shownServersMax).join(',');
  const more = all.length - shownServersMax;
  return more > 0 ? `${shown} + ${more} more...` : shown;
}

function migrated(object: JsonObject): string {
  const resource = at(object, 'spec', 'resource');
  return ['resource', 'version', 'group'].map((member) => textAt(resource, member)).join('.');
}

const driver = 'driver.example.com';

const previews: readonly Preview[] = [
  {
    facts: 'apiserverinternal',
    kind: 'StorageVersion',
    resource: 'storageversions',
    scope: 'Cluster',
    versions: ['v1alpha1'],
    columns: [
      column(
        'CommonEncodingVersion',
        (object) => textAt(object, 'status', 'commonEncodingVersion') || '<unset>',
        { description: 'What all servers store.' },
      ),
      column('StorageVersions', serverVersions, { description: 'What each server stores.' }),
      ageColumn,
    ],
    hasStatus: true,
    name: 'core.pods',
    spec: {},
  },
  {
    facts: 'storage',
    kind: 'VolumeAttributesClass',
    resource: 'volumeattributesclasses',
    scope: 'Cluster',
    deleteAnswers: 'object',
    versions: ['v1beta1', 'v1alpha1'],
    columns: [text('DriverName', ['driverName'], 'Driver of the volumes.'), ageColumn],
    shortNames: ['vac'],
    members: { driverName: driver, parameters: { a: 'b' } },
  },
  {
    facts: 'storagemigration',
    kind: 'StorageVersionMigration',
    resource: 'storageversionmigrations',
    gate: 'StorageVersionMigrator',
    scope: 'Cluster',
    versions: ['v1alpha1'],
    columns: [column('Resource', migrated, { description: 'What is rewritten.' })],
    hasStatus: true,
    spec: { resource: { group: 'apps', version: 'v1', resource: 'deployments' } },
  },
];

/** The kinds of that table, and those with rules of their own. */
export function previewKinds(
  dialect: Dialect,
  features: Features = defaultFeatures,
  admission: AdmissionKindOptions = {},
): readonly ResourceDef[] {
  const options = { ...admission, features };
  return [
    clusterTrustBundle(dialect),
    ...previews.map((preview) => kindOf({ dialect, features }, preview)),
    deviceClass(dialect, admission),
    resourceClaim(dialect, options),
    resourceClaimTemplate(dialect, options),
    resourceSlice(dialect),
    leaseCandidate(dialect),
    ipAddress(dialect),
    serviceCidr(dialect),
  ];
}

function kindOf(
  ports: { readonly dialect: Dialect; readonly features: Features },
  preview: Preview,
): ResourceDef {
  const { facts, kind, resource, scope, hasStatus = false, deleteAnswers } = preview;
  const columns = [nameColumn, ...(preview.columns ?? [ageColumn])];
  const versions = preview.versions.map((one) =>
    typeof one === 'string' ? { version: one, columns } : { columns, ...one },
  );
  const def = defineKind({
    ...ports,
    facts,
    kind,
    resource,
    scope,
    ...(preview.shortNames === undefined ? {} : { shortNames: preview.shortNames }),
    versions,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus,
      ...(deleteAnswers === undefined ? {} : { deleteAnswers }),
    },
  });
  const example = (): JsonObject => ({
    apiVersion: def.storage.apiVersion,
    kind,
    metadata: {
      name: preview.name ?? 'example',
      ...(scope === 'Namespaced' ? { namespace: 'default' } : {}),
    },
    ...(preview.spec === undefined ? {} : { spec: structuredClone(preview.spec) }),
    ...preview.members,
  });
  const { gate } = preview;
  return { ...def, ...(gate === undefined ? {} : { gate }), example };
}
