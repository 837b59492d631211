import { type Clock, type Logger, silentLogger, type Timer } from '@wheelhouse/machinery';
import type { Compactor } from '../compactor.ts';
import type { Revision, Store } from '../contract.ts';
import type { EtcdClient } from './client.ts';
import { compareTarget, methods } from './protocol.ts';

/** Upstream's key, beside the prefix: whoever else compacts this etcd takes turns with us. */
const turnKey = 'compact_rev_key';

/**
 * Compacts an etcd that several servers share (STORE-4): each of them tries every `intervalMs`,
 * and the first one does it. The turn is the version of a key: who finds it as it was the last time
 * raises it and compacts to the revision of that time; the others take note of the new one.
 *
 * Worked example: A and B have seen turn 3. A raises it to 4, and compacts to the revision that A
 * had at turn 3. B finds 4 instead of 3, remembers 4 and the revision of now, and tries to make it 5
 * an interval later; if A lives, A has done so before.
 */
export function startEtcdCompactor(options: {
  readonly client: EtcdClient;
  readonly store: Pick<Store, 'compact'>;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly logger?: Logger;
}): Compactor {
  const { client, store, clock, intervalMs, logger = silentLogger } = options;
  if (intervalMs <= 0) return { stop: () => {}, idle: async () => {} };
  let seen: { readonly turn: number; readonly revision: Revision } = { turn: 0, revision: 0 };
  let round: Promise<void> | undefined;

  async function compact(): Promise<void> {
    const { turn, revision } = seen;
    const request = {
      compare: [{ key: turnKey, target: compareTarget.version, version: turn }],
      success: [{ put: { key: turnKey, value: Buffer.from(String(revision)) } }],
      failure: [{ range: { key: turnKey } }],
    };
    const answer = await client.call(methods.txn, request, { repeatable: false });
    const now = answer.header?.revision ?? 0;
    if (!answer.succeeded) {
      seen = { turn: answer.responses[0]?.range?.kvs[0]?.version ?? 0, revision: now };
      return;
    }
    seen = { turn: turn + 1, revision: now };
    if (revision > 0) await store.compact(revision);
  }

  function tick(): void {
    round ??= compact()
      .catch((error: unknown) => {
        logger.warn('Compacting etcd failed', { error: String(error) });
      })
      .finally(() => {
        round = undefined;
      });
  }

  const timer: Timer = clock.every(intervalMs, tick);
  return { stop: () => timer.stop(), idle: async () => round };
}
