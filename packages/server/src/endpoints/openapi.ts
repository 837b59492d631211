import { covers, type EncodingDescriptor, parseAccept } from '@wheelhouse/codec';
import {
  type JsonObject,
  type MaybePromise,
  methodNotAllowedOnPath,
  noSuchPath,
  notAcceptable,
} from '@wheelhouse/machinery';
import {
  type CachedDocument,
  OpenApiDocuments,
  type OpenApiMediaType,
} from '../answer/openapi-documents.ts';
import { takesGzip } from '../answer/rendering.ts';
import { documentUrl } from '../views/openapi-v3.ts';
import type { AuthorizedCall, EndpointContext } from './call.ts';

/** Documents of each server, created on first use and collected with the server. */
const documentsByContext = new WeakMap<EndpointContext, OpenApiDocuments>();

/**
 * Answers `/openapi/v2`, `/openapi/v3`, and the documents below it (API-12). Resolves with false
 * for other paths. Throws 404 for an unknown document, 405, and 406.
 */
export function openApiEndpoint(call: AuthorizedCall): MaybePromise<boolean> {
  const { path, verb } = call.info;
  if (!path.startsWith('/openapi/')) return false;
  const isIndex = path === '/openapi/v3' || path === '/openapi/v3/';
  const isWhole = path === '/openapi/v2';
  if (!isIndex && !isWhole && !path.startsWith('/openapi/v3/')) return false;
  if (verb !== 'get' && verb !== 'head') throw methodNotAllowedOnPath();
  const documents = documentsOf(call.context);
  if (isIndex) return documents.index().then((document) => answerDocument(call, { document }));
  if (isWhole) {
    const types = wholeTypes;
    return documents.whole().then((document) => answerDocument(call, { document, types }));
  }
  const name = path.slice('/openapi/v3/'.length);
  return documents.part(name).then((document) => {
    if (document === undefined) throw noSuchPath();
    return answerPart(call, { name, document });
  });
}

/** The documents of this server. */
export function documentsOf(context: EndpointContext): OpenApiDocuments {
  const cached = documentsByContext.get(context);
  if (cached !== undefined) return cached;
  const { version, dialect, catalogue } = context;
  const release = versionText(version);
  const made = new OpenApiDocuments({
    dialect,
    release,
    ...(context.features.enabled('OpenAPIEnums') ? {} : { enums: 'left-out' as const }),
    plainPaths: context.plainPaths,
    snapshot: () => catalogue.snapshot(),
    clock: context.clock,
  });
  documentsByContext.set(context, made);
  return made;
}

/** The release whose kinds the documents describe. */
function versionText(version: JsonObject): string {
  const { emulationMajor, emulationMinor } = version;
  if (emulationMinor !== undefined) return `v${emulationMajor}.${emulationMinor}.0`;
  const text = version['gitVersion'];
  return typeof text === 'string' ? text : 'unversioned';
}

/**
 * Answers with an OpenAPI 3 document by its name in the index. A URL with the document's digest may
 * be cached forever; one with another digest redirects to the current one.
 */
export function answerPart(
  call: AuthorizedCall,
  { name, document }: { readonly name: string; readonly document: CachedDocument },
): MaybePromise<boolean> {
  const hash = call.info.query.get('hash') ?? '';
  if (hash === '') return answerDocument(call, { document, types: partTypes });
  if (hash !== document.digest) {
    const location = documentUrl(name, document.digest);
    const headers = { ...call.baseHeaders, vary: 'Accept', location };
    call.exchange.send({ status: 301, headers, body: Buffer.alloc(0) });
    return true;
  }
  const headers = lasting(call.context);
  return answerDocument(call, { document, types: partTypes, headers });
}

const yearMs = 365 * 24 * 60 * 60 * 1000;

function lasting(context: EndpointContext): Record<string, string> {
  const expires = new Date(context.clock.now() + yearMs).toUTCString();
  return { 'cache-control': 'public, immutable', expires };
}

/** A media type of documents. */
export interface ServedType extends EncodingDescriptor {
  /** The Content-Type of the answer: of two names for one form, the newer. */
  readonly answersAs: OpenApiMediaType;
}

const served = (mediaType: EncodingDescriptor['mediaType'], answersAs: OpenApiMediaType) => ({
  mediaType,
  answersAs,
  streams: false,
  tables: false,
});

const json: ServedType = served('application/json', 'application/json');

/** The encodings of an OpenAPI version; its protobuf has an old and a new name. */
function typesOf(form: 'v2' | 'v3'): readonly ServedType[] {
  const stem = `application/com.github.proto-openapi.spec.${form}` as const;
  const protobuf = `${stem}.v1.0+protobuf` as const;
  return [json, served(protobuf, protobuf), served(`${stem}@v1.0+protobuf`, protobuf)];
}

/** The media types of `/openapi/v2`. */
export const wholeTypes = typesOf('v2');
const partTypes = typesOf('v3');

/** The first acceptable type that is served. */
function chosenType(header: string | undefined, types: readonly ServedType[]): ServedType {
  const accepted = header === undefined || header === '' ? '*/*' : header;
  for (const range of parseAccept(accepted)) {
    const found = types.find((one) => covers(range, one));
    if (found !== undefined) return found;
  }
  throw notAcceptable(types.map((one) => one.mediaType));
}

/** Answers with a document in a type that the client accepts, or with 304. Throws 406. */
export async function answerDocument(
  call: AuthorizedCall,
  options: {
    document: CachedDocument;
    /** Absent: JSON, whatever the client accepts. */
    types?: readonly ServedType[];
    headers?: Record<string, string>;
  },
): Promise<boolean> {
  const { exchange, context, baseHeaders } = call;
  const { document } = options;
  const { answersAs: type } =
    options.types === undefined ? json : chosenType(exchange.header('accept'), options.types);
  const etag = `"${document.digest}"`;
  const headers = {
    ...baseHeaders,
    'content-type': type,
    etag,
    'last-modified': new Date(document.madeMs).toUTCString(),
    vary: 'Accept, Accept-Encoding',
    ...options.headers,
  };
  if (isKnown(exchange.header('if-none-match'), etag)) {
    exchange.send({ status: 304, headers, body: Buffer.alloc(0) });
    return true;
  }
  const gzips = context.compressResponses && takesGzip(exchange.header('accept-encoding') ?? '');
  const { body, encoding } = await document.body(type, gzips);
  const coding = encoding === undefined ? {} : { 'content-encoding': encoding };
  exchange.send({ status: 200, headers: { ...headers, ...coding }, body });
  return true;
}

/** Whether an `If-None-Match` names the tag, weak or strong, or is `*`. */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => {
    const tag = one.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}
