import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseGoTime,
} from '@wheelhouse/machinery';
import { parseYaml } from '../yaml.ts';
import { type Credential, CredentialError } from './credential.ts';
import { type ExecCluster, execDialect } from './exec-config.ts';

/** The text a plugin is handed: an ExecCredential with its `spec`. */
export function encodeExecInput(options: {
  readonly apiVersion: string;
  readonly interactive: boolean;
  readonly cluster: ExecCluster | undefined;
}): string {
  const { apiVersion, interactive, cluster } = options;
  const shown = cluster === undefined ? {} : { cluster: clusterOf(cluster) };
  return JSON.stringify({ kind: 'ExecCredential', apiVersion, spec: { ...shown, interactive } });
}

function clusterOf(cluster: ExecCluster): JsonObject {
  const { tlsServerName, caPem, proxyUrl, config } = cluster;
  return {
    server: cluster.server,
    ...(tlsServerName ? { 'tls-server-name': tlsServerName } : {}),
    ...(cluster.insecureSkipTlsVerify === true ? { 'insecure-skip-tls-verify': true } : {}),
    ...(caPem ? { 'certificate-authority-data': Buffer.from(caPem).toString('base64') } : {}),
    ...(proxyUrl ? { 'proxy-url': proxyUrl } : {}),
    ...(cluster.disableCompression === true ? { 'disable-compression': true } : {}),
    ...(config === undefined ? {} : { config }),
  };
}

export interface ExecOutput {
  readonly credential: Credential;
  /** Wall time in milliseconds until which the credential is good; undefined: not told. */
  readonly expiresMs: number | undefined;
}

/**
 * Reads what a plugin printed, JSON or YAML. Rejects with CredentialError in upstream's words, but
 * without the text they quote, which may hold a secret.
 */
export async function decodeExecOutput(text: string, apiVersion: string): Promise<ExecOutput> {
  const status = await readStatus(text, apiVersion);
  const token = textOf(status, 'token');
  const certificatePem = textOf(status, 'clientCertificateData');
  const keyPem = textOf(status, 'clientKeyData');
  const expiresMs = readExpiry(textOf(status, 'expirationTimestamp'));
  if (token === '' && certificatePem === '' && keyPem === '') {
    throw new CredentialError("exec plugin didn't return a token or cert/key pair");
  }
  if ((certificatePem === '') !== (keyPem === '')) {
    throw new CredentialError('exec plugin returned only certificate or key, not both');
  }
  if (certificatePem !== '') checkPair(certificatePem, keyPem);
  return {
    credential: {
      ...(token === '' ? {} : { token }),
      ...(certificatePem === '' ? {} : { certificatePem, keyPem }),
    },
    expiresMs,
  };
}

async function readStatus(text: string, apiVersion: string): Promise<JsonObject> {
  let value: JsonValue;
  try {
    value = await parseYaml(text);
  } catch {
    throw undecodable("couldn't get version/kind; json parse error");
  }
  if (!isObject(value)) throw undecodable("couldn't get version/kind; json parse error");
  // Upstream's decoder takes the kind it wants where none is named, at a version of its own.
  const internal = `${apiVersion.split('/')[0]}/__internal`;
  const kind = textOf(value, 'kind') || 'ExecCredential';
  const version = textOf(value, 'apiVersion') || internal;
  const isSupported = version === internal || execDialect(version) !== undefined;
  if (kind !== 'ExecCredential' || !isSupported) {
    throw undecodable(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(version)}`,
    );
  }
  if (version !== apiVersion) {
    throw new CredentialError(
      `exec plugin is configured to use API version ${apiVersion}, ` +
        `plugin returned version ${version}`,
    );
  }
  const status = member(value, 'status');
  if (status === undefined || status === null) {
    throw new CredentialError("exec plugin didn't return a status field");
  }
  if (!isObject(status)) throw undecodable('status must be an object');
  return status;
}

const undecodable = (why: string): CredentialError =>
  new CredentialError(`decoding stdout: ${why}`);

function textOf(object: JsonObject, name: string): string {
  const value = member(object, name) ?? '';
  if (typeof value !== 'string') throw undecodable(`${name} must be a string`);
  return value;
}

function readExpiry(text: string): number | undefined {
  if (text === '') return undefined;
  const parsed = parseGoTime(text);
  if ('error' in parsed) throw undecodable(parsed.error);
  return parsed.ms;
}

function checkPair(certificatePem: string, keyPem: string): void {
  const fault = (why: string) =>
    new CredentialError(`failed parsing client key/certificate: tls: ${why}`);
  if (!certificatePem.includes('-----BEGIN')) {
    throw fault('failed to find any PEM data in certificate input');
  }
  if (!keyPem.includes('-----BEGIN')) throw fault('failed to find any PEM data in key input');
  let certificate: X509Certificate;
  let key: KeyObject;
  try {
    certificate = new X509Certificate(certificatePem);
  } catch {
    throw fault('failed to parse certificate');
  }
  try {
    key = createPrivateKey(keyPem);
  } catch {
    throw fault('failed to parse private key');
  }
  if (!certificate.checkPrivateKey(key)) throw fault('private key does not match public key');
}
