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
  yamlBodyLimits,
} from '@wheelhouse/codec';
import { schemaOfKind } from '@wheelhouse/kinds';
import {
  type Dialect,
  goQuoted,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  normalizeApiVersion,
  type Pace,
  parseApiVersion,
  runAtPace,
  unsupportedMediaType,
} from '@wheelhouse/machinery';
import { type EarlierValues, type FoundPaths, maxDepth, type Schema } from '@wheelhouse/schema';
import { type Form, mediaTypes, type ServedEncoding } from '../../answer/encodings.ts';
import { bodyPace } from '../../request/request-state.ts';
import type { ApiCall } from '../call.ts';

/** A request body as bytes and as the value that its Content-Type encodes. */
export interface DecodedBody {
  readonly bytes: Buffer;
  /** Bytes of the body, or of a YAML body without its aliases, which set the pace of the work. */
  readonly size: number;
  readonly value: JsonValue;
  /** Paths of duplicate members. */
  readonly duplicates: readonly string[];
  /** Earlier values of duplicate members of JSON, which may be merged with the last. */
  readonly earlier?: EarlierValues;
  /** Duplicate keys as the YAML decoder reports them: `line 4: key "a" already set in map`. */
  readonly repeated?: readonly string[];
  /** Set when the body is YAML, which kube-apiserver converts to JSON with sorted members. */
  readonly yaml?: true;
  /** Set when the body is JSON in which a number has a fraction or an exponent. */
  readonly hasFraction?: true;
  /** Set when the body is CBOR, which has other decoding rules. */
  readonly cbor?: CborFindings;
  /**
   * Why a CBOR or protobuf body does not fit its kind; the value then has only apiVersion and kind.
   */
  readonly misfit?: string;
}

type Decoded = DecodedJson & Pick<DecodedBody, 'cbor' | 'yaml' | 'misfit'>;

/** The body whose bytes were decoded. */
export const decodedBody = (bytes: Buffer, decoded: Decoded): DecodedBody => ({
  bytes,
  size: decoded.expandedBytes ?? bytes.length,
  ...decoded,
});

/**
 * Decodes a body; throws (or rejects with) JsonError, YamlError, ProtobufError, CborError, and
 * TooManyValues.
 */
type BodyDecoder = (bytes: Buffer) => MaybePromise<Decoded>;

/**
 * Limits of a body. Everything after the decoder walks objects recursively, so the nesting limit is
 * lower than kube-apiserver's (docs/decisions/nesting-limit.md).
 */
export const bodyLimits: JsonLimits = {
  depthMax: maxDepth,
  valuesMax: bodyValuesMax,
  membersMax: objectMembersMax,
};

/** Under which conditions a body is decoded: while it is needed, and at which pace. */
export interface Reading {
  /** Whether the client still waits: decoding in slices stops once it has left. */
  readonly isWanted: () => boolean;
  /** The pace of work on a body of the given size; undefined if it takes one step. */
  readonly paceOf: (bytes: number) => Pace | undefined;
}

/** Decodes the body of a request while its client waits, at the pace of the body's size. */
export function readingOf(call: Pick<ApiCall, 'exchange' | 'context'>): Reading {
  return {
    isWanted: () => !call.exchange.aborted,
    paceOf: (bytes) => bodyPace(call, bytes),
  };
}

/**
 * Decodes a JSON body, a large one in slices. Throws or rejects with JsonError and TooManyValues.
 */
export function decodeJsonBody(
  bytes: Buffer,
  { paceOf }: Pick<Reading, 'paceOf'>,
): MaybePromise<DecodedJson> {
  const pace = paceOf(bytes.length);
  if (pace === undefined) return decodeJson(bytes, bodyLimits);
  return runAtPace(decodeJsonSteps(bytes, bodyLimits), pace);
}

/**
 * Decodes a body in its envelope by the schema of the kind that the envelope names, or else of the
 * request's kind (CODEC-3). Throws ProtobufError for a malformed envelope.
 */
function decodeProtobufBody(
  bytes: Buffer,
  { dialect, type, paceOf }: Expected,
): MaybePromise<Decoded> {
  const envelope = openEnvelope(bytes);
  const { raw } = envelope;
  // kube-apiserver takes an apiVersion that it cannot parse for an absent one.
  const isStated = (parseApiVersion(envelope.apiVersion)?.version ?? '') !== '';
  const apiVersion = isStated ? normalizeApiVersion(envelope.apiVersion) : type.apiVersion;
  const kind = envelope.kind || type.kind;
  const schema = schemaOfKind(dialect, { apiVersion, kind });
  const withoutObject = (misfit: string): Decoded => ({
    value: { apiVersion, kind },
    duplicates: [],
    misfit,
  });
  if (schema === undefined) {
    const version = goQuoted(apiVersion);
    return withoutObject(
      `no kind ${goQuoted(kind)} is registered for version ${version} in protobuf`,
    );
  }
  const afterError = (error: unknown): Decoded => {
    if (error instanceof ProtobufError) return withoutObject(error.message);
    throw error;
  };
  const valuesMax = bodyValuesMax;
  const decodedOf = (message: JsonObject): DecodedJson => ({
    value: { ...message, apiVersion, kind },
    duplicates: [],
  });
  const pace = paceOf(bytes.length);
  function* steps(of: Schema): Generator<void, DecodedJson> {
    const message = yield* decodeMessageSteps(of, raw, { valuesMax });
    yield* checkValuesSteps(message);
    return decodedOf(message);
  }
  try {
    const decoded =
      pace === undefined
        ? decodedOf(decodeMessage(schema, raw, { valuesMax }))
        : runAtPace(steps(schema), pace);
    return decoded instanceof Promise ? decoded.catch(afterError) : decoded;
  } catch (error) {
    return afterError(error);
  }
}

/** What a decoder needs to know about the expected body: the schema, if its type is built in. */
interface Expected extends Reading {
  readonly dialect: Dialect;
  /** The type of a body that does not state one. */
  readonly type: EnvelopeType;
  readonly schema?: Schema | undefined;
}

const decoders: Readonly<
  Record<Form, (bytes: Buffer, expected: Expected) => ReturnType<BodyDecoder>>
> = {
  json: decodeJsonBody,
  yaml: async (bytes, { isWanted }) => ({
    ...(await decodeYaml(bytes, { ...yamlBodyLimits, isWanted })),
    yaml: true,
  }),
  protobuf: decodeProtobufBody,
  cbor: (bytes, { schema }) => decodeCborBody(bytes, schema),
};

/** The decoder for a Content-Type; JSON when it is absent. Throws 415 (API-9, CODEC-1). */
export function decoderFor(
  contentType: string | undefined,
  options: { served: readonly ServedEncoding[] } & Expected,
): BodyDecoder {
  if (contentType === undefined || contentType === '') {
    return (bytes) => decodeJsonBody(bytes, options);
  }
  const { served } = options;
  const named = (mediaType: string) =>
    served.find((candidate) => candidate.mediaType === mediaType && candidate.covers === 'objects');
  const encoding = named(contentType) ?? named(contentMediaType(contentType) ?? '');
  if (encoding === undefined) throw unsupportedMediaType(mediaTypes(served));
  return (bytes) => decoders[encoding.form](bytes, options);
}

/** What decoding a CBOR body found besides its value. */
interface CborFindings {
  /** The unknown members; absent for custom kinds, whose own decoder finds them. */
  readonly unknown?: FoundPaths;
}

const text: Schema = { type: 'string' };

/** The members that identify the kind of a body. */
const typeMeta: Schema = {
  type: 'object',
  typeName: 'meta.v1.TypeMeta',
  properties: new Map([
    ['apiVersion', { schema: text }],
    ['kind', { schema: text }],
  ]),
};

/**
 * Decodes a CBOR body (CODEC-4): by the schema, for built-in kinds, after determining its kind; or
 * else as a map, determining the kind only if that fails. Throws CborError if the kind cannot be
 * determined.
 */
function decodeCborBody(
  bytes: Buffer,
  schema: Schema | undefined,
): Decoded & { readonly cbor: CborFindings } {
  const type = schema === undefined ? undefined : typeOf(bytes);
  try {
    const { value, unknown } =
      schema === undefined ? { value: decodeCborMap(bytes) } : decodeCborAs(schema, bytes);
    return { value, duplicates: [], cbor: unknown === undefined ? {} : { unknown } };
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    return { value: type ?? typeOf(bytes), duplicates: [], cbor: {}, misfit: error.message };
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
