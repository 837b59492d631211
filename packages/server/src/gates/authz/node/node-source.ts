import { type CatalogueSnapshot, textAt } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import { type CachePool, follow } from '../../../registry/caches.ts';
import { decodeEntry } from '../../../registry/object-codec.ts';
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
}): Promise<{ readonly graph: NodeGraph; close(): void }> {
  const { caches, snapshot, dialect } = options;
  const graph = new NodeGraph({ mirrorAnnotation: dialect.label('config.mirror') });
  const ownedBy =
    (kind: 'volumeattachment' | 'resourceslice'): OnEntry =>
    (key, current) => {
      const node = current === undefined ? '' : textAt(decodeEntry(current), 'spec', 'nodeName');
      graph.setNodeOf(kind, key, node);
    };
  const sources: readonly (readonly [group: string, resource: string, onEntry: OnEntry])[] = [
    ['', 'pods', podsInto(graph)],
    ['', 'persistentvolumes', volumesInto(graph)],
    [dialect.group('storage'), 'volumeattachments', ownedBy('volumeattachment')],
    [dialect.group('resource'), 'resourceslices', ownedBy('resourceslice')],
  ];
  const subscriptions = await Promise.all(
    sources.map(([group, resource, onEntry]) => {
      const def = snapshot.builtin(group, resource);
      return def === undefined ? undefined : follow(caches.of(def), onEntry);
    }),
  );
  return {
    graph,
    close: () => {
      for (const subscription of subscriptions) subscription?.close();
    },
  };
}

/** Pods without a node, which the index identifies, are not decoded. */
function podsInto(graph: NodeGraph): OnEntry {
  return (key, current) => {
    if (current !== undefined && current.index.fields['spec.nodeName'] !== '') {
      graph.setPod(decodeEntry(current));
      return;
    }
    const [namespace = '', name = ''] = key.split('/');
    graph.removePod(namespace, name);
  };
}

function volumesInto(graph: NodeGraph): OnEntry {
  return (key, current) => {
    if (current === undefined) graph.removeVolume(key);
    else graph.setVolume(decodeEntry(current));
  };
}
