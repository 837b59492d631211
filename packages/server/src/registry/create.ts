import { type ResourceDef, type StrategyContext, toStorage } from '@wheelhouse/kinds';
import { type ApiObject, alreadyExists, generateName, StatusError } from '@wheelhouse/machinery';
import { settleEmpty } from '@wheelhouse/schema';
import type { StoredRecord } from '@wheelhouse/store';
import { type Entry, EntryHint } from '../watchcache/contract.ts';
import { makeEntry } from '../watchcache/entry.ts';
import { settling } from './allocation.ts';
import type { Target, WriteContext, Written } from './contract.ts';
import { entryOf, objectKey } from './object-codec.ts';
import {
  checkPathAgreement,
  dropDuplicateOwners,
  fillSystemFields,
  namesVersion,
  versionOnCreate,
  wipeSystemFields,
} from './object-meta.ts';
import { groupResourceOf, type Registry, requireTime, sparingOwners, storing } from './registry.ts';
import { rememberPresent, storedForm } from './stored-form.ts';
import { typedForm } from './typed-form.ts';
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
  const { target, context } = options;
  const object = typedForm(target, context, options.object);
  checkPathAgreement(target, object);
  const nowMs = registry.clock.now();
  const hasOwnName = (object.metadata.name ?? '') !== '';
  const version = namesVersion(object) ? 'named' : 'none';
  wipeSystemFields(object);
  dropDuplicateOwners(object, { warn: context.warn, after: 'body' });
  const { fieldManager, pace } = context;
  const recorded = registry.fieldManager.recordUpdate({
    target,
    live: undefined,
    object,
    manager: fieldManager,
    nowMs,
    pace,
  });
  if (recorded instanceof Promise) await recorded;
  if (pace?.over) await pace.pause();
  settleEmpty(target.version.schema, object);
  return insertObject(registry, {
    target,
    object,
    context,
    nowMs,
    mayRename: !hasOwnName,
    version,
  });
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
    /** The name was generated, so another will do when it is taken (META-1). */
    mayRename?: boolean;
    /** Whether the object may do without the owners of its fields; it may when absent. */
    owners?: 'needed' | 'spare';
    /** A request that names a version is refused instead of stored (META-2). */
    version?: 'named' | 'none';
  },
): Promise<Written> {
  const { target, object, context, nowMs, mayRename = false, version: named } = options;
  const { pace } = context;
  const call = {
    operation: 'CREATE' as const,
    target,
    context,
    name: object.metadata.name ?? '',
    object,
    old: undefined,
    attempt: options.attempt ?? 1,
  };
  const mutation = registry.admission.mutate(call);
  if (mutation !== undefined) await mutation;
  checkPathAgreement(target, object);
  fillSystemFields(object, nowMs);
  dropDuplicateOwners(object, { warn: context.warn, after: 'admission' });
  const { def, version } = target;
  const stored =
    def.behavior.judgedIn === 'stored version' ? toStorage(def, version, object) : object;
  const strategyContext = strategyContextOf(target, context, nowMs);
  const allocation = def.strategy.allocate?.(strategyContext, stored, undefined);
  return settling(allocation, 0, async () => {
    if (pace?.over) await pace.pause();
    def.strategy.prepareForCreate?.(strategyContext, stored);
    if (pace?.over) await pace.pause();
    validateNew(target, strategyContext, stored);
    if (pace?.over) await pace.pause();
    // Who only looks sees what will be stored.
    const { name = '' } = stored.metadata;
    const isSame = stored === object && name === call.name;
    const validation = registry.admission.validate(
      isSame ? call : { ...call, object: stored, name },
    );
    if (validation !== undefined) await validation;
    for (const text of def.strategy.warnings?.(stored, undefined) ?? []) context.warn(text);
    if (named === 'named' && !context.dryRun) throw versionOnCreate();
    if (pace?.over) await pace.pause();
    const write = () => putNew(registry, { target, stored, context, mayRename });
    return sparingOwners(stored, { owners: options.owners ?? 'spare', write });
  });
}

async function putNew(
  registry: Registry,
  options: { target: Target; stored: ApiObject; context: WriteContext; mayRename: boolean },
): Promise<Written> {
  const { target, stored, context, mayRename } = options;
  const generated = stored.metadata.generateName ?? '';
  for (let attempt = 1; ; attempt += 1) {
    const { entry, existing } = await tryInsert(registry, { target, stored, context });
    if (entry !== undefined) return { entry, created: true };
    if (!mayRename || attempt === generatedNameAttempts) {
      throw nameTaken(target, { name: stored.metadata.name as string, generated, existing });
    }
    stored.metadata.name = generateName(generated);
  }
}

/** Stores the object where nothing stands yet; else gives what does. */
async function tryInsert(
  registry: Registry,
  options: { target: Target; stored: ApiObject; context: WriteContext },
): Promise<{ readonly entry?: Entry; readonly existing?: Entry | undefined }> {
  const { target, stored, context } = options;
  const { def } = target;
  const key = objectKey(stored.metadata.namespace ?? '', stored.metadata.name as string);
  const made = storedForm(def, stored);
  const { value, shown, index, object } = made instanceof Promise ? await made : made;
  if (context.dryRun) {
    const existing = await registry.caches.of(def).get(key, undefined);
    if (existing !== undefined) return { existing };
    return { entry: dryEntry({ key, value: shown, index }) };
  }
  requireTime(context);
  const storeKey = def.storage.prefix + key;
  const hint = shown === value ? new EntryHint(index, def.storage, object) : new EntryHint(index);
  const result = await storing(() => registry.store.put({ key: storeKey, value, expect: 0, hint }));
  if (!result.ok) return { existing: readable(def, result.current) };
  const { revision } = result;
  const read = { key, stored: shown, revision, createRevision: revision, index };
  const entry = hint.entry ?? makeEntry(read);
  if (shown === value) rememberPresent(def, entry);
  keepDecoded(registry, { storeKey, entry, object, context });
  return { entry };
}

/** What cannot be read stands in the way as well, and there is no more to say of it. */
function readable(def: ResourceDef, record: StoredRecord | undefined): Entry | undefined {
  return record?.unreadable === undefined ? entryOf(def, record) : undefined;
}

/** Upstream's 409; a client that let the name be generated is told to try again (META-1). */
function nameTaken(
  target: Target,
  taken: { name: string; generated: string; existing: Entry | undefined },
): StatusError {
  const { name, generated, existing } = taken;
  const plain = alreadyExists(groupResourceOf(target.def), name);
  const isGenerated = generated !== '';
  if (!isGenerated && existing?.index.deleting !== true) return plain;
  const when = existing?.index.deleting === true ? 'object is being deleted: ' : '';
  const why = isGenerated
    ? ', the server was not able to generate a unique name for the object'
    : '';
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${when}${plain.message}${why}`,
    details: { ...plain.status.details, ...(isGenerated ? { retryAfterSeconds: 1 } : {}) },
  });
}

/** Spares whoever writes an object next decoding it; the writer's own object is that from now on. */
export function keepDecoded(
  registry: Registry,
  written: {
    readonly storeKey: string;
    readonly entry: Entry;
    readonly object: ApiObject;
    readonly context: WriteContext;
  },
): void {
  const { storeKey, entry, object, context } = written;
  // The server's own writers may go on with what they gave.
  if (context.origin === 'server') return;
  object.metadata.resourceVersion = String(entry.revision);
  registry.decoded.keep(storeKey, { entry, object });
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
  const { user, dryRun, warn } = context;
  const { subresource, version } = target;
  return { user, nowMs, dryRun, warn, subresource, version: version.version };
}
