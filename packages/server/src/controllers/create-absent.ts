import { type ApiObject, cloneJson, StatusError } from '@wheelhouse/machinery';
import { objectKey } from '../registry/object-codec.ts';
import { CorruptObjectError } from '../watchcache/store-errors.ts';
import type { ControllerTools, ObjectAt } from './inside.ts';

/** Pauses between attempts, in milliseconds. */
const pausesMs = [20, 50, 100, 200, 400];

/**
 * Creates an object that a server starts with, unless one is stored under its name, whoever stored
 * it and in whatever state. A rejected attempt is repeated: another server that starts on the same
 * store may have claimed what the object needs, and not yet have stored the object. An object that
 * stays rejected, or that the store refuses, is logged and left to the controller that maintains it,
 * so that neither it nor a full disk keeps the server from starting (OPS-3).
 */
export async function createAbsent(
  { caches, inside, clock, logger }: ControllerTools,
  { at, object }: { readonly at: ObjectAt; readonly object: ApiObject },
): Promise<void> {
  const { def, namespace, name } = at;
  const cache = caches.of(def);
  for (let attempt = 0; ; attempt += 1) {
    try {
      if ((await cache.get(objectKey(namespace, name), undefined)) !== undefined) return;
      await inside.create(at, cloneJson(object));
      return;
    } catch (error) {
      const isDamaged = error instanceof CorruptObjectError;
      const isRejected = error instanceof StatusError && !isDamaged;
      const pauseMs = isRejected ? pausesMs[attempt] : undefined;
      if (pauseMs === undefined) {
        const problem = isDamaged ? 'is damaged' : 'cannot be created';
        const fields = { resource: def.resource, namespace, name, error: String(error) };
        logger.error(`a default object ${problem}`, fields);
        return;
      }
      await new Promise<void>((resolve) => {
        clock.after(pauseMs, resolve);
      });
    }
  }
}
