import { decodeJsonInSlices, encodeJsonSteps } from '@wheelhouse/codec';
import {
  type Clock,
  definedMembers,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualExceptSteps,
  jsonEqualSteps,
  type Logger,
  type MaybePromise,
  member,
  objectOf,
  runInSlices,
  StatusError,
  Stride,
  setMember,
  sharedPromise,
  stringsOf,
} from '@wheelhouse/machinery';
import { openApiV2Messages } from '../documents/openapi-v2.ts';
import { documentUrl, openApiV3Messages } from '../documents/openapi-v3.ts';
import type { AuthorizedCall } from '../endpoints/call.ts';
import {
  answerDocument,
  type CachedDocument,
  documentSteps,
  documentsOf,
  wholeTypes,
} from '../endpoints/openapi.ts';
import type { RemoteApi } from './api-service.ts';
import type { FetchFromServer } from './discovery-follower.ts';
import {
  documentName,
  type OpenApiParts,
  partsOf,
  type Referable,
  RemoteOpenApi,
  type Renames,
  referable,
  renameReferences,
  selectPaths,
} from './remote-openapi.ts';

/** The member that lists the kinds of a definition. */
const kindsMember = 'x-kubernetes-group-version-kind';

type Merged = Record<'paths' | Referable, Map<string, JsonValue>>;

/**
 * Merges this server's OpenAPI 2 document with those of others, in steps (TRUST-2). Of several
 * items for a path, the first is used. A definition or parameter is renamed (`name_v2`) if its name
 * is already used for another one.
 */
export function* mergeOpenApi(
  own: JsonObject,
  others: readonly OpenApiParts[],
): Generator<void, JsonObject> {
  const { paths, definitions, parameters } = partsOf(own);
  const merged: Merged = {
    paths: new Map(paths),
    definitions: new Map(definitions),
    parameters: new Map(parameters),
  };
  for (const parts of others) yield* addParts(merged, parts);
  return {
    ...own,
    paths: Object.fromEntries(merged.paths),
    definitions: Object.fromEntries(merged.definitions),
    ...(merged.parameters.size === 0 ? {} : { parameters: Object.fromEntries(merged.parameters) }),
  };
}

function* addParts(merged: Merged, parts: OpenApiParts): Generator<void> {
  const added = yield* selectPaths(parts, (path) => !merged.paths.has(path));
  const names: Renames = {
    definitions: yield* newNames(merged.definitions, added.definitions, sameDefinitionSteps),
    parameters: yield* newNames(merged.parameters, added.parameters, jsonEqualSteps),
  };
  const stride = new Stride();
  for (const [path, item] of added.paths) {
    merged.paths.set(path, yield* renameReferences(item, names, stride));
    if (stride.isOver) yield;
  }
  for (const of of referable) {
    for (const [name, value] of added[of]) {
      const target = names[of].get(name) ?? name;
      const present = merged[of].get(target);
      if (present === undefined)
        merged[of].set(target, yield* renameReferences(value, names, stride));
      else if (of === 'definitions') merged[of].set(target, withKindsOf(present, value));
      if (stride.isOver) yield;
    }
  }
}

/** Number of definitions whose names are compared in one step. */
const namesPerStep = 50;

/** New names for the added values whose names refer to other values in `present`, in steps. */
function* newNames(
  present: ReadonlyMap<string, JsonValue>,
  added: ReadonlyMap<string, JsonValue>,
  sameSteps: (left: JsonValue, right: JsonValue) => Generator<void, boolean>,
): Generator<void, ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  let compared = 0;
  for (const [name, value] of added) {
    compared += 1;
    if (compared % namesPerStep === 0) yield;
    const existing = present.get(name);
    if (existing === undefined || (yield* sameSteps(existing, value))) continue;
    for (let count = 2; ; count += 1) {
      const candidate = `${name}_v${count}`;
      const there = present.get(candidate);
      const isFree = there === undefined && !added.has(candidate) && !taken.has(candidate);
      if (!isFree && (there === undefined || !(yield* sameSteps(there, value)))) continue;
      names.set(name, candidate);
      taken.add(candidate);
      break;
    }
  }
  return names;
}

function sameDefinitionSteps(left: JsonValue, right: JsonValue): Generator<void, boolean> {
  if (!isObject(left) || !isObject(right)) return jsonEqualSteps(left, right);
  return jsonEqualExceptSteps(left, right, kindsMember);
}

/** A definition with the kinds of both definitions. */
function withKindsOf(present: JsonValue, added: JsonValue): JsonValue {
  if (!isObject(present) || !isObject(added)) return present;
  const own = kindsOf(present);
  const more = kindsOf(added).filter((kind) => !own.some((existing) => jsonEqual(existing, kind)));
  if (more.length === 0) return present;
  const kinds = [...own, ...more].sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
  return { ...present, [kindsMember]: kinds };
}

function kindsOf(definition: JsonObject): readonly JsonValue[] {
  const kinds = definition[kindsMember];
  return Array.isArray(kinds) ? kinds : [];
}

function keyOf(kind: JsonValue): string {
  if (!isObject(kind)) return '';
  return `${kind['group']}/${kind['version']}.${kind['kind']}`;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;
/** Members of an operation that OpenAPI 2 and 3 have in common. */
const commonMembers = [
  'tags',
  'summary',
  'description',
  'externalDocs',
  'operationId',
  'deprecated',
];

/** Converts parts of an OpenAPI 2 document to an OpenAPI 3 document, in steps. */
function* convertOpenApi(parts: OpenApiParts): Generator<void, JsonObject> {
  const stride = new Stride();
  const paths: JsonObject = {};
  for (const [path, item] of parts.paths) {
    setMember(paths, path, pathItem(item, parts));
    stride.weigh(item);
    if (stride.isOver) yield;
  }
  const schemas: JsonObject = {};
  for (const [name, definition] of parts.definitions) {
    setMember(schemas, name, yield* schemaSteps(definition, stride));
    if (stride.isOver) yield;
  }
  return { openapi: '3.0.0', info: parts.info, paths, components: { schemas } };
}

function pathItem(item: JsonValue, parts: OpenApiParts): JsonObject {
  const from = objectOf(item);
  const operations = methods.flatMap((method) => {
    const operation = member(from, method);
    return isObject(operation) ? [[method, operationOf(operation, parts)] as const] : [];
  });
  return {
    ...Object.fromEntries(operations),
    ...parametersOf(from, parts).others,
    ...extensionsOf(from),
  };
}

function operationOf(from: JsonObject, parts: OpenApiParts): JsonObject {
  const { body, others } = parametersOf(from, parts);
  const same = commonMembers.flatMap((name) => {
    const value = member(from, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const content = (types: JsonValue | undefined, schema: JsonValue) =>
    Object.fromEntries(stringsOf(types).map((type) => [type, { schema: schemaOf(schema) }]));
  const responses = Object.entries(objectOf(member(from, 'responses'))).map(([code, response]) => {
    const { description = '', schema } = objectOf(response);
    const payload = schema === undefined ? {} : { content: content(from['produces'], schema) };
    return [code, code.startsWith('x-') ? response : { description, ...payload }] as const;
  });
  return {
    ...Object.fromEntries(same),
    ...others,
    ...(body === undefined ? {} : { requestBody: { content: content(from['consumes'], body) } }),
    responses: Object.fromEntries(responses),
    ...extensionsOf(from),
  };
}

/** The schema of the body, and an object with the other parameters. */
function parametersOf(
  from: JsonObject,
  parts: OpenApiParts,
): { readonly body: JsonValue | undefined; readonly others: JsonObject } {
  const parameters = listOf(from, 'parameters').flatMap((declared) => {
    const reference = isObject(declared) ? member(declared, '$ref') : undefined;
    if (typeof reference !== 'string') return isObject(declared) ? [declared] : [];
    const parameter = parts.parameters.get(reference.replace('#/parameters/', ''));
    return isObject(parameter) ? [parameter] : [];
  });
  const isBody = (parameter: JsonObject) =>
    parameter['in'] === 'body' && parameter['schema'] !== undefined;
  const others = parameters.filter((parameter) => !isBody(parameter)).map(parameterOf);
  return {
    body: parameters.find(isBody)?.['schema'],
    others: others.length === 0 ? {} : { parameters: others },
  };
}

/** Converts a parameter: OpenAPI 3 declares its type in a schema. */
function parameterOf(from: JsonObject): JsonObject {
  const { name, in: place, description, required, schema, ...rest } = from;
  const { type, format, uniqueItems } = rest;
  const simple = definedMembers({ type, format, uniqueItems });
  return {
    ...definedMembers({ name, in: place, description, required }),
    schema: schema === undefined ? simple : schemaOf(schema),
    ...extensionsOf(from),
  };
}

const definitionPrefix = '#/definitions/';

/** Converts a schema. References point to components, in `allOf` if they have siblings. */
function schemaOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(schemaOf);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, child]) => [
    name,
    child === undefined ? child : schemaOf(child),
  ]);
  return withComponent(value, Object.fromEntries(entries));
}

/** `schemaOf` in steps. */
function* schemaSteps(value: JsonValue, stride: Stride): Generator<void, JsonValue> {
  if (stride.weigh(value) === 'light') return schemaOf(value);
  if (Array.isArray(value)) {
    const items: JsonValue[] = [];
    for (const item of value) {
      items.push(yield* schemaSteps(item, stride));
      if (stride.isOver) yield;
    }
    return items;
  }
  const copy: JsonObject = {};
  for (const [name, child] of Object.entries(objectOf(value))) {
    if (child !== undefined) setMember(copy, name, yield* schemaSteps(child, stride));
    if (stride.isOver) yield;
  }
  return withComponent(value, copy);
}

/** A converted schema in which a reference of the original names a component. */
function withComponent(original: JsonValue, copy: JsonObject): JsonObject {
  const reference = isObject(original) ? member(original, '$ref') : undefined;
  if (typeof reference !== 'string' || !reference.startsWith(definitionPrefix)) return copy;
  const $ref = `#/components/schemas/${reference.slice(definitionPrefix.length)}`;
  const { $ref: _, ...beside } = copy;
  return Object.keys(beside).length === 0 ? { $ref } : { ...beside, allOf: [{ $ref }] };
}

function extensionsOf(from: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(from).filter(([name]) => name.startsWith('x-')));
}

function listOf(from: JsonObject, name: string): readonly JsonValue[] {
  const value = member(from, name);
  return Array.isArray(value) ? value : [];
}

/** An OpenAPI 3 document converted from OpenAPI 2. */
interface Converted {
  /** Digest of the source. */
  readonly of: string;
  readonly document: CachedDocument;
}

/** Serves OpenAPI documents that include those of other servers. */
export class MergedOpenApi {
  readonly #remote: RemoteOpenApi;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #converted: ReadonlyMap<string, Converted> = new Map();
  /** The merged document by its sources; one at most. */
  readonly #wholes = new Map<string, Promise<CachedDocument>>();

  constructor(options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly fetch: FetchFromServer;
  }) {
    this.#remote = new RemoteOpenApi(options);
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** Replaces the group versions of other servers. */
  update(apis: readonly RemoteApi[]): void {
    this.#remote.update(apis);
    this.#wholes.clear();
  }

  /**
   * The source of the OpenAPI 3 document of a group version: the other server, or a converted
   * document if that server has only OpenAPI 2. Undefined if there is none.
   */
  async ownerOf(api: RemoteApi): Promise<'server' | CachedDocument | undefined> {
    const name = documentName(api);
    if ((await this.#remote.index()).has(name)) return 'server';
    return (await this.#convertedDocuments()).get(name)?.document;
  }

  /** Answers `/openapi/v3`. Rejects with a 406 if the client accepts no known encoding. */
  async answerIndex(call: AuthorizedCall): Promise<boolean> {
    const remote = await this.#remote.index();
    const own = await this.#decoded(await documentsOf(call.context).index());
    const paths: JsonObject = { ...objectOf(own['paths']) };
    for (const [name, serverRelativeURL] of remote) setMember(paths, name, { serverRelativeURL });
    for (const [name, { document }] of await this.#convertedDocuments()) {
      setMember(paths, name, { serverRelativeURL: documentUrl(name, document.digest) });
    }
    const names = Object.keys(paths).sort();
    const sorted = Object.fromEntries(names.map((name) => [name, paths[name]]));
    return answerDocument(call, {
      document: await this.#cachedDocument({ ...own, paths: sorted }, openApiV3Messages),
    });
  }

  /**
   * Answers `/openapi/v2`. Resolves to false, without an answer, if no other server has a
   * document. Rejects with a 406 if the client accepts no known encoding.
   */
  async answerWhole(call: AuthorizedCall): Promise<boolean> {
    const { key, parts } = await this.#remote.v2Parts();
    if (parts.length === 0) return false;
    const own = await documentsOf(call.context).whole();
    const document = await this.#merged(own, { key, parts });
    try {
      return await answerDocument(call, { document, types: wholeTypes });
    } catch (error) {
      if (error instanceof StatusError) throw error;
      // Another server's document cannot be represented in the client's encoding.
      this.#logger.warn('cannot encode the OpenAPI of other servers', { error: String(error) });
      return false;
    }
  }

  /** The merged document, created once for all concurrent requests. */
  #merged(
    own: CachedDocument,
    others: { readonly key: string; readonly parts: readonly OpenApiParts[] },
  ): Promise<CachedDocument> {
    const key = `${own.digest}\n${others.key}`;
    if (!this.#wholes.has(key)) this.#wholes.clear();
    return sharedPromise(this.#wholes, key, () => this.#merge(own, others.parts));
  }

  async #merge(own: CachedDocument, parts: readonly OpenApiParts[]): Promise<CachedDocument> {
    const merging = mergeOpenApi(await this.#decoded(own), parts);
    return this.#cachedDocument(await runInSlices(merging, this.#clock), openApiV2Messages);
  }

  async #convertedDocuments(): Promise<ReadonlyMap<string, Converted>> {
    const only = await this.#remote.v2OnlyParts();
    const before = this.#converted;
    const converting = [...only].map(async ([name, { digest, parts }]) => {
      const previous = before.get(name);
      if (previous?.of === digest) return [name, previous] as const;
      return [name, { of: digest, document: await this.#convert(parts) }] as const;
    });
    this.#converted = new Map(await Promise.all(converting));
    return this.#converted;
  }

  async #convert(parts: OpenApiParts): Promise<CachedDocument> {
    return this.#cachedDocument(
      await runInSlices(convertOpenApi(parts), this.#clock),
      openApiV3Messages,
    );
  }

  #cachedDocument(
    value: JsonObject,
    messages: typeof openApiV2Messages,
  ): MaybePromise<CachedDocument> {
    const clock = this.#clock;
    return runInSlices(cachedDocumentSteps(value, { madeMs: clock.now(), clock, messages }), clock);
  }

  async #decoded(document: CachedDocument): Promise<JsonObject> {
    const { value } = await decodeJsonInSlices(document.json, { clock: this.#clock });
    if (!isObject(value)) throw new Error('the OpenAPI document is not an object');
    return value;
  }
}

function* cachedDocumentSteps(
  value: JsonObject,
  options: Parameters<typeof documentSteps>[1],
): Generator<void, CachedDocument> {
  return yield* documentSteps(yield* encodeJsonSteps(value), options);
}
