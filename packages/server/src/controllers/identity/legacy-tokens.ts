import { objectAt, type ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  background,
  type Clock,
  type Dialect,
  type JsonObject,
  type Logger,
  objectOf,
} from '@wheelhouse/machinery';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import type { EntryIndex } from '../../watchcache/entry.ts';
import { type ControllerTools, createAbsent, type ObjectWriter, visitEntries } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

/** Signs the token of a Secret. */
type IssueLegacyToken = (request: {
  readonly namespace: string;
  readonly secretName: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
}) => string;

/** The dependencies of the controller of token Secrets. */
interface LegacyTokenTools extends ControllerTools {
  readonly secrets: ResourceDef;
  readonly serviceAccounts: ResourceDef;
  readonly dialect: Dialect;
  readonly issue: IssueLegacyToken;
  readonly caPem: string | undefined;
}

/**
 * Fills Secrets of type service-account-token (AUTHN-6) with the token, the namespace, and the
 * server's CA, and annotates them with the account's UID. Removes Secrets whose account has been
 * deleted or replaced.
 */
export function startLegacyTokens(options: LegacyTokenTools): Controller {
  const { secrets, serviceAccounts, caches, dialect } = options;
  const type = dialect.label('service-account-token');
  const run = (key: string) => reconcileSecret(options, key);
  const queue = createWorkQueue({
    ...options,
    name: 'serviceaccount_tokens_secret',
    run,
    workers: 2,
  });
  const enqueue = ({ namespace, name, fields }: EntryIndex): void => {
    if (fields['type'] === type) queue.add(objectKey(namespace, name));
  };
  const closing = new AbortController();
  const { signal } = closing;
  const enqueueAll = (namespace: string): Promise<void> =>
    visitEntries(
      options,
      { at: { def: secrets, namespace }, plural: 'token Secrets', signal },
      (entry) => enqueue(entry.index),
    );
  const subscriptions = [
    caches.of(secrets).subscribe(({ current }) => {
      if (current !== undefined) enqueue(current.index);
    }),
    caches.of(serviceAccounts).subscribe(({ previous, current }) => {
      if (current !== undefined || previous === undefined) return;
      background({ where: 'controller' }, enqueueAll(previous.index.namespace));
    }),
  ];
  const first = enqueueAll('');
  return runningQueue(
    queue,
    ...subscriptions,
    () => closing.abort(),
    () => first,
  );
}

/** Fills one Secret, or removes it if its account does not exist. */
async function reconcileSecret(options: LegacyTokenTools, key: string): Promise<void> {
  const { secrets, serviceAccounts, caches, writer, dialect, clock } = options;
  const entry = await caches.of(secrets).get(key, undefined);
  if (entry === undefined || entry.index.deleting === true) return;
  const { namespace, name, uid } = entry.index;
  const at = { def: secrets, namespace, name };
  const secret = await decodedInSlices(entry, clock);
  const annotations = secret.metadata.annotations ?? {};
  const account = annotations[dialect.label('service-account.name')] ?? '';
  const accountUid = annotations[dialect.label('service-account.uid')] ?? '';
  const found = await caches.of(serviceAccounts).get(objectKey(namespace, account), undefined);
  if (found === undefined || (accountUid !== '' && accountUid !== found.index.uid)) {
    return writer.remove(at, { preconditions: { uid } });
  }
  const serviceAccount = { name: account, uid: found.index.uid };
  const filling = { ...options, serviceAccount };
  if (isFilled(secret, filling)) return;
  await writer.change(at, (object) => filledSecret(object, filling));
}

type Filling = Pick<LegacyTokenTools, 'dialect' | 'issue' | 'caPem'> & {
  readonly serviceAccount: { readonly name: string; readonly uid: string };
};

/** The entries of the Secret besides the token. */
function fixedData(secret: ApiObject, { caPem }: Filling): Readonly<Record<string, string>> {
  const authority = caPem === undefined ? {} : { 'ca.crt': base64(caPem) };
  return { ...authority, namespace: base64(secret.metadata.namespace ?? '') };
}

/** Whether the Secret has its desired form; compares no other entries, of which it may have many. */
function isFilled(secret: ApiObject, filling: Filling): boolean {
  const { dialect, serviceAccount } = filling;
  const data = objectOf(secret.data);
  return (
    Boolean(data['token']) &&
    secret.metadata.annotations?.[dialect.label('service-account.uid')] === serviceAccount.uid &&
    Object.entries(fixedData(secret, filling)).every(([name, text]) => data[name] === text)
  );
}

/** The Secret in its desired form; an existing token is kept. */
function filledSecret(secret: ApiObject, filling: Filling): ApiObject {
  const { dialect, issue, serviceAccount } = filling;
  const { name: secretName = '', namespace = '' } = secret.metadata;
  const data = objectOf(secret.data);
  const token = data['token'] || base64(issue({ namespace, secretName, serviceAccount }));
  const uid = { [dialect.label('service-account.uid')]: serviceAccount.uid };
  const annotations = { ...secret.metadata.annotations, ...uid };
  return {
    ...secret,
    metadata: { ...secret.metadata, annotations },
    data: { ...data, ...fixedData(secret, filling), token },
  };
}

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');

/** The dependencies of the controller of the tracking ConfigMap. */
export interface LegacyTokenTracking extends ControllerTools {
  readonly configMaps: ResourceDef;
  readonly dialect: Dialect;
}

/** Pause before the ConfigMap is recreated, because servers without tracking delete it. */
const recreationPauseMs = 30 * 60 * 1000;
const dayMs = 24 * 60 * 60 * 1000;

/** Creates the ConfigMap with the date since which uses of legacy tokens are tracked. */
export function createTrackingRecord(options: LegacyTokenTracking): Promise<void> {
  const at = recordAt(options);
  const { apiVersion } = options.configMaps.storage;
  const { namespace, name } = at;
  const data = { since: dayOf(options.clock.now()) };
  const object = { apiVersion, kind: options.configMaps.kind, metadata: { name, namespace }, data };
  return createAbsent(options, { at, object });
}

/** Maintains the tracking ConfigMap: replaces an invalid date, and recreates a deleted object. */
export function startLegacyTokenTracking(options: LegacyTokenTracking): Controller {
  const { caches, configMaps, writer, clock } = options;
  const at = recordAt(options);
  const key = objectKey(at.namespace, at.name);
  let createdMs = clock.monotonic();
  const run = async (): Promise<void> => {
    const entry = await caches.of(configMaps).get(key, undefined);
    if (entry === undefined) {
      const waitMs = createdMs + recreationPauseMs - clock.monotonic();
      if (waitMs > 0) return queue.addAfter(key, waitMs);
      createdMs = clock.monotonic();
      return createTrackingRecord(options);
    }
    const record = await decodedInSlices(entry, clock);
    if (isDay(objectAt(record, 'data')?.['since'])) return;
    const since = dayOf(clock.now());
    await writer.change(at, (object) => ({
      ...object,
      data: { ...objectAt(object, 'data'), since },
    }));
  };
  const queue = createWorkQueue({
    ...options,
    name: 'legacy_token_tracking_controller',
    run,
    workers: 1,
  });
  const subscription = caches.of(configMaps).subscribe(({ previous, current }) => {
    if ((current ?? previous)?.key === key) queue.add(key);
  });
  queue.add(key);
  return runningQueue(queue, subscription);
}

function recordAt({ configMaps, dialect }: LegacyTokenTracking) {
  const name = `${dialect.serverProgram}-legacy-service-account-token-tracking`;
  return { def: configMaps, namespace: dialect.systemNamespace('system'), name };
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

const isDay = (value: unknown) =>
  typeof value === 'string' &&
  /^\d{4}-\d{2}-\d{2}$/.test(value) &&
  !Number.isNaN(Date.parse(value));

/** Records on a Secret that its token was used (AUTHN-6). */
export type RecordTokenUse = (secret: ApiObject) => void;

/**
 * Creates a function that labels a Secret with the date of its token's last use, at most once a
 * day. The request that used the token does not wait.
 */
export function tokenUseRecorder(options: {
  readonly secrets: () => ResourceDef | undefined;
  readonly writer: ObjectWriter;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
}): RecordTokenUse {
  const { writer, dialect, clock, logger } = options;
  const label = dialect.label('legacy-token-last-used');
  const pending = new Set<string>();
  return ({ metadata }) => {
    const { namespace = '', name = '', uid } = metadata;
    const nowMs = clock.now();
    const today = dayOf(nowMs);
    // The clock of another server may be ahead.
    const last = metadata.labels?.[label];
    const key = objectKey(namespace, name);
    const def = options.secrets();
    if (last === today || last === dayOf(nowMs + dayMs) || pending.has(key)) return;
    if (def === undefined) return;
    pending.add(key);
    const labeled = (secret: ApiObject): ApiObject => {
      if (secret.metadata.uid !== uid) return secret;
      const labels: JsonObject = { ...secret.metadata.labels, [label]: today };
      return asApiObject({ ...secret, metadata: { ...secret.metadata, labels } });
    };
    const work = writer
      .change({ def, namespace, name }, labeled)
      .catch((error: unknown) => {
        const fields = { namespace, name, error: String(error) };
        logger.error('cannot record the use of a legacy token', fields);
      })
      .finally(() => pending.delete(key));
    background({ where: 'controller' }, work);
  };
}
