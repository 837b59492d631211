import { type CatalogueSnapshot, textAt } from '@wheelhouse/kinds';
import type { Clock, Dialect } from '@wheelhouse/machinery';
import { type CachePool, follow } from '../../../registry/caches.ts';
import { EntryDecoder } from '../../../registry/entry-decoder.ts';
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
  const objects = new EntryDecoder(options.clock);
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
function podsInto(graph: NodeGraph, objects: EntryDecoder): OnEntry {
  return (key, current) => {
    const bound = current?.index.fields['spec.nodeName'] === '' ? undefined : current;
    objects.passRead(`pod ${key}`, bound, {
      read: (pod) => graph.podSteps(pod),
      use(vertices) {
        if (vertices !== undefined) return graph.setPodVertices(vertices);
        const [namespace = '', name = ''] = key.split('/');
        graph.removePod(namespace, name);
      },
    });
  };
}

function volumesInto(graph: NodeGraph, objects: EntryDecoder): OnEntry {
  return (key, current) =>
    objects.pass(`volume ${key}`, current, (volume) => {
      if (volume === undefined) graph.removeVolume(key);
      else graph.setVolume(volume);
    });
}
