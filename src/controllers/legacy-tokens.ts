import type { Clock } from '../base/clock.ts';
import { isObject, jsonEqual } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import type { ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import type { ApiObject } from '../meta/types.ts';
import type { CachePool } from '../registry/cache-pool.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import type { EntryIndex } from '../watchcache/contract.ts';
import type { Inside } from './inside.ts';
import { listEntries } from './removal.ts';
import { createWorkQueue } from './work-queue.ts';

/** Signs the token of a Secret. */
export type IssueLegacyToken = (request: {
  readonly namespace: string;
  readonly secretName: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
}) => string;

/**
 * Fills Secrets of type service-account-token (AUTHN-6): token, namespace and the server's CA, and
 * the account's uid as annotation. Those whose account is not there, or is another by now, are
 * removed, as are all of an account that is deleted.
 */
export function startLegacyTokens(options: {
  readonly secrets: ResourceDef;
  readonly serviceAccounts: ResourceDef;
  readonly caches: CachePool;
  readonly inside: Inside;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly issue: IssueLegacyToken;
  readonly caPem: string | undefined;
}): { close(): Promise<void> } {
  const { secrets, serviceAccounts, caches, inside, dialect, clock, logger } = options;
  const type = dialect.label('service-account-token');
  const annotation = (name: string) => dialect.label(`service-account.${name}`);
  const run = async (key: string): Promise<void> => {
    const entry = await caches.of(secrets).get(key, undefined);
    if (entry === undefined || entry.index.deleting === true) return;
    const { namespace, name, uid } = entry.index;
    const at = { def: secrets, namespace, name };
    const secret = decodeEntry(entry);
    const annotations = secret.metadata.annotations ?? {};
    const account = annotations[annotation('name')] ?? '';
    const found = await caches.of(serviceAccounts).get(objectKey(namespace, account), undefined);
    const known = annotations[annotation('uid')] ?? '';
    if (found === undefined || (known !== '' && known !== found.index.uid)) {
      return inside.remove(at, { preconditions: { uid } });
    }
    const serviceAccount = { name: account, uid: found.index.uid };
    const fill = (object: ApiObject): ApiObject => {
      const data = isObject(object.data) ? object.data : {};
      const token = () => options.issue({ namespace, secretName: name, serviceAccount });
      const filled = {
        ...(options.caPem === undefined ? {} : { 'ca.crt': base64(options.caPem) }),
        namespace: base64(namespace),
        token: data['token'] ?? base64(token()),
      };
      const marked = { ...object.metadata.annotations, [annotation('uid')]: serviceAccount.uid };
      return {
        ...object,
        metadata: { ...object.metadata, annotations: marked },
        data: { ...data, ...filled },
      };
    };
    if (!jsonEqual(fill(secret), secret)) await inside.change(at, fill);
  };
  const queue = createWorkQueue({ name: 'legacy-tokens', clock, logger, run, workers: 2 });
  const look = ({ namespace, name, fields }: EntryIndex): void => {
    if (fields['type'] === type) queue.add(objectKey(namespace, name));
  };
  const lookAll = (namespace: string): Promise<void> =>
    listEntries(caches, { def: secrets, namespace })
      .then((entries) => {
        for (const { index } of entries) look(index);
      })
      .catch((error: unknown) =>
        logger.error('token Secrets could not be listed', { error: String(error) }),
      );
  const subscriptions = [
    caches.of(secrets).subscribe(({ current }) => {
      if (current !== undefined) look(current.index);
    }),
    caches.of(serviceAccounts).subscribe(({ previous, current }) => {
      if (current === undefined && previous !== undefined) void lookAll(previous.index.namespace);
    }),
  ];
  const first = lookAll('');
  return {
    async close() {
      for (const subscription of subscriptions) subscription.close();
      await Promise.all([queue.close(), first]);
    },
  };
}

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');
