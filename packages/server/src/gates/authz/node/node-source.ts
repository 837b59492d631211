import { type CatalogueSnapshot, textAt } from '@wheelhouse/kinds';
import { type ApiObject, type Clock, type Dialect, paceFor } from '@wheelhouse/machinery';
import { type CachePool, follow } from '../../../registry/caches.ts';
import { decodedAt, decodeEntry } from '../../../registry/object-codec.ts';
import type { Entry } from '../../../watchcache/entry.ts';
import { NodeGraph } from './node-graph.ts';

type OnEntry = (key: string, current: Entry | undefined) => void;

/**
 * Creates the Node authorizer's graph and keeps it current from the watch caches; it is complete
 * when the promise resolves. Kinds that the server does not serve are skipped.
 */
export async function openNodeGraph(options: {
  readonly caches: CachePool;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
  readonly clock: Pick<Clock, 'monotonic'>;
}): Promise<{ readonly graph: NodeGraph; close(): void }> {
  const { caches, snapshot, dialect } = options;
  const graph = new NodeGraph({ mirrorAnnotation: dialect.label('config.mirror') });
  const objects = new DecodedObjects(options.clock);
  const ownedBy =
    (kind: 'volumeattachment' | 'resourceslice'): OnEntry =>
    (key, current) =>
      objects.pass(`${kind} ${key}`, current, (object) =>
        graph.setNodeOf(kind, key, object === undefined ? '' : textAt(object, 'spec', 'nodeName')),
      );
  const sources: readonly (readonly [group: string, resource: string, onEntry: OnEntry])[] = [
    ['', 'pods', podsInto(graph, objects)],
    ['', 'persistentvolumes', volumesInto(graph, objects)],
    [dialect.group('storage'), 'volumeattachments', ownedBy('volumeattachment')],
    [dialect.group('resource'), 'resourceslices', ownedBy('resourceslice')],
  ];
  const subscriptions = await Promise.all(
    sources.map(([group, resource, onEntry]) => {
      const def = snapshot.builtin(group, resource);
      return def === undefined ? undefined : follow(caches.of(def), onEntry);
    }),
  );
  await objects.settled();
  return {
    graph,
    close: () => {
      for (const subscription of subscriptions) subscription?.close();
    },
  };
}

/** Pods without a node, which the index identifies, are not decoded. */
function podsInto(graph: NodeGraph, objects: DecodedObjects): OnEntry {
  return (key, current) => {
    const bound = current?.index.fields['spec.nodeName'] === '' ? undefined : current;
    objects.pass(`pod ${key}`, bound, (pod) => {
      if (pod !== undefined) return graph.setPod(pod);
      const [namespace = '', name = ''] = key.split('/');
      graph.removePod(namespace, name);
    });
  };
}

function volumesInto(graph: NodeGraph, objects: DecodedObjects): OnEntry {
  return (key, current) =>
    objects.pass(`volume ${key}`, current, (volume) => {
      if (volume === undefined) graph.removeVolume(key);
      else graph.setVolume(volume);
    });
}

/** Decodes entries: small ones immediately, large ones in slices (TRUST-2). */
class DecodedObjects {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The newest large entry of each object, until it is decoded. */
  readonly #pending = new Map<string, Entry>();
  readonly #running = new Set<Promise<void>>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Passes on an entry's object, unless a newer entry with the same ID arrives first. */
  pass(id: string, entry: Entry | undefined, use: (object: ApiObject | undefined) => void): void {
    this.#pending.delete(id);
    const pace = entry === undefined ? undefined : paceFor(this.#clock, entry.json.length);
    if (entry === undefined || pace === undefined) {
      use(entry && decodeEntry(entry));
      return;
    }
    this.#pending.set(id, entry);
    const decode = async () => {
      // The turn that reports a change has done much work already.
      await pace.pause();
      if (this.#pending.get(id) !== entry) return;
      const object = await decodedAt(pace, entry);
      if (this.#pending.get(id) !== entry) return;
      this.#pending.delete(id);
      use(object);
    };
    const running = decode().finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when no large entry is waiting. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
