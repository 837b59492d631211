import {
  decodeJsonSteps,
  encodeJsonSteps,
  pemBlocks,
  pemBytes,
  pemText,
  readCertificate,
} from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type JsonObject,
  jsonEqual,
  objectOf,
  pendingPromise,
  runInSlices,
  stringsOf,
  textOf,
} from '@wheelhouse/machinery';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import type { ControllerTools } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

/** The ConfigMap that publishes the authorities that this server trusts for authentication. */
const trustName = 'extension-apiserver-authentication';

/** The CAs that this server trusts, as PEM bundles. */
export interface AuthenticationTrust {
  /** CAs of client certificates. */
  readonly clientCaPem?: string | undefined;
  /** CAs of authenticating proxies, and the headers that the proxies set. */
  readonly requestHeader?:
    | {
        readonly clientCaPem: string;
        readonly allowedNames: readonly string[];
        readonly usernameHeaders: readonly string[];
        /** Undefined if no header carries the UID. */
        readonly uidHeaders: readonly string[] | undefined;
        readonly groupHeaders: readonly string[];
        readonly extraHeaderPrefixes: readonly string[];
      }
    | undefined;
}

const recheckMs = 60_000;
/** Milliseconds after its expiry for which a certificate is kept, because clocks differ. */
const slackMs = 5 * 60_000;

/**
 * Maintains the ConfigMap and preserves the entries of other servers: at startup, every minute,
 * when the ConfigMap changes, and when `changed` reports a new `trust`. `settled` resolves after
 * the first pass.
 */
export function startAuthenticationTrust(
  options: ControllerTools & {
    readonly trust: () => AuthenticationTrust;
    readonly configMaps: ResourceDef;
    readonly namespace: string;
  },
): Controller & { readonly settled: Promise<void>; changed(): void } {
  const { configMaps, namespace, caches, writer, clock } = options;
  const place = { def: configMaps, namespace, name: trustName };
  const desired = (found: ApiObject | undefined) => {
    const work = mergedTrust(options.trust(), { found: dataOf(found), nowMs: clock.now() });
    return runInSlices(work, clock);
  };
  const key = objectKey(namespace, trustName);
  const reconcile = async () => {
    const entry = await caches.of(configMaps).get(key, undefined);
    const found = entry === undefined ? undefined : await decodedInSlices(entry, clock);
    const data = await desired(found);
    if (found === undefined && Object.keys(data).length > 0) {
      const metadata = { name: trustName, namespace };
      const { apiVersion } = configMaps.storage;
      await writer.create(place, { apiVersion, kind: configMaps.kind, metadata, data });
    } else if (found !== undefined && !jsonEqual(data, dataOf(found))) {
      const edit = async (current: ApiObject) => ({ ...current, data: await desired(current) });
      await writer.change(place, edit);
    }
  };
  const { promise: settled, resolve: first } = pendingPromise();
  const queue = createWorkQueue({
    ...options,
    name: 'cluster_authentication_trust_controller',
    workers: 1,
    async run() {
      await reconcile().finally(first);
      queue.addAfter('all', recheckMs);
    },
  });
  const subscription = caches.of(configMaps).subscribe(({ previous, current }) => {
    if ((current ?? previous)?.key === key) queue.add('all');
  });
  queue.add('all');
  return {
    settled,
    changed: () => queue.add('all'),
    close: runningQueue(queue, subscription).close,
  };
}

function dataOf(object: ApiObject | undefined): JsonObject {
  const data = object?.['data'];
  return objectOf(data);
}

/**
 * The desired content of the ConfigMap, in steps (TRUST-2): its current entries and this server's,
 * deduplicated.
 */
export function* mergedTrust(
  trust: AuthenticationTrust,
  { found, nowMs }: { readonly found: JsonObject; readonly nowMs: number },
): Generator<void, JsonObject> {
  const { requestHeader } = trust;
  const authorities = (name: string, own: string | undefined) =>
    bundle([textOf(found[name]), own ?? ''], nowMs);
  const clients = yield* authorities('client-ca-file', trust.clientCaPem);
  const proxies = yield* authorities('requestheader-client-ca-file', requestHeader?.clientCaPem);
  const data: JsonObject = clients === '' ? {} : { 'client-ca-file': clients };
  if (proxies === '') return data;
  const lists = [
    ['allowed-names', requestHeader?.allowedNames],
    ['extra-headers-prefix', requestHeader?.extraHeaderPrefixes],
    ['group-headers', requestHeader?.groupHeaders],
    ['uid-headers', requestHeader?.uidHeaders],
    ['username-headers', requestHeader?.usernameHeaders],
  ] as const;
  data['requestheader-client-ca-file'] = proxies;
  for (const [suffix, own] of lists) {
    const name = `requestheader-${suffix}`;
    // No header carries the UID unless a server says so.
    if (suffix === 'uid-headers' && own === undefined && !(name in found)) continue;
    data[name] = yield* mergedTexts(textOf(found[name]), own ?? []);
  }
  return data;
}

/** Texts that one step adds to a list. */
const textsPerStep = 2_000;

/** The distinct texts of a JSON list and of another, as JSON; in steps. */
function* mergedTexts(json: string, own: readonly string[]): Generator<void, string> {
  const texts = new Set<string>();
  const stored = yield* readTexts(json);
  for (const list of [stored, own]) {
    for (const [index, text] of list.entries()) {
      if (index % textsPerStep === textsPerStep - 1) yield;
      texts.add(text);
    }
  }
  yield;
  return (yield* encodeJsonSteps([...texts])).toString('utf8');
}

/** A ConfigMap has at most a mebibyte, and thus fewer values. */
const textLimits = { depthMax: 10_000, valuesMax: 1_048_576 };

/** Parses a JSON list of strings in steps; anything else yields an empty list. */
function* readTexts(json: string): Generator<void, readonly string[]> {
  try {
    return stringsOf((yield* decodeJsonSteps(Buffer.from(json), textLimits)).value);
  } catch {
    return [];
  }
}

/** The valid certificates of the bundles, without duplicates and in steps; drops other content. */
function* bundle(bundles: readonly string[], nowMs: number): Generator<void, string> {
  const certificates = new Set<string>();
  for (const text of bundles) {
    for (const block of pemBlocks(text)) {
      yield;
      const der = block.type === 'CERTIFICATE' ? pemBytes(block) : undefined;
      if (der !== undefined && isValidAt(der, nowMs - slackMs))
        certificates.add(pemText('CERTIFICATE', der));
    }
  }
  return [...certificates].join('');
}

/** Whether a certificate expires later; false for bytes that are none. */
function isValidAt(der: Buffer, timeMs: number): boolean {
  try {
    return readCertificate(der).notAfterMs > timeMs;
  } catch {
    return false;
  }
}
