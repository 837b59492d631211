import {
  bytes,
  chosen,
  fixed64,
  integer,
  many,
  message,
  nested,
  one,
  text,
} from '@wheelhouse/store';
import { type GrpcAnswer, startGrpcServer } from './grpc-server.ts';

const value = message({ text: chosen(1, text), integer: chosen(3, integer) });
const attribute = nested(message({ key: one(1, text), value: one(2, nested(value)) }));
const spanMessage = message({
  traceId: one(1, bytes),
  spanId: one(2, bytes),
  parentSpanId: one(4, bytes),
  name: one(5, text),
  kind: one(6, integer),
  startNs: one(7, fixed64),
  endNs: one(8, fixed64),
  attributes: many(9, attribute),
  links: many(13, nested(message({ traceId: one(1, bytes), spanId: one(2, bytes) }))),
  status: one(15, nested(message({ message: one(2, text), code: one(3, integer) }))),
});
const exportRequest = message({
  resources: many(
    1,
    nested(
      message({
        resource: one(1, nested(message({ attributes: many(1, attribute) }))),
        scopes: many(2, nested(message({ spans: many(2, nested(spanMessage)) }))),
      }),
    ),
  ),
});

/** A span that a collector received; IDs are in hexadecimal. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly string[];
  readonly status: number;
}

type Decoded = ReturnType<typeof exportRequest.decode>;
type Attributes = NonNullable<Decoded['resources'][number]['resource']>['attributes'];

const attributesOf = (list: Attributes) =>
  Object.fromEntries(list.map(({ key, value: v }) => [key, v?.text ?? v?.integer ?? '']));

/**
 * Simulates an OpenTelemetry collector that receives spans over gRPC, on a port or a Unix socket.
 */
export async function startTraceCollector(at: string | number = 0) {
  const spans: CollectedSpan[] = [];
  const resources: Readonly<Record<string, string | number>>[] = [];
  const paths: string[] = [];
  const state: { answer: GrpcAnswer } = { answer: Buffer.alloc(0) };
  const server = await startGrpcServer(at, ({ path, body }) => {
    paths.push(path);
    if (!Buffer.isBuffer(state.answer)) return state.answer;
    for (const { resource, scopes } of exportRequest.decode(body).resources) {
      resources.push(attributesOf(resource?.attributes ?? []));
      for (const span of scopes.flatMap((scope) => scope.spans)) {
        spans.push({
          ...span,
          traceId: span.traceId.toString('hex'),
          spanId: span.spanId.toString('hex'),
          parentSpanId: span.parentSpanId.toString('hex'),
          attributes: attributesOf(span.attributes),
          links: span.links.map(
            ({ traceId, spanId }) => `${traceId.toString('hex')}-${spanId.toString('hex')}`,
          ),
          status: span.status?.code ?? 0,
        });
      }
    }
    return state.answer;
  });
  return { spans, resources, paths, state, port: server.port, stop: server.stop };
}
