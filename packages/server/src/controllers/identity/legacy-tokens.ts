import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  background,
  type Dialect,
  isObject,
  jsonEqual,
} from '@wheelhouse/machinery';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import type { EntryIndex } from '../../watchcache/entry.ts';
import { type ControllerTools, visitEntries } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';

/** Signs the token of a Secret. */
export type IssueLegacyToken = (request: {
  readonly namespace: string;
  readonly secretName: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
}) => string;

/** The dependencies of the controller of token Secrets. */
export interface LegacyTokenTools extends ControllerTools {
  readonly secrets: ResourceDef;
  readonly serviceAccounts: ResourceDef;
  readonly dialect: Dialect;
  readonly issue: IssueLegacyToken;
  readonly caPem: string | undefined;
}

/**
 * Fills Secrets of type service-account-token (AUTHN-6) with the token, the namespace, and the
 * server's CA, and annotates the account's UID. Removes Secrets whose account is gone or was
 * replaced.
 */
export function startLegacyTokens(options: LegacyTokenTools): { close(): Promise<void> } {
  const { secrets, serviceAccounts, caches, dialect } = options;
  const type = dialect.label('service-account-token');
  const run = (key: string) => tend(options, key);
  const queue = createWorkQueue({
    ...options,
    name: 'serviceaccount_tokens_secret',
    run,
    workers: 2,
  });
  const look = ({ namespace, name, fields }: EntryIndex): void => {
    if (fields['type'] === type) queue.add(objectKey(namespace, name));
  };
  const lookAll = (namespace: string): Promise<void> =>
    visitEntries(options, { at: { def: secrets, namespace }, plural: 'token Secrets' }, (entry) =>
      look(entry.index),
    );
  const subscriptions = [
    caches.of(secrets).subscribe(({ current }) => {
      if (current !== undefined) look(current.index);
    }),
    caches.of(serviceAccounts).subscribe(({ previous, current }) => {
      if (current !== undefined || previous === undefined) return;
      background({ where: 'controller' }, lookAll(previous.index.namespace));
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

/** Fills one Secret, or removes it if it belongs to no account. */
async function tend(options: LegacyTokenTools, key: string): Promise<void> {
  const { secrets, serviceAccounts, caches, writer, dialect } = options;
  const entry = await caches.of(secrets).get(key, undefined);
  if (entry === undefined || entry.index.deleting === true) return;
  const { namespace, name, uid } = entry.index;
  const at = { def: secrets, namespace, name };
  const secret = decodeEntry(entry);
  const annotations = secret.metadata.annotations ?? {};
  const account = annotations[dialect.label('service-account.name')] ?? '';
  const accountUid = annotations[dialect.label('service-account.uid')] ?? '';
  const found = await caches.of(serviceAccounts).get(objectKey(namespace, account), undefined);
  if (found === undefined || (accountUid !== '' && accountUid !== found.index.uid)) {
    return writer.remove(at, { preconditions: { uid } });
  }
  const serviceAccount = { name: account, uid: found.index.uid };
  const fill = (object: ApiObject) => filled(object, { ...options, serviceAccount });
  if (!jsonEqual(fill(secret), secret)) await writer.change(at, fill);
}

/** The Secret in its desired form; an existing token is kept. */
function filled(
  secret: ApiObject,
  options: Pick<LegacyTokenTools, 'dialect' | 'issue' | 'caPem'> & {
    readonly serviceAccount: { readonly name: string; readonly uid: string };
  },
): ApiObject {
  const { dialect, issue, caPem, serviceAccount } = options;
  const { name: secretName = '', namespace = '' } = secret.metadata;
  const data = isObject(secret.data) ? secret.data : {};
  const token = data['token'] ?? base64(issue({ namespace, secretName, serviceAccount }));
  const authority = caPem === undefined ? {} : { 'ca.crt': base64(caPem) };
  const uid = { [dialect.label('service-account.uid')]: serviceAccount.uid };
  const annotations = { ...secret.metadata.annotations, ...uid };
  return {
    ...secret,
    metadata: { ...secret.metadata, annotations },
    data: { ...data, ...authority, namespace: base64(namespace), token },
  };
}

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');
