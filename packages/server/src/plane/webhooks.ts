import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  type Clock,
  type Dialect,
  hostInUrl,
  isObject,
  type JsonObject,
  listen,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { issueCertificate } from '../serving/generated-certificates.ts';
import { isDefinition } from './sources.ts';
import type { ManifestObject, WebhookEndpoint, WebhookOptions } from './types.ts';

const certificateDays = 365;
const portMax = 65_535;
const dayMs = 24 * 60 * 60 * 1000;

/**
 * Determines the address for serving webhooks, and issues a certificate if the options contain no
 * CAs. Rejects if the address is not `host:port`.
 * @param at.directory the directory of the plane, below which `webhooks` receives the certificate
 */
export async function openWebhookEndpoint(
  options: WebhookOptions,
  at: { readonly directory: string; readonly clock: Clock },
): Promise<WebhookEndpoint> {
  const { host, port } = await addressOf(options.address);
  const url = `https://${hostInUrl(host)}:${port}`;
  if (options.caPem !== undefined) return { host, port, url, caPem: options.caPem };
  const now = at.clock.now();
  const validity = { notBefore: now - dayMs, notAfter: now + certificateDays * dayMs };
  const authority = issueCertificate({
    commonName: 'wheelhouse-webhooks',
    usage: 'ca',
    ...validity,
  });
  const { certificatePem, keyPem } = issueCertificate({
    commonName: host,
    usage: 'server',
    hosts: [...new Set([host, 'localhost', '127.0.0.1', '::1'])],
    issuer: authority,
    ...validity,
  });
  const certDir = join(at.directory, 'webhooks');
  mkdirSync(certDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(certDir, 'tls.crt'), certificatePem);
  writeFileSync(join(certDir, 'tls.key'), keyPem, { mode: 0o600 });
  return { host, port, url, caPem: authority.certificatePem, certificatePem, keyPem, certDir };
}

async function addressOf(address: string | undefined): Promise<{ host: string; port: number }> {
  if (address === undefined) return { host: '127.0.0.1', port: await freePort() };
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(address) ?? [];
  const isPort = Number(port) > 0 && Number(port) <= portMax;
  if (host !== undefined && isPort) return { host, port: Number(port) };
  const what = `webhooks.address ${JSON.stringify(address)}`;
  throw new Error(`${what} is not host:port, with a port from 1 to ${portMax}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    const listening = () => {
      const { port } = probe.address() as { port: number };
      probe.close();
      resolve(port);
    };
    listen(probe, { where: 'webhook', end: reject }, { error: reject, listening });
    probe.listen(0, '127.0.0.1');
  });
}

const configurations = new Set(['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']);

/**
 * Returns a function that redirects webhooks that name a Service to the endpoint, as envtest does:
 * conversion webhooks of definitions, and those of webhook configurations. Webhooks with a `url`
 * are unchanged.
 */
export function webhookRedirect(
  endpoint: WebhookEndpoint,
  dialect: Dialect,
): (object: ManifestObject) => ManifestObject {
  const caBundle = Buffer.from(endpoint.caPem).toString('base64');
  const redirected = (clientConfig: unknown): JsonObject | undefined => {
    if (!isObject(clientConfig) || !isObject(clientConfig.service)) return undefined;
    const { path } = clientConfig.service;
    const below = typeof path === 'string' ? path.replace(/^\/*/, '/') : '/';
    return { url: `${endpoint.url}${below}`, caBundle };
  };
  return (object) => {
    if (isDefinition(object, dialect)) return redirectConversion(object, redirected);
    const group = parseApiVersion(object.apiVersion)?.group;
    const isConfiguration =
      configurations.has(object.kind) && group === dialect.group('admissionregistration');
    if (!isConfiguration || !Array.isArray(object.webhooks)) return object;
    const webhooks = object.webhooks.map((webhook: unknown) => {
      if (!isObject(webhook)) return webhook;
      const clientConfig = redirected(webhook.clientConfig);
      return clientConfig === undefined ? webhook : { ...webhook, clientConfig };
    });
    return { ...object, webhooks };
  };
}

function redirectConversion(
  object: ManifestObject,
  redirected: (clientConfig: unknown) => JsonObject | undefined,
): ManifestObject {
  const { spec } = object;
  if (!isObject(spec) || !isObject(spec.conversion)) return object;
  const { conversion } = spec;
  if (!isObject(conversion.webhook)) return object;
  const clientConfig = redirected(conversion.webhook.clientConfig);
  if (clientConfig === undefined) return object;
  const webhook = { ...conversion.webhook, clientConfig };
  return { ...object, spec: { ...spec, conversion: { ...conversion, webhook } } };
}
