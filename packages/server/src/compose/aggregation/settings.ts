import { flagsIn } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** The part of the API that other servers serve (ADM-4). */
export interface AggregationSettings {
  /** How requests for group versions of APIServices are passed on (ADM-4). */
  readonly aggregation?: {
    /** PEM files of the client certificate; none when absent. */
    readonly certificate?: { readonly certFile: string; readonly keyFile: string };
    /** `endpoints` never uses a Service's own address; `any` when absent. */
    readonly routing?: 'any' | 'endpoints';
    /** Redirects of other servers; refused when absent. */
    readonly redirects?: 'rejected' | 'passed';
  };
}

/** Flags of aggregation. */
const aggregationFlags = flagsIn('Aggregation', {
  'proxy-client-cert-file': {
    type: 'string',
    file: 'certificates',
    help: 'File with the client certificate that this server presents to the servers of APIServices; it is reloaded when it changes.',
  },
  'proxy-client-key-file': {
    type: 'string',
    file: 'private key',
    keyOf: 'proxy-client-cert-file',
    help: 'File with the private key of --proxy-client-cert-file.',
  },
  'enable-aggregator-routing': {
    type: 'bool',
    help: 'Use only the endpoints of the Services that APIServices name; otherwise a Service without known endpoints is reached at its own address, and one of type ExternalName at that name.',
  },
  'aggregator-reject-forwarding-redirect': {
    type: 'bool',
    default: 'true',
    help: 'Reject redirects of other servers instead of forwarding them to clients.',
  },
});

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
        redirects: values['aggregator-reject-forwarding-redirect'] ? 'rejected' : 'passed',
      },
    };
  },
};
