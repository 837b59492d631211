import { hostname } from 'node:os';
import { builtinKinds, loadOlderReleases } from '@wheelhouse/kinds';
import { apiVersionOf, parseApiVersion } from '@wheelhouse/machinery';
import { recordStorageVersions } from '../../controllers/storage-version-records.ts';
import { createObjectWriter } from '../../controllers/tools.ts';
import { serverIdentity } from '../../observe/server-identity.ts';
import { serverContext } from '../../registry/registry.ts';
import type { Around } from '../context.ts';

/**
 * Records the versions in which this server stores built-in kinds. Does nothing unless
 * `--runtime-config` enables StorageVersions.
 */
export async function recordOwnStorageVersions(options: Around): Promise<void> {
  const { config, dialect, api } = options;
  const { builtins, builtin } = api.catalogue.snapshot();
  const group = dialect.group('internal.apiserver');
  const storageVersions = builtin(group, 'storageversions');
  if (storageVersions === undefined) {
    config.logger.warn('StorageVersionAPI is on, and StorageVersions are not served');
    return;
  }
  const stored = builtins.filter(
    ({ isComputed, viewOf, verbs, versions, group: own, storage }) =>
      isComputed !== true &&
      viewOf === undefined &&
      // A kind of two groups is recorded for the group it is stored in.
      parseApiVersion(storage.apiVersion)?.group === own &&
      verbs.includes('list') &&
      versions.some(({ served }) => served),
  );
  const { kindsOfAllReleases } = await loadOlderReleases();
  const all = new Map(
    kindsOfAllReleases(builtinKinds(dialect), dialect).map((def) => [
      `${def.group}/${def.resource}`,
      def.versions.map(({ version }) => apiVersionOf({ group: def.group, version })),
    ]),
  );
  await recordStorageVersions({
    storageVersions,
    resources: stored.map((def) => ({
      def,
      allVersions: all.get(`${def.group}/${def.resource}`) ?? [],
    })),
    writer: createObjectWriter({
      registry: api.registry,
      controller: 'built-in-resources-storage-version-updater',
      user: serverContext.user,
    }),
    serverId: serverIdentity(hostname(), dialect.component('apiserver')),
    nowMs: config.clock.now(),
  });
}
