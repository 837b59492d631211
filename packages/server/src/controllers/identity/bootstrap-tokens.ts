import { createHmac } from 'node:crypto';
import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Dialect,
  type JsonObject,
  jsonEqualSteps,
  objectOf,
  runInSlices,
  smallest,
} from '@wheelhouse/machinery';
import {
  bootstrapSecretPrefix,
  bootstrapTokenType,
  isExpired,
  readBootstrapToken,
  secretExpiryMs,
} from '../../gates/authn/bootstrap-token.ts';
import { decodedEntries, decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import type { EntryChange } from '../../watchcache/contract.ts';
import type { EntryIndex } from '../../watchcache/entry.ts';
import { type ControllerTools, listEntries, startVisit } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

/** The dependencies of the bootstrap token controllers. */
interface BootstrapTools extends ControllerTools {
  readonly secrets: ResourceDef;
  readonly dialect: Dialect;
}

/** Maximum wait for a calendar time, because the host's clock may be adjusted meanwhile. */
const recheckMs = 60_000;

/** Removes expired bootstrap tokens (AUTHN-4). */
export function startTokenCleaner(options: BootstrapTools): Controller {
  const { secrets, caches, writer, dialect, clock } = options;
  const namespace = dialect.systemNamespace('system');
  const run = async (name: string): Promise<void> => {
    const entry = await caches.of(secrets).get(objectKey(namespace, name), undefined);
    if (entry === undefined) return;
    const expiresMs = secretExpiryMs(await decodedInSlices(entry, clock));
    if (expiresMs === undefined) return;
    const leftMs = expiresMs - clock.now();
    if (leftMs > 0) return queue.addAfter(name, Math.min(leftMs, recheckMs));
    const { uid } = entry.index;
    await writer.remove({ def: secrets, namespace, name }, { preconditions: { uid } });
  };
  const queue = createWorkQueue({ ...options, name: 'token_cleaner', run, workers: 1 });
  return followSecrets(options, { queue, keyOf: (name) => name });
}

/**
 * Signs the `kubeconfig` of the cluster-info ConfigMap with every bootstrap token that allows
 * signing (AUTHN-5). Each token has an entry `jws-kubeconfig-<id>`, a detached JWS with HS256 and
 * the whole token as the key. Removes the entries of other tokens.
 */
export function startBootstrapSigner(
  options: BootstrapTools & { readonly configMaps: ResourceDef },
): Controller {
  const { secrets, configMaps, caches, writer, dialect, clock } = options;
  const namespace = dialect.systemNamespace('public');
  const at = { def: configMaps, namespace, name: clusterInfoName };
  const run = async (): Promise<void> => {
    const key = objectKey(namespace, clusterInfoName);
    const entry = await caches.of(configMaps).get(key, undefined);
    if (entry === undefined) return;
    const system = dialect.systemNamespace('system');
    const entries = await listEntries(caches, { def: secrets, namespace: system });
    const nowMs = clock.now();
    const named = entries.filter(({ index }) => index.name.startsWith(bootstrapSecretPrefix));
    const tokens: SigningToken[] = [];
    for await (const secret of decodedEntries(named, clock)) {
      const token = readBootstrapToken(secret, dialect);
      if (token?.uses.signing === true && !isExpired(token.expiresMs, nowMs)) tokens.push(token);
    }
    const current = await decodedInSlices(entry, clock);
    const sign = (object: ApiObject) => runInSlices(signedData(object, tokens), clock);
    if (!(await runInSlices(jsonEqualSteps(await sign(current), dataOf(current)), clock))) {
      await writer.change(at, async (object) => ({ ...object, data: await sign(object) }));
    }
    const never = Number.POSITIVE_INFINITY;
    const next = smallest(
      never,
      tokens.map(({ expiresMs }) => expiresMs ?? never),
    );
    if (Number.isFinite(next)) queue.addAfter('all', Math.min(next - nowMs, recheckMs));
  };
  const queue = createWorkQueue({ ...options, name: 'bootstrap_signer_queue', run, workers: 1 });
  const subscription = caches.of(configMaps).subscribe(({ current }) => {
    const index = current?.index;
    if (index?.name === clusterInfoName && index.namespace === namespace) queue.add('all');
  });
  const followed = followSecrets(options, { queue, keyOf: () => 'all' });
  queue.add('all');
  return runningQueue(queue, subscription, followed);
}

/** Name of the ConfigMap that joining nodes read. */
export const clusterInfoName = 'cluster-info';
const signaturePrefix = 'jws-kubeconfig-';

function dataOf(object: ApiObject): JsonObject {
  return objectOf(object.data);
}

/** A valid token that allows signing. */
type SigningToken = NonNullable<ReturnType<typeof readBootstrapToken>>;

/** The ConfigMap's data with exactly the signatures it should have, each created in a step. */
function* signedData(
  object: ApiObject,
  tokens: readonly SigningToken[],
): Generator<void, JsonObject> {
  const data = dataOf(object);
  const { kubeconfig } = data;
  if (typeof kubeconfig !== 'string') return data;
  const signed = Object.entries(data).filter(([key]) => !key.startsWith(signaturePrefix));
  for (const token of tokens) {
    yield;
    signed.push([`${signaturePrefix}${token.id}`, detachedSignature(kubeconfig, token)]);
  }
  return Object.fromEntries(signed);
}

/** `<header>..<signature>`: a compact JWS without its payload. */
function detachedSignature(payload: string, token: SigningToken): string {
  const encode = (text: string) => Buffer.from(text, 'utf8').toString('base64url');
  const header = encode(JSON.stringify({ alg: 'HS256', kid: token.id }));
  const signature = createHmac('sha256', `${token.id}.${token.secret}`)
    .update(`${header}.${encode(payload)}`)
    .digest('base64url');
  return `${header}..${signature}`;
}

/** Queues the existing bootstrap tokens, and each one that changes. */
function followSecrets(
  options: BootstrapTools,
  {
    queue,
    keyOf,
  }: {
    readonly queue: ReturnType<typeof createWorkQueue>;
    readonly keyOf: (name: string) => string;
  },
): Controller {
  const { secrets, caches, dialect } = options;
  const namespace = dialect.systemNamespace('system');
  const type = bootstrapTokenType(dialect);
  const enqueue = ({ namespace: place, name, fields }: EntryIndex): void => {
    if (place === namespace && fields['type'] === type) queue.add(keyOf(name));
  };
  const subscription = caches.of(secrets).subscribe(({ previous, current }: EntryChange) => {
    const index = current?.index ?? previous?.index;
    if (index !== undefined) enqueue(index);
  });
  const at = { def: secrets, namespace };
  const first = startVisit(options, { at, plural: 'bootstrap tokens' }, ({ index }) =>
    enqueue(index),
  );
  return runningQueue(queue, subscription, first);
}
