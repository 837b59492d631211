import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pemBlocks } from '@wheelhouse/codec';
import { objectsAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type Dialect,
  errorText,
  internalError,
  type Logger,
  type MetricRegistry,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import {
  type FileAtStart,
  readConfigurationFile,
  writeFileAtomically,
} from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { Authenticator, TokenIssuer } from '../../gates/authn/contract.ts';
import type { ExternalSigner } from '../../gates/authn/external-signer.ts';
import {
  createLegacyTokenAuthenticator,
  createServiceAccountAuthenticator,
  signLegacyToken,
} from '../../gates/authn/service-account.ts';
import {
  newTokenId,
  readSigningKey,
  readVerificationKey,
  type SigningKey,
  signClaims,
  type TokenKey,
  type TokenKeys,
  tokenPayload,
} from '../../gates/authn/service-account-token.ts';
import type { CachePool } from '../../registry/caches.ts';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import type { ServerConfig } from '../config.ts';
import type { Base, ReadingBase } from '../context.ts';
import { projectedSeconds, yearSeconds } from './settings.ts';

/** Issues and verifies service account tokens with one set of keys (AUTHN-6). */
export interface ServiceAccountTokens {
  readonly issuer: TokenIssuer;
  readonly authenticator: Authenticator;
  /** Verification keys, the public half of the signing key first. */
  readonly keys: TokenKeys;
}

/** Reads the keys, or generates one (ECDSA, `sa.key` beside the certificates) and keeps it. */
export function createServiceAccountTokens(
  options: ReadingBase & {
    /** Read or generated as the configuration says when absent. */
    readonly signingKey?: SigningKey | undefined;
    /** Signs instead of a key of this server, and holds the keys. */
    readonly signer?: ExternalSigner | undefined;
    /** Called for each use of a token stored in a Secret. */
    readonly onLegacyUse?: ((secret: ApiObject) => void) | undefined;
  },
): ServiceAccountTokens {
  const { config, dialect, catalogue, caches } = options;
  const uses = countedUses(options.metrics.registry);
  const { clock } = config;
  const { issuer, issuers, audiences, lookup } = accountSettings(config, dialect);
  const { keys, ...signing } =
    options.signer === undefined
      ? ownSigning(config, options.signingKey ?? signingKey(config))
      : externalSigning(options.signer, config.logger);
  const { labelDomain } = dialect;
  const objects = tokenObjects({ catalogue, caches, clock });
  const common = { keys, audiences, objects };
  const legacyForm = { issuer: `${dialect.productName}/serviceaccount`, labelDomain };
  return {
    keys,
    issuer: tokenIssuer({ config, ...signing, issuer, audiences, legacyForm, labelDomain }),
    authenticator: inTurn([
      createServiceAccountAuthenticator({
        ...common,
        features: config.featureGates ?? defaultGates,
        issuers,
        labelDomain,
        clock,
        used: uses.valid,
        stale: {
          annotation: `${dialect.group('authentication')}/stale-token`,
          used: uses.stale,
        },
      }),
      createLegacyTokenAuthenticator({
        ...common,
        lookup,
        form: legacyForm,
        auditAnnotation: `${dialect.group('authentication')}/legacy-token`,
        used: uses.legacy,
        invalidLabel: dialect.label('legacy-token-invalid-since'),
        onUse: options.onLegacyUse,
      }),
    ]),
  };
}

/** How tokens are signed. */
interface Signing {
  readonly keys: TokenKeys;
  /** Signs the non-expiring tokens of Secrets; undefined if none are signed. */
  readonly legacyKey: SigningKey | undefined;
  readonly sign: (payload: object) => Promise<string>;
  /** The longest lifetime that is extended for pods; a year when absent. */
  readonly extensionSecondsMax?: number;
  readonly maxSeconds: number | undefined;
}

function ownSigning(config: ServerConfig, key: SigningKey): Signing {
  const keys: readonly TokenKey[] = [key, ...verificationKeys(config)];
  return {
    keys: { current: () => keys },
    legacyKey: key,
    sign: async (payload) => signClaims(key, payload),
    maxSeconds: config.serviceAccounts?.maxSeconds,
  };
}

function externalSigning(signer: ExternalSigner, logger: Logger): Signing {
  const { maxSeconds } = signer;
  return {
    keys: signer,
    legacyKey: undefined,
    maxSeconds,
    extensionSecondsMax: maxSeconds,
    async sign(payload) {
      try {
        return await signer.sign(payload);
      } catch (error) {
        logger.error('cannot sign a token', { error: failureText(error) });
        const reason = errorText(error);
        throw internalError(`failed to generate token: ${reason}`, error);
      }
    },
  };
}

function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause, message } = error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/** Signs tokens for accounts and Secrets with one key. */
function tokenIssuer(
  options: Omit<Signing, 'keys'> & {
    readonly config: ServerConfig;
    readonly issuer: string;
    readonly audiences: readonly string[];
    readonly legacyForm: Parameters<typeof signLegacyToken>[2];
    readonly labelDomain: string;
  },
): TokenIssuer {
  const { config, legacyKey, issuer, audiences, legacyForm, labelDomain } = options;
  const { clock } = config;
  const { extension = 'on' } = config.serviceAccounts ?? {};
  const hasIds = (config.featureGates ?? defaultGates).enabled('ServiceAccountTokenJTI');
  const { maxSeconds = Number.POSITIVE_INFINITY } = options;
  const { extensionSecondsMax = yearSeconds } = options;
  return {
    ...(legacyKey === undefined
      ? {}
      : { issueLegacy: (request) => signLegacyToken(legacyKey, request, legacyForm) }),
    audiences,
    async issue(request) {
      const nowSeconds = Math.floor(clock.now() / 1000);
      const { bound } = request;
      const boundTo = (resource: string) =>
        bound?.resource === resource ? { name: bound.name, uid: bound.uid } : undefined;
      const seconds = Math.min(request.expirationSeconds, maxSeconds);
      const isExtended =
        bound?.resource === 'pods' &&
        seconds === projectedSeconds &&
        extension === 'on' &&
        request.audiences.every((audience) => audiences.includes(audience));
      const due = nowSeconds + seconds;
      const claims = {
        audiences: request.audiences,
        issuer,
        notBefore: nowSeconds,
        expires: isExtended ? nowSeconds + Math.min(yearSeconds, extensionSecondsMax) : due,
        warnAfter: isExtended ? due : undefined,
        tokenId: hasIds ? newTokenId() : '',
        namespace: request.namespace,
        serviceAccount: request.serviceAccount,
        pod: boundTo('pods'),
        secret: boundTo('secrets'),
        node: boundTo('nodes') ?? bound?.node,
      };
      const token = await options.sign(tokenPayload(claims, labelDomain));
      return {
        token,
        credentialId: hasIds ? `JTI=${claims.tokenId}` : undefined,
        expirationSeconds: seconds,
        expiresMs: due * 1000,
      };
    },
  };
}

/** Counts uses of account tokens under kube-apiserver's names (OPS-1). */
function countedUses(registry: MetricRegistry) {
  const counter = (name: string, help: string) =>
    registry.counter({ name: `serviceaccount_${name}`, help, stability: 'ALPHA', labels: [] }).of();
  return {
    valid: counter('valid_tokens_total', 'Number of uses of tokens that expire.'),
    stale: counter(
      'stale_tokens_total',
      'Number of uses of tokens that should have been replaced.',
    ),
    legacy: {
      all: counter('legacy_tokens_total', 'Number of uses of tokens that are stored in Secrets.'),
      automatic: counter(
        'legacy_auto_token_uses_total',
        'Number of uses of tokens in Secrets that a controller created for their accounts.',
      ),
      manual: counter(
        'legacy_manual_token_uses_total',
        'Number of uses of tokens in Secrets that were created manually.',
      ),
      invalid: counter(
        'invalid_legacy_auto_token_uses_total',
        'Number of rejected uses of tokens whose Secrets are labeled as invalid.',
      ),
    },
  };
}

/** The objects that tokens depend on, as new as the store. */
function tokenObjects({
  catalogue,
  caches,
  clock,
}: {
  readonly catalogue: Catalogue;
  readonly caches: CachePool;
  readonly clock: Clock;
}) {
  type Resource = 'serviceaccounts' | 'pods' | 'secrets' | 'nodes';
  type Place = { readonly namespace: string; readonly name: string };
  const entryOf = async (resource: Resource, at: Place) => {
    const def = catalogue.snapshot().builtin('', resource);
    if (def === undefined) return undefined;
    return caches.of(def).get(objectKey(at.namespace, at.name), undefined);
  };
  return {
    async find(resource: Resource, at: Place) {
      const entry = await entryOf(resource, at);
      if (entry === undefined) return undefined;
      const { uid, deleting = false } = entry.index;
      if (!deleting) return { uid, deletedMs: undefined };
      const { metadata } = await decodedInSlices(entry, clock);
      return { uid, deletedMs: Date.parse(metadata.deletionTimestamp ?? '') };
    },
    async secretAt(at: Place) {
      const entry = await entryOf('secrets', at);
      if (entry === undefined || entry.index.deleting) return undefined;
      return decodedInSlices(entry, clock);
    },
    async isListedBy(secretName: string, at: Place) {
      const entry = await entryOf('serviceaccounts', at);
      if (entry === undefined) return false;
      const account = await decodedInSlices(entry, clock);
      return objectsAt(account, 'secrets').some(({ name }) => name === secretName);
    },
  };
}

/** The first authenticator that recognizes a token decides whether it is valid. */
function inTurn([first, second]: readonly [Authenticator, Authenticator]): Authenticator {
  return {
    name: first.name,
    verifies: 'tokens',
    authenticate: (credentials) =>
      first.authenticate(credentials) ?? second.authenticate(credentials),
    reviewToken: async (token, audiences) =>
      (await first.reviewToken?.(token, audiences)) ?? second.reviewToken?.(token, audiences),
  };
}

/** The issuers and audiences of service account tokens; the audiences are also the server's own. */
export function accountSettings(config: ServerConfig, dialect: Dialect) {
  const { serviceAccounts } = config;
  const issuer = serviceAccounts?.issuer ?? `https://${dialect.productName}.default.svc`;
  const issuers = serviceAccounts?.acceptedIssuers ?? [issuer];
  return {
    issuer,
    issuers,
    audiences: serviceAccounts?.audiences ?? issuers,
    lookup: serviceAccounts?.lookup ?? ('required' as const),
  };
}

function verificationKeys(config: ServerConfig): readonly TokenKey[] {
  const files = config.serviceAccounts?.keyFiles ?? [];
  return files.flatMap((file) => keyBlocks(readFileSync(file, 'utf8')).map(readVerificationKey));
}

function keyBlocks(text: string): readonly string[] {
  // Some programs write the curve parameters ahead of the key.
  const blocks = pemBlocks(text).filter(({ type }) => type !== 'EC PARAMETERS');
  return blocks.map((block) => block.text);
}

function signingKey(config: ServerConfig): SigningKey {
  const keyFile = config.serviceAccounts?.signingKeyFile;
  if (keyFile !== undefined) return readSigningKey(lastBlock(readFileSync(keyFile, 'utf8')));
  const { tls } = config.listen;
  if (tls !== 'plaintext' && 'keyFile' in tls) return servingKey(tls.keyFile);
  if (tls === 'plaintext' || !('certDir' in tls)) return readSigningKey(newKeyPem());
  return keptKey(join(tls.certDir, 'sa.key'), config.embedding?.files);
}

/**
 * The key in a file, generated if the file is absent, or empty after a power failure. Another key
 * would invalidate all tokens, so it throws for any other file that it cannot use.
 */
function keptKey(path: string, atStart: FileAtStart | undefined): SigningKey {
  const kept = textIfPresent(path);
  if (kept.trim() === '') {
    const pem = newKeyPem();
    writeFileAtomically({ path, text: pem, mode: 0o600, atStart });
    return readSigningKey(pem);
  }
  try {
    return readSigningKey(lastBlock(kept));
  } catch (error) {
    const problem = `${path} does not contain a key that can sign tokens, and is left alone`;
    throw new Error(`${problem}: ${errorText(error)}`, { cause: error });
  }
}

function textIfPresent(path: string): string {
  try {
    return readConfigurationFile(path);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return '';
    throw error;
  }
}

/** Falls back to the serving key if none is configured, unless tokens cannot be signed with it. */
function servingKey(file: string): SigningKey {
  try {
    return readSigningKey(lastBlock(readFileSync(file, 'utf8')));
  } catch {
    return readSigningKey(newKeyPem());
  }
}

function lastBlock(text: string): string {
  return keyBlocks(text).at(-1) ?? text;
}

function newKeyPem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/**
 * Connects to the external signer if one is configured, and warns if its maximum lifetime affects
 * pods; loads its code only then. Rejects when the process does not answer or has no suitable keys.
 */
export async function openSigner({ config, metrics }: Base): Promise<ExternalSigner | undefined> {
  const { clock, logger, serviceAccounts } = config;
  const endpoint = serviceAccounts?.signingEndpoint;
  if (endpoint === undefined) return undefined;
  const { createSignerMeter, detailsOf, ExternalSigner } = await import(
    '../../gates/authn/external-signer.ts'
  );
  const meter = createSignerMeter(metrics.registry, clock);
  const signer = await ExternalSigner.open({ endpoint, clock, logger, meter }).catch(
    (error: unknown) => {
      throw new Error(`while setting up external-jwt-signer: ${detailsOf(error)}`);
    },
  );
  if (serviceAccounts?.extension !== 'off') warnOfLifetime(signer.maxSeconds, logger);
  return signer;
}

function warnOfLifetime(maxSeconds: number, logger: Logger): void {
  const extended = 'service-account-extend-token-expiration is true,';
  const supported = printGoDuration(BigInt(maxSeconds) * 1_000_000_000n);
  if (maxSeconds < projectedSeconds) {
    logger.warn(
      `${extended} in order to correctly trigger safe transition logic, token lifetime supported by external-jwt-signer must be longer than ${projectedSeconds} seconds (currently ${supported})`,
    );
  }
  if (maxSeconds < yearSeconds) {
    logger.warn(
      `${extended} tokens validity will be caped at the smaller of ${yearSeconds} seconds and maximum token lifetime supported by external-jwt-signer (${supported})`,
    );
  }
}
