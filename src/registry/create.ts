import type { StrategyContext } from '../catalogue/resource-def.ts';
import { generateName } from '../meta/name-generator.ts';
import { alreadyExists, StatusError } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import { EntryHint } from '../watchcache/contract.ts';
import { makeEntry } from '../watchcache/entry.ts';
import type { Target, WriteContext, Written } from './contract.ts';
import { encodeStored, indexOf, objectKey, toStorage } from './object-codec.ts';
import { checkPathAgreement, fillSystemFields } from './object-meta.ts';
import { groupResourceOf, type Registry, storing } from './registry.ts';
import { validateNew } from './validate.ts';

/** Attempts at a free generated name before giving up, as upstream. */
const generatedNameAttempts = 8;

/**
 * Stores a new object, given in the request's version, decoded and defaulted. Throws 409
 * AlreadyExists, 422, or what admission says (API-3, META-1, DRY-1).
 */
export async function createObject(
  registry: Registry,
  options: { target: Target; object: ApiObject; context: WriteContext },
): Promise<Written> {
  const { target, object, context } = options;
  checkPathAgreement(target, object);
  const nowMs = registry.clock.now();
  fillSystemFields(object, nowMs);
  const { fieldManager } = context;
  registry.fieldManager.recordUpdate({
    target,
    live: undefined,
    object,
    manager: fieldManager,
    nowMs,
  });
  return insertObject(registry, { ...options, nowMs });
}

/**
 * The part of a create behind field management: admission, the kind's rules, the store. Also used
 * by apply and by PUT on an absent name, whose managed fields are recorded already.
 */
export async function insertObject(
  registry: Registry,
  options: {
    target: Target;
    object: ApiObject;
    context: WriteContext;
    nowMs: number;
    attempt?: number;
  },
): Promise<Written> {
  const { target, object, context, nowMs } = options;
  const call = {
    operation: 'CREATE' as const,
    target,
    context,
    name: object.metadata.name ?? '',
    object,
    old: undefined,
    attempt: options.attempt ?? 1,
  };
  await registry.admission.mutate(call);
  const { def, version } = target;
  const stored = toStorage(def, version, object);
  const strategyContext = strategyContextOf(target, context, nowMs);
  def.strategy.prepareForCreate?.(strategyContext, stored);
  validateNew(target, strategyContext, stored);
  await registry.admission.validate(call);
  for (const text of def.strategy.warnings?.(stored, undefined) ?? []) context.warn(text);
  return putNew(registry, { target, stored, context });
}

async function putNew(
  registry: Registry,
  options: { target: Target; stored: ApiObject; context: WriteContext },
): Promise<Written> {
  const { target, stored, context } = options;
  const { def } = target;
  const cache = registry.caches.of(def);
  const generated = stored.metadata.generateName ?? '';
  const mayRename = target.name === '' && generated !== '' && stored.metadata.name !== undefined;
  for (let attempt = 1; ; attempt += 1) {
    const name = stored.metadata.name as string;
    const key = objectKey(stored.metadata.namespace ?? '', name);
    const value = encodeStored(stored);
    const index = indexOf(def.storage, stored);
    if (context.dryRun) {
      const current = await cache.get(key, undefined);
      if (current === undefined) return { entry: dryEntry({ key, value, index }), created: true };
    } else {
      const storeKey = def.storage.prefix + key;
      const result = await storing(() =>
        registry.store.put({ key: storeKey, value, expect: 0, hint: new EntryHint(index) }),
      );
      if (result.ok) {
        const { revision } = result;
        const cached = cache.peek(key);
        const entry =
          cached?.revision === revision
            ? cached
            : makeEntry({ key, stored: value, revision, createRevision: revision, index });
        return { entry, created: true };
      }
    }
    if (!mayRename) throw alreadyExists(groupResourceOf(def), name);
    if (attempt === generatedNameAttempts) throw generateNameConflict(target, name);
    stored.metadata.name = generateName(generated);
  }
}

function generateNameConflict(target: Target, name: string): StatusError {
  const plain = alreadyExists(groupResourceOf(target.def), name);
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${plain.message}, the server was not able to generate a unique name for the object`,
    details: { ...plain.status.details, retryAfterSeconds: 1 },
  });
}

/** An entry as a dry run answers it: no revision of its own. */
export function dryEntry(options: {
  key: string;
  value: Buffer;
  index: Written['entry']['index'];
}): Written['entry'] {
  return {
    key: options.key,
    revision: 0,
    createRevision: 0,
    json: options.value,
    index: options.index,
    memo: undefined,
  };
}

export function strategyContextOf(
  target: Target,
  context: WriteContext,
  nowMs: number,
): StrategyContext {
  const { user, dryRun } = context;
  const { subresource, version } = target;
  return { user, nowMs, dryRun, subresource, version: version.version };
}
