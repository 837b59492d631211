import {
  bodyValuesMax,
  CborError,
  checkValuesSteps,
  contentMediaType,
  type DecodedJson,
  decodeCborAs,
  decodeCborMap,
  decodeJson,
  decodeJsonSteps,
  decodeMessage,
  decodeMessageSteps,
  decodeYaml,
  type EnvelopeType,
  type JsonLimits,
  objectMembersMax,
  openEnvelope,
  ProtobufError,
  yamlValuesMax,
} from '@wheelhouse/codec';
import { schemaOfKind } from '@wheelhouse/kinds';
import {
  atPace,
  type Dialect,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  type Pace,
  unsupportedMediaType,
} from '@wheelhouse/machinery';
import { type FoundPaths, maxDepth, type Schema } from '@wheelhouse/schema';
import { type Form, mediaTypes, type ServedEncoding } from '../../answer/encodings.ts';
import { bodyPace } from '../../request/request-state.ts';
import type { ApiCall } from '../call.ts';

/** A request body as bytes and as the value its Content-Type says. */
export interface DecodedBody {
  readonly bytes: Buffer;
  readonly value: JsonValue;
  /** Paths of members given twice. */
  readonly duplicates: readonly string[];
  /** The same as YAML tells them: `line 4: key "a" already set in map`. */
  readonly repeated?: readonly string[];
  /** Set when the body is YAML: upstream decodes the JSON that it makes of it, members sorted. */
  readonly yaml?: true;
  /** Set when the body is CBOR, which decodes by other rules. */
  readonly cbor?: CborFindings;
}

/**
 * Decodes a body; throws (or rejects with) JsonError, YamlError, ProtobufError, CborError, and
 * TooManyValues.
 */
export type BodyDecoder = (
  bytes: Buffer,
) => MaybePromise<DecodedJson & Pick<DecodedBody, 'cbor' | 'yaml'>>;

/**
 * What a body may hold. Everything behind the decoder walks objects by recursion, so they nest less
 * deeply than upstream lets them (docs/decisions/nesting-limit.md).
 */
export const bodyLimits: JsonLimits = {
  depthMax: maxDepth,
  valuesMax: bodyValuesMax,
  membersMax: objectMembersMax,
};

/** How a body is decoded beside other requests. */
export interface Reading {
  /** Whether somebody still waits for the answer: decoding in slices ends where nobody does. */
  readonly isWanted: () => boolean;
  /** The pace of work on a body of so many bytes; undefined where it takes one step. */
  readonly paceOf: (bytes: number) => Pace | undefined;
}

/** How the body of a request is decoded: as long as its client waits. */
export function readingOf(call: Pick<ApiCall, 'exchange' | 'context'>): Reading {
  return {
    isWanted: () => !call.exchange.aborted,
    paceOf: (bytes) => bodyPace(call, bytes),
  };
}

/** Decodes a JSON body: a large one in slices. Throws, or rejects with, JsonError and TooManyValues. */
export function decodeJsonBody(
  bytes: Buffer,
  { paceOf }: Pick<Reading, 'paceOf'>,
): MaybePromise<DecodedJson> {
  const pace = paceOf(bytes.length);
  if (pace === undefined) return decodeJson(bytes, bodyLimits);
  return atPace(decodeJsonSteps(bytes, bodyLimits), pace);
}

/**
 * A body in its envelope, decoded by the schema of the kind that the envelope names, or the request
 * where the envelope does not (CODEC-3).
 */
function decodeProtobufBody(
  bytes: Buffer,
  { dialect, type, paceOf }: Expected,
): MaybePromise<DecodedJson> {
  const envelope = openEnvelope(bytes);
  const { raw } = envelope;
  const apiVersion = envelope.apiVersion || type.apiVersion;
  const kind = envelope.kind || type.kind;
  const schema = schemaOfKind(dialect, { apiVersion, kind });
  if (schema === undefined) {
    const version = JSON.stringify(apiVersion);
    throw new ProtobufError(
      `no kind ${JSON.stringify(kind)} is registered for version ${version} in protobuf`,
    );
  }
  const valuesMax = bodyValuesMax;
  const decodedOf = (message: JsonObject): DecodedJson => ({
    value: { ...message, apiVersion, kind },
    duplicates: [],
  });
  const pace = paceOf(bytes.length);
  if (pace === undefined) return decodedOf(decodeMessage(schema, raw, { valuesMax }));
  function* steps(of: Schema): Generator<void, DecodedJson> {
    const message = yield* decodeMessageSteps(of, raw, { valuesMax });
    yield* checkValuesSteps(message);
    return decodedOf(message);
  }
  return atPace(steps(schema), pace);
}

/** What decoding may have to know of a body: its schema where it is of a built-in type. */
interface Expected extends Reading {
  readonly dialect: Dialect;
  /** What a body is that does not name its type. */
  readonly type: EnvelopeType;
  readonly schema?: Schema | undefined;
}

const decoders: Readonly<
  Record<Form, (bytes: Buffer, expected: Expected) => ReturnType<BodyDecoder>>
> = {
  json: decodeJsonBody,
  yaml: async (bytes, { isWanted }) => ({
    ...(await decodeYaml(bytes, { valuesMax: yamlValuesMax, isWanted })),
    yaml: true,
  }),
  protobuf: decodeProtobufBody,
  cbor: (bytes, { schema }) => decodeCborBody(bytes, schema),
};

/** The decoder a Content-Type names; JSON when there is none. Throws 415 (API-9, CODEC-1). */
export function decoderFor(
  contentType: string | undefined,
  options: { served: readonly ServedEncoding[] } & Expected,
): BodyDecoder {
  if (contentType === undefined || contentType === '') {
    return (bytes) => decodeJsonBody(bytes, options);
  }
  const { served } = options;
  const named = (mediaType: string) =>
    served.find((one) => one.mediaType === mediaType && one.covers === 'objects');
  const encoding = named(contentType) ?? named(contentMediaType(contentType) ?? '');
  if (encoding === undefined) throw unsupportedMediaType(mediaTypes(served));
  return (bytes) => decoders[encoding.form](bytes, options);
}

/** What decoding a body from CBOR found beside its value. */
export interface CborFindings {
  /** Why the body is not what its kind says: the value has that alone. */
  readonly misfit?: string;
  /** The unknown members; a custom kind's own decoder finds those. */
  readonly unknown?: FoundPaths;
}

const text: Schema = { type: 'string' };

/** What of a body says which kind it is. */
const typeMeta: Schema = {
  type: 'object',
  typeName: 'meta.v1.TypeMeta',
  properties: new Map([
    ['apiVersion', { schema: text }],
    ['kind', { schema: text }],
  ]),
};

/**
 * Decodes a body as upstream does: by its schema, which there is of built-in kinds, once its kind is
 * told, or else as a map whose kind is asked for where that fails (CODEC-4). Throws CborError when
 * the kind cannot be told.
 */
function decodeCborBody(
  bytes: Buffer,
  schema: Schema | undefined,
): DecodedJson & { readonly cbor: CborFindings } {
  const type = schema === undefined ? undefined : typeOf(bytes);
  try {
    const { value, unknown } =
      schema === undefined ? { value: decodeCborMap(bytes) } : decodeCborAs(schema, bytes);
    return { value, duplicates: [], cbor: unknown === undefined ? {} : { unknown } };
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    return { value: type ?? typeOf(bytes), duplicates: [], cbor: { misfit: error.message } };
  }
}

function typeOf(bytes: Buffer): JsonObject {
  try {
    return decodeCborAs(typeMeta, bytes).value;
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    throw new CborError(`unable to determine group/version/kind: ${error.message}`);
  }
}
