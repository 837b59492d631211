import type { Dialect } from '@wheelhouse/machinery';
import type { KindFinder } from './plane-client.ts';
import type { Manifest } from './sources.ts';
import type { ManifestObject, ManifestSource, PlaneClient, WebhookEndpoint } from './types.ts';

/** How the clients of a plane reach it. */
export interface PlaneAddress {
  readonly url: string;
  readonly caPem: string;
  /** The token of the plane itself, whose requests are neither recorded nor disturbed. */
  readonly ownToken: string;
  readonly dialect: Dialect;
  readonly webhooks: WebhookEndpoint | undefined;
  /** Returns a different value when the served kinds change. */
  readonly catalogue: () => unknown;
}

/** The clients of a plane. Their modules are loaded with the first request, not with the plane. */
export class PlaneClients {
  readonly #address: PlaneAddress;
  readonly #opened: { close(): void }[] = [];
  #kinds: KindFinder | undefined;
  #closed = false;

  constructor(address: PlaneAddress) {
    this.#address = address;
  }

  /** A client with a token; opens no connection before its first request. */
  of(token: string): PlaneClient {
    let opened: Promise<PlaneClient> | undefined;
    const client = () => {
      opened ??= this.#open(token);
      return opened;
    };
    return {
      request: async (request) => (await client()).request(request),
      get: async (reference) => (await client()).get(reference),
      list: async (reference) => (await client()).list(reference),
      create: async (object) => (await client()).create(object),
      replace: async (object) => (await client()).replace(object),
      delete: async (reference) => (await client()).delete(reference),
      apply: async (...sources) => (await client()).apply(...sources),
    };
  }

  /** Applies manifests that were already read. */
  async install(client: PlaneClient, manifests: readonly Manifest[]): Promise<ManifestObject[]> {
    const { installManifests } = await import('./install.ts');
    const { dialect, webhooks } = this.#address;
    const kinds = await this.#finder();
    const redirect =
      webhooks === undefined
        ? (object: ManifestObject) => object
        : (await import('./webhooks.ts')).webhookRedirect(webhooks, dialect);
    return installManifests(client, manifests, { dialect, kinds, redirect });
  }

  /** Ends all connections. The stopped plane refuses later requests. */
  close(): void {
    this.#closed = true;
    for (const one of this.#opened.splice(0)) one.close();
  }

  async #open(token: string): Promise<PlaneClient> {
    const { createPlaneClient } = await import('./plane-client.ts');
    const install = async (client: PlaneClient, sources: readonly ManifestSource[]) => {
      const { readSources } = await import('./sources.ts');
      return this.install(client, await readSources(sources));
    };
    const config = this.#config(token);
    const client = createPlaneClient({ config, kinds: await this.#finder(), install });
    if (this.#closed) client.close();
    else this.#opened.push(client);
    return client;
  }

  async #finder(): Promise<KindFinder> {
    const { KindFinder } = await import('./plane-client.ts');
    const { ownToken, catalogue } = this.#address;
    this.#kinds ??= new KindFinder(this.#config(ownToken), catalogue);
    return this.#kinds;
  }

  #config(token: string) {
    const { url: server, caPem } = this.#address;
    return { server, ...(caPem === '' ? {} : { caPem }), token: () => token };
  }
}
