import type { Clock, Logger } from '@wheelhouse/machinery';
import type { Store, StoreWatch } from '@wheelhouse/store';

/** The addresses of the servers on one store: each tells of its own, again and again. */
export interface Presence {
  /** Tells of an address of this server's until it is closed. */
  announce(address: string): { close(): Promise<void> };
  /** Those that were told of lately, sorted. Rejects with the store's errors. */
  addresses(): Promise<readonly string[]>;
  /** Calls `changed` when an address may have come or gone. */
  follow(changed: () => void): { close(): void };
}

/** An address is forgotten this long after it was last told of, as upstream. */
export const presenceMs = 15_000;
const tellMs = 10_000;
const retryMs = 1000;
/** A server that stops does not wait longer for the store to be told. */
const farewellMs = 2000;

interface PresenceOptions {
  readonly store: Store;
  /** Of keys that go `presenceMs` after they were written. */
  readonly prefix: string;
  /** What is stored under an address. */
  readonly encode: (address: string) => Buffer;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Presence by keys of a store that lets them expire. */
export function createPresence(options: PresenceOptions): Presence {
  const { store, prefix } = options;
  return {
    announce: (address) => announce(options, address),
    async addresses() {
      const { records } = await store.range({ prefix });
      return records.map(({ key }) => key.slice(prefix.length)).sort();
    },
    follow: (changed) => follow(options, changed),
  };
}

function announce(
  { store, prefix, encode, clock, logger }: PresenceOptions,
  address: string,
): { close(): Promise<void> } {
  const key = prefix + address;
  const value = encode(address);
  let telling: Promise<unknown> | undefined;
  const tell = async () => {
    const expect = (await store.get(key))?.modRevision ?? 0;
    await store.put({ key, value, expect });
  };
  const tick = () => {
    telling ??= tell()
      .catch((error: unknown) => logger.warn('no presence was told', { error: String(error) }))
      .finally(() => {
        telling = undefined;
      });
  };
  const take = async () => {
    await telling;
    try {
      const found = await store.get(key);
      if (found !== undefined) await store.delete({ key, expect: found.modRevision });
    } catch (error) {
      logger.debug(2, 'a presence is left to expire', { error: String(error) });
    }
  };
  tick();
  const timer = clock.every(tellMs, tick);
  return {
    async close() {
      timer.stop();
      const late = new Promise<void>((resolve) => clock.after(farewellMs, resolve));
      await Promise.race([take(), late]);
    },
  };
}

function follow({ store, prefix, clock }: PresenceOptions, changed: () => void): { close(): void } {
  let watch: StoreWatch | undefined;
  let closed = false;
  const again = () => {
    watch = undefined;
    clock.after(retryMs, () => {
      if (!closed) open().catch(again);
    });
  };
  const open = async () => {
    const after = await store.currentRevision(prefix);
    watch = await store.watch({ prefix, after, onEvents: changed, onEnd: again });
    if (closed) watch.close();
    else changed();
  };
  open().catch(again);
  return {
    close() {
      closed = true;
      watch?.close();
    },
  };
}
