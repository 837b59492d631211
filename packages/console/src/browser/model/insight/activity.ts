import { acceptedMetaGroups, type Clock, type JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from '../api.ts';
import { ApiFailure, failureOf, objectOf, textOf } from '../failure.ts';
import { collectionPath, type Kind, type ObjectName } from '../kinds.ts';
import { fieldOwners } from '../ownership.ts';
import { metadataType } from './inventory.ts';

/** A change of some object, as it happened. */
export interface Activity {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly target: ObjectName;
  readonly resourceVersion: string;
  /** The manager that wrote last; empty when nobody says. */
  readonly manager: string;
  readonly atMs: number;
}

const watchType = `application/json;as=PartialObjectMetadata;v=v1;g=${acceptedMetaGroups[0]}`;
/** What is written all the time and tells nobody anything. */
const ignored = new Set(['leases', 'events']);
const pauseMs = 3_000;

/** The kinds whose changes are worth following, at most as many as there may be streams. */
export function followedKinds(kinds: readonly Kind[], streamsMax: number): Kind[] {
  return kinds
    .filter(({ preferred, verbs, resource }) => {
      return (
        preferred && verbs.includes('watch') && verbs.includes('list') && !ignored.has(resource)
      );
    })
    .slice(0, streamsMax);
}

/**
 * Watches kinds from now on and reports each change. A watch that ends is begun anew after a pause;
 * a kind that the user may not watch is left out. Returns what ends it.
 */
export function followActivity(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly kinds: readonly Kind[];
  readonly onActivity: (activity: Activity) => void;
}): () => void {
  const { api, clock, kinds, onActivity } = options;
  const abort = new AbortController();
  const { signal } = abort;
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(pauseMs, resolve);
      signal.addEventListener('abort', () => {
        timer.stop();
        resolve();
      });
    });
  const writers = createWriters();
  const follow = async (kind: Kind): Promise<void> => {
    while (!signal.aborted) {
      try {
        await watchFromNow({ api, kind, signal }, (type, metadata) => {
          onActivity({
            type,
            target: targetOf(kind, metadata),
            resourceVersion: textOf(metadata, 'resourceVersion'),
            manager: writers.writerOf(metadata),
            atMs: clock.now(),
          });
        });
      } catch (error) {
        if (error instanceof ApiFailure && [401, 403, 404, 405].includes(error.code)) return;
      }
      await pause();
    }
  };
  for (const kind of kinds) void follow(kind);
  return () => abort.abort(new Error('closed'));
}

async function watchFromNow(
  of: { readonly api: Api; readonly kind: Kind; readonly signal: AbortSignal },
  onChange: (type: Activity['type'], metadata: JsonObject) => void,
): Promise<void> {
  const { api, kind, signal } = of;
  const path = collectionPath(kind);
  const list = await api.json({ path, query: { limit: 1 }, accept: metadataType, signal });
  const resourceVersion = textOf(objectOf(list, 'metadata'), 'resourceVersion');
  const query = { watch: 1, resourceVersion };
  for await (const event of await api.stream({ path, query, accept: watchType, signal })) {
    const type = textOf(event, 'type');
    const object = objectOf(event, 'object');
    if (type === 'ERROR') throw failureOf(object, { code: 500 });
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') {
      onChange(type, objectOf(object, 'metadata'));
    }
  }
}

function targetOf(kind: Kind, metadata: JsonObject): ObjectName {
  const namespace = textOf(metadata, 'namespace') || undefined;
  return { kind, namespace, name: textOf(metadata, 'name') };
}

/** Objects whose entries of managers are remembered. */
const rememberedMax = 1_000;

/** Finds who wrote an object last: the manager whose entry is new, or else has the latest time. */
function createWriters() {
  const entries = new Map<string, ReadonlySet<string>>();
  return {
    writerOf(metadata: JsonObject): string {
      const uid = textOf(metadata, 'uid');
      const owners = fieldOwners({ metadata });
      const before = entries.get(uid) ?? new Set();
      entries.delete(uid);
      entries.set(uid, new Set(owners.map((owner) => JSON.stringify(owner))));
      const [oldest] = entries.keys();
      if (entries.size > rememberedMax && oldest !== undefined) entries.delete(oldest);
      const fresh = owners.filter((owner) => !before.has(JSON.stringify(owner)));
      const among = fresh.length > 0 ? fresh : owners;
      const newest = among.reduce((best, owner) => (owner.time >= best.time ? owner : best), {
        manager: '',
        time: '',
      });
      return newest.manager;
    },
  };
}
