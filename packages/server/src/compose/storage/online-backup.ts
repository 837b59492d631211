import { badRequest } from '@wheelhouse/machinery';
import { loadBackupWriter, type Store } from '@wheelhouse/store';
import type { ServerConfig } from '../flags/config.ts';

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
    const { writeBackup } = await loadBackupWriter();
    return writeBackup(await store.snapshot(), { nowMs: config.clock.now() });
  };
}
