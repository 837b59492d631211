import { decodeJson, jsonText } from '@wheelhouse/codec';
import {
  type Clock,
  isObject,
  type JsonObject,
  type Logger,
  StatusError,
  setMember,
} from '@wheelhouse/machinery';
import { CachedDocument } from '../answer/openapi-documents.ts';
import type { AuthorizedCall } from '../endpoints/call.ts';
import { answerDocument, documentsOf, wholeTypes } from '../endpoints/openapi.ts';
import { openApiV2Shapes } from '../views/openapi-v2-proto.ts';
import { documentUrl } from '../views/openapi-v3.ts';
import { openApiV3Shapes } from '../views/openapi-v3-proto.ts';
import type { RemoteApi } from './api-service.ts';
import type { AskServer } from './discovery-follower.ts';
import { convertOpenApi } from './openapi-convert.ts';
import { mergeOpenApi } from './openapi-merge.ts';
import { documentName, RemoteOpenApi } from './remote-openapi.ts';

/** Answers for the OpenAPI documents in which other servers have a part. */
export class MergedOpenApi {
  readonly #remote: RemoteOpenApi;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Documents of OpenAPI 3 made of OpenAPI 2, with the digests of what they are made of. */
  #converted: ReadonlyMap<string, { readonly of: string; readonly document: CachedDocument }> =
    new Map();
  #whole: { readonly key: string; readonly document: CachedDocument } | undefined;

  constructor(options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly ask: AskServer;
  }) {
    this.#remote = new RemoteOpenApi(options);
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** The group versions that other servers answer now. */
  update(apis: readonly RemoteApi[]): void {
    this.#remote.update(apis);
    this.#whole = undefined;
  }

  /**
   * Who has the document about a group version: the server that answers for it, or, where that
   * knows OpenAPI 2 alone, this one, which makes it of that. Undefined: there is none.
   */
  async whoHas(api: RemoteApi): Promise<'server' | CachedDocument | undefined> {
    const name = documentName(api);
    if ((await this.#remote.index()).has(name)) return 'server';
    return (await this.#convertedDocuments()).get(name);
  }

  /** Answers `/openapi/v3`. Throws 406. */
  async answerIndex(call: AuthorizedCall): Promise<boolean> {
    const remote = await this.#remote.index();
    const own = decoded(await documentsOf(call.context).index());
    const paths: JsonObject = { ...(isObject(own['paths']) ? own['paths'] : {}) };
    for (const [name, serverRelativeURL] of remote) setMember(paths, name, { serverRelativeURL });
    for (const [name, { digest }] of await this.#convertedDocuments()) {
      setMember(paths, name, { serverRelativeURL: documentUrl(name, digest) });
    }
    const names = Object.keys(paths).sort();
    const sorted = Object.fromEntries(names.map((name) => [name, paths[name]]));
    return answerDocument(call, {
      document: this.#hold(jsonText({ ...own, paths: sorted }), openApiV3Shapes),
    });
  }

  /** Answers `/openapi/v2`; false: others have nothing to say there. Throws 406. */
  async answerWhole(call: AuthorizedCall): Promise<boolean> {
    const { key, parts } = await this.#remote.parts();
    if (parts.length === 0) return false;
    const own = await documentsOf(call.context).whole();
    const whole = `${own.digest}\n${key}`;
    if (this.#whole?.key !== whole) {
      const text = jsonText(mergeOpenApi(decoded(own), parts));
      this.#whole = { key: whole, document: this.#hold(text, openApiV2Shapes) };
    }
    const { document } = this.#whole;
    try {
      return await answerDocument(call, { document, types: wholeTypes });
    } catch (error) {
      if (error instanceof StatusError) throw error;
      // What another server has said cannot be told in the client's encoding.
      this.#logger.warn('the OpenAPI of other servers is left out', { error: String(error) });
      return false;
    }
  }

  async #convertedDocuments(): Promise<ReadonlyMap<string, CachedDocument>> {
    const before = this.#converted;
    const only = await this.#remote.onlyParts();
    this.#converted = new Map(
      [...only].map(([name, { digest, parts }]) => {
        const previous = before.get(name);
        if (previous?.of === digest) return [name, previous];
        const document = this.#hold(jsonText(convertOpenApi(parts)), openApiV3Shapes);
        return [name, { of: digest, document }];
      }),
    );
    return new Map([...this.#converted].map(([name, { document }]) => [name, document]));
  }

  #hold(text: string, shapes: typeof openApiV2Shapes): CachedDocument {
    return new CachedDocument(text, { madeMs: this.#clock.now(), shapes });
  }
}

function decoded(document: CachedDocument): JsonObject {
  const { value } = decodeJson(document.json);
  if (!isObject(value)) throw new Error('an OpenAPI document is an object');
  return value;
}
