import type { TokenKey, TokenKeys } from '../gates/authn/service-account-token.ts';
import type { PlainAnswer } from './call.ts';

/** The paths by which clients discover how to verify service account tokens. */
export const issuerDiscoveryPaths = {
  configuration: '/.well-known/openid-configuration',
  keys: '/openid/v1/jwks',
} as const;

/**
 * Answers the two paths that let others verify this server's service account tokens (AUTHN-6): the
 * issuer's description and its public keys. Undefined for other paths, and for both if the issuer
 * is not an https URL and thus not discoverable.
 */
export function createIssuerDiscovery(options: {
  readonly issuer: string;
  /** The advertised URL of the keys. */
  readonly jwksUri: () => string;
  readonly keys: TokenKeys;
}): { answer(path: string): PlainAnswer | undefined; readonly paths: readonly string[] } {
  const { issuer, jwksUri, keys } = options;
  const paths = isHttpsUrl(issuer) ? Object.values(issuerDiscoveryPaths) : [];
  return {
    paths,
    answer(requested) {
      const path = requested.replace(/\/$/, '');
      if (!paths.some((discoveryPath) => discoveryPath === path)) return undefined;
      const published = keys.current().filter((key) => key.published !== 'never');
      const maxAgeSeconds = keys.maxAgeSeconds?.() ?? staticAgeSeconds;
      return path === issuerDiscoveryPaths.keys
        ? answerOf(
            { keys: publicKeys(published) },
            { type: 'application/jwk-set+json', maxAgeSeconds },
          )
        : answerOf(description({ issuer, jwksUri: jwksUri(), keys: published }), {
            type: 'application/json',
            maxAgeSeconds,
          });
    },
  };
}

/** Whether clients can discover this issuer: an https URL without query and fragment. */
export function isHttpsUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' && url.search === '' && url.hash === '';
}

/** Cache lifetime of keys that do not change while the server runs. */
const staticAgeSeconds = 3600;

function answerOf(
  value: object,
  { type, maxAgeSeconds }: { readonly type: string; readonly maxAgeSeconds: number },
): PlainAnswer {
  const headers = { 'content-type': type, 'cache-control': `public, max-age=${maxAgeSeconds}` };
  return { status: 200, headers, body: JSON.stringify(value) };
}

function description(of: { issuer: string; jwksUri: string; keys: readonly TokenKey[] }): object {
  const algorithms = new Set(of.keys.map(({ algorithm }) => algorithm));
  return {
    issuer: of.issuer,
    jwks_uri: of.jwksUri,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...algorithms].sort(),
  };
}

/** Each key once, in the format of RFC 7517. */
function publicKeys(keys: readonly TokenKey[]): readonly object[] {
  const byId = new Map(keys.map((key) => [key.id, key]));
  return [...byId.values()].map(({ id, algorithm, publicKey }) => {
    const { kty, ...numbers } = publicKey.export({ format: 'jwk' });
    return { use: 'sig', kty, kid: id, alg: algorithm, ...numbers };
  });
}
