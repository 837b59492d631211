import { badRequest } from '../meta/status.ts';
import type { Store } from '../storage/contract.ts';
import type { ServerConfig } from './config.ts';

/**
 * What gives backups of a running server (STORE-5), as its store has the values: sealed, where they
 * are encrypted. Throws 400 where objects are in etcd.
 */
export function onlineBackup(
  config: ServerConfig,
  store: Store,
): () => Promise<AsyncIterable<Buffer>> {
  return async () => {
    if (config.store.type === 'etcd') {
      throw badRequest(
        'the objects of this server are in etcd: back it up with etcdctl snapshot save',
      );
    }
    const { writeBackup } = await import('../storage/backup/writer.ts');
    return writeBackup(await store.snapshot(), { nowMs: config.clock.now() });
  };
}
