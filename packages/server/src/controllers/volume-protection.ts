import { claimNames, type ResourceDef, textAt } from '@wheelhouse/kinds';
import type { ApiObject } from '@wheelhouse/machinery';
import { decodedEntries, decodedInSlices } from '../registry/object-codec.ts';
import type { Entry } from '../watchcache/entry.ts';
import { type ControllerTools, listEntries, startVisit, withoutFinalizer } from './tools.ts';
import { type Controller, createWorkQueue, runningQueue } from './work-queue.ts';

/** Number of objects processed concurrently. */
const workers = 4;

interface ProtectionTools extends ControllerTools {
  /** The finalizer that holds the object while it is in use. */
  readonly finalizer: string;
}

/**
 * Releases a deleted claim once no scheduled pod uses it, by removing the finalizer that admission
 * added (ADM-1).
 */
export function startClaimProtection(
  options: ProtectionTools & { readonly claims: ResourceDef; readonly pods: ResourceDef },
): Controller {
  const { caches, pods } = options;
  /** The namespaces of deleted claims that may be in use, by key. */
  const waiting = new Map<string, string>();
  const protection = startProtection({
    ...options,
    controller: 'persistentvolumeclaim-protection-controller',
    def: options.claims,
    async isUsed(claim, key) {
      const { namespace = '', name = '' } = claim.metadata;
      // Before the pods are listed, so that none goes unnoticed.
      waiting.set(key, namespace);
      const entries = (await listEntries(caches, { def: pods, namespace })).filter(usesClaims);
      for await (const pod of decodedEntries(entries, options.clock)) {
        if (claimNames(pod).includes(name)) return true;
      }
      waiting.delete(key);
      return false;
    },
    onRemoved: (key) => waiting.delete(key),
  });
  const subscription = caches.of(pods).subscribe(({ previous, current }) => {
    if (waiting.size === 0 || (current !== undefined && usesClaims(current))) return;
    const gone = previous?.index.namespace;
    for (const [key, namespace] of waiting) {
      if (namespace !== gone) continue;
      waiting.delete(key);
      protection.enqueue(key);
    }
  });
  return {
    async close() {
      subscription.close();
      await protection.close();
    },
  };
}

/** Whether a pod uses its claims: it is scheduled and has not ended. */
function usesClaims({ index: { fields } }: Entry): boolean {
  const phase = fields['status.phase'];
  return fields['spec.nodeName'] !== '' && phase !== 'Succeeded' && phase !== 'Failed';
}

/** Releases a deleted volume once it is no longer bound to a claim (ADM-1). */
export function startVolumeProtection(
  options: ProtectionTools & { readonly volumes: ResourceDef },
): Controller {
  return startProtection({
    ...options,
    controller: 'persistentvolume-protection-controller',
    def: options.volumes,
    isUsed: async (volume) => textAt(volume, 'status', 'phase') === 'Bound',
  });
}

function startProtection(
  options: ProtectionTools & {
    readonly controller: string;
    readonly def: ResourceDef;
    readonly isUsed: (object: ApiObject, key: string) => Promise<boolean>;
    readonly onRemoved?: (key: string) => void;
  },
): Controller & { enqueue(key: string): void } {
  const { caches, def, writer, finalizer } = options;
  const cache = caches.of(def);
  const run = async (key: string): Promise<void> => {
    const entry = await cache.get(key, undefined);
    if (entry === undefined || entry.index.deleting !== true) return;
    const object = await decodedInSlices(entry, options.clock);
    if (object.metadata.finalizers?.includes(finalizer) !== true) return;
    const { namespace, name } = entry.index;
    if (await options.isUsed(object, key)) return;
    await writer.change({ def, namespace, name }, (current) =>
      withoutFinalizer(current, finalizer),
    );
  };
  const queue = createWorkQueue({ ...options, name: options.controller, run, workers });
  const subscription = cache.subscribe(({ previous, current }) => {
    if (current?.index.deleting === true) queue.add(current.key);
    if (current === undefined && previous !== undefined) options.onRemoved?.(previous.key);
  });
  const at = { def, namespace: '' };
  const first = startVisit(options, { at, plural: 'volumes' }, ({ key, index }) => {
    if (index.deleting === true) queue.add(key);
  });
  return {
    enqueue: (key) => queue.add(key),
    close: runningQueue(queue, subscription, first).close,
  };
}
