import { hostname } from 'node:os';
import {
  type ConfigurationFormat,
  decodeConfiguration,
  optional,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  type Dialect,
  dialectOf,
  errorText,
  type FieldError,
  fieldErrorsText,
  invalid,
  type JsonObject,
  type MaybePromise,
  member,
} from '@wheelhouse/machinery';
import { type Store, unchangedOperations } from '@wheelhouse/store';
import type { WebhookPort } from '../../admission/webhooks/port.ts';
import { readConfigurationFile } from '../../files/followed-files.ts';
import { type CollectorAddress, OtlpExporter } from '../../observe/otlp-exporter.ts';
import { serverIdentity } from '../../observe/server-identity.ts';
import { Tracer } from '../../observe/tracing.ts';
import type { ServerConfig } from '../config.ts';

/** Creates and exports the spans of requests. */
export interface Tracing {
  readonly tracer: Tracer;
  /** A store that records its operations as spans of the calling requests. */
  store(store: Store): Store;
  /** Webhooks that record calls as spans and propagate the trace in headers. */
  webhooks(webhooks: WebhookPort): WebhookPort;
  /** Sends the remaining spans, within a short timeout. */
  close(): Promise<void>;
}

/**
 * Starts tracing according to a TracingConfiguration. Rejects with a one-line error if the file is
 * unusable; an unreachable collector is not an error.
 */
export async function openTracing(
  { file }: { readonly file: string },
  config: Pick<ServerConfig, 'clock' | 'logger' | 'dialect' | 'store'>,
): Promise<Tracing> {
  const { clock, logger } = config;
  const dialect = dialectOf(config.dialect);
  const { collector, samplingRate } = await readSettings(file, dialect);
  const exporter = new OtlpExporter(collector, {
    clock,
    logger,
    resource: {
      'service.name': 'apiserver',
      'service.instance.id': serverIdentity(hostname(), dialect.serverProgram),
    },
  });
  const tracer = new Tracer({ clock, samplingRate, onSpan: (span) => exporter.add(span) });
  const name = config.store.type === 'etcd' ? 'etcd3' : config.store.type;
  return {
    tracer,
    store: (store) => tracedStore(store, { tracer, name }),
    webhooks: (webhooks) => tracedWebhooks(webhooks, tracer),
    close: () => exporter.close(),
  };
}

const configurationType = structType('TracingConfiguration', {
  endpoint: optional(textType),
  samplingRatePerMillion: optional({ type: 'integer', format: 'int32' }),
});
/** The file of `--tracing-config-file`. */
export const tracingFormat = {
  kind: 'TracingConfiguration',
  group: 'apiserver.config',
  versions: { v1beta1: configurationType, v1alpha1: configurationType },
} as const satisfies ConfigurationFormat;

const samplingRateMax = 1_000_000;

async function readSettings(
  file: string,
  dialect: Dialect,
): Promise<{ readonly collector: CollectorAddress; readonly samplingRate: number }> {
  const object = await readConfiguration(file, dialect).catch((error: unknown) => {
    throw new Error(`failed to read tracing config: ${file}: ${errorText(error)}`);
  });
  const rate = member(object, 'samplingRatePerMillion');
  const samplingRate = typeof rate === 'number' ? rate : 0;
  const errors = checkRate(samplingRate);
  const endpoint = member(object, 'endpoint');
  const address = typeof endpoint === 'string' && endpoint !== '' ? endpoint : 'localhost:4317';
  const collector = collectorAt(address);
  const isUnusable = typeof collector === 'string';
  if (isUnusable) errors.push(invalid('endpoint', address, collector));
  if (isUnusable || errors.length > 0) {
    const why = fieldErrorsText(errors);
    throw new Error(`failed to validate tracing configuration: ${file}: ${why}`);
  }
  return { collector, samplingRate };
}

async function readConfiguration(file: string, dialect: Dialect): Promise<JsonObject> {
  const group = dialect.group(tracingFormat.group);
  const text = readConfigurationFile(file);
  return (await decodeConfiguration(text, { ...tracingFormat, group })).object;
}

function checkRate(rate: number): FieldError[] {
  const field = 'samplingRatePerMillion';
  if (rate < 0) return [invalid(field, rate, 'sampling rate must be positive')];
  if (rate <= samplingRateMax) return [];
  return [
    invalid(field, rate, 'sampling rate per million must be less than or equal to one million'),
  ];
}

/** The address of an endpoint in gRPC's notation, or a description of its problem. */
function collectorAt(endpoint: string): CollectorAddress | string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(endpoint)?.[1]?.toLowerCase();
  if (scheme === 'unix') return { socketPath: endpoint.slice('unix://'.length) };
  if (scheme === 'unix-abstract') {
    return { socketPath: `\0${endpoint.slice('unix-abstract://'.length)}` };
  }
  if (scheme !== undefined && scheme !== 'dns') {
    return `unsupported scheme: ${scheme}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md`;
  }
  // `dns://SERVER/HOST:PORT` names a DNS server for the host.
  const address = scheme === undefined ? endpoint : endpoint.replace(/^dns:\/\/[^/]*\/?/i, '');
  if (URL.canParse(`http://${address}`) && !/[/?#@]/.test(address)) return { address };
  return 'it is no host and port';
}

function tracedStore(
  store: Store,
  { tracer, name }: { readonly tracer: Tracer; readonly name: string },
): Store {
  const within = <T>(operation: string, key: string, work: () => MaybePromise<T>) =>
    tracer.within({ name: `${operation} ${name}`, attributes: { key } }, work);
  return {
    ...unchangedOperations(store),
    get: (key, at) => store.get(key, at),
    range: (request) => within('List(recursive=true)', request.prefix, () => store.range(request)),
    put: (request) => {
      const operation = request.expect === 0 ? 'Create' : 'GuaranteedUpdate';
      return within(operation, request.key, () => store.put(request));
    },
    delete: (request) => within('Delete', request.key, () => store.delete(request)),
    watch: (request) => store.watch(request),
  };
}

function tracedWebhooks(webhooks: WebhookPort, tracer: Tracer): WebhookPort {
  return {
    post(request) {
      const { purpose } = request;
      const send = () =>
        tracer.within(
          { name: 'HTTP POST', kind: 'client', attributes: { 'http.method': 'POST' } },
          () => webhooks.post({ ...request, headers: tracer.headers() }),
        );
      return purpose === undefined ? send() : tracer.within(purpose, send);
    },
  };
}
