import type { JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { GatedFields } from '../features/gated-fields.ts';
import type { PodSpec, Volume } from '../gen/types/core/v1.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { isSet } from './fields.ts';
import { eachContainer } from './references.ts';

const must = 'requiredDuringSchedulingIgnoredDuringExecution';
const rather = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Members of a pod's spec at `path` that belong to features. */
export function podFields(path: string): readonly GatedFields[] {
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
    { gates: ['PodLevelResources'], drop: [`${path}.resources`] },
    { gates: ['NodeInclusionPolicyInPodTopologySpread'], drop: [`${spread}.nodeTaintsPolicy`] },
    { gates: ['NodeInclusionPolicyInPodTopologySpread'], drop: [`${spread}.nodeAffinityPolicy`] },
    { gates: ['MatchLabelKeysInPodTopologySpread'], drop: [`${spread}.matchLabelKeys`] },
    {
      gates: ['MatchLabelKeysInPodAffinity'],
      drop: [`${affinity}.${must}[].${keys}`, `${affinity}.${rather}[].podAffinityTerm.${keys}`],
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
    { gates: ['InPlacePodVerticalScaling'], drop: [`${containers}.resizePolicy`] },
    { gates: ['SidecarContainers'], drop: [`${path}.initContainers[].restartPolicy`] },
    {
      gates: ['RecursiveReadOnlyMounts'],
      drop: [`${containers}.volumeMounts[].recursiveReadOnly`],
    },
    {
      gates: ['PodLifecycleSleepAction'],
      drop: [`${containers}.lifecycle.preStop|postStart.sleep`],
      settle: (object) => dropEmptyHandlers(specOf(object)),
    },
    {
      gates: ['ImageVolume'],
      drop: [],
      usedBy: [`${path}.volumes[].image`],
      settle: (object) => dropImages(specOf(object)),
    },
    {
      gates: ['ProcMountType'],
      drop: [],
      settle: (object, old) => settleMounts(specOf(object), specOf(old)),
    },
  ];
}

/** Removes handlers that lost their only action. */
function dropEmptyHandlers(spec: JsonObject | undefined): void {
  for (const { container } of eachContainer(spec, '')) {
    const lifecycle = objectAt(container, 'lifecycle');
    if (lifecycle === undefined) continue;
    for (const name of ['preStop', 'postStart']) {
      const handler = objectAt(lifecycle, name);
      if (handler !== undefined && Object.keys(handler).length === 0) delete lifecycle[name];
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
  for (const { container } of eachContainer(spec, '')) {
    const mounts = objectsAt(container, 'volumeMounts');
    const kept = mounts.filter((mount) => !dropped.has(textAt(mount, 'name')));
    if (kept.length < mounts.length) setList(container, 'volumeMounts', kept);
  }
}

function setList(holder: JsonObject, name: string, list: JsonObject[]): void {
  if (list.length === 0) delete holder[name];
  else holder[name] = list;
}

/** Resets the member to its default rather than dropping it: older objects have it written out. */
function settleMounts(spec: JsonObject | undefined, old: JsonObject | undefined): void {
  const isUnmasked = eachContainer(old, '').some(({ container }) => {
    const mount = textAt(container, 'securityContext', 'procMount');
    return mount !== '' && mount !== 'Default';
  });
  if (isUnmasked) return;
  for (const { container } of eachContainer(spec, '')) {
    const context = objectAt(container, 'securityContext');
    if (isSet(context, 'procMount') && context) context['procMount'] = 'Default';
  }
}

/** The pod template of a controller. */
export const templateOf = (object: JsonObject | undefined): JsonObject | undefined =>
  objectAt(object, 'spec', 'template');
