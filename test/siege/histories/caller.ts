import { Connections, type Endpoint, pause } from './connection.ts';
import { Violation } from './operation.ts';

const patienceMs = 60_000;

/** Sends requests to servers that may not answer at once, until it has an answer. */
export class Caller {
  readonly #connections = new Connections();
  readonly #endpoints: () => readonly Endpoint[];

  constructor(endpoints: () => readonly Endpoint[]) {
    this.#endpoints = endpoints;
  }

  /** Repeats a request to one server until its answer has one of the statuses; returns the body. */
  async send(request: {
    readonly method: string;
    readonly path: string;
    readonly body?: unknown;
    readonly statuses?: readonly number[];
    readonly server?: number;
  }) {
    const { statuses = [200], server = 0 } = request;
    const end = performance.now() + patienceMs;
    for (;;) {
      const endpoint = this.#endpoints()[server];
      const reply =
        endpoint === undefined
          ? undefined
          : await this.#connections.send(endpoint, { ...request, patienceMs });
      if (reply?.type === 'answer' && statuses.includes(reply.status)) return reply.body;
      if (performance.now() > end) {
        throw new Violation(`${request.method} ${request.path}: ${JSON.stringify(reply)}`);
      }
      await pause(50);
    }
  }

  /** The same for all servers, one after the other. */
  async sendAll(request: { readonly method: string; readonly path: string }) {
    const bodies: Awaited<ReturnType<Caller['send']>>[] = [];
    for (let server = 0; server < this.#endpoints().length; server += 1) {
      bodies.push(await this.send({ ...request, server }));
    }
    return bodies;
  }

  close(): void {
    this.#connections.cut();
  }
}
