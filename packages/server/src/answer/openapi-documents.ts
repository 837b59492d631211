import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { jsonText } from '@wheelhouse/codec';
import {
  type CatalogueSnapshot,
  type Descriptions,
  describedIn,
  type ResourceDef,
} from '@wheelhouse/kinds';
import { type Clock, type Dialect, inSlices, nextTurn } from '@wheelhouse/machinery';
import type { OpenApiSource } from '../views/openapi-document.ts';
import { type MessageShapes, openApiProto } from '../views/openapi-proto.ts';
import { openApiV2 } from '../views/openapi-v2.ts';
import { openApiV2Shapes } from '../views/openapi-v2-proto.ts';
import { type DocumentPlace, openApiV3Index, openApiV3Places } from '../views/openapi-v3.ts';
import { openApiV3Shapes } from '../views/openapi-v3-proto.ts';

/** Encodings of OpenAPI documents. */
export type OpenApiMediaType =
  | 'application/json'
  | `application/com.github.proto-openapi.spec.${'v2' | 'v3'}.v1.0+protobuf`;

const compress = promisify(gzip);
/** Bytes below which compression is not worthwhile. */
const gzipThresholdBytes = 1400;

/** A document, cached in each encoding that a client has requested. */
export class CachedDocument {
  /** Hexadecimal SHA-512 of its JSON, whatever the encoding. */
  readonly digest: string;
  /** Wall time of its creation, in milliseconds since the epoch. */
  readonly madeMs: number;
  readonly #json: Buffer;
  readonly #zipped = new Map<OpenApiMediaType, Promise<Buffer>>();
  readonly #shapes: MessageShapes;
  #protobuf: Buffer | undefined;

  /** @param text the document's JSON */
  constructor(text: string, { madeMs, shapes }: { madeMs: number; shapes: MessageShapes }) {
    this.#shapes = shapes;
    this.#json = Buffer.from(text);
    this.digest = createHash('sha512').update(this.#json).digest('hex').toUpperCase();
    this.madeMs = madeMs;
  }

  /** Its JSON. */
  get json(): Buffer {
    return this.#json;
  }

  /** The bytes in an encoding, compressed if the client accepts gzip and it is worthwhile. */
  async body(type: OpenApiMediaType, gzips: boolean): Promise<{ body: Buffer; encoding?: 'gzip' }> {
    const plain = type === 'application/json' ? this.#json : this.#asProtobuf();
    if (!gzips || plain.length < gzipThresholdBytes) return { body: plain };
    let zipped = this.#zipped.get(type);
    if (zipped === undefined) {
      zipped = compress(plain, { level: 1 });
      this.#zipped.set(type, zipped);
    }
    return { body: await zipped, encoding: 'gzip' };
  }

  #asProtobuf(): Buffer {
    this.#protobuf ??= openApiProto(this.#shapes, JSON.parse(this.#json.toString('utf8')));
    return this.#protobuf;
  }
}

interface Part {
  readonly defs: readonly ResourceDef[];
  /** Shared by concurrent requests while it is being created. */
  readonly document: Promise<CachedDocument>;
}

/**
 * All OpenAPI documents of a server. Each is created by the first request for it, and again after
 * its kinds have changed.
 */
export class OpenApiDocuments {
  readonly #source: {
    readonly dialect: Dialect;
    readonly release: string;
    readonly enums?: OpenApiSource['enums'];
    readonly plainPaths: () => readonly string[];
    readonly snapshot: () => CatalogueSnapshot;
    readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  };
  #descriptions: Descriptions | undefined;
  #parts: ReadonlyMap<string, Part> = new Map();
  #index: { generation: number; document: CachedDocument } | undefined;
  #whole: { generation: number; document: Promise<CachedDocument> } | undefined;

  constructor(source: {
    readonly dialect: Dialect;
    readonly release: string;
    readonly enums?: OpenApiSource['enums'];
    readonly plainPaths: () => readonly string[];
    readonly snapshot: () => CatalogueSnapshot;
    readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  }) {
    this.#source = source;
  }

  /** `/openapi/v3`. Needs the digests of all documents; other requests run between two of them. */
  async index(): Promise<CachedDocument> {
    const snapshot = this.#source.snapshot();
    if (this.#index?.generation === snapshot.generation) return this.#index.document;
    const parts = new Map<string, Part>();
    const digests = new Map<string, string>();
    for (const place of this.#places(snapshot)) {
      const part = this.#current(place);
      if (part !== this.#parts.get(place.name)) await nextTurn();
      parts.set(place.name, part);
      digests.set(place.name, (await part.document).digest);
    }
    const document = this.#hold(jsonText(openApiV3Index(digests)));
    // A slower request with an older snapshot must not replace a newer index.
    if ((this.#index?.generation ?? 0) < snapshot.generation) {
      this.#parts = parts;
      this.#index = { generation: snapshot.generation, document };
    }
    return document;
  }

  /** One document by its name in the index; undefined when nothing of that name is served. */
  async part(name: string): Promise<CachedDocument | undefined> {
    const place = this.#places(this.#source.snapshot()).find((one) => one.name === name);
    if (place === undefined) return undefined;
    const part = this.#current(place);
    if (this.#parts.get(name) !== part) this.#parts = new Map([...this.#parts, [name, part]]);
    return part.document;
  }

  /** `/openapi/v2`. Created in slices, once for all concurrent requests. */
  whole(): Promise<CachedDocument> {
    const snapshot = this.#source.snapshot();
    const { generation } = snapshot;
    if (this.#whole?.generation !== generation) {
      this.#whole = { generation, document: this.#makeWhole(snapshot) };
    }
    return this.#whole.document;
  }

  async #makeWhole(snapshot: CatalogueSnapshot): Promise<CachedDocument> {
    const text = await inSlices(openApiV2(this.#sourceAt(snapshot)), this.#source.clock);
    return this.#hold(text, openApiV2Shapes);
  }

  #places(snapshot: CatalogueSnapshot): DocumentPlace[] {
    return openApiV3Places(this.#sourceAt(snapshot));
  }

  #sourceAt(snapshot: CatalogueSnapshot): OpenApiSource {
    const { dialect, release, plainPaths, enums } = this.#source;
    this.#descriptions ??= describedIn(dialect);
    const descriptions = this.#descriptions;
    return { snapshot, dialect, release, enums, plainPaths: plainPaths(), descriptions };
  }

  /** The cached part while its kinds are unchanged; otherwise a new one, built in slices. */
  #current({ name, defs, make }: DocumentPlace): Part {
    const cached = this.#parts.get(name);
    const isSame =
      cached?.defs.length === defs.length && defs.every((def, index) => def === cached.defs[index]);
    return cached !== undefined && isSame ? cached : { defs, document: this.#makePart(make()) };
  }

  async #makePart(steps: Generator<void, string>): Promise<CachedDocument> {
    return this.#hold(await inSlices(steps, this.#source.clock));
  }

  #hold(text: string, shapes: MessageShapes = openApiV3Shapes): CachedDocument {
    return new CachedDocument(text, { madeMs: this.#source.clock.now(), shapes });
  }
}
