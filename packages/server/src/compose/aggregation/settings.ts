import type { Feature } from '../feature.ts';
import type { FlagTable } from '../flags/flags.ts';

/** The part of the API that other servers answer (ADM-4). */
export interface AggregationSettings {
  /** How other servers are asked for the group versions that APIServices give them (ADM-4). */
  readonly aggregation?: {
    /** PEM files of who this server is to them; nobody when absent. */
    readonly certificate?: { readonly certFile: string; readonly keyFile: string };
    /** `endpoints`: a Service's own address is not asked. `any` when absent. */
    readonly routing?: 'any' | 'endpoints';
    /** Answers that lead elsewhere; refused when absent. */
    readonly redirects?: 'refused' | 'passed';
  };
}

/** Flags of the part of the API that other servers answer. */
const aggregationFlags = {
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
    keyOf: 'proxy-client-cert-file',
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

/** Aggregation: other servers behind this one. */
export const aggregationFeature: Feature<typeof aggregationFlags, AggregationSettings> = {
  flags: aggregationFlags,
  settings(values) {
    const certFile = values['proxy-client-cert-file'];
    const keyFile = values['proxy-client-key-file'];
    return {
      aggregation: {
        ...(certFile === '' ? {} : { certificate: { certFile, keyFile } }),
        routing: values['enable-aggregator-routing'] ? 'endpoints' : 'any',
        redirects: values['aggregator-reject-forwarding-redirect'] ? 'refused' : 'passed',
      },
    };
  },
};
