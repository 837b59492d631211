import {
  andThen,
  appendAll,
  type Clock,
  emptyOrderedMap,
  errorText,
  type MaybePromise,
  nextTurn,
  orderedMapDelete,
  orderedMapRank,
  orderedMapSet,
  orderedMapValues,
} from '@wheelhouse/machinery';
import {
  piecesOf,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  unchangedOperations,
} from '../contract.ts';
import { watchChanged } from '../mapped-store.ts';
import { type EncryptionRule, groupResourceOf } from './configuration.ts';
import { identity, type KmsSettings, providerTransformer } from './providers.ts';
import {
  type Opened,
  type Prefixed,
  prefixTransformer,
  type TransformationObserver,
  type Transformer,
} from './transformer.ts';

/** Chooses the transformer of a resource, such as `secrets` or `deployments.apps`. */
export type ChooseTransformer = (resource: string) => Transformer;

/**
 * Returns a function that chooses transformers by a configuration: a resource's own rule, else that
 * of its group, else that for all resources, else none. `observerOf` returns the observer of a
 * resource's transformations, `kms` the running provider of a KMS entry.
 */
export function chooseTransformers(
  rules: readonly EncryptionRule[],
  options: {
    readonly observerOf: (resource: string) => TransformationObserver;
    readonly kms: (settings: KmsSettings) => Prefixed;
    readonly clock: Pick<Clock, 'monotonic'>;
  },
): ChooseTransformer {
  const lists = new Map<string, Prefixed[]>();
  for (const { resources, providers } of rules) {
    const added = providers.map((provider) =>
      provider.type === 'kms'
        ? options.kms(provider)
        : providerTransformer(provider, options.clock),
    );
    for (const name of resources.map(fullName)) {
      lists.set(name, [...(lists.get(name) ?? []), ...added]);
    }
  }
  const transformers = new Map<string, Transformer>();
  return (resource) => {
    const transformer = transformers.get(resource);
    if (transformer !== undefined) return transformer;
    const byGroup = `*.${groupResourceOf(resource).group}`;
    const list = lists.get(fullName(resource)) ?? lists.get(byGroup) ?? lists.get('*.*');
    const created =
      list === undefined
        ? identity
        : prefixTransformer(list, {
            noMatch: 'no matching prefix found',
            observer: options.observerOf(resource),
          });
    transformers.set(resource, created);
    return created;
  };
}

/** The name of a resource with its group, which a configuration may omit: `secrets.`. */
function fullName(name: string): string {
  const { group, resource } = groupResourceOf(name);
  return `${resource}.${group}`;
}

/** A store whose values are encrypted (STORE-3). */
export interface EncryptedStore extends Store {
  /** Whether a key's value was encrypted with another provider or key and should be rewritten. */
  isStale(key: string): Promise<boolean>;
  /**
   * Switches to other keys, or to the same ones after they were unavailable. Ends the watches with
   * unreadable values, so that their clients read these again.
   */
  change(choose: ChooseTransformer): void;
}

type ReadValue = Pick<StoredRecord, 'value' | 'unreadable'>;

/** Carries a writer's hint, so that this process need not decrypt its own events. */
class SealedHint {
  readonly owner: Encryption;
  readonly value: Buffer;
  readonly hint: unknown;

  constructor(owner: Encryption, { value, hint }: { value: Buffer; hint?: unknown }) {
    this.owner = owner;
    this.value = value;
    this.hint = hint;
  }
}

/**
 * Encrypts the values of any store on writes and decrypts them on reads, by the resource that
 * `resourceOf` derives from a key; without a resource, values are not encrypted. A value that cannot
 * be decrypted is marked in its record and does not fail the others.
 *
 * @param options.contextOf the text to which the ciphertext of a key is bound; the key by default.
 *   A value that is bound to the key itself is readable and stale.
 */
export function encryptedStore(
  store: Store,
  options: {
    readonly resourceOf: (key: string) => string | undefined;
    readonly contextOf?: ((key: string) => string) | undefined;
    readonly choose: ChooseTransformer;
  },
): EncryptedStore {
  return { ...unchangedOperations(store), ...new Encryption(store, options) };
}

/** The operations on values. Snapshots, which have none, contain the encrypted ones. */
class Encryption {
  readonly #store: Store;
  readonly #resourceOf: (key: string) => string | undefined;
  readonly #contextOf: (key: string) => string;
  #choose: ChooseTransformer;
  /**
   * Keys whose values could not be decrypted since the last change of keys, in order, so that
   * `change` finds those of a prefix quickly.
   */
  #unreadable = emptyOrderedMap<string>();
  readonly #watches = new Map<string, Set<() => void>>();

  constructor(store: Store, options: Parameters<typeof encryptedStore>[1]) {
    this.#store = store;
    this.#resourceOf = options.resourceOf;
    this.#contextOf = options.contextOf ?? ((key) => key);
    this.#choose = options.choose;
  }

  readonly change = (choose: ChooseTransformer): void => {
    this.#choose = choose;
    const unreadable = this.#unreadable;
    this.#unreadable = emptyOrderedMap();
    for (const [prefix, ends] of [...this.#watches]) {
      // Keys with a prefix are adjacent and follow everything smaller than the prefix.
      const from = orderedMapRank(unreadable, prefix);
      const [key] = orderedMapValues(unreadable, { from, to: from + 1 });
      if (key?.startsWith(prefix)) for (const end of [...ends]) end();
    }
  };

  readonly isStale = async (key: string): Promise<boolean> => {
    const record = await this.#store.get(key);
    if (record === undefined) return false;
    try {
      return (await this.#unseal(key, record.value)).isStale;
    } catch {
      return false;
    }
  };

  readonly get: Store['get'] = (key, at) =>
    andThen(this.#store.get(key, at), (record) => this.#opened(record));

  readonly range: Store['range'] = async (request) => {
    const result = await this.#store.range(request);
    const records: StoredRecord[] = [];
    for (const piece of piecesOf(result.records, openedAtOnce)) {
      if (records.length > 0) await nextTurn();
      const opened = allOf(piece.map((record) => this.#opened(record)));
      appendAll(records, opened instanceof Promise ? await opened : opened);
    }
    return { ...result, records };
  };

  readonly put: Store['put'] = async (request) => {
    const { key } = request;
    const sealing = this.#seal(request.value, key);
    const value = sealing instanceof Promise ? await sealing : sealing;
    const sealed = { ...request, value, hint: new SealedHint(this, request) };
    const result = await this.#store.put(sealed);
    if (result.ok) this.#forgetUnreadable(key);
    return result.ok ? result : { ...result, current: await this.#opened(result.current) };
  };

  readonly delete: Store['delete'] = async (request) => {
    const result = await this.#store.delete(request);
    if (result.ok) this.#forgetUnreadable(request.key);
    return result.ok ? result : { ...result, current: await this.#opened(result.current) };
  };

  readonly watch: Store['watch'] = async (request) => {
    const { prefix } = request;
    const ends = this.#watches.get(prefix) ?? new Set();
    this.#watches.set(prefix, ends);
    const forget = (): void => {
      ends.delete(end);
      if (ends.size === 0 && this.#watches.get(prefix) === ends) this.#watches.delete(prefix);
    };
    const onEnd = (reason: StoreError): void => {
      forget();
      request.onEnd(reason);
    };
    let close = forget;
    const end = (): void => {
      close();
      const message = 'the encryption keys have changed';
      onEnd(new StoreError({ code: 'compacted', message }));
    };
    ends.add(end);
    const opening = watchChanged(this.#store, { ...request, onEnd }, (events) =>
      allOf(events.map((event) => this.#openedEvent(event))),
    );
    const watch = await opening.catch((error: unknown) => {
      forget();
      throw error;
    });
    close = () => {
      forget();
      watch.close();
    };
    if (!ends.has(end)) watch.close();
    return {
      get progress() {
        return watch.progress;
      },
      reached: (revision: number) => watch.reached(revision),
      close,
    };
  };

  #forgetUnreadable(key: string): void {
    if (this.#unreadable.size > 0) this.#unreadable = orderedMapDelete(this.#unreadable, key);
  }

  #transformer(key: string) {
    const resource = this.#resourceOf(key);
    return resource === undefined ? identity : this.#choose(resource);
  }

  #seal(value: Buffer, key: string): MaybePromise<Buffer> {
    const failed = (error: unknown): never => {
      const why = errorText(error);
      throw new StoreError({ code: 'not-encrypted', message: why, cause: error });
    };
    try {
      const sealed = this.#transformer(key).seal(value, this.#contextOf(key));
      return sealed instanceof Promise ? sealed.catch(failed) : sealed;
    } catch (error) {
      return failed(error);
    }
  }

  #unseal(key: string, stored: Buffer): MaybePromise<Opened> {
    const context = this.#contextOf(key);
    return this.#transformer(key).open(stored, context === key ? [key] : [context, key]);
  }

  #opened<T extends StoredRecord | undefined>(record: T): MaybePromise<T> {
    if (record === undefined) return record;
    const opened = this.#open(record.key, record.value);
    if (!(opened instanceof Promise)) return { ...record, ...opened };
    return opened.then((plain) => ({ ...record, ...plain }));
  }

  #openedEvent(event: StoreEvent): MaybePromise<StoreEvent> {
    if (event.type !== 'put') {
      this.#forgetUnreadable(event.key);
      return event;
    }
    const { hint } = event;
    if (hint instanceof SealedHint && hint.owner === this)
      return { ...event, value: hint.value, hint: hint.hint };
    const opened = this.#open(event.key, event.value);
    if (!(opened instanceof Promise)) return { ...event, ...opened };
    return opened.then((plain) => ({ ...event, ...plain }));
  }

  #open(key: string, stored: Buffer): MaybePromise<ReadValue> {
    const done = ({ value }: Opened) => {
      this.#forgetUnreadable(key);
      return { value };
    };
    const choose = this.#choose;
    const failed = (error: unknown): MaybePromise<ReadValue> => {
      // The provider may have been closed because the keys have changed meanwhile.
      if (this.#choose !== choose) return this.#open(key, stored);
      this.#unreadable = orderedMapSet(this.#unreadable, key, key);
      const why = errorText(error);
      return { value: stored, unreadable: why };
    };
    try {
      const opened = this.#unseal(key, stored);
      return opened instanceof Promise ? opened.then(done, failed) : done(opened);
    } catch (error) {
      return failed(error);
    }
  }
}

/** Number of values of a range that are decrypted in one step (TRUST-2). */
const openedAtOnce = 200;

/** Returns the values, or a promise of them if any is a promise. */
function allOf<T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  const isReady = (all: readonly MaybePromise<T>[]): all is readonly T[] =>
    !all.some((item) => item instanceof Promise);
  return isReady(values) ? values : Promise.all(values);
}
