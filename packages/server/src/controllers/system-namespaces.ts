import type { ResourceDef } from '@wheelhouse/kinds';
import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import { type ControllerTools, createAbsent } from './tools.ts';
import { createWorkQueue } from './work-queue.ts';

/** Suffixes of the namespaces that exist from the start, besides `default`. */
const stems = ['system', 'public', 'node-lease'];

/** The namespaces that the server creates. */
export function systemNamespaces(dialect: Dialect) {
  const names = ['default', ...stems.map((stem) => dialect.systemNamespace(stem))];
  // The strategy would add this label, too late to record the server as its manager.
  const label = dialect.label('metadata.name');
  return names.map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { [label]: name } },
  }));
}

/**
 * Recreates a deleted system namespace: that of node leases, unless admission stops protecting the
 * others.
 */
export function startSystemNamespaces(
  options: ControllerTools & { readonly namespaces: ResourceDef; readonly dialect: Dialect },
): { close(): Promise<void> } {
  const { namespaces: def, dialect, caches } = options;
  const desired = new Map<string, ApiObject>(
    systemNamespaces(dialect).map((namespace) => [namespace.metadata.name, namespace]),
  );
  const queue = createWorkQueue({
    ...options,
    name: 'system-namespaces',
    workers: 1,
    async run(name) {
      const object = desired.get(name);
      if (object !== undefined) {
        await createAbsent(options, { at: { def, namespace: '', name }, object });
      }
    },
  });
  const subscription = caches.of(def).subscribe(({ previous, current }) => {
    const isGone = current === undefined && previous !== undefined;
    if (isGone && desired.has(previous.index.name)) queue.add(previous.index.name);
  });
  return {
    close() {
      subscription.close();
      return queue.close();
    },
  };
}
