import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** Flags of the part of the API that other servers answer (ADM-4), part of `serverFlags`. */
export const aggregationFlags = {
  'proxy-client-cert-file': {
    group: 'Aggregation',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File with the client certificate that this server shows to the servers APIServices lead to. It is read again when it changes.',
  },
  'proxy-client-key-file': {
    group: 'Aggregation',
    type: 'string',
    file: 'private key',
    default: '',
    help: 'File with the private key of --proxy-client-cert-file.',
  },
  'enable-aggregator-routing': {
    group: 'Aggregation',
    type: 'bool',
    default: 'false',
    help: 'Ask only endpoints of the Services that APIServices name. Otherwise a Service of which no endpoint is known is asked at its own address, and one of type ExternalName at that name.',
  },
  'aggregator-reject-forwarding-redirect': {
    group: 'Aggregation',
    type: 'bool',
    default: 'true',
    help: 'Refuse answers of other servers that lead the client elsewhere.',
  },
} as const satisfies FlagTable;

/** What the flags come to. Throws FlagError for half a pair. */
export function aggregationOptions(
  values: FlagValues<typeof aggregationFlags>,
): Required<Pick<ServerConfig, 'aggregation'>> {
  const certFile = values['proxy-client-cert-file'];
  const keyFile = values['proxy-client-key-file'];
  if ((certFile === '') !== (keyFile === '')) {
    throw new FlagError(
      '--proxy-client-cert-file and --proxy-client-key-file must be given together',
    );
  }
  return {
    aggregation: {
      ...(certFile === '' ? {} : { certificate: { certFile, keyFile } }),
      routing: values['enable-aggregator-routing'] ? 'endpoints' : 'any',
      redirects: values['aggregator-reject-forwarding-redirect'] ? 'refused' : 'passed',
    },
  };
}
