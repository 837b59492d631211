import type { JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { podFields } from '../pod/disabled.ts';
import { objectAt } from '../rules/fill.ts';
import type { GatedFields } from './gated-fields.ts';

const ofTemplate = podFields('spec.template.spec');

/** Members of a Job's spec at `path` that belong to features. */
const jobFields = (path: string): readonly GatedFields[] => [
  ...podFields(`${path}.template.spec`),
  { gates: ['JobManagedBy'], drop: [`${path}.managedBy`], on: 'create' },
  { gates: ['JobSuccessPolicy'], drop: [`${path}.successPolicy`] },
  { gates: ['JobBackoffLimitPerIndex'], drop: [`${path}.backoffLimitPerIndex`] },
  { gates: ['JobBackoffLimitPerIndex'], drop: [`${path}.maxFailedIndexes`] },
  { gates: ['JobPodReplacementPolicy'], drop: [`${path}.podReplacementPolicy`] },
];

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
  Job: jobFields('spec'),
  CronJob: podFields('spec.jobTemplate.spec.template.spec'),
  Service: [
    { gates: ['ServiceTrafficDistribution'], drop: ['spec.trafficDistribution'] },
    { gates: ['LoadBalancerIPMode'], drop: ['status.loadBalancer.ingress[].ipMode'] },
  ],
  Node: [{ gates: ['SupplementalGroupsPolicy'], drop: ['status.features'] }],
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
      settle: dropForeignSource,
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
  ],
  CSIDriver: [{ gates: ['SELinuxMountReadWriteOncePod'], drop: ['spec.seLinuxMount'] }],
  EndpointSlice: [{ gates: ['TopologyAwareHints'], drop: ['endpoints[].hints'] }],
  ResourceClaim: [
    { gates: ['DRAAdminAccess'], drop: ['spec.devices.requests[].adminAccess'] },
    {
      gates: ['DRAAdminAccess'],
      drop: ['status.allocation.devices.results[].adminAccess'],
      usedBy: ['spec.devices.requests[].adminAccess'],
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

/** Drops a data source in another namespace entirely. */
function dropForeignSource(object: JsonObject): void {
  if (textAt(object, 'spec', 'dataSourceRef', 'namespace') === '') return;
  delete objectAt(object, 'spec')?.['dataSourceRef'];
}

/** Members of a built-in kind that belong to features. */
export function gatedFieldsOf(kind: string): readonly GatedFields[] {
  return Object.hasOwn(tables, kind) ? tables[kind as keyof typeof tables] : [];
}
