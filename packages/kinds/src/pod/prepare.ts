import {
  type ApiObject,
  cloneJson,
  type Dialect,
  formatTime,
  type JsonObject,
  runInOnePiece,
  setMember,
} from '@wheelhouse/machinery';
import type {
  Container,
  Pod,
  PodCondition,
  PodStatus,
  SeccompProfile,
} from '../gen/types/core/v1.ts';
import type { StrategyContext } from '../resource-def.ts';
import { keyed, same } from '../rules/checks.ts';
import { ensure } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { qualityOfService } from './amounts.ts';
import { fillAddresses } from './defaults.ts';
import { annotationsOf, optionalText } from './fields.ts';
import { containersOf } from './references.ts';
import { sameSemantically } from './update.ts';
import { mergeLabelKeys } from './validation/affinity.ts';
import { appArmorPrefix } from './validation/annotations.ts';
import { validateAppArmorProfile } from './validation/security.ts';
import { useAppArmor } from './warnings.ts';

/**
 * Prepares a new Pod: it is pending, its class follows from the resources of its containers, and
 * the profiles in fields and annotations are equal.
 */
export function preparePod(context: StrategyContext, object: Stored<Pod>, dialect: Dialect): void {
  const spec = ensure(object, 'spec');
  // The class is computed only if the client did not set one.
  const quality = (object.status?.qosClass ?? '') || qualityOfService(spec);
  const status: JsonObject = { phase: 'Pending', qosClass: quality };
  object.status = status;
  if ((spec.schedulingGates ?? []).length > 0) {
    status['conditions'] = [
      {
        type: 'PodScheduled',
        status: 'False',
        lastProbeTime: null,
        lastTransitionTime: formatTime(context.nowMs),
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  }
  mergeLabelKeys(spec, object.metadata.labels ?? {});
  for (const key of syncProfiles(object, dialect)) {
    context.warn?.(`${keyed('metadata.annotations', key)}: ${useAppArmor}`);
  }
}

/**
 * Copies AppArmor profiles from annotations to the fields that replaced them, and from fields to
 * annotations for nodes that read only those. Returns the annotations that should have been
 * fields.
 */
function syncProfiles(object: Stored<Pod>, dialect: Dialect): string[] {
  const spec = ensure(object, 'spec');
  const annotations = annotationsOf(object);
  if ((spec.os?.name ?? '') === 'windows') return [];
  const ofPod = spec.securityContext?.appArmorProfile;
  const prefix = appArmorPrefix(dialect);
  return containersOf(spec).flatMap((container: Stored<Container>) => {
    const key = prefix + (container.name ?? '');
    const annotation = optionalText(annotations, key);
    const own = container.securityContext?.appArmorProfile;
    if (annotation === undefined) annotate(object, { key, profile: own ?? ofPod });
    if (annotation === undefined || own !== undefined) return [];
    const profile = profileOf(annotation);
    if (profile === undefined) return [key];
    if (same(profile, ofPod)) return [];
    ensure(container, 'securityContext')['appArmorProfile'] = profile;
    return [key];
  });
}

function annotate(
  { metadata }: ApiObject,
  { key, profile }: { key: string; profile: JsonObject | undefined },
): void {
  const text = profile === undefined ? '' : annotationOf(profile);
  if (text === '') return;
  metadata.annotations ??= {};
  setMember(metadata.annotations, key, text);
}

/** The annotation that is equivalent to a field; empty for an invalid profile. */
function annotationOf(profile: Stored<SeccompProfile>): string {
  const type = profile.type ?? '';
  if (type === 'Unconfined') return 'unconfined';
  if (type === 'RuntimeDefault') return 'runtime/default';
  const file = profile.localhostProfile;
  return type === 'Localhost' && file !== undefined ? `localhost/${file}` : '';
}

/** The field that is equivalent to an annotation; undefined for an invalid one. */
function profileOf(annotation: string): JsonObject | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' };
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' };
  const local = 'localhost/';
  if (!annotation.startsWith(local)) return undefined;
  const profile = { type: 'Localhost', localhostProfile: annotation.slice(local.length) };
  return validateAppArmorProfile(profile, '').length === 0 ? profile : undefined;
}

/** Limits an update to the part of a Pod that the endpoint may change. */
export function preparePodUpdate(
  context: StrategyContext,
  object: Stored<Pod>,
  old: Stored<Pod>,
): void {
  const before = old.spec;
  switch (context.subresource) {
    case 'status':
      prepareStatus(object, old);
      return;
    case 'binding':
      markScheduled(ensure(object, 'status'), context.nowMs);
      return;
    case 'ephemeralcontainers': {
      const added = object.spec?.ephemeralContainers;
      object.spec = { ...cloneJson(before ?? {}), ephemeralContainers: added };
      keepMetadata(object, old);
      break;
    }
    case 'resize':
      prepareResize(object, old);
      keepMetadata(object, old);
      break;
    default:
  }
}

/** Limits a resize to the resources of containers, and marks a change as proposed to the node. */
function prepareResize(object: Stored<Pod>, old: Stored<Pod>): void {
  const requested = new Map(
    (object.spec?.containers ?? []).map((container) => [container.name ?? '', container]),
  );
  const [spec, status] = [cloneJson(old.spec ?? {}), old.status ?? {}];
  let isResized = false;
  for (const container of spec.containers ?? []) {
    const now = requested.get(container.name ?? '');
    if (now === undefined) continue;
    const before = container.resources;
    isResized ||=
      now.resources?.requests !== undefined &&
      !runInOnePiece(sameSemantically({ resources: before }, { resources: now.resources }));
    if (now.resources === undefined) delete container.resources;
    else container.resources = now.resources;
    if (now.resizePolicy === undefined) delete container.resizePolicy;
    else container.resizePolicy = now.resizePolicy;
  }
  object.spec = spec;
  object.status = { ...cloneJson(status), ...(isResized ? { resize: 'Proposed' } : {}) };
}

/** Sets the condition that a pod has a node. */
function markScheduled(status: Stored<PodStatus>, nowMs: number): void {
  const conditions = status.conditions ?? [];
  const before = conditions.find((condition) => (condition.type ?? '') === 'PodScheduled');
  const since = before?.status === 'True' ? before.lastTransitionTime : undefined;
  const scheduled = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: since ?? formatTime(nowMs),
  };
  const isAt = (condition: Stored<PodCondition>) => (condition === before ? scheduled : condition);
  status.conditions = [...conditions.map(isAt), ...(before === undefined ? [scheduled] : [])];
}

/** Keeps a class that the new status omits, and undoes changes of owners and of the deletion. */
function prepareStatus(object: Stored<Pod>, old: Stored<Pod>): void {
  const status = ensure(object, 'status');
  if ((status.qosClass ?? '') === '') {
    const quality = old.status?.qosClass;
    if (quality !== undefined) status.qosClass = quality;
  }
  fillAddresses(status);
  keepOwners(object, old);
  if (old.metadata.deletionTimestamp === undefined) delete object.metadata.deletionTimestamp;
}

function keepOwners(object: Stored<Pod>, old: Stored<Pod>): void {
  const { ownerReferences } = old.metadata;
  if (ownerReferences === undefined) delete object.metadata.ownerReferences;
  else object.metadata.ownerReferences = structuredClone(ownerReferences);
}

/** Undoes changes of metadata, including managed fields, except the resource version. */
function keepMetadata(object: Stored<Pod>, old: Stored<Pod>): void {
  const { resourceVersion } = object.metadata;
  object.metadata = { ...structuredClone(old.metadata) };
  if (resourceVersion !== undefined) object.metadata.resourceVersion = resourceVersion;
}
