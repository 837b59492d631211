import type { Clock, MaybePromise } from '@wheelhouse/machinery';
import { type Store, unchangedOperations } from './contract.ts';

/** An operation of a store, by the name that kube-apiserver's metrics use. */
export type StoreOperation = 'get' | 'list' | 'create' | 'update' | 'delete';

/**
 * Called for each operation with its duration and whether it failed; a failed expectation is not a
 * failure.
 */
export type StoreObserver = (operation: {
  readonly operation: StoreOperation;
  /** The key, or the prefix of a range. */
  readonly key: string;
  readonly durationMs: number;
  readonly failed: boolean;
}) => void;

/** Called with the number of records that a range returned. */
export type ListObserver = (prefix: string, records: number) => void;

/** Returns a store that reports its operations to `observe` and its ranges to `observeList`. */
export function meteredStore(
  store: Store,
  {
    clock,
    observe,
    observeList = () => {},
  }: {
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly observe: StoreObserver;
    readonly observeList?: ListObserver;
  },
): Store {
  const measure = <Result extends MaybePromise<unknown>>(
    at: { readonly operation: StoreOperation; readonly key: string },
    run: () => Result,
  ): Result => {
    const startMs = clock.monotonic();
    const { operation, key } = at;
    const done = (failed: boolean) =>
      observe({ operation, key, durationMs: clock.monotonic() - startMs, failed });
    let result: Result;
    try {
      result = run();
    } catch (error) {
      done(true);
      throw error;
    }
    if (result instanceof Promise) {
      result.then(
        () => done(false),
        () => done(true),
      );
    } else done(false);
    return result;
  };
  return {
    ...unchangedOperations(store),
    get: (key, at) => measure({ operation: 'get', key }, () => store.get(key, at)),
    async range(request) {
      const { prefix } = request;
      const page = await measure({ operation: 'list', key: prefix }, () => store.range(request));
      observeList(prefix, page.records.length);
      return page;
    },
    put: (request) => {
      const operation = request.expect === 0 ? 'create' : 'update';
      return measure({ operation, key: request.key }, () => store.put(request));
    },
    delete: (request) =>
      measure({ operation: 'delete', key: request.key }, () => store.delete(request)),
    watch: (request) => store.watch(request),
  };
}
