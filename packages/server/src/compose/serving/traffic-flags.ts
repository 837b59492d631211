import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** Flags of what is said around answers and at the end of connections, part of `serverFlags`. */
export const trafficFlags = {
  'cors-allowed-origins': {
    group: 'Generic',
    type: 'list',
    default: '',
    help: "Regular expressions of the origins whose pages browsers let use the API (CORS). Each must say where the host begins, by ^ or //, and where it ends, by $ or :, as '^https://example\\.com(:|$)' does. None when empty.",
  },
  'strict-transport-security-directives': {
    group: 'Generic',
    type: 'list',
    default: '',
    help: 'Directives of the header Strict-Transport-Security that goes with every answer over TLS: max-age=SECONDS, includeSubDomains, preload. No header when empty.',
  },
  'goaway-chance': {
    group: 'Generic',
    type: 'float',
    default: '0',
    help: 'Which part of requests over HTTP/2 ends its connection (GOAWAY) once all on it is answered, so that clients spread over servers behind a load balancer. 0 is none, 0.02 the most.',
  },
  'shutdown-send-retry-after': {
    group: 'Generic',
    type: 'bool',
    default: 'false',
    help: 'After --shutdown-delay-duration go on listening until all requests in flight but watches are answered, and answer new ones 429 with Retry-After.',
  },
  'shutdown-watch-termination-grace-period': {
    group: 'Generic',
    type: 'duration',
    default: '0s',
    help: 'The time over which a stop spreads the ends of watches, 200 a second at least. All end at once when 0.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof trafficFlags>;

/** What the flags come to. Throws FlagError for what upstream refuses; origins are read later. */
export function trafficOptions(
  values: Values,
  { http2 }: { readonly http2: 'on' | 'off' },
): NonNullable<ServerConfig['traffic']> {
  const chance = values['goaway-chance'];
  if (chance < 0 || chance > 0.02) {
    throw new FlagError('--goaway-chance can not be less than 0 or greater than 0.02');
  }
  const grace = values['shutdown-watch-termination-grace-period'];
  if (grace < 0) {
    throw new FlagError(
      'shutdown-watch-termination-grace-period, if provided, can not be a negative value',
    );
  }
  const directives = values['strict-transport-security-directives'];
  for (const directive of directives) checkDirective(directive);
  const origins = values['cors-allowed-origins'];
  return {
    watchGraceMs: grace,
    whileStopping: values['shutdown-send-retry-after'] ? 'refuse' : 'close',
    ...(chance > 0 && http2 === 'on' ? { goAwayChance: chance } : {}),
    ...(directives.length === 0 ? {} : { strictTransport: directives.join('; ') }),
    ...(origins.length === 0 ? {} : { allowedOrigins: origins }),
  };
}

function checkDirective(directive: string): void {
  if (directive.trim() === '') {
    throw new FlagError('empty value in strict-transport-security-directives');
  }
  if (directive === 'includeSubDomains' || directive === 'preload') return;
  if (/^max-age=[^=]*$/.test(directive)) return;
  throw new FlagError(
    '--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information',
  );
}
