import { createHash } from 'node:crypto';
import {
  covers,
  decodeJsonInSlices,
  type EncodingDescriptor,
  encodeTextSteps,
  jsonText,
  parseAccept,
} from '@wheelhouse/codec';
import {
  type CatalogueSnapshot,
  type Descriptions,
  describedIn,
  type ResourceDef,
} from '@wheelhouse/kinds';
import {
  type Clock,
  type Dialect,
  type JsonObject,
  jsonObject,
  type MaybePromise,
  methodNotAllowedOnPath,
  nextTurn,
  notAcceptable,
  pathNotFound,
  runInSlices,
  sharedPromise,
} from '@wheelhouse/machinery';
import { takesGzip } from '../answer/rendering.ts';
import { documentHeaders, gzipped } from '../answer/respond.ts';
import type { OpenApiSource } from '../documents/openapi-document.ts';
import { type MessageDescriptors, openApiProto } from '../documents/openapi-proto.ts';
import { openApiV2, openApiV2Messages } from '../documents/openapi-v2.ts';
import {
  documentUrl,
  type OpenApiV3Document,
  openApiV3Document,
  openApiV3Documents,
  openApiV3Index,
  openApiV3Messages,
} from '../documents/openapi-v3.ts';
import type { AuthorizedCall, EndpointContext } from './call.ts';

/** What the documents depend on. */
type DocumentsContext = Pick<
  EndpointContext,
  'version' | 'dialect' | 'catalogue' | 'features' | 'plainPaths' | 'clock'
>;

/** Documents of each server, created on first use and collected with the server. */
const documentsByContext = new WeakMap<DocumentsContext, OpenApiDocuments>();

/**
 * Answers `/openapi/v2`, `/openapi/v3`, and the documents below it (API-12). Resolves with false
 * for other paths. Throws 404 for an unknown document, 405, and 406.
 */
export function openApiEndpoint(call: AuthorizedCall): MaybePromise<boolean> {
  const { path, verb } = call.info;
  if (!path.startsWith('/openapi/')) return false;
  const isIndex = path === '/openapi/v3';
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
    if (document === undefined) throw pathNotFound();
    return answerPart(call, { name, document });
  });
}

/** The documents of this server. */
export function documentsOf(context: DocumentsContext): OpenApiDocuments {
  const cached = documentsByContext.get(context);
  if (cached !== undefined) return cached;
  const { version, dialect, catalogue } = context;
  const release = versionText(version);
  const openApiDocuments = new OpenApiDocuments({
    dialect,
    release,
    ...(context.features.enabled('OpenAPIEnums') ? {} : { enums: 'omitted' as const }),
    plainPaths: context.plainPaths,
    snapshot: () => catalogue.snapshot(),
    clock: context.clock,
  });
  documentsByContext.set(context, openApiDocuments);
  return openApiDocuments;
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
interface ServedType extends EncodingDescriptor {
  /** The Content-Type of the answer; if an encoding has two names, the newer one. */
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
    const type = types.find((candidate) => covers(range, candidate));
    if (type !== undefined) return type;
  }
  throw notAcceptable(types.map(({ mediaType }) => mediaType));
}

/** Answers with a document in a type that the client accepts, or with 304. Throws 406. */
export async function answerDocument(
  call: AuthorizedCall,
  options: {
    document: CachedDocument;
    /** Absent: JSON, regardless of what the client accepts. */
    types?: readonly ServedType[];
    headers?: Record<string, string>;
  },
): Promise<boolean> {
  const { exchange, context } = call;
  const { document } = options;
  const { answersAs: type } =
    options.types === undefined ? json : chosenType(exchange.header('accept'), options.types);
  const etag = `"${document.digest}"`;
  const headers = documentHeaders(call, {
    'content-type': type,
    etag,
    'last-modified': new Date(document.madeMs).toUTCString(),
    vary: 'Accept, Accept-Encoding',
    ...options.headers,
  });
  if (isCurrent(exchange, { etag, madeMs: document.madeMs })) {
    exchange.send({ status: 304, headers, body: Buffer.alloc(0) });
    return true;
  }
  const gzips = context.compressResponses && takesGzip(exchange.header('accept-encoding'));
  const { body, encoding } = await document.body(type, gzips);
  const coding = encoding === undefined ? {} : { 'content-encoding': encoding };
  exchange.send({ status: 200, headers: { ...headers, ...coding }, body });
  return true;
}

/**
 * Whether the client has the document: its `If-None-Match` names the tag, weak or strong, or is
 * `*`; without one, its `If-Modified-Since` is not older than the document.
 */
function isCurrent(
  exchange: AuthorizedCall['exchange'],
  { etag, madeMs }: { readonly etag: string; readonly madeMs: number },
): boolean {
  const tags = exchange.header('if-none-match');
  if (tags === undefined) {
    const sinceMs = Date.parse(exchange.header('if-modified-since') ?? '');
    return Math.floor(madeMs / 1000) * 1000 <= sinceMs;
  }
  return tags.split(',').some((part) => {
    const tag = part.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}

/** Encodings of OpenAPI documents. */
type OpenApiMediaType =
  | 'application/json'
  | `application/com.github.proto-openapi.spec.${'v2' | 'v3'}.v1.0+protobuf`;

/** Bytes below which compression is not worthwhile. */
const gzipThresholdBytes = 1400;

interface DocumentOptions {
  /** Wall time of its creation, in milliseconds since the epoch. */
  readonly madeMs: number;
  /** The messages of its protobuf. */
  readonly messages: MessageDescriptors;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** A document, cached in each encoding that a client has requested. */
export class CachedDocument {
  /** Hexadecimal SHA-512 of its JSON, also for other encodings. */
  readonly digest: string;
  /** Wall time of its creation, in milliseconds since the epoch. */
  readonly madeMs: number;
  readonly #json: Buffer;
  /** Its other encodings and compressed forms. */
  readonly #bodies = new Map<string, Promise<Buffer>>();
  readonly #messages: MessageDescriptors;
  readonly #clock: DocumentOptions['clock'];

  /** @param content the document's JSON and its digest */
  constructor(content: { json: Buffer; digest: string }, options: DocumentOptions) {
    this.#messages = options.messages;
    this.#clock = options.clock;
    this.#json = content.json;
    this.digest = content.digest;
    this.madeMs = options.madeMs;
  }

  /** Its JSON. */
  get json(): Buffer {
    return this.#json;
  }

  /** The bytes in an encoding, compressed if the client accepts gzip and it is worthwhile. */
  async body(type: OpenApiMediaType, gzips: boolean): Promise<{ body: Buffer; encoding?: 'gzip' }> {
    const plain =
      type === 'application/json'
        ? this.#json
        : await sharedPromise(this.#bodies, type, () => this.#makeProtobuf());
    if (!gzips || plain.length < gzipThresholdBytes) return { body: plain };
    const zipped = sharedPromise(this.#bodies, `${type};gzip`, () => gzipped(plain));
    return { body: await zipped, encoding: 'gzip' };
  }

  async #makeProtobuf(): Promise<Buffer> {
    const clock = this.#clock;
    const { value } = await decodeJsonInSlices(this.#json, { clock });
    return runInSlices(openApiProto(this.#messages, jsonObject(value)), clock);
  }
}

/** Creates a document from its JSON, which may be in pieces, in steps. */
export function* documentSteps(
  content: readonly string[] | Buffer,
  options: DocumentOptions,
): Generator<void, CachedDocument> {
  const json = Buffer.isBuffer(content) ? content : yield* encodeTextSteps(content);
  const digest = (yield* digestSteps('sha512', json)).toUpperCase();
  return new CachedDocument({ json, digest }, options);
}

/** Bytes that one step hashes, one or two milliseconds of work. */
const hashedBytes = 1024 * 1024;

/** Hashes bytes in steps; returns the digest in hexadecimal. */
export function* digestSteps(
  algorithm: 'sha256' | 'sha512',
  bytes: Buffer,
): Generator<void, string> {
  const hash = createHash(algorithm);
  for (let at = 0; at < bytes.length; at += hashedBytes) {
    if (at > 0) yield;
    hash.update(bytes.subarray(at, at + hashedBytes));
  }
  return hash.digest('hex');
}

interface Part {
  readonly defs: readonly ResourceDef[];
  /** Shared by concurrent requests while it is being created. */
  readonly document: Promise<CachedDocument>;
}

/** The source of a server's documents. */
interface DocumentsSource {
  readonly dialect: Dialect;
  readonly release: string;
  readonly enums?: OpenApiSource['enums'];
  readonly plainPaths: () => readonly string[];
  readonly snapshot: () => CatalogueSnapshot;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
}

/**
 * All OpenAPI documents of a server. Each is created by the first request for it, and again after
 * its kinds have changed.
 */
class OpenApiDocuments {
  readonly #source: DocumentsSource;
  #descriptions: Descriptions | undefined;
  readonly #parts = new Map<string, Part>();
  /** The newest generation whose removed documents were forgotten. */
  #prunedGeneration = 0;
  readonly #indexes = new WeakMap<CatalogueSnapshot, Promise<CachedDocument>>();
  readonly #wholes = new WeakMap<CatalogueSnapshot, Promise<CachedDocument>>();

  constructor(source: DocumentsSource) {
    this.#source = source;
  }

  /** The document at `/openapi/v3`. Created once for all concurrent requests. */
  index(): Promise<CachedDocument> {
    const snapshot = this.#source.snapshot();
    return sharedPromise(this.#indexes, snapshot, () => this.#makeIndex(snapshot));
  }

  /** Needs the digests of all documents; other requests run between two of them. */
  async #makeIndex(snapshot: CatalogueSnapshot): Promise<CachedDocument> {
    const digests = new Map<string, string>();
    for (const place of this.#places(snapshot)) {
      const before = this.#parts.get(place.name);
      const part = this.#current(place);
      if (part !== before) await nextTurn();
      digests.set(place.name, (await part.document).digest);
    }
    return this.#cachedDocument([jsonText(openApiV3Index(digests))]);
  }

  /** One document by its name in the index; undefined when nothing of that name is served. */
  async part(name: string): Promise<CachedDocument | undefined> {
    const snapshot = this.#source.snapshot();
    if (snapshot.generation > this.#prunedGeneration) this.#places(snapshot);
    const place = openApiV3Document(this.#sourceAt(snapshot), name);
    return place === undefined ? undefined : this.#current(place).document;
  }

  /** `/openapi/v2`. Created in slices, once for all concurrent requests. */
  whole(): Promise<CachedDocument> {
    const snapshot = this.#source.snapshot();
    return sharedPromise(this.#wholes, snapshot, () => this.#makeWhole(snapshot));
  }

  async #makeWhole(snapshot: CatalogueSnapshot): Promise<CachedDocument> {
    const pieces = await runInSlices(openApiV2(this.#sourceAt(snapshot)), this.#source.clock);
    return this.#cachedDocument(pieces, openApiV2Messages);
  }

  /** The documents of a snapshot. Drops the cached ones that it no longer contains. */
  #places(snapshot: CatalogueSnapshot): OpenApiV3Document[] {
    const places = openApiV3Documents(this.#sourceAt(snapshot));
    if (snapshot.generation > this.#prunedGeneration) {
      this.#prunedGeneration = snapshot.generation;
      const names = new Set(places.map(({ name }) => name));
      for (const name of this.#parts.keys()) if (!names.has(name)) this.#parts.delete(name);
    }
    return places;
  }

  #sourceAt(snapshot: CatalogueSnapshot): OpenApiSource {
    const { dialect, release, plainPaths, enums } = this.#source;
    this.#descriptions ??= describedIn(dialect);
    const descriptions = this.#descriptions;
    return { snapshot, dialect, release, enums, plainPaths: plainPaths(), descriptions };
  }

  /** The cached part while its kinds are unchanged; otherwise a new one, built in slices. */
  #current({ name, defs, make }: OpenApiV3Document): Part {
    const cached = this.#parts.get(name);
    const isSame =
      cached?.defs.length === defs.length && defs.every((def, index) => def === cached.defs[index]);
    if (cached !== undefined && isSame) return cached;
    const part = { defs, document: this.#makePart(make()) };
    this.#parts.set(name, part);
    part.document.catch(() => {
      if (this.#parts.get(name) === part) this.#parts.delete(name);
    });
    return part;
  }

  async #makePart(steps: Generator<void, readonly string[]>): Promise<CachedDocument> {
    return this.#cachedDocument(await runInSlices(steps, this.#source.clock));
  }

  #cachedDocument(
    pieces: readonly string[],
    messages: MessageDescriptors = openApiV3Messages,
  ): MaybePromise<CachedDocument> {
    const { clock } = this.#source;
    return runInSlices(documentSteps(pieces, { madeMs: clock.now(), messages, clock }), clock);
  }
}
