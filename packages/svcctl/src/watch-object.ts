import { watchEvents } from '@wheelhouse/client';
import { isObject, type JsonObject } from '@wheelhouse/machinery';
import { textAt } from './objects.ts';
import { type Target, targetPath } from './selection.ts';
import type { Session } from './session.ts';

/** A state of an object, or that it is gone. */
export type ObjectState =
  | { readonly type: 'present'; readonly object: JsonObject }
  | { readonly type: 'deleted' };

/**
 * Follows one object by its name: as it is now, then each change; lists anew when the server ends a
 * watch. An object that is absent at first is waited for. Rejects when `signal` aborts.
 */
export async function* followObject(
  session: Session,
  { target, signal }: { readonly target: Target; readonly signal: AbortSignal },
): AsyncGenerator<ObjectState> {
  const path = targetPath({ ...target, name: undefined });
  const fieldSelector = `metadata.name=${target.name ?? ''}`;
  let last = '';
  for (;;) {
    signal.throwIfAborted();
    const { object: list } = await session.client.send({ path, query: { fieldSelector }, signal });
    const [item] = Array.isArray(list.items) ? list.items.filter(isObject) : [];
    const version = item === undefined ? '' : textAt(item, 'metadata', 'resourceVersion');
    if (item === undefined && last !== '') yield { type: 'deleted' };
    if (item !== undefined && version !== last) {
      const type = { apiVersion: list.apiVersion, kind: target.resource.kind };
      yield { type: 'present', object: { ...type, ...item } };
    }
    last = version;
    const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
    const query = { watch: 'true', fieldSelector, resourceVersion };
    const stream = await session.client.stream({ path, query, signal });
    try {
      for await (const event of watchEvents(stream.body)) {
        if (event.type === 'ERROR') break;
        if (event.type === 'BOOKMARK') continue;
        last = event.type === 'DELETED' ? '' : textAt(event.object, 'metadata', 'resourceVersion');
        yield last === '' ? { type: 'deleted' } : { type: 'present', object: event.object };
      }
    } finally {
      stream.body.destroy();
    }
  }
}
