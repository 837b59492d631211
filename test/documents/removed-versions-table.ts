import {
  builtinKinds,
  kindsOfAllReleases,
  type ResourceDef,
  type VersionDef,
} from '@wheelhouse/kinds';
import { type ApiObject, dialectOf, isObject } from '@wheelhouse/machinery';
import { convertObject } from '@wheelhouse/svcctl/testing';

const dialect = dialectOf('svc');
const defs = kindsOfAllReleases(builtinKinds(dialect), dialect);

/**
 * The documents' table: the release, the removed group versions and kinds, and their replacements.
 */
const rows: readonly (readonly [number, string, string, string])[] = [
  [32, 'flowcontrol.apiserver.svc.io/v1beta3', 'FlowSchema PriorityLevelConfiguration', 'v1'],
  [29, 'flowcontrol.apiserver.svc.io/v1beta2', 'FlowSchema PriorityLevelConfiguration', 'v1beta3'],
  [27, 'storage.svc.io/v1beta1', 'CSIStorageCapacity', 'v1'],
  [26, 'flowcontrol.apiserver.svc.io/v1beta1', 'FlowSchema PriorityLevelConfiguration', 'v1beta2'],
  [26, 'autoscaling/v2beta2', 'HorizontalPodAutoscaler', 'v2'],
  [25, 'batch/v1beta1', 'CronJob', 'v1'],
  [25, 'discovery.svc.io/v1beta1', 'EndpointSlice', 'v1'],
  [25, 'events.svc.io/v1beta1', 'Event', 'v1'],
  [25, 'autoscaling/v2beta1', 'HorizontalPodAutoscaler', 'v2'],
  [25, 'policy/v1beta1', 'PodDisruptionBudget', 'v1'],
  [25, 'policy/v1beta1', 'PodSecurityPolicy', ''],
  [25, 'node.svc.io/v1beta1', 'RuntimeClass', 'v1'],
  [
    22,
    'admissionregistration.svc.io/v1beta1',
    'MutatingWebhookConfiguration ValidatingWebhookConfiguration',
    'v1',
  ],
  [22, 'apiextensions.svc.io/v1beta1', 'CustomResourceDefinition', 'v1'],
  [22, 'apiregistration.svc.io/v1beta1', 'APIService', 'v1'],
  [22, 'authentication.svc.io/v1beta1', 'TokenReview', 'v1'],
  [
    22,
    'authorization.svc.io/v1beta1',
    'LocalSubjectAccessReview SelfSubjectAccessReview SubjectAccessReview SelfSubjectRulesReview',
    'v1',
  ],
  [22, 'certificates.svc.io/v1beta1', 'CertificateSigningRequest', 'v1'],
  [22, 'coordination.svc.io/v1beta1', 'Lease', 'v1'],
  [22, 'extensions/v1beta1', 'Ingress', 'networking.svc.io/v1'],
  [22, 'networking.svc.io/v1beta1', 'Ingress IngressClass', 'v1'],
  [
    22,
    'rbac.authorization.svc.io/v1beta1',
    'ClusterRole ClusterRoleBinding Role RoleBinding',
    'v1',
  ],
  [22, 'scheduling.svc.io/v1beta1', 'PriorityClass', 'v1'],
  [22, 'storage.svc.io/v1beta1', 'CSIDriver CSINode StorageClass VolumeAttachment', 'v1'],
  [16, 'extensions/v1beta1', 'NetworkPolicy', 'networking.svc.io/v1'],
  [16, 'extensions/v1beta1', 'DaemonSet Deployment ReplicaSet', 'apps/v1'],
  [16, 'apps/v1beta2', 'DaemonSet Deployment StatefulSet ReplicaSet', 'v1'],
  [16, 'apps/v1beta1', 'Deployment StatefulSet ReplicaSet', 'v1'],
  [16, 'extensions/v1beta1', 'PodSecurityPolicy', 'policy/v1beta1'],
];

/** A version of a kind that a release has removed. */
export interface Removed {
  readonly removed: number;
  readonly groupVersion: string;
  readonly kind: string;
  /** The group version that replaces it in the last release with this version. */
  readonly successor: string;
}

/** One entry per kind of the table. */
export const table: readonly Removed[] = rows.flatMap(([removed, groupVersion, kinds, to]) =>
  kinds.split(' ').map((kind) => ({
    removed,
    groupVersion,
    kind,
    successor: to === '' || to.includes('/') ? to : `${groupVersion.split('/')[0]}/${to}`,
  })),
);

/** The kind and the version of a row. */
export function entryOf({ groupVersion, kind }: Pick<Removed, 'groupVersion' | 'kind'>): {
  def: ResourceDef;
  version: VersionDef;
} {
  const [group = '', name] = groupVersion.split('/');
  const def = defs.find((candidate) => candidate.group === group && candidate.kind === kind);
  const version = def?.versions.find((candidate) => candidate.version === name);
  if (def === undefined || version === undefined) throw new Error(`no ${groupVersion} ${kind}`);
  return { def, version };
}

/** Kinds whose name is derived from their content. */
const namedByContent = new Set(['CustomResourceDefinition', 'APIService']);

/** The kind's example in the version. */
export async function exampleIn(
  removed: Removed,
  name: string,
  namespace: string,
): Promise<ApiObject> {
  const { def } = entryOf(removed);
  const example = structuredClone(def.example?.()) as ApiObject;
  if (!namedByContent.has(def.kind)) example.metadata.name = name;
  if (def.scope === 'Namespaced') {
    example.metadata.namespace = namespace;
    for (const member of ['involvedObject', 'regarding']) {
      const reference = example[member];
      if (isObject(reference)) reference['namespace'] = namespace;
    }
  }
  const bytes = Buffer.from(JSON.stringify(example));
  const outputVersion = removed.groupVersion;
  const out = await convertObject(bytes, { dialect, to: 'json', outputVersion });
  return JSON.parse(out.toString());
}
