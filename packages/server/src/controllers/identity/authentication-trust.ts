import { X509Certificate } from 'node:crypto';
import { type PemBlock, pemBlocks, pemBytes } from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type JsonObject,
  jsonEqual,
  objectOf,
  pendingPromise,
  stringsOf,
  textOf,
} from '@wheelhouse/machinery';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
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
  const desired = (found: ApiObject | undefined) =>
    mergedTrust(options.trust(), { found: dataOf(found), nowMs: clock.now() });
  const key = objectKey(namespace, trustName);
  const reconcile = async () => {
    const entry = await caches.of(configMaps).get(key, undefined);
    const found = entry === undefined ? undefined : decodeEntry(entry);
    const data = desired(found);
    if (found === undefined && Object.keys(data).length > 0) {
      const metadata = { name: trustName, namespace };
      const { apiVersion } = configMaps.storage;
      await writer.create(place, { apiVersion, kind: configMaps.kind, metadata, data });
    } else if (found !== undefined && !jsonEqual(data, dataOf(found))) {
      await writer.change(place, (current) => ({ ...current, data: desired(current) }));
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

/** The desired content of the ConfigMap: its current entries and this server's, deduplicated. */
export function mergedTrust(
  trust: AuthenticationTrust,
  { found, nowMs }: { readonly found: JsonObject; readonly nowMs: number },
): JsonObject {
  const { requestHeader } = trust;
  const texts = (name: string) => readTexts(found[name]);
  const list = (name: string, own: readonly string[] | undefined) =>
    JSON.stringify([...new Set([...texts(name), ...(own ?? [])])]);
  const authorities = (name: string, own: string | undefined) =>
    bundle([textOf(found[name]), own ?? ''], nowMs);
  const clients = authorities('client-ca-file', trust.clientCaPem);
  const proxies = authorities('requestheader-client-ca-file', requestHeader?.clientCaPem);
  const hasUidHeaders = requestHeader?.uidHeaders !== undefined;
  const data: JsonObject = clients === '' ? {} : { 'client-ca-file': clients };
  if (proxies === '') return data;
  return {
    ...data,
    'requestheader-allowed-names': list('requestheader-allowed-names', requestHeader?.allowedNames),
    'requestheader-client-ca-file': proxies,
    'requestheader-extra-headers-prefix': list(
      'requestheader-extra-headers-prefix',
      requestHeader?.extraHeaderPrefixes,
    ),
    'requestheader-group-headers': list('requestheader-group-headers', requestHeader?.groupHeaders),
    ...(hasUidHeaders || 'requestheader-uid-headers' in found
      ? {
          'requestheader-uid-headers': list('requestheader-uid-headers', requestHeader?.uidHeaders),
        }
      : {}),
    'requestheader-username-headers': list(
      'requestheader-username-headers',
      requestHeader?.usernameHeaders,
    ),
  };
}

/** Parses a JSON list of strings; anything else yields an empty list. */
function readTexts(value: JsonObject[string]): readonly string[] {
  try {
    return stringsOf(JSON.parse(textOf(value)));
  } catch {
    return [];
  }
}

/** The valid certificates of the bundles, without duplicates; other content is dropped. */
function bundle(bundles: readonly string[], nowMs: number): string {
  const certificates = new Set<string>();
  for (const text of bundles) {
    for (const block of pemBlocks(text)) {
      const certificate = readCertificate(block);
      if (certificate === undefined) continue;
      if (Date.parse(certificate.validTo) > nowMs - slackMs)
        certificates.add(certificate.toString());
    }
  }
  return [...certificates].join('');
}

function readCertificate(block: PemBlock): X509Certificate | undefined {
  const der = block.type === 'CERTIFICATE' ? pemBytes(block) : undefined;
  if (der === undefined) return undefined;
  try {
    return new X509Certificate(der);
  } catch {
    return undefined;
  }
}
