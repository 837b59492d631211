import {
  type ApiObject,
  cloneJsonSteps,
  type Dialect,
  formatTime,
  type JsonObject,
  setMember,
} from '@wheelhouse/machinery';
import type {
  Container,
  Pod,
  PodCondition,
  PodStatus,
  SeccompProfile,
} from '../gen/types/core/v1.ts';
import type { Stored, StrategyContext } from '../resource-def.ts';
import { flatMapSteps, keyed, same } from '../rules/checks.ts';
import { ensure, forEachSteps, keepMembers } from '../rules/fill.ts';
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
 * the profiles in fields and annotations are equal. Takes steps (TRUST-2).
 */
export function* preparePod(
  context: StrategyContext,
  object: Stored<Pod>,
  dialect: Dialect,
): Generator<void, void> {
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
  yield;
  mergeLabelKeys(spec, object.metadata.labels ?? {});
  yield;
  for (const key of yield* syncProfiles(object, dialect)) {
    context.warn?.(`${keyed('metadata.annotations', key)}: ${useAppArmor}`);
  }
}

/**
 * Copies AppArmor profiles from annotations to the fields that replaced them, and from fields to
 * annotations for nodes that read only those, in steps. Returns the annotations that should have
 * been fields.
 */
function* syncProfiles(object: Stored<Pod>, dialect: Dialect): Generator<void, readonly string[]> {
  const spec = ensure(object, 'spec');
  const annotations = annotationsOf(object);
  if ((spec.os?.name ?? '') === 'windows') return [];
  const ofPod = spec.securityContext?.appArmorProfile;
  const prefix = appArmorPrefix(dialect);
  return yield* flatMapSteps(containersOf(spec), (container: Stored<Container>) => {
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

/** Limits an update to the part of a Pod that the endpoint may change, in steps (TRUST-2). */
export function* preparePodUpdate(
  context: StrategyContext,
  object: Stored<Pod>,
  old: Stored<Pod>,
): Generator<void, void> {
  const before = old.spec;
  switch (context.subresource) {
    case 'status':
      yield* prepareStatus(object, old);
      return;
    case 'binding':
      markScheduled(ensure(object, 'status'), context.nowMs);
      return;
    case 'ephemeralcontainers': {
      const added = object.spec?.ephemeralContainers;
      object.spec = yield* cloneJsonSteps({ ...before, ephemeralContainers: undefined });
      object.spec.ephemeralContainers = added;
      yield* keepMetadata(object, old);
      break;
    }
    case 'resize':
      yield* prepareResize(object, old);
      yield* keepMetadata(object, old);
      break;
    default:
  }
}

/** Limits a resize to the resources of containers, and marks a change as proposed to the node. */
function* prepareResize(object: Stored<Pod>, old: Stored<Pod>): Generator<void, void> {
  const requested = new Map<string, Stored<Container>>();
  yield* forEachSteps(object.spec?.containers ?? [], (container) => {
    requested.set(container.name ?? '', container);
  });
  const spec = yield* cloneJsonSteps(old.spec ?? {});
  let isResized = false;
  yield* forEachSteps(spec.containers ?? [], function* (container) {
    const now = requested.get(container.name ?? '');
    if (now === undefined) return;
    const before = container.resources;
    isResized ||=
      now.resources?.requests !== undefined &&
      !(yield* sameSemantically({ resources: before }, { resources: now.resources }));
    if (now.resources === undefined) delete container.resources;
    else container.resources = now.resources;
    if (now.resizePolicy === undefined) delete container.resizePolicy;
    else container.resizePolicy = now.resizePolicy;
  });
  object.spec = spec;
  const status = yield* cloneJsonSteps(old.status ?? {});
  object.status = { ...status, ...(isResized ? { resize: 'Proposed' } : {}) };
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
function* prepareStatus(object: Stored<Pod>, old: Stored<Pod>): Generator<void, void> {
  const status = ensure(object, 'status');
  if ((status.qosClass ?? '') === '') {
    const quality = old.status?.qosClass;
    if (quality !== undefined) status.qosClass = quality;
  }
  fillAddresses(status);
  yield* keepMembers(object.metadata, old.metadata, ['ownerReferences']);
  if (old.metadata.deletionTimestamp === undefined) delete object.metadata.deletionTimestamp;
}

/** Undoes changes of metadata, including managed fields, except the resource version. */
function* keepMetadata(object: Stored<Pod>, old: Stored<Pod>): Generator<void, void> {
  const { resourceVersion } = object.metadata;
  object.metadata = yield* cloneJsonSteps(old.metadata);
  if (resourceVersion !== undefined) object.metadata.resourceVersion = resourceVersion;
}
