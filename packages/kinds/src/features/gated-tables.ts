import { appendAll, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { Container, PodSpec, Volume } from '../gen/types/core/v1.ts';
import { isSet } from '../pod/fields.ts';
import { containersOf } from '../pod/references.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import type { Features } from './features.ts';
import { droppingFields, type GatedFields, withDroppedFields } from './gated-fields.ts';

const requiredTerms = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferredTerms = 'preferredDuringSchedulingIgnoredDuringExecution';

const adminAccesses = [
  'spec.devices.requests[].adminAccess',
  'status.allocation.devices.results[].adminAccess',
];

const ofTemplate = podFields('spec.template.spec');

const tables = {
  Pod: podFields('spec'),
  PodTemplate: podFields('template.spec'),
  ReplicationController: ofTemplate,
  ReplicaSet: ofTemplate,
  Deployment: ofTemplate,
  DaemonSet: ofTemplate,
  StatefulSet: [
    ...ofTemplate,
    { gates: ['StatefulSetAutoDeletePVC'], drop: ['spec.persistentVolumeClaimRetentionPolicy'] },
    {
      gates: ['MaxUnavailableStatefulSet'],
      drop: ['spec.updateStrategy.rollingUpdate.maxUnavailable'],
    },
    { gates: ['StatefulSetStartOrdinal'], drop: ['spec.ordinals'] },
  ],
  Job: [
    ...ofTemplate,
    { gates: ['JobManagedBy'], drop: ['spec.managedBy'], on: 'create' },
    { gates: ['JobSuccessPolicy'], drop: ['spec.successPolicy'] },
    { gates: ['JobBackoffLimitPerIndex'], drop: ['spec.backoffLimitPerIndex'] },
    { gates: ['JobBackoffLimitPerIndex'], drop: ['spec.maxFailedIndexes'] },
    { gates: ['JobBackoffLimitPerIndex'], drop: [], on: 'create', adjust: dropFailIndex },
    { gates: ['JobPodReplacementPolicy'], drop: ['spec.podReplacementPolicy'] },
  ],
  CronJob: podFields('spec.jobTemplate.spec.template.spec'),
  Service: [
    { gates: ['ServiceTrafficDistribution'], drop: ['spec.trafficDistribution'] },
    { gates: ['LoadBalancerIPMode'], drop: ['status.loadBalancer.ingress[].ipMode'] },
  ],
  Node: [
    { gates: ['SupplementalGroupsPolicy'], drop: ['status.features'], on: 'create' },
    {
      gates: ['RecursiveReadOnlyMounts'],
      unless: 'UserNamespacesSupport',
      drop: ['status.runtimeHandlers'],
      on: 'create',
    },
  ],
  PersistentVolume: [
    { gates: ['VolumeAttributesClass'], drop: ['spec.volumeAttributesClassName'] },
  ],
  PersistentVolumeClaim: [
    { gates: ['VolumeAttributesClass'], drop: ['spec.volumeAttributesClassName'] },
    { gates: ['AnyVolumeDataSource'], drop: ['spec.dataSourceRef'] },
    {
      gates: ['CrossNamespaceVolumeDataSource'],
      drop: [],
      usedBy: ['spec.dataSourceRef'],
      adjust: dropForeignSource,
    },
    { gates: ['VolumeAttributesClass'], drop: ['status.currentVolumeAttributesClassName'] },
    { gates: ['VolumeAttributesClass'], drop: ['status.modifyVolumeStatus'] },
    { gates: ['RecoverVolumeExpansionFailure'], drop: ['status.allocatedResources'] },
    { gates: ['RecoverVolumeExpansionFailure'], drop: ['status.allocatedResourceStatuses'] },
  ],
  CustomResourceDefinition: [
    {
      gates: ['CustomResourceFieldSelectors'],
      drop: ['spec.selectableFields', 'spec.versions[].selectableFields'],
    },
    { gates: ['CRDValidationRatcheting'], drop: [], adjust: dropOptionalOldSelves },
  ],
  CSIDriver: [{ gates: ['SELinuxMountReadWriteOncePod'], drop: ['spec.seLinuxMount'] }],
  EndpointSlice: [{ gates: ['TopologyAwareHints'], drop: ['endpoints[].hints'] }],
  ResourceClaim: [
    {
      gates: ['DRAAdminAccess'],
      drop: ['spec.devices.requests[].adminAccess'],
      usedBy: adminAccesses,
    },
    {
      gates: ['DRAAdminAccess'],
      drop: ['status.allocation.devices.results[].adminAccess'],
      usedBy: adminAccesses,
      adjust: nullAdminAccess,
    },
    { gates: ['DRAResourceClaimDeviceStatus'], drop: ['status.devices'] },
  ],
  ResourceClaimTemplate: [
    { gates: ['DRAAdminAccess'], drop: ['spec.spec.devices.requests[].adminAccess'] },
  ],
  Lease: [
    { gates: ['CoordinatedLeaderElection'], drop: ['spec.strategy'] },
    { gates: ['CoordinatedLeaderElection'], drop: ['spec.preferredHolder'] },
  ],
} satisfies Readonly<Record<string, readonly GatedFields[]>>;

/**
 * Kinds whose generation also counts an update of nothing but fields of disabled features, because
 * they are dropped after it.
 */
const countingDropped: ReadonlySet<string> = new Set(['CustomResourceDefinition', 'EndpointSlice']);

/** Returns a built-in kind that drops the fields of disabled features. */
export function withGatedFields(def: ResourceDef, features: Features): ResourceDef {
  const { kind } = def;
  const fields = Object.hasOwn(tables, kind) ? tables[kind as keyof typeof tables] : [];
  const drop = droppingFields(fields, features);
  return withDroppedFields(def, drop, countingDropped.has(kind) ? 'after' : 'before');
}

const statuses = 'status.containerStatuses|initContainerStatuses|ephemeralContainerStatuses[]';

/**
 * The gated fields of a pod's status. A write to the status keeps them; the next write to the rest
 * of the pod drops them.
 */
export const podStatusFields: readonly GatedFields[] = [
  {
    gates: ['InPlacePodVerticalScaling'],
    drop: [`${statuses}.resources`, 'status.resize'],
    usedBy: ['spec.containers[].resizePolicy'],
  },
  {
    gates: ['InPlacePodVerticalScaling', 'InPlacePodVerticalScalingAllocatedStatus'],
    drop: [`${statuses}.allocatedResources`],
    usedBy: [],
  },
  {
    gates: ['DynamicResourceAllocation'],
    drop: ['status.resourceClaimStatuses'],
    usedBy: ['spec.resourceClaims'],
  },
  {
    gates: ['RecursiveReadOnlyMounts'],
    drop: [`${statuses}.volumeMounts`],
    usedBy: [
      'spec.initContainers|containers|ephemeralContainers[].volumeMounts[].recursiveReadOnly',
    ],
  },
  { gates: ['ResourceHealthStatus'], drop: [`${statuses}.allocatedResourcesStatus`], usedBy: [] },
  {
    gates: ['SupplementalGroupsPolicy'],
    drop: [`${statuses}.user`],
    usedBy: ['spec.securityContext.supplementalGroupsPolicy'],
  },
];

/** The gated fields of a pod's spec at `path`. */
function podFields(path: string): readonly GatedFields[] {
  const containers = `${path}.initContainers|containers|ephemeralContainers[]`;
  const spread = `${path}.topologySpreadConstraints[]`;
  const affinity = `${path}.affinity.podAffinity|podAntiAffinity`;
  const keys = 'matchLabelKeys|mismatchLabelKeys';
  const steps = path.split('.');
  const specOf = (object: JsonObject | undefined) => objectAt(object, ...steps);
  return [
    { gates: ['UserNamespacesSupport'], drop: [`${path}.hostUsers`] },
    {
      gates: ['SupplementalGroupsPolicy'],
      drop: [`${path}.securityContext.supplementalGroupsPolicy`],
    },
    { gates: ['SELinuxChangePolicy'], drop: [`${path}.securityContext.seLinuxChangePolicy`] },
    {
      gates: ['PodLevelResources'],
      drop: [`${path}.resources`],
      usedBy: [`${path}.resources.requests|limits`],
    },
    { gates: ['NodeInclusionPolicyInPodTopologySpread'], drop: [`${spread}.nodeTaintsPolicy`] },
    { gates: ['NodeInclusionPolicyInPodTopologySpread'], drop: [`${spread}.nodeAffinityPolicy`] },
    { gates: ['MatchLabelKeysInPodTopologySpread'], drop: [`${spread}.matchLabelKeys`] },
    {
      gates: ['MatchLabelKeysInPodAffinity'],
      drop: [
        `${affinity}.${requiredTerms}[].${keys}`,
        `${affinity}.${preferredTerms}[].podAffinityTerm.${keys}`,
      ],
    },
    {
      gates: ['DynamicResourceAllocation'],
      drop: [`${containers}.resources.claims`, `${path}.resourceClaims`],
      usedBy: [`${path}.resourceClaims`],
    },
    {
      gates: ['ClusterTrustBundleProjection'],
      drop: [`${path}.volumes[].projected.sources[].clusterTrustBundle`],
    },
    {
      gates: ['InPlacePodVerticalScaling'],
      drop: [`${containers}.resizePolicy`],
      usedBy: [`${path}.containers[].resizePolicy`],
    },
    { gates: ['SidecarContainers'], drop: [`${path}.initContainers[].restartPolicy`] },
    {
      gates: ['RecursiveReadOnlyMounts'],
      drop: [`${containers}.volumeMounts[].recursiveReadOnly`],
    },
    {
      gates: ['PodLifecycleSleepAction'],
      drop: [],
      usedBy: [`${containers}.lifecycle.preStop|postStart.sleep`],
      adjust: (object) => dropSleeps(specOf(object)),
    },
    {
      gates: ['ImageVolume'],
      drop: [],
      usedBy: [`${path}.volumes[].image`],
      adjust: (object) => dropImages(specOf(object)),
    },
    {
      gates: ['ProcMountType'],
      drop: [],
      adjust: (object, old) => resetProcMounts(specOf(object), specOf(old)),
    },
  ];
}

/** Removes sleep actions, and handlers that have no other action. */
function dropSleeps(spec: JsonObject | undefined): void {
  for (const container of containersOf(spec)) {
    const lifecycle = objectAt(container, 'lifecycle');
    if (lifecycle === undefined) continue;
    for (const name of ['preStop', 'postStart']) {
      const handler = objectAt(lifecycle, name);
      if (handler === undefined || !isSet(handler, 'sleep')) continue;
      delete handler['sleep'];
      if (Object.keys(handler).length === 0) delete lifecycle[name];
    }
    if (Object.keys(lifecycle).length === 0) delete container['lifecycle'];
  }
}

/** Removes image volumes and their mounts. */
function dropImages(spec: Stored<PodSpec> | undefined): void {
  if (spec === undefined) return;
  const isImage = (volume: Stored<Volume>) => volume.image != null;
  const volumes = spec.volumes ?? [];
  const dropped = new Set(volumes.filter(isImage).map((volume) => volume.name ?? ''));
  if (dropped.size === 0) return;
  setList(
    spec,
    'volumes',
    volumes.filter((volume) => !isImage(volume)),
  );
  for (const container of containersOf(spec)) {
    const mounts = objectsAt(container, 'volumeMounts');
    const kept = mounts.filter((mount) => !dropped.has(textAt(mount, 'name')));
    if (kept.length < mounts.length) setList(container, 'volumeMounts', kept);
  }
}

function setList(holder: JsonObject, name: string, list: JsonObject[]): void {
  if (list.length === 0) delete holder[name];
  else holder[name] = list;
}

/** Resets `procMount` to its default, which stored objects contain, instead of dropping it. */
function resetProcMounts(spec: JsonObject | undefined, old: JsonObject | undefined): void {
  const isUnmasked = containersOf(old).some((container: Stored<Container>) => {
    const mount = container.securityContext?.procMount ?? '';
    return mount !== '' && mount !== 'Default';
  });
  if (isUnmasked) return;
  for (const container of containersOf(spec)) {
    const context = objectAt(container, 'securityContext');
    if (isSet(context, 'procMount') && context) context['procMount'] = 'Default';
  }
}

/** Drops a data source in another namespace. */
function dropForeignSource(object: JsonObject): void {
  if (textAt(object, 'spec', 'dataSourceRef', 'namespace') === '') return;
  delete objectAt(object, 'spec')?.['dataSourceRef'];
}

/** Drops the rules of a Job that fail an index. */
function dropFailIndex(object: JsonObject): void {
  const policy = objectAt(object, 'spec', 'podFailurePolicy');
  if (!Array.isArray(policy?.['rules'])) return;
  const rules = objectsAt(policy, 'rules').filter(({ action }) => action !== 'FailIndex');
  policy['rules'] = rules.length === 0 ? null : rules;
}

/** Drops `optionalOldSelf` from the rules of a definition, unless the old one has it. */
function dropOptionalOldSelves(object: JsonObject, old: JsonObject | undefined): void {
  const schemasOf = (definition: JsonObject | undefined) =>
    objectsAt(objectAt(definition, 'spec'), 'versions').map((version) =>
      objectAt(version, 'schema', 'openAPIV3Schema'),
    );
  if (schemasOf(old).some((schema) => rulesWithOptionalOldSelf(schema).length > 0)) return;
  for (const rule of schemasOf(object).flatMap(rulesWithOptionalOldSelf)) {
    delete rule['optionalOldSelf'];
  }
}

/** The rules of a schema and the schemas inside it that set `optionalOldSelf`. */
function rulesWithOptionalOldSelf(schema: JsonValue | undefined): JsonObject[] {
  const found: JsonObject[] = [];
  const pending = [schema];
  while (pending.length > 0) {
    const current = pending.pop();
    if (Array.isArray(current)) appendAll(pending, current);
    if (!isObject(current)) continue;
    const rules = objectsAt(current, 'x-kubernetes-validations');
    appendAll(
      found,
      rules.filter((rule) => isSet(rule, 'optionalOldSelf')),
    );
    const { properties, items, additionalProperties } = current;
    if (isObject(properties)) appendAll(pending, Object.values(properties));
    pending.push(items, additionalProperties);
  }
  return found;
}

/** Allocated devices always contain `adminAccess`. */
function nullAdminAccess(object: JsonObject): void {
  const devices = objectAt(object, 'status', 'allocation', 'devices');
  for (const result of objectsAt(devices, 'results')) result['adminAccess'] = null;
}
